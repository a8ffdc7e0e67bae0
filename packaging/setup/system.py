"""What Inglenook needs of the operating system, and how Debian and its kin call it.

Nothing is remembered: each library is opened, each program looked for, every time (about 20 ms).
Standard library only; runs before anything is installed.
"""

import ctypes
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

# Libraries that Qt loads and its wheel does not hold: name to open -> Debian's package.
LIBRARIES = {
    "libglib-2.0.so.0": "libglib2.0-0",
    "libGL.so.1": "libgl1",
    "libEGL.so.1": "libegl1",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libfontconfig.so.1": "libfontconfig1",
    "libdbus-1.so.3": "libdbus-1-3",
    "libgssapi_krb5.so.2": "libgssapi-krb5-2",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libX11-xcb.so.1": "libx11-xcb1",
    "libwayland-cursor.so.0": "libwayland-cursor0",
}

# llama.cpp, which the tests compare with.
TEST_LIBRARIES = {"libgomp.so.1": "libgomp1"}

# What the end-to-end tests drive the window with: program or file -> Debian's package.
TEST_PROGRAMS = {
    "Xvfb": "xvfb",
    "openbox": "openbox",
    "xdotool": "xdotool",
    "xclip": "xclip",
    "dbus-daemon": "dbus-daemon",
    "/usr/libexec/at-spi-bus-launcher": "at-spi2-core",
}
# What PyInstaller looks into libraries with.
PACKAGE_PROGRAMS = {"objdump": "binutils"}
SYSTEM_PYTHON = "/usr/bin/python3"  # the accessibility binding is a system package
ACCESSIBILITY = "import gi; gi.require_version('Atspi', '2.0'); from gi.repository import Atspi"


def provide(goal: str) -> None:
    """Installs what is missing for `goal` (run, test or package), or says what to type."""
    missing = missing_packages(goal)
    if not missing:
        return
    if not shutil.which("apt-get"):
        sys.exit(
            "Inglenook needs these, which were not found: "
            + ", ".join(missing)
            + f".\nInstall them (Debian's names: {' '.join(packages(missing))}), then try again."
        )
    install = ["apt-get", "install", "-y", "--no-install-recommends", *packages(missing)]
    root = as_root()
    if root is None:
        sys.exit(
            "Inglenook needs some packages of the system. Type this, then try again:\n\n"
            f"    sudo apt-get update && sudo {' '.join(install)}\n"
        )
    print("Installing packages of the system:", " ".join(packages(missing)), flush=True)
    quiet = {"env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}}
    for command in (["apt-get", "update", "-q"], install):
        done = subprocess.run(
            [*root, *command], stdin=subprocess.DEVNULL, capture_output=True, text=True, **quiet
        )
        if done.returncode:
            sys.exit(f"{done.stdout[-2000:]}{done.stderr}\nThis failed: {' '.join(command)}")
    still = missing_packages(goal)
    if still:
        sys.exit("Still not found after installing: " + ", ".join(still))


def missing_packages(goal: str) -> dict[str, str]:
    """What was looked for in vain -> the package that holds it."""
    if not sys.platform.startswith("linux"):
        return {}
    libraries = LIBRARIES | (TEST_LIBRARIES if goal == "test" else {})
    missing = {name: package for name, package in libraries.items() if not opens(name)}
    if goal == "test":
        missing |= {name: p for name, p in TEST_PROGRAMS.items() if not shutil.which(name)}
        if not accessibility_works():
            missing["the AT-SPI binding of Python"] = "python3-gi gir1.2-atspi-2.0"
    if goal == "package":
        missing |= {name: p for name, p in PACKAGE_PROGRAMS.items() if not shutil.which(name)}
    if not all(importlib.util.find_spec(module) for module in ("venv", "ensurepip")):
        missing["the venv module of Python"] = venv_package()
    return missing


def packages(missing: dict[str, str]) -> list[str]:
    return sorted(set(" ".join(missing.values()).split()))


def opens(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def accessibility_works() -> bool:
    if not Path(SYSTEM_PYTHON).exists():
        return False
    return subprocess.run([SYSTEM_PYTHON, "-c", ACCESSIBILITY], capture_output=True).returncode == 0


def venv_package() -> str:
    """Debian's default Python has python3-venv; another version has a package of its own."""
    is_default = Path(sys.executable).resolve() == Path(SYSTEM_PYTHON).resolve()
    return "python3-venv" if is_default else f"python3.{sys.version_info.minor}-venv"


def as_root() -> list[str] | None:
    """The words to put before a command of root; None when a password would be asked for."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo"):
        asked = subprocess.run(["sudo", "-n", "true"], capture_output=True)
        if asked.returncode == 0:
            return ["sudo", "-n"]
    return None
