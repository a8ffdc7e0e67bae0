"""Files that a person attaches, as text for the model. Knows formats; no window, no model.

What a file is, its bytes say and not its name. Anything that is no text is refused in a sentence;
nothing in a file is executed, and nothing that it points to is fetched.
"""

import codecs
import hashlib
import logging
import mimetypes
import re
import time
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

log = logging.getLogger(__name__)

MOST_BYTES = 32 * 1024 * 1024
MOST_LETTERS = 2_000_000  # far beyond what any model reads at once
MOST_PAGES = 2000
PDF_SECONDS = 20.0
_BOMS = (  # the longer ones first: UTF-32 begins like UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_PICTURES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"BM", b"II*\0", b"MM\0*")
_OFFICE = [".docx", ".xlsx", ".pptx", ".odt", ".ods", ".odp", ".doc", ".xls", ".ppt"]


class AttachmentError(Exception):
    """A sentence for a person."""


@dataclass(frozen=True)
class Attachment:
    """`text` is what the model reads; `note` says what it does not get, or is empty."""

    name: str
    media_type: str
    text: str
    size_bytes: int
    sha256: str
    note: str = ""


def read_attachment(path: Path) -> Attachment:
    """Raises AttachmentError."""
    try:
        if path.is_dir():
            raise AttachmentError(f"{path.name} is a folder. Attach the files in it.")
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise AttachmentError(f"{path.name} can't be read: {error.strerror}.") from error
    return from_bytes(data, path.name)


def from_bytes(data: bytes, name: str) -> Attachment:
    """What is pasted or dropped without being a file. Raises AttachmentError."""
    name = _plain_name(name)
    if len(data) > MOST_BYTES:
        raise AttachmentError(f"{name} is larger than {MOST_BYTES // 2**20} MB.")
    if not data:
        raise AttachmentError(f"{name} is empty.")
    note = ""
    if data[:1024].lstrip().startswith(b"%PDF-"):
        media_type = "application/pdf"
        text, note = _text_of_pdf(data, name)
    else:
        media_type = mimetypes.guess_type(name)[0] or "text/plain"
        text = _text_of(data, name)
    if not text.strip():
        raise AttachmentError(f"{name} holds no text.")
    if len(text) > MOST_LETTERS:
        text, note = text[:MOST_LETTERS], f"Only the first {MOST_LETTERS:,} letters are attached."
    return Attachment(name, media_type, text, len(data), hashlib.sha256(data).hexdigest(), note)


def to_prompt_text(name: str, text: str) -> str:
    """How a file stands in a message: fenced, so that the model sees where it begins and ends."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"File: {_plain_name(name)}\n{fence}\n{text.rstrip()}\n{fence}"


def _plain_name(name: str) -> str:
    """The last part, on one line."""
    last = re.split(r"[/\\]", name)[-1]
    return "".join(letter for letter in last if letter.isprintable()).strip() or "file"


def _text_of(data: bytes, name: str) -> str:
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return _tidy(_decoded(data, encoding, name))
    _refuse_known(data, name)
    if b"\0" in data:
        raise AttachmentError(
            f"{name} is not a text. Text, Markdown, code and PDF files can be attached."
        )
    try:
        return _tidy(data.decode("utf-8"))
    except UnicodeDecodeError:
        pass
    control = sum(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in data[:65536])
    if control * 50 > len(data[:65536]):
        raise AttachmentError(
            f"{name} is not a text. Text, Markdown, code and PDF files can be attached."
        )
    return _tidy(data.decode("cp1252", "replace"))


def _refuse_known(data: bytes, name: str) -> None:
    """Things that people try, with what to do instead."""
    is_webp = data[:4] == b"RIFF" and data[8:12] == b"WEBP"
    if data.startswith(_PICTURES) or is_webp or data[4:8] == b"ftyp":
        raise AttachmentError(f"{name} is a picture or film. Only texts can be attached.")
    if data.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        is_office = Path(name).suffix.lower() in _OFFICE
        words = (
            "Save it as PDF or as text, and attach that."
            if is_office
            else "Unpack it, and attach the texts in it."
        )
        raise AttachmentError(f"{name} can't be read as text. {words}")


def _decoded(data: bytes, encoding: str, name: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise AttachmentError(
            f"{name} is damaged: it is marked as {encoding.upper()}, and is not."
        ) from error


def _tidy(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _text_of_pdf(data: bytes, name: str) -> tuple[str, str]:
    """The text of all pages, and what was left out."""
    import pypdf  # a fifth of a second, which only those with a PDF wait for
    from pypdf.errors import PyPdfError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    damaged = f"{name} can't be read: the PDF is damaged. Save it anew from another program."
    try:
        reader = pypdf.PdfReader(BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise AttachmentError(f"{name} is locked with a password. Save a copy without one.")
        text, note = _pages(reader, name)
    except AttachmentError:
        raise
    except (PyPdfError, RecursionError, MemoryError) as error:
        log.warning("a PDF could not be read", exc_info=error)
        raise AttachmentError(damaged) from error
    except Exception as error:  # whatever a broken file makes a parser do
        log.exception("a PDF could not be read")
        raise AttachmentError(damaged) from error
    if not text.strip():
        raise AttachmentError(
            f"{name} holds no text: its pages are pictures. Run a text recognition over it first."
        )
    return text, note


def _pages(reader: "object", name: str) -> tuple[str, str]:
    pages = reader.pages  # type: ignore[attr-defined]
    texts: list[str] = []
    start, letters = time.monotonic(), 0
    for number in range(len(pages)):
        if number >= MOST_PAGES or letters > MOST_LETTERS:
            return "\n\n".join(texts), f"Only the first {number:,} of {len(pages):,} pages."
        if time.monotonic() - start > PDF_SECONDS:
            return (
                "\n\n".join(texts),
                f"Only the first {number:,} of {len(pages):,} pages: reading took too long.",
            )
        text = pages[number].extract_text() or ""
        texts.append(text.encode("utf-8", "replace").decode("utf-8").replace("\0", ""))
        letters += len(text)
    return "\n\n".join(texts), ""
