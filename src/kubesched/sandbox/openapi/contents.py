"""What both versions of OpenAPI put together: the paths of some resources and all types that they lead to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kubesched.api.kinds import Object, Resource
from kubesched.sandbox.openapi.routes import Operation, operations
from kubesched.sandbox.openapi.types import Version, schemas_for

Render = Callable[[Operation], Object]


def contents(resources: Sequence[Resource], version: Version, render: Render) -> tuple[Object, Object]:
    """Paths with their operations as `render` writes them, and schemas by name."""
    paths: dict[str, dict[str, Any]] = {}
    used: set[str] = set()
    for resource in resources:
        for operation in operations(resource):
            paths.setdefault(operation.path, {})[operation.method] = render(operation)
            used |= {name for name in (operation.body, operation.answer) if name}
    return dict(sorted(paths.items())), schemas_for(resources, used, version)
