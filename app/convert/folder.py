"""A folder that appears whole or not at all."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.convert.errors import ConvertError, writing_to

PART_SUFFIX = ".part"


@contextmanager
def new_folder(destination: Path) -> Iterator[Path]:
    """Fill the folder that this gives; it becomes `destination` when the block ends well.

    Any other end, a closed generator among them, removes it. The name begins with a dot and ends
    with PART_SUFFIX, by which listings know what a killed import left.
    """
    if destination.exists():
        raise ConvertError(f"“{destination.name}” is there already: rename or remove it first.")
    part = destination.parent / f".{destination.name}.{secrets.token_hex(4)}{PART_SUFFIX}"
    with writing_to(destination):
        part.mkdir(parents=True)
    try:
        yield part
        with writing_to(destination):
            _to_disk(part)
            part.rename(destination)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def require_space(folder: Path, size_bytes: int) -> None:
    """Says at once what a full disk would say after minutes."""
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if free < size_bytes:
        raise ConvertError(
            f"The disk is too full: {_megabytes(size_bytes)} are needed and "
            f"{_megabytes(free)} are free."
        )


def _megabytes(size_bytes: int) -> str:
    return f"{-(-size_bytes // 1_000_000):,} MB"


def _to_disk(folder: Path) -> None:
    """A rename can reach the disk before the contents do; after this it cannot."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb+") as file:
                os.fsync(file.fileno())
