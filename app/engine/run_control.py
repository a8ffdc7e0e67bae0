"""What every run of one Generator is told: by whom it can be stopped, and the runtime's options.

Knows no model and no text.
"""

from collections.abc import Mapping

from app.engine.errors import EngineError, Stopped, shown
from app.engine.stop import Stop

_OURS = ("cuda_graph", "terminate_session")  # keys that do not go to the runtime


class RunControl:
    def __init__(self, entries: Mapping[str, str]) -> None:
        """`entries`: the config's run_options. Raises EngineError for what the runtime refuses."""
        self._own_stop = Stop()
        self.stop = self._own_stop
        self._entries = dict(entries)
        self._is_terminated = False
        self._apply_all()

    def check(self) -> None:
        """Raises Stopped while the session is terminated."""
        if self._is_terminated:
            raise Stopped("The run was stopped.")

    def use(self, stop: Stop | None) -> None:
        """None: only terminate_session ends a run."""
        self.stop = self._own_stop if stop is None else stop
        self._apply_all()

    def set_option(self, key: str, value: str) -> None:
        """An entry that is refused is not kept."""
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError("set_runtime_option takes two strings.")
        if key != "terminate_session":
            self._apply(key, value)
            self._entries[key] = value
            return
        if value not in ("0", "1"):
            raise EngineError(f'terminate_session must be "0" or "1", not {shown(value)}.')
        self._is_terminated = value == "1"
        self.stop.run_options.terminate = self._is_terminated or self.stop.is_set()

    def _apply_all(self) -> None:
        for key, value in self._entries.items():
            self._apply(key, value)

    def _apply(self, key: str, value: str) -> None:
        if key in _OURS:
            return
        try:
            self.stop.run_options.add_run_config_entry(key, value)
        except (RuntimeError, UnicodeError, TypeError) as error:
            text = f"The runtime refuses {shown(key)}: {shown(value)} as an option of a run."
            raise EngineError(text) from error
