"""JSON patches, RFC 6902: a list of operations, with the errors of an API server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from kubesched.api.api_error import ApiError, bad_request, unprocessable
from kubesched.api.kinds import Object

MAX_OPERATIONS = 10_000


class PatchOperation(msgspec.Struct, frozen=True, rename={"source": "from"}):
    """One operation of a JSON patch."""

    op: str
    path: str
    source: str | None = None
    value: Any = msgspec.UNSET


def json_patch(obj: Object, operations: Any) -> Object:
    """The object after all operations; a 400 for a patch that cannot be read, a 422 for one that does not apply."""
    document: Any = obj
    for operation in _read(operations):
        document = _apply(document, operation)
    if not isinstance(document, dict):
        raise unprocessable("the patch leaves no object")
    return document


def _read(operations: Any) -> list[PatchOperation]:
    if isinstance(operations, list) and len(operations) > MAX_OPERATIONS:
        message = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        raise ApiError(413, "RequestEntityTooLarge", message)
    try:
        return msgspec.convert(operations, list[PatchOperation])
    except msgspec.ValidationError as error:
        raise bad_request(f"error decoding patch: {error}") from error


def _apply(document: Any, operation: PatchOperation) -> Any:
    path = operation.path
    match operation.op:
        case "add":
            return _add(document, path, _value(operation), "add")
        case "remove":
            return _remove(document, path, "remove")
        case "replace":
            return _replace(document, path, _value(operation))
        case "test":
            return _test(document, operation)
        case "move" | "copy":
            source = operation.source
            if source is None:
                raise unprocessable(f"{operation.op} operation does not apply: from is missing")
            value = _find(document, source, f"{operation.op} operation does not apply: doc is missing from path")
            if operation.op == "move":
                if path.startswith(f"{source}/"):
                    raise unprocessable(f"move operation does not apply: {path} is inside of {source}")
                document = _remove(document, source, "move")
            return _add(document, path, value, operation.op)
    raise unprocessable(f"Unexpected kind: {operation.op}")


def _value(operation: PatchOperation) -> Any:
    if operation.value is msgspec.UNSET:
        raise unprocessable(f"{operation.op} operation does not apply: value is missing for {operation.path}")
    return operation.value


def _add(document: Any, path: str, value: Any, op: str) -> Any:
    def add(parent: Any, key: str) -> Any:
        if isinstance(parent, dict):
            return {**parent, key: value}
        index = len(parent) if key == "-" else _index(key, len(parent))
        return [*parent[:index], value, *parent[index:]]

    return _change(document, path, add, op) if path else value


def _remove(document: Any, path: str, op: str) -> Any:
    def remove(parent: Any, key: str) -> Any:
        if isinstance(parent, dict):
            if key not in parent:
                raise _missing(f"error in {op} for path: '{path}': Unable to remove nonexistent key: {key}")
            return {name: value for name, value in parent.items() if name != key}
        index = _index(key, len(parent) - 1)
        return [*parent[:index], *parent[index + 1 :]]

    if not path:
        raise unprocessable(f"{op} operation does not apply: the whole document cannot be removed")
    return _change(document, path, remove, op)


def _replace(document: Any, path: str, value: Any) -> Any:
    def replace(parent: Any, key: str) -> Any:
        if isinstance(parent, dict):
            if key not in parent:
                raise _missing(f"replace operation does not apply: doc is missing key: {path}")
            return {**parent, key: value}
        index = _index(key, len(parent) - 1)
        return [*parent[:index], value, *parent[index + 1 :]]

    return _change(document, path, replace, "replace") if path else value


def _test(document: Any, operation: PatchOperation) -> Any:
    expected = None if operation.value is msgspec.UNSET else operation.value
    try:
        value = _find(document, operation.path, "")
    except ApiError:
        value = None  # a path that is not there equals null, as upstream has it
    if not same_json(value, expected):
        raise unprocessable(f"testing value {operation.path} failed: test failed")
    return document


def same_json(left: Any, right: Any) -> bool:
    """Whether two values are the same JSON: unlike in Python, true is not 1."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_json(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_json, left, right))
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def _change(document: Any, path: str, change: Callable[[Any, str], Any], op: str) -> Any:
    """The document with one container exchanged; only the containers on the way to it are copied."""
    missing = f'{op} operation does not apply: doc is missing path: "{path}"'

    def descend(node: Any, rest: Sequence[str]) -> Any:
        if not isinstance(node, dict | list):
            raise _missing(missing)
        if len(rest) == 1:
            return change(node, rest[0])
        key = _step(node, rest[0], missing)
        child = descend(node[key], rest[1:])
        if isinstance(node, dict):
            return {**node, key: child}
        return [*node[:key], child, *node[key + 1 :]]

    return descend(document, _tokens(path))


def _find(document: Any, path: str, missing: str) -> Any:
    node = document
    for token in _tokens(path) if path else ():
        node = node[_step(node, token, f"{missing}: {path}")]
    return node


def _step(node: Any, token: str, missing: str) -> Any:
    if isinstance(node, dict) and token in node:
        return token
    if isinstance(node, list):
        return _index(token, len(node) - 1)
    raise _missing(missing)


def _tokens(path: str) -> list[str]:
    if not path.startswith("/"):
        raise unprocessable(f"{path!r} is no JSON pointer: it does not start with a slash")
    return [token.replace("~1", "/").replace("~0", "~") for token in path[1:].split("/")]


def _index(token: str, largest: int) -> int:
    """An index of a list. Negative ones, which some libraries count from the end, are errors in the RFC."""
    is_number = token.isascii() and token.isdigit() and (token == "0" or not token.startswith("0"))
    if not is_number or int(token) > largest:
        raise unprocessable(f"Unable to access invalid index: {token}: invalid index referenced")
    return int(token)


def _missing(problem: str) -> ApiError:
    return unprocessable(f"{problem}: missing value")
