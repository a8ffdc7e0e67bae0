"""A report helps to find a fault and tells nothing of a person."""

from dataclasses import asdict
from pathlib import Path

import pytest

from app.report import report, tail, without_places
from app.settings import Settings


def test_it_has_versions_and_settings_but_no_secrets() -> None:
    settings = Settings(server_token="SECRET", last_model="/home/anna/models/Divorce", threads=3)
    log = [f"2026-01-01 INFO main app: line {n} in /home/anna/x" for n in range(200)]
    text = report("1.2.3", asdict(settings), log)
    assert "Inglenook 1.2.3" in text
    assert "PySide6" in text
    assert "threads = 3" in text
    assert "line 199 in <a place>" in text
    assert "line 100 " not in text
    for word in ("SECRET", "anna", "Divorce", "geometry"):
        assert word not in text


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("Not listed: /media/anna/private disk/divorce.pdf: cut", "Not listed: <a place>: cut"),
        ("read “/srv/a b/c.gguf” now", "read “<a place>” now"),
        (r"in C:\Users\Anna Lee\chats.sqlite3: locked", "in <a place>: locked"),
        (r"on \\server\share\x", "on <a place>"),
        ("under ~/secret plans", "under <a place>"),
        ('  File "/home/anna/inglenook/app/ui/job.py", line 7', '  File "app/ui/job.py", line 7'),
        ('File "/usr/lib/python3.11/json/decoder.py", line 1',
         'File "lib/python3.11/json/decoder.py", line 1'),
        ("3 / 4 of 12:30, and/or nothing", "3 / 4 of 12:30, and/or nothing"),
    ],
)  # fmt: skip
def test_places_stay_out_but_for_our_own_code(line: str, shown: str) -> None:
    assert without_places(line) == shown


def test_the_end_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    assert tail(path, 5) == []
    path.write_text("\n".join(f"line {n}" for n in range(1000)))
    assert tail(path, 3) == ["line 997", "line 998", "line 999"]
    assert tail(path, 9999, most_bytes=100)[0].startswith("line ")
    assert len(tail(path, 9999, most_bytes=100)) < 20
    path.write_bytes(b"\xff\xfe broken\nlast")
    assert tail(path, 1) == ["last"]
