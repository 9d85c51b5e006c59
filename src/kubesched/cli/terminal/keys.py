"""Keys as they are pressed: the terminal without line editing and echo, and bytes as names of keys."""

from __future__ import annotations

import asyncio
import codecs
import os
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager

UP, DOWN, LEFT, RIGHT = "up", "down", "left", "right"
PAGE_UP, PAGE_DOWN, HOME, END = "page up", "page down", "home", "end"
ENTER, ESCAPE, TAB, BACKSPACE = "enter", "escape", "tab", "backspace"

_SEQUENCES = {
    "\x1b[A": UP,
    "\x1b[B": DOWN,
    "\x1b[C": RIGHT,
    "\x1b[D": LEFT,
    "\x1bOA": UP,
    "\x1bOB": DOWN,
    "\x1bOC": RIGHT,
    "\x1bOD": LEFT,
    "\x1b[5~": PAGE_UP,
    "\x1b[6~": PAGE_DOWN,
    "\x1b[H": HOME,
    "\x1b[F": END,
    "\x1b[1~": HOME,
    "\x1b[4~": END,
    "\x1b[Z": LEFT,
    "\r": ENTER,
    "\n": ENTER,
    "\t": TAB,
    "\x7f": BACKSPACE,
    "\x08": BACKSPACE,
}
_LONGEST = max(map(len, _SEQUENCES))
_READ = 1024


def keys_in(text: str) -> Iterator[str]:
    """The keys that a terminal sent in one go: characters as they are, others by name; what has no name is left out."""
    i = 0
    while i < len(text):
        known = next((text[i : i + n] for n in range(_LONGEST, 0, -1) if text[i : i + n] in _SEQUENCES), "")
        if known:
            yield _SEQUENCES[known]
            i += len(known)
        elif text.startswith(("\x1b[", "\x1bO"), i):
            i = _end_of_sequence(text, i + 2)
        else:
            if text[i] == "\x1b":
                yield ESCAPE
            elif text[i].isprintable():
                yield text[i]
            i += 1


def _end_of_sequence(text: str, i: int) -> int:
    """Where an escape sequence that nobody knows ends: with its first letter or `~`."""
    while i < len(text) and not ("@" <= text[i] <= "~"):
        i += 1
    return i + 1


@contextmanager
def pressed(on_key: Callable[[str], None]) -> Iterator[bool]:
    """Call `on_key` with each key, on this event loop. False if standard input is no terminal: then no key comes."""
    if not sys.stdin.isatty():
        yield False
        return
    # Opened anew: an event loop makes what it reads from non-blocking, and standard output and the shell share the
    # descriptor of standard input.
    descriptor, loop = os.open(os.ttyname(sys.stdin.fileno()), os.O_RDONLY | os.O_NOCTTY), asyncio.get_running_loop()
    decoder = codecs.getincrementaldecoder("utf-8")(errors="ignore")

    def read() -> None:
        given = os.read(descriptor, _READ)
        if not given:  # the terminal is gone
            loop.remove_reader(descriptor)
        for key in keys_in(decoder.decode(given)):
            on_key(key)

    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor, termios.TCSANOW)
    loop.add_reader(descriptor, read)
    try:
        yield True
    finally:
        loop.remove_reader(descriptor)
        termios.tcsetattr(descriptor, termios.TCSANOW, before)
        os.close(descriptor)
