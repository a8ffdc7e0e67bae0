"""Files as text for the model: encodings, PDF, and a sentence for everything else."""

import random
from io import BytesIO
from pathlib import Path

import pypdf
import pytest
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from app.chat import attachments
from app.chat.attachments import AttachmentError, from_bytes, read_attachment, to_prompt_text

TEXT = "Grüße, 世界 🌍\nzweite Zeile"


def pdf(*pages, password=""):
    """A real PDF with one line of text a page."""
    writer = pypdf.PdfWriter()
    for text in pages:
        page = writer.add_blank_page(200, 200)
        font = DictionaryObject(
            {
                NameObject("/Type"): NameObject("/Font"),
                NameObject("/Subtype"): NameObject("/Type1"),
                NameObject("/BaseFont"): NameObject("/Helvetica"),
            }
        )
        fonts = DictionaryObject({NameObject("/F1"): writer._add_object(font)})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 10 100 Td ({text}) Tj ET".encode() if text else b"")
        page[NameObject("/Contents")] = writer._add_object(stream)
    if password:
        writer.encrypt(password)
    out = BytesIO()
    writer.write(out)
    return out.getvalue()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_texts_in_any_unicode(encoding):
    assert from_bytes(TEXT.encode(encoding), "a.md").text == TEXT


def test_an_old_encoding_and_line_ends():
    assert from_bytes("Grüße\r\nA\rB".encode("cp1252"), "a.txt").text == "Grüße\nA\nB"


def test_a_file_brings_its_facts(tmp_path):
    path = tmp_path / "notes.py"
    path.write_text("print('hi')")
    found = read_attachment(path)
    assert (found.name, found.size_bytes, found.note) == ("notes.py", 11, "")
    assert found.media_type == "text/x-python"
    assert len(found.sha256) == 64


def test_the_text_of_a_pdf():
    found = from_bytes(pdf("First page", "Second page"), "x.bin")
    assert found.media_type == "application/pdf"
    assert [line.strip() for line in found.text.split("\n\n")] == ["First page", "Second page"]


def test_long_things_are_cut_with_a_note(monkeypatch):
    monkeypatch.setattr(attachments, "MOST_LETTERS", 10)
    found = from_bytes(b"x" * 100, "a.txt")
    assert (len(found.text), "first 10" in found.note) == (10, True)
    monkeypatch.setattr(attachments, "MOST_LETTERS", 1000)
    monkeypatch.setattr(attachments, "MOST_PAGES", 2)
    found = from_bytes(pdf("One", "Two", "Three"), "a.pdf")
    assert "Three" not in found.text
    assert found.note == "Only the first 2 of 3 pages."
    monkeypatch.setattr(attachments, "PDF_SECONDS", -1.0)
    with pytest.raises(AttachmentError):  # not one page in time
        from_bytes(pdf("One", "Two"), "a.pdf")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"   \n", "no text"),
        (b"\x89PNG\r\n\x1a\n....", "picture"),
        (b"\xff\xd8\xff\xe0....", "picture"),
        (b"RIFF1234WEBPVP8 ", "picture"),
        (b"\0\0\0 ftypheic....", "picture"),
        (b"PK\x03\x04....", "Unpack"),
        (b"MZ\x90\0\x03\0\0\0", "not a text"),
        (bytes(range(1, 32)) * 100 + b"\xff", "not a text"),
        (b"\xff\xfea", "damaged"),
        (b"%PDF-1.7\nnothing more", "damaged"),
    ],
)
def test_what_is_no_text_is_refused_in_words(data, words):
    with pytest.raises(AttachmentError, match=words) as caught:
        from_bytes(data, "thing")
    assert str(caught.value).endswith(".")


def test_office_files_say_what_to_do():
    with pytest.raises(AttachmentError, match="Save it as PDF"):
        from_bytes(b"PK\x03\x04....", "letter.docx")


def test_locked_and_scanned_pdfs():
    with pytest.raises(AttachmentError, match="password"):
        from_bytes(pdf("Secret", password="x"), "a.pdf")
    with pytest.raises(AttachmentError, match="pictures"):
        from_bytes(pdf("", ""), "a.pdf")


def test_folders_missing_files_and_sizes(tmp_path, monkeypatch):
    for path in (tmp_path, tmp_path / "no"):
        with pytest.raises(AttachmentError):
            read_attachment(path)
    monkeypatch.setattr(attachments, "MOST_BYTES", 1024**2)
    (tmp_path / "big").write_bytes(b"x" * (1024**2 + 1))
    with pytest.raises(AttachmentError, match="larger than 1 MB"):
        read_attachment(tmp_path / "big")


def test_damaged_pdfs_end_in_a_text_or_a_sentence():
    seed = random.randrange(2**32)
    print("seed", seed)
    draw = random.Random(seed)
    whole = pdf("First page", "Second page")
    refused = 0
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(draw.randint(1, 12)):
            data[draw.randrange(8, len(data))] = draw.randrange(256)
        try:
            from_bytes(bytes(data[: draw.randint(20, len(data))]), "a.pdf")
        except AttachmentError:
            refused += 1
    assert refused  # some of them were really broken


@pytest.mark.parametrize(
    ("name", "plain"), [("../../etc/passwd", "passwd"), ("a\\b\\c.txt", "c.txt"), ("\n", "file")]
)
def test_a_name_is_one_word_of_a_path(name, plain):
    assert from_bytes(b"x", name).name == plain


def test_in_the_prompt_a_file_cannot_end_its_own_fence():
    text = to_prompt_text("a.md", "```py\ncode\n```\nmore ````")
    lines = text.splitlines()
    assert lines[0] == "File: a.md"
    assert lines[1] == lines[-1] == "`````"


def test_the_log_does_not_name_the_file_of_a_damaged_pdf(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "divorce.pdf"
    path.write_bytes(b"%PDF-1.4 rubbish")
    with pytest.raises(AttachmentError):
        read_attachment(path)
    assert "could not be read" in caplog.text
    assert "divorce" not in caplog.text
