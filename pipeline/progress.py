"""What a person sees while a run goes on: a line that moves, and one line per generation."""

import sys
import time
from typing import TextIO


class Progress:
    """A line "what: done/total, rate, time left" that is rewritten in place, or just "what" if
    nothing is counted (total 0); silent without a terminal."""

    def __init__(self, what: str, total: int, unit: str, out: TextIO = sys.stderr):
        self._what, self._total, self._unit, self._out = what, total, unit, out
        self._done = 0
        self._start = self._shown = time.monotonic()
        self._live = out.isatty()
        if self._live and not total:
            out.write(f"\r\x1b[K{what}")
            out.flush()

    def add(self, count: int) -> None:
        self._done += count
        now = time.monotonic()
        if self._live and (now - self._shown > 0.2 or self._done >= self._total):
            self._shown = now
            rate = self._done / max(now - self._start, 1e-9)
            left = (self._total - self._done) / rate if rate else 0.0
            self._out.write(
                f"\r\x1b[K{self._what}: {self._done:,}/{self._total:,} {self._unit}, "
                f"{rate:,.0f}/s, {_clock(left)} left"
            )
            self._out.flush()

    def clear(self) -> None:
        if self._live:
            self._out.write("\r\x1b[K")
            self._out.flush()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"
