"""Files that may hold manifests: which there are, their bytes, and the documents of text that is almost JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from kubesched.api.yaml import YamlError, documents

SUFFIXES = (".yaml", ".yml", ".json")

Say = Callable[[str], None]
"""Takes a line about what is wrong."""


def sources_of(paths: Iterable[str], say: Say) -> list[str]:
    sources: dict[str, None] = {}
    for path in paths:
        directory = Path(path)
        if path in ("-", "") or not directory.is_dir():
            sources[path] = None
            continue
        files = [str(file) for file in files_below(directory) if file.is_file()]
        if not files:
            say(f"{path}: no manifests in this directory (looked for {', '.join(SUFFIXES)})")
        sources.update(dict.fromkeys(files))
    return list(sources)


def files_below(directory: Path) -> list[Path]:
    """All that may hold manifests, but for what is hidden: in the volume of a ConfigMap every file is there twice, once
    by its name and once in a hidden folder."""
    files = (file for file in directory.rglob("*") if file.suffix in SUFFIXES)
    return sorted(file for file in files if not any(part.startswith(".") for part in file.relative_to(directory).parts))


def bytes_of(source: str, say: Say) -> bytes | None:
    try:
        if source == "-":
            return sys.stdin.buffer.read()
        with open(source, "rb") as file:
            return file.read()
    except (OSError, ValueError) as error:
        problem = error.strerror if isinstance(error, OSError) else None
        say(f"{source or repr(source)}: {problem or error}")
        return None


def json_values(text: str) -> Iterator[str]:
    """The values of JSON text that has one after another, as several kubectl calls print it."""
    decoder, position = json.JSONDecoder(), 0
    while (start := _skip_separators(text, position)) < len(text):
        try:
            _, position = decoder.raw_decode(text, start)
        except ValueError:
            return
        yield text[start:position]


def braced_yaml(text: str) -> list[Any] | None:
    """The documents of YAML that only looks like JSON, as `{kind: Pod}` does; None if it is not YAML either."""
    try:
        return [document.value for document in documents(f"--- {text}")]
    except YamlError:
        return None


def _skip_separators(text: str, position: int) -> int:
    while position < len(text) and (text[position].isspace() or text.startswith("---", position)):
        position += 1 if text[position].isspace() else 3
    return position
