"""Sets up what `make` is about to use, and leaves alone what is there already.

    python3 packaging/setup/prepare.py run       what the application needs, and the starter model
    python3 packaging/setup/prepare.py test      and what the tests need
    python3 packaging/setup/prepare.py package   what freezing the application needs

In order: packages of the system, a virtual environment, locked packages, the starter model, and
for the tests a graphics card made of software and vocabularies, which they do without where these
cannot be fetched.
The second time it finds all of it and touches neither the network nor a file.
Standard library only; runs on any Python from 3.11, before anything is installed.
"""

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

import system

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = Path(os.environ.get("VENV", ROOT / ".venv")).absolute()
BINARIES = ENVIRONMENT / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BINARIES / ("python.exe" if os.name == "nt" else "python")

# goal -> lock files in requirements/, and what pip is told beside --require-hashes. The peers of
# the tests ask for plain onnxruntime, which would overwrite ours: they come without dependencies.
LOCKS = {
    "run": {"lock.txt": []},
    "test": {"test.txt": [], "peers.txt": ["--no-deps"]},
    "package": {"package.txt": []},
}
FOR_TESTS = {
    "webgpu.py": "the software graphics card",
    "vocabularies.py": "the vocabularies of other models",
}


def main(goal: str) -> None:
    system.provide(goal)
    create_environment()
    for lock, options in LOCKS[goal].items():
        install(ROOT / "requirements" / lock, options)
    run(PYTHON, ROOT / "packaging" / "setup" / "starter.py")
    if goal == "test":
        for script, what in FOR_TESTS.items():
            if attempt(PYTHON, ROOT / "packaging" / "setup" / script):
                print(f"Without {what}: tests on it are skipped", flush=True)


def create_environment() -> None:
    """A folder that was moved here, or whose Python is gone, is made anew."""
    if works():
        return
    print(f"Creating a virtual environment in {ENVIRONMENT.name}", flush=True)
    run(sys.executable, "-m", "venv", "--clear", ENVIRONMENT)


def works() -> bool:
    if not PYTHON.exists():
        return False
    ask = [PYTHON, "-c", "import pip, sys; print(sys.prefix)"]
    answer = subprocess.run(ask, capture_output=True, text=True)
    return answer.returncode == 0 and Path(answer.stdout.strip()).resolve() == ENVIRONMENT.resolve()


def install(lock: Path, options: list[str]) -> None:
    """Each lock is installed once; the stamp lies in the environment and says which text it was."""
    stamp = ENVIRONMENT / f"installed-{lock.name}"
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return
    print(f"Installing the packages of requirements/{lock.name}", flush=True)
    start = time.monotonic()
    pip = [PYTHON, "-m", "pip", "install", "--disable-pip-version-check"]
    quiet = [] if sys.stdout.isatty() else ["--quiet"]  # a person sees how far the download is
    run(*pip, *quiet, "--require-hashes", *options, "-r", lock)
    stamp.write_text(digest)
    print(f"  done in {time.monotonic() - start:.0f} s", flush=True)


def run(*command: object) -> None:
    if attempt(*command):
        sys.exit(f"This failed: {' '.join(map(str, command))}")


def attempt(*command: object) -> int:
    words = [str(word) for word in command]
    return subprocess.run(words, stdin=subprocess.DEVNULL).returncode


if __name__ == "__main__":
    if sys.argv[1:] not in [[goal] for goal in LOCKS]:
        sys.exit(f"usage: prepare.py {'|'.join(LOCKS)}")
    main(sys.argv[1])
