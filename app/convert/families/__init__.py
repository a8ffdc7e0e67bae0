"""The families of models that can be imported: {general.architecture: reader}, a file each."""

from collections.abc import Callable

from app.convert.decoder import Decoder
from app.convert.families import llama
from app.convert.gguf_file import GgufFile

FAMILIES: dict[str, Callable[[GgufFile], Decoder]] = {
    "llama": llama.read,
}
