"""Other people's model formats -> our model folders. What the rest of the product may use."""

from app.convert.errors import ConvertError
from app.convert.gguf_import import Precision, import_gguf
from app.convert.progress import Progress

__all__ = ["ConvertError", "Precision", "Progress", "import_gguf"]
