"""Writes docs/schemas: a JSON Schema for each kind of document that commands print, from the types it is made from.

python tools/output_schemas.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kubesched.ask.answers import PARTS
from kubesched.ask.output import schema_of
from kubesched.ask.shadow_report import ShadowReport
from kubesched.planning.plan import Plan

FOLDER = Path(__file__).parents[1] / "docs" / "schemas"


def schemas() -> dict[str, str]:
    """The text of each file, by its name."""
    every = {**PARTS, "Plan": (Plan,), "ShadowReport": (ShadowReport,)}
    return {f"{kind.lower()}.json": _text(schema_of(kind, parts)) for kind, parts in every.items()}


def _text(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=2) + "\n"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in schemas().items():
        (FOLDER / name).write_text(text)
        print(FOLDER / name)
