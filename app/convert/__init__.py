"""Other people's model formats -> our model folders. What the rest of the product may use."""

from app.convert.errors import ConvertError, writing_to
from app.convert.folder import PART_SUFFIX, new_folder, require_space
from app.convert.forms import Precision
from app.convert.gguf_import import FACTS_FILE, import_gguf
from app.convert.naming import folder_name, gguf_name
from app.convert.progress import Progress

__all__ = [
    "FACTS_FILE",
    "PART_SUFFIX",
    "ConvertError",
    "Precision",
    "Progress",
    "folder_name",
    "gguf_name",
    "import_gguf",
    "new_folder",
    "require_space",
    "writing_to",
]
