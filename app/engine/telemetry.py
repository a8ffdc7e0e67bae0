"""Telemetry: there is none, and nothing can switch it on."""

import logging

import onnxruntime

log = logging.getLogger(__name__)


def disable_telemetry_events() -> None:
    """Nothing of ours to switch off; the runtime is told too, which on Windows has some."""
    onnxruntime.disable_telemetry_events()


def enable_telemetry_events() -> None:
    """Does nothing but say so in the log: no usage figures are gathered here."""
    log.warning("Telemetry stays off: this engine gathers nothing and sends nothing.")
