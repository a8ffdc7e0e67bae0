"""A report helps to find a fault and tells nothing of a person."""

from dataclasses import asdict
from pathlib import Path

from app.report import report, tail, without_home
from app.settings import Settings


def test_it_has_versions_and_settings_but_no_secrets(tmp_path: Path) -> None:
    settings = Settings(server_token="SECRET", last_model="/home/anna/models/Divorce", threads=3)
    log = [f"2026-01-01 INFO main app: line {n} in /home/anna/x" for n in range(200)]
    text = report("1.2.3", asdict(settings), log, Path("/home/anna"))
    assert "Inglenook 1.2.3" in text
    assert "PySide6" in text
    assert "threads = 3" in text
    assert "line 199 in ~/x" in text
    assert "line 100 " not in text
    for word in ("SECRET", "anna", "Divorce", "geometry"):
        assert word not in text


def test_a_root_that_is_home_hides_nothing_by_mistake() -> None:
    assert without_home("a / b", Path("/")) == "a / b"


def test_the_end_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    assert tail(path, 5) == []
    path.write_text("\n".join(f"line {n}" for n in range(1000)))
    assert tail(path, 3) == ["line 997", "line 998", "line 999"]
    assert tail(path, 9999, most_bytes=100)[0].startswith("line ")
    assert len(tail(path, 9999, most_bytes=100)) < 20
    path.write_bytes(b"\xff\xfe broken\nlast")
    assert tail(path, 1) == ["last"]
