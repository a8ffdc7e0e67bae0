"""Fetches vocabularies and chat templates of many models, for the tests.

    python packaging/setup/vocabularies.py       leaves them in build/vocabularies

llama.cpp's sources hold them, with texts and the ids that they must become; a source package of its
Python binding carries those. pip does the fetching, as configured on this machine, and checks the
hash (for that it asks the package for its name, with the build tools that this wants); nothing is
built or installed. Standard library only.
"""

import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "vocabularies"
LOCK = ROOT / "requirements" / "vocabularies.txt"
INSIDE = "vendor/llama.cpp/models/"
KINDS = {".gguf", ".inp", ".out", ".jinja"}


def fetch() -> None:
    """The folder gets its name when all is in it, so the lock's copy in it tells it again."""
    stamp = FOLDER / LOCK.name
    if stamp.is_file() and stamp.read_bytes() == LOCK.read_bytes():
        return
    print("Fetching vocabularies for the tests (about 75 MB)", flush=True)
    FOLDER.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER.parent) as folder:
        unpacked = Path(folder) / FOLDER.name
        unpack(download(Path(folder)), unpacked)
        shutil.copy(LOCK, unpacked)
        shutil.rmtree(FOLDER, ignore_errors=True)
        unpacked.rename(FOLDER)


def download(folder: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    options = ["--no-deps", "--no-binary", "llama-cpp-python", "--require-hashes"]
    subprocess.run([*pip, *options, "--dest", str(folder), "-r", str(LOCK)], check=True)
    return next(folder.glob("*.tar.gz"))


def unpack(package: Path, destination: Path) -> None:
    """Files by the end of their names only, flat: no path of the archive is followed."""
    destination.mkdir()
    with tarfile.open(package) as archive:
        for member in archive:
            path = PurePosixPath(member.name)
            if INSIDE in member.name and path.suffix in KINDS and member.isfile():
                source = archive.extractfile(member)
                assert source is not None
                with source, (destination / path.name).open("wb") as target:
                    shutil.copyfileobj(source, target, 1 << 20)


if __name__ == "__main__":
    fetch()
