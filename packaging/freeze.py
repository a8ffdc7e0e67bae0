"""Builds dist/inglenook, one folder that runs without Python, and tries it as a person gets it.

    python packaging/freeze.py               build, then try
    python packaging/freeze.py --only-try    try what was built

The try starts the program with --smoke and the starter model in a data folder of its own, with no
variable of this environment and, where the system allows it, without a network. It must write an
answer and end with 0.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILT = ROOT / "dist" / "inglenook"
LIMIT_S = 300
KEPT = ("HOME", "LANG", "PATH", "TMPDIR", "SYSTEMROOT", "TEMP", "XDG_RUNTIME_DIR")


def main() -> int:
    if sys.argv[1:] != ["--only-try"]:
        build()
    size = sum(file.stat().st_size for file in BUILT.rglob("*") if file.is_file())
    print(f"dist/inglenook holds {size / 1e6:.0f} MB")
    return try_it()


def build() -> None:
    start = time.monotonic()
    command = [sys.executable, "-m", "PyInstaller", "--noconfirm", "--log-level", "ERROR"]
    places = ["--distpath", ROOT / "dist", "--workpath", ROOT / "build" / "frozen"]
    subprocess.run([*command, *places, ROOT / "packaging" / "inglenook.spec"], check=True)
    print(f"Built in {time.monotonic() - start:.0f} s", flush=True)


def try_it() -> int:
    with tempfile.TemporaryDirectory(prefix="frozen-") as folder:
        data = Path(folder) / "data"
        model = ROOT / "packaging" / "setup" / "first_model.py"
        subprocess.run([sys.executable, model, "--data", data], check=True, cwd=ROOT)
        command = [*without_network(), BUILT / "inglenook", "--smoke", "--data", data]
        environment = {name: os.environ[name] for name in KEPT if name in os.environ}
        start = time.monotonic()
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT_S
        )
        print(done.stdout, done.stderr, sep="", end="")
        print(f"The frozen app ended with {done.returncode} after {time.monotonic() - start:.1f} s")
        return 0 if done.returncode == 0 and " answered: " in done.stdout else 1


def without_network() -> list[str]:
    if not shutil.which("unshare"):
        print("The network stays on: there is no unshare here.")
        return []
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    words = ["unshare", "--net"] if root else ["unshare", "--user", "--net"]
    if subprocess.run([*words, "true"], capture_output=True).returncode:
        print("The network stays on: this system does not allow taking it away.")
        return []
    return words


if __name__ == "__main__":
    sys.exit(main())
