"""What the library raises on purpose: one sentence that a person can act on."""

from app.convert import ConvertError


class LibraryError(ConvertError):
    """A model folder is missing, incomplete or unusable; the text names the file."""
