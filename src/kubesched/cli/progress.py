"""A progress bar on standard error, if somebody is there to see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

EVERY = 200
"""Steps between two looks at the bar."""


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """Something to call with the steps done and all there are; None if standard error is not a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=None)
        calls = 0

        def update(done: int, total: int) -> None:
            nonlocal calls
            calls += 1
            if calls % EVERY == 0:
                progress.update(task, completed=done, total=total)

        yield update
