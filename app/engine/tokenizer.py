"""Text <-> token ids with Hugging Face's own library, so that ids are those the model learned.

Two ways in: `encode` reads special tokens written in the text, as templates need it; `encode_plain`
never does, so that what a person types cannot become a control token. Streams hold back characters
that are not complete yet.
"""

import json
import operator
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
import tokenizers
from numpy.typing import ArrayLike, NDArray

from app.engine import chat_template
from app.engine.config import Configuration
from app.engine.config_file import Config
from app.engine.errors import EngineError, ModelError, library_errors, shown
from app.engine.model import Model
from app.engine.tensors import Tensor

UNKNOWN = "\ufffd"
_WHAT = "The model's tokenizer.json"
_LONGEST_START = 3  # bytes of a UTF-8 character that is not complete, hence tokens at most

Ids = NDArray[np.int32]


class Tokenizer:
    """Opened from a Model, a Config or a model folder's path."""

    def __init__(self, source: Model | Config | str | os.PathLike[str]) -> None:
        configuration = _configuration(source)
        folder = configuration.tokenizer_folder
        text = _read(folder / "tokenizer.json", "the tokenizer")
        self._tokenizer = _parse(text)
        self._settings = _read_settings(folder)
        self._plain = _PlainTokenizer(self._tokenizer, json.loads(text))
        self._options = {"add_special_tokens": False, "skip_special_tokens": True}
        self._templates = _read_templates(folder, self._settings)
        self.bos_token_id = configuration.model.bos_token_id
        self.pad_token_id = configuration.model.pad_token_id
        self._eos_token_ids = configuration.model.eos_token_ids
        self._markers = configuration.model.markers
        self._special_ids = frozenset(
            i for i, token in self._tokenizer.get_added_tokens_decoder().items() if token.special
        )
        self._size = self._tokenizer.get_vocab_size(with_added_tokens=True)

    # ------------------------------------------------------------ text -> ids

    def encode(self, text: str) -> Ids:
        """Special tokens in the text are read as such; no BOS is added unless asked for."""
        with library_errors(_WHAT):
            encoding = self._tokenizer.encode(
                _clean(text), add_special_tokens=self._options["add_special_tokens"]
            )
        return np.array(encoding.ids, np.int32)

    def encode_plain(self, text: str) -> Ids:
        """All of the text is ordinary text: no control token comes out, decode gives it back."""
        with library_errors(_WHAT):
            return np.array(self._plain.encode(_clean(text)), np.int32)

    def encode_batch(self, texts: Sequence[str]) -> Tensor:
        """(n, longest) int32, padded on the right."""
        if isinstance(texts, str) or not texts:
            raise EngineError("encode_batch takes a list of at least one text.")
        rows = [self.encode(text) for text in texts]
        batch = np.full((len(rows), max(map(len, rows))), self.pad_token_id, np.int32)
        for index, row in enumerate(rows):
            batch[index, : len(row)] = row
        return Tensor(batch)

    def to_token_id(self, piece: str) -> int:
        """The id of a piece of the vocabulary, or of it at the start of a word; -1 if unknown."""
        for candidate in (piece, f"\u0120{piece}", f"\u2581{piece}"):
            found = self._tokenizer.token_to_id(candidate)
            if found is not None:
                return int(found)
        return -1

    # ------------------------------------------------------------ ids -> text

    def decode(self, ids: ArrayLike) -> str:
        """Ids outside the vocabulary become U+FFFD."""
        numbers = np.asarray(ids).reshape(-1)
        if numbers.size and numbers.dtype.kind not in "iu":
            raise TypeError(f"Token ids are whole numbers, not {numbers.dtype}.")
        return self._decode(numbers.tolist())

    def decode_batch(self, batch: Tensor | ArrayLike) -> list[str]:
        rows = np.asarray(batch.data() if isinstance(batch, Tensor) else batch)
        if rows.ndim != 2:
            raise EngineError(f"decode_batch takes two dimensions, not {rows.ndim}.")
        return [self.decode(row) for row in rows]

    def create_stream(self) -> "TokenizerStream":
        return TokenizerStream(self)

    def _decode(self, ids: list[int]) -> str:
        if all(0 <= i < self._size for i in ids):
            return self._decode_known(ids)
        text, known = "", []
        for i in [*ids, -1]:
            if 0 <= i < self._size:
                known.append(i)
                continue
            text += self._decode_known(known) + UNKNOWN
            known = []
        return text.removesuffix(UNKNOWN)

    def _decode_known(self, ids: list[int]) -> str:
        skip = self._options["skip_special_tokens"]
        with library_errors(_WHAT):
            return str(self._tokenizer.decode(ids, skip_special_tokens=skip))

    # ------------------------------------------------------------ what it knows

    @property
    def eos_token_ids(self) -> Ids:
        return np.array(self._eos_token_ids, np.int32)

    @property
    def bot_token_id(self) -> int:
        """Begins a call of a tool; like the next three an error where the model has none."""
        return self._marker("bot")

    @property
    def eot_token_id(self) -> int:
        """Ends a call of a tool."""
        return self._marker("eot")

    @property
    def bor_token_id(self) -> int:
        """Begins reasoning."""
        return self._marker("bor")

    @property
    def eor_token_id(self) -> int:
        """Ends reasoning."""
        return self._marker("eor")

    def _marker(self, word: str) -> int:
        if word not in self._markers:
            raise EngineError(f"This model has no {word}_token_id.")
        return self._markers[word]

    @property
    def special_token_ids(self) -> frozenset[int]:
        return self._special_ids

    @property
    def chat_template(self) -> str | None:
        return self._templates.get("default")

    def apply_chat_template(
        self,
        messages: str | Sequence[dict[str, Any]],
        template_str: str | None = None,
        tools: str | Sequence[Any] | None = None,
        add_generation_prompt: bool = True,
        **extra: Any,
    ) -> str:
        """The prompt as text; `messages` and `tools` are JSON, or what JSON would give."""
        parsed_tools = _from_json(tools, "tools") if tools else None
        template = template_str or self._template(has_tools=bool(parsed_tools))
        if not template:
            raise EngineError("This model has no chat template; give one as template_str.")
        return chat_template.render(
            template,
            _from_json(messages, "messages"),
            tools=parsed_tools,
            add_generation_prompt=add_generation_prompt,
            bos_token=_token_text(self._settings.get("bos_token")),
            eos_token=_token_text(self._settings.get("eos_token")),
            **extra,
        )

    def update_options(self, **options: Any) -> None:
        for name, value in options.items():
            if name not in self._options:
                raise EngineError(
                    f"Unknown tokenizer option {shown(name)}; known are {', '.join(self._options)}."
                )
            self._options[name] = _is_true(name, value)

    def _template(self, *, has_tools: bool) -> str | None:
        named = "tool_use" if has_tools and "tool_use" in self._templates else "default"
        return self._templates.get(named)


class TokenizerStream:
    """Text of ids that come one by one; joined together it is what decode gives for all of them."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._shown: list[int] = []  # ids whose text went out last: the context of the next ones
        self._held: list[int] = []  # ids whose text is not complete
        self._is_broken = False  # the last that went out did so without becoming complete

    def decode(self, token_id: SupportsIndex) -> str:
        """The text that is certain now, "" while a character is incomplete."""
        number = operator.index(token_id)
        if (
            number in self._tokenizer.special_token_ids
            and self._tokenizer._options["skip_special_tokens"]
        ):
            return ""
        self._held.append(number)
        is_open = self._piece(self._held).endswith(UNKNOWN)
        return self._show(len(self._held) - (_LONGEST_START if is_open else 0))

    def flush(self) -> str:
        """What is held back, at the end of the text: U+FFFD for what never became complete."""
        piece = self._show(len(self._held))
        self._shown = []
        self._is_broken = False
        return piece

    def _show(self, count: int) -> str:
        if count <= 0:
            return ""
        ids, self._held = self._held[:count], self._held[count:]
        piece = self._piece(ids)
        self._shown = [*self._shown, *ids][-_LONGEST_START:] if self._is_broken else ids
        self._is_broken = bool(self._held)
        return piece

    def _piece(self, ids: list[int]) -> str:
        """Text of the ids after that of the ids before them (a space may depend on these)."""
        before = self._tokenizer._decode(self._shown)
        whole = self._tokenizer._decode(self._shown + ids)
        if whole.startswith(before):
            return whole[len(before) :]
        return self._tokenizer._decode(ids)


class _PlainTokenizer:
    """A copy of a tokenizer that knows no control tokens, whatever the text says.

    Added tokens are left out of the copy, except runs of white space (some models have ids for
    those, and they control nothing). Vocabularies may contain the control tokens' text as ordinary
    pieces too: a control id that still comes out is spelt in bytes.
    """

    def __init__(self, full: Any, document: dict[str, Any]) -> None:
        added = document.get("added_tokens") or []
        kept = [token for token in added if _is_harmless(token)]
        document = {**document, "added_tokens": kept, "post_processor": None}
        document.update(truncation=None, padding=None)
        self._plain = _parse(json.dumps(document))
        self._full = full
        self._control = {t["id"] for t in added} - {t["id"] for t in kept}
        # Without the tokens before them in the list the kept ones may have got other ids.
        self._true_ids = {self._plain.token_to_id(token["content"]): token["id"] for token in kept}
        self._byte_ids = _byte_ids(self._plain)

    def encode(self, text: str) -> list[int]:
        encoding = self._plain.encode(text, add_special_tokens=False)
        ids = [self._true_ids.get(i, i) for i in encoding.ids]
        if not self._control.intersection(ids):
            return ids
        return self._spell(text, ids, encoding.offsets)

    def _spell(self, text: str, ids: list[int], offsets: list[tuple[int, int]]) -> list[int]:
        result: list[int] = []
        for i, (start, end) in zip(ids, offsets, strict=True):
            if i not in self._control:
                result.append(i)
                continue
            part = text[start:end]
            if self._byte_ids is None:
                raise EngineError(
                    f"The model's tokenizer cannot write {shown(part)} as ordinary text."
                )
            result += [self._byte_ids[byte] for byte in part.encode()]
        return result


def _is_harmless(token: dict[str, Any]) -> bool:
    content = str(token.get("content", "")).replace("\u2581", " ")
    flags = ("special", "lstrip", "rstrip", "single_word")
    return content.isspace() and not any(token.get(flag) for flag in flags)


def _byte_ids(tokenizer: Any) -> list[int] | None:
    """Ids of the 256 single bytes, None for a vocabulary that does not have them all."""
    for names in (_byte_level_names(), [f"<0x{byte:02X}>" for byte in range(256)]):
        found = [tokenizer.token_to_id(name) for name in names]
        if None not in found:
            return found
    return None


def _byte_level_names() -> list[str]:
    """The printable characters by which byte-level vocabularies write bytes (GPT-2's table)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    table = {byte: chr(byte) for byte in printable}
    table |= {byte: chr(256 + index) for index, byte in enumerate(others)}
    return [table[byte] for byte in range(256)]


# ---------------------------------------------------------------- files


def _configuration(source: object) -> Configuration:
    if isinstance(source, Model):
        return source.config
    if isinstance(source, Config):
        return source.freeze()
    if isinstance(source, (str, os.PathLike)):
        return Config(source).freeze()
    raise TypeError(f"A Tokenizer is made from a Model, not from {type(source).__name__}.")


def _read(path: Path, what: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        text = f"{path.name} is missing in {path.parent}: {what} is kept there."
        raise ModelError(text) from error
    except (OSError, ValueError) as error:
        raise ModelError(f"{path.name} cannot be read: {error}.") from error


def _parse(text: str) -> Any:
    with library_errors("tokenizer.json is not a tokenizer, or it is cut short: it"):
        tokenizer = tokenizers.Tokenizer.from_str(text)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _read_settings(folder: Path) -> dict[str, Any]:
    path = folder / "tokenizer_config.json"
    if not path.is_file():
        return {}
    try:
        settings = json.loads(_read(path, "the tokenizer's settings"))
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path.name} is not valid JSON: {error}.") from error
    if not isinstance(settings, dict):
        raise ModelError(f"{path.name} must hold a JSON object.")
    return settings


def _read_templates(folder: Path, settings: dict[str, Any]) -> dict[str, str]:
    """Templates by name; chat_template.jinja wins over tokenizer_config.json."""
    own = settings.get("chat_template")
    found: dict[str, str] = {}
    if isinstance(own, str):
        found["default"] = own
    elif isinstance(own, list):
        for entry in own:
            if isinstance(entry, dict) and isinstance(entry.get("template"), str):
                found[str(entry.get("name"))] = entry["template"]
    path = folder / "chat_template.jinja"
    if path.is_file():
        found["default"] = _read(path, "the chat template")
    return found


def _from_json(value: Any, what: str) -> Any:
    if not isinstance(value, str):
        return value
    try:
        parsed = json.loads(value)
    except ValueError as error:
        raise EngineError(f"{what} is not valid JSON: {error}") from error
    if not isinstance(parsed, list):
        raise EngineError(f"{what} must be a JSON list.")
    return parsed


def _token_text(token: Any) -> str:
    """Special tokens in tokenizer_config.json are strings or objects with `content`."""
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) else ""


def _is_true(name: str, value: Any) -> bool:
    words = {"true": True, "1": True, "false": False, "0": False}
    known = words.get(str(value).lower())
    if known is None:
        raise EngineError(f"The tokenizer option {name} must be true or false, not {shown(value)}.")
    return known


def _clean(text: str) -> str:
    """Half surrogate pairs cannot be encoded; they become U+FFFD, whole pairs their character."""
    if not isinstance(text, str):
        raise TypeError(f"Only text can be encoded, not {type(text).__name__}.")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
