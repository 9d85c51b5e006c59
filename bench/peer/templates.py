"""The little of Go's text/template that upstream's object templates use: .Index, .Count, and arithmetic."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import yaml

_ACTION = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}")

_FUNCTIONS: dict[str, Callable[..., float]] = {
    "AddFloat": lambda *numbers: math.fsum(numbers),
    "AddInt": lambda *numbers: int(math.fsum(numbers)),
    "DivideFloat": lambda dividend, divisor: dividend / divisor,
    "DivideInt": lambda dividend, divisor: int(dividend / divisor),
    "Mod": lambda dividend, divisor: int(math.fmod(int(dividend), int(divisor))),
    "MultiplyFloat": lambda *numbers: math.prod(numbers),
    "MultiplyInt": lambda *numbers: int(math.prod(numbers)),
    "SubtractFloat": lambda minuend, subtrahend: minuend - subtrahend,
    "SubtractInt": lambda minuend, subtrahend: int(minuend - subtrahend),
}


class TemplateError(ValueError):
    """An action that is not understood."""


class Template:
    """An object as text with actions in it."""

    def __init__(self, text: str, name: str = "") -> None:
        self._text = text
        self._name = name
        self._fixed: dict[str, Any] | None = None if _ACTION.search(text) else yaml.load(text, yaml.CSafeLoader)

    def object(self, index: int = 0, count: int = 1) -> dict[str, Any]:
        """The object for one of so many; do not change it."""
        if self._fixed is not None:
            return self._fixed
        values = {".Index": index, ".Count": count}
        text = _ACTION.sub(lambda action: self._value(action.group(1), values), self._text)
        made: dict[str, Any] = yaml.load(text, yaml.CSafeLoader)
        return made

    def _value(self, action: str, values: dict[str, int]) -> str:
        words = action.split()
        try:
            if len(words) == 1:
                return str(values[words[0]])
            arguments = [values[word] if word.startswith(".") else float(word) for word in words[1:]]
            result = _FUNCTIONS[words[0]](*arguments)
        except (KeyError, ValueError, TypeError, IndexError):
            raise TemplateError(f"{self._name}: cannot evaluate {{{{ {action} }}}}") from None
        return f"{result:g}" if isinstance(result, float) else str(result)


@cache
def read_template(path: Path) -> Template:
    return Template(path.read_text(), str(path))
