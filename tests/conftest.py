"""Shared by all tests: Qt draws offscreen, the folder of models made for tests, no silent skips."""

import ctypes
import hashlib
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("LANG", "C.UTF-8")
os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # the peers gather usage figures too

# With --no-skips a skip fails the run, except these: beginning of the test's id -> why it may.
SKIPS_ALLOWED: dict[str, str] = {
    "tests/engine/test_kinds.py::test_the_peers_own": "the peer's models may not be copied here",
}
# And at least one test of each of these must have passed.
MARKERS_REQUIRED = ("peer", "starter", "end_to_end", "webgpu", "vocabularies")

# A graphics card made of software, if the setup could fetch it; its parts must be told and loaded
# before the first look for devices, whichever test that comes from.
CARD = Path(__file__).parents[1] / "build" / "webgpu"
if (CARD / "libvulkan.so.1").exists():
    os.environ["ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER"] = "1"
    for variable in ("VK_ICD_FILENAMES", "VK_DRIVER_FILES"):
        os.environ[variable] = str(CARD / "vk_swiftshader_icd.json")
    ctypes.CDLL(str(CARD / "libvulkan.so.1"), mode=ctypes.RTLD_GLOBAL)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    return Path(__file__).parent / "data"


@pytest.fixture(scope="session")
def starter_gguf() -> Path:
    """The starter model as make fetched it."""
    path = Path(__file__).parents[1] / "build" / "starter" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    if not path.exists():
        pytest.skip("the starter model is missing: python packaging/setup/starter.py")
    return path


@pytest.fixture(scope="session")
def starter_int8(starter_gguf: Path) -> Path:
    """The starter model as a model folder with 8-bit weights, converted by today's importer."""
    return _converted(starter_gguf, "int8")


@pytest.fixture(scope="session")
def starter_stored(starter_gguf: Path) -> Path:
    """The starter model as the app imports it: the file's own blocks."""
    return _converted(starter_gguf, "stored")


@pytest.fixture(scope="session")
def starter_fp32(starter_gguf: Path) -> Path:
    """The starter model as a model folder with exact weights."""
    return _converted(starter_gguf, "fp32")


def _converted(source: Path, precision: str) -> Path:
    """Kept between runs, until the importer changes."""
    from app.convert import import_gguf

    root = Path(__file__).parents[1]
    digest = hashlib.sha256(str(source.stat().st_size).encode())
    for file in sorted((root / "app" / "convert").rglob("*.py")):
        digest.update(file.read_bytes())
    cache = root / "build" / "converted"
    folder = cache / digest.hexdigest()[:12] / f"{source.stem.split('.')[0]}-{precision}"
    if not folder.exists():
        for old in cache.glob("*"):
            if old != folder.parent:
                shutil.rmtree(old, ignore_errors=True)
        for _ in import_gguf(source, folder, precision=precision):
            pass
    return folder


@pytest.fixture(scope="session", autouse=True)
def _clipboard_is_emptied() -> Iterator[None]:
    """Offscreen, Qt keeps what was copied until after Python has gone, and then cannot free it."""
    yield
    if "PySide6.QtGui" in sys.modules:
        from PySide6.QtGui import QGuiApplication

        if QGuiApplication.instance() is not None:
            QGuiApplication.clipboard().clear()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--no-skips",
        action="store_true",
        help="fail when a test is skipped that tests/conftest.py does not allow to skip",
    )
    parser.addoption(
        "--screenshots",
        action="store_true",
        help="renew the pictures in docs/screenshots from the end-to-end run",
    )


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so a shell starts background jobs
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("--no-skips"):
        config.pluginmanager.register(NoSkips(), "no-skips")


class NoSkips:
    """Counts what was skipped and which required markers ran, and ends the run accordingly."""

    def __init__(self) -> None:
        self.skipped: list[str] = []
        self.passed: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self.skipped.append(report.nodeid)
        elif report.when == "call" and report.passed:
            self.passed.update(name for name in MARKERS_REQUIRED if name in report.keywords)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self.skipped.append(report.nodeid)

    @property
    def faults(self) -> list[str]:
        refused = [name for name in self.skipped if not name.startswith(tuple(SKIPS_ALLOWED))]
        absent = [name for name in MARKERS_REQUIRED if not self.passed[name]]
        return [f"skipped: {name}" for name in refused] + [f"none passed: {n}" for n in absent]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.faults and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("skips")
        for beginning, reason in SKIPS_ALLOWED.items():
            terminalreporter.line(f"allowed: {beginning}: {reason}")
        for fault in self.faults:
            terminalreporter.line(fault, red=True)
        if not self.faults:
            terminalreporter.line("None but the allowed; every required kind of test ran.")
