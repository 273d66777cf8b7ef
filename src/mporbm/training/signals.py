"""Signals that end a training in order."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class Interrupts:
    """Within this context SIGINT and SIGTERM are noted instead of obeyed at once.

    A second one is obeyed. Outside of the main thread, where Python hears no signals, it does
    nothing.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._previous.items():
            # None stands for a handler that is not Python's: it cannot be put back.
            if handler is not None:
                signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None:
            self._obey(number)
        self.signal = number

    def obey(self) -> None:
        """End as the signal demands, if there was one."""
        if self.signal is not None:
            self._obey(self.signal)

    @staticmethod
    def _obey(number: int) -> None:
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + number)
