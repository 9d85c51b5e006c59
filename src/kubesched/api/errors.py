"""UserError, the root of all errors for people: wrong input, settings or surroundings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager


class UserError(Exception):
    """Something that the person who runs a command can put right; `lines` says what, where, and what was expected.

    Commands print the lines and end. Any other exception is a mistake in the program, and keeps its traceback.
    """

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = list(lines)

    def __str__(self) -> str:
        return "\n".join(self.lines)


def aggregated(mistakes: Sequence[str]) -> str:
    """Several mistakes in one line, as Kubernetes components write them."""
    return mistakes[0] if len(mistakes) == 1 else f"[{', '.join(mistakes)}]"


@contextmanager
def located(where: str, kind: type[UserError] = UserError) -> Iterator[None]:
    """Begin each line of an error of this kind with the file or flag that it is about."""
    try:
        yield
    except kind as error:
        error.lines = [f"{where}: {line}" for line in error.lines]
        raise
