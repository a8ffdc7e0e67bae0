"""Stopping a run from outside. Knows nothing of threads: any caller may set it at any time.

A Stop belongs to one request. Setting it ends a run in flight (RunOptions.terminate) and every
later run that is handed the same Stop; setting it before the first run is not lost.
"""

import onnxruntime


class Stop:
    """Handed to Generator.use_stop; `set` may be called from any thread, any number of times."""

    def __init__(self) -> None:
        self.run_options = onnxruntime.RunOptions()
        self._is_set = False

    def set(self) -> None:
        self._is_set = True
        self.run_options.terminate = True

    def is_set(self) -> bool:
        return self._is_set
