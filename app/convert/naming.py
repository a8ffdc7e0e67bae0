"""What a model from a file is called: the name that its owner sees, fit for a folder."""

import os
import re
from pathlib import Path

from app.convert.errors import ConvertError
from app.convert.gguf_file import GgufFile

# What people append for the kind of quantisation, as in NAME.Q4_K_M.gguf or NAME-f16.gguf.
_QUANTISATION = re.compile(
    r"[-._ ](?:(?:UD-)?I?Q\d+(?:_[A-Z0-9]+)*|T?Q\d_\d|B?F(?:16|32)|FP(?:16|32)|MXFP4(?:_MOE)?)$",
    re.IGNORECASE,
)
_PART = re.compile(r"-\d{5}-of-\d{5}$")  # of a split model
_SAYS_NOTHING = re.compile(
    r"(?:ggml[-_ ]?)?model|gguf|weights|sha256[-_:][0-9a-f]+|[0-9a-f]{16,}|", re.IGNORECASE
)
_FORBIDDEN = re.compile(r'[<>:"/\\|?*\x00-\x1f]+')
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)  # Windows
MAX_BYTES = 200  # file systems allow 255, and an import on its way has a longer name


def gguf_name(source: Path) -> str:
    """From the file's name, or from the name inside if the file is called “model.gguf” or so."""
    stem = source.stem if source.suffix.lower() == ".gguf" else source.name
    name = _QUANTISATION.sub("", _PART.sub("", stem))
    if not _SAYS_NOTHING.fullmatch(name):
        return folder_name(name)
    try:
        with GgufFile(source) as file:
            inside = file.metadata.get("general.name")
    except ConvertError:
        inside = None  # the import will say what is wrong
    return folder_name(inside if isinstance(inside, str) and inside.strip() else name or "model")


def folder_name(text: str) -> str:
    """`text` as near as every file system allows."""
    encoded = os.fsencode(_FORBIDDEN.sub(" ", text))[:MAX_BYTES]
    name = encoded.decode("utf-8", "ignore").strip(" .")
    return f"{name} model" if _RESERVED.fullmatch(name) or not name else name
