"""Renders our Helm chart: the few constructs of Go's templates that it uses, and no others, so that it stays simple."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import indent
from typing import Any

import yaml

_IF = re.compile(r"\s*\{\{- if (\S+) \}\}\s*")
_ELSE = re.compile(r"\s*\{\{- else \}\}\s*")
_FILE = re.compile(r'\s*\{\{- \.Files\.Get "(\S+)" \| nindent (\d+) \}\}')
_TEMPLATE_FILE = re.compile(r'\s*\{\{- tpl \(\.Files\.Get "(\S+)"\) \. \| nindent (\d+) \}\}')
_END = re.compile(r"\s*\{\{- end \}\}\s*")
_BLOCK = re.compile(r"\s*\{\{- toYaml (\S+) \| nindent (\d+) \}\}")
_SHA = re.compile(r"\{\{ toYaml (\S+) \| sha256sum \}\}")
_DEFAULT = re.compile(r"\{\{ (\.[\w.]+) \| default (\.[\w.]+) \}\}")
_VALUE = re.compile(r"\{\{ (\.[\w.]+) \}\}")


class Chart:
    """A chart in a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.values: dict[str, Any] = yaml.safe_load((directory / "values.yaml").read_text())
        self.description: dict[str, Any] = yaml.safe_load((directory / "Chart.yaml").read_text())

    def rendered(self, *, namespace: str = "kube-system", **values: Any) -> list[dict[str, Any]]:
        """All objects with these values in the place of the default ones."""
        chart = {"AppVersion": self.description["appVersion"]}
        scope = {"Values": {**self.values, **values}, "Release": {"Namespace": namespace}, "Chart": chart}
        texts = [self._render(file.read_text(), scope) for file in sorted(self.templates("*.yaml"))]
        return [document for text in texts for document in yaml.safe_load_all(text) if document is not None]

    def templates(self, pattern: str) -> Iterator[Path]:
        return (self._directory / "templates").glob(pattern)

    def file(self, name: str) -> str:
        """One of those that templates take in."""
        return (self._directory / name).read_text()

    def notes(self) -> str:
        """What `helm install` says in the end."""
        scope = {"Values": self.values, "Release": {"Namespace": "kube-system"}}
        return "\n".join(self._render(file.read_text(), scope) for file in self.templates("NOTES.txt"))

    def _render(self, template: str, scope: Mapping[str, Any]) -> str:
        lines: list[str] = []
        conditions: list[bool] = []
        for line in template.splitlines():
            if condition := _IF.fullmatch(line):
                conditions.append(bool(_find(condition[1], scope)))
            elif _ELSE.fullmatch(line):
                conditions[-1] = not conditions[-1]
            elif _END.fullmatch(line):
                conditions.pop()
            elif not all(conditions):
                continue
            elif file := _FILE.fullmatch(line):
                lines.append(indent(self.file(file[1]), " " * int(file[2])))
            elif file := _TEMPLATE_FILE.fullmatch(line):
                lines.append(indent(self._render(self.file(file[1]), scope), " " * int(file[2])))
            else:
                lines.append(_filled(line, scope))
        assert not conditions, "an if without its end"
        return "\n".join(lines)


def _filled(line: str, scope: Mapping[str, Any]) -> str:
    if block := _BLOCK.fullmatch(line):
        margin = " " * int(block[2])
        text = yaml.safe_dump(_find(block[1], scope), sort_keys=True)
        return "\n".join(f"{margin}{each}" for each in text.splitlines())
    line = _SHA.sub(lambda found: hashlib.sha256(repr(_find(found[1], scope)).encode()).hexdigest(), line)
    line = _DEFAULT.sub(lambda found: str(_find(found[1], scope) or _find(found[2], scope)), line)
    line = _VALUE.sub(lambda found: str(_find(found[1], scope)), line)
    assert "{{" not in line, f"a construct that nobody renders: {line}"
    return line


def _find(path: str, scope: Mapping[str, Any]) -> Any:
    found: Any = scope
    for name in path.removeprefix(".").split("."):
        found = found[name]
    return found
