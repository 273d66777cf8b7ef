"""Signals that are heard at once and obeyed when it suits."""

import contextlib
import signal
import threading
from types import FrameType
from typing import Self


class Interrupts(contextlib.ExitStack):
    """Within this context SIGINT and SIGTERM are noted instead of obeyed at once.

    A second one is obeyed. One that an outer context has noted, but not obeyed, is noted here, too.
    Outside of the main thread, where Python hears no signals, it does nothing.
    """

    signal: int | None = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                former = signal.signal(number, self._note)
                # None stands for a handler that is not Python's: it cannot be put back.
                if former is not None:
                    self.callback(signal.signal, number, former)
                outer = getattr(former, "__self__", None)
                if isinstance(outer, Interrupts) and self.signal is None:
                    self.signal = outer.signal
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        is_first, self.signal = self.signal is None, number
        if not is_first:
            self.obey()

    def obey(self) -> None:
        """End as the signal demands, if there was one."""
        if self.signal == signal.SIGINT:
            raise KeyboardInterrupt
        if self.signal is not None:
            raise SystemExit(128 + self.signal)
