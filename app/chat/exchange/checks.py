"""Values of a foreign JSON document as what they should be, or as nothing."""

from typing import Any

LATEST = 253_402_300_799.0  # the end of the year 9999


def object_of(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def objects(value: object) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def text(value: object) -> str:
    return value if isinstance(value, str) else ""


def texts(value: object) -> list[str]:
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []


def number(value: object) -> float:
    """Seconds since 1970; some programs count milliseconds."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    if not 0 <= value < LATEST * 1000:  # neither is what is no number
        return 0.0
    return float(value / 1000 if value >= LATEST else value)
