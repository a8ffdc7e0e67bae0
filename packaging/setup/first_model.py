"""Converts the starter model into the person's models folder, once, with the product's importer.

    python packaging/setup/first_model.py [--data DIR] [anything else that the application takes]
"""

import argparse
import subprocess
import sys
from pathlib import Path

import starter

sys.path.insert(0, str(starter.ROOT))

from app.paths import Folders  # a checkout need not be installed

NAME = "SmolLM2-135M-Instruct"


def main() -> int:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--data", type=Path)
    data = parser.parse_known_args()[0].data
    folders = Folders(data) if data else Folders.default()
    if (folders.models / NAME / "genai_config.json").is_file():
        return 0
    print("Converting the starter model (once)", flush=True)
    cli = [sys.executable, "-m", "app.cli"]
    words = ["import", str(starter.fetch()), "--data", str(folders.data.absolute())]
    return subprocess.run([*cli, *words], cwd=starter.ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
