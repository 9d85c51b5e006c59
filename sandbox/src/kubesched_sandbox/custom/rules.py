"""`x-kubernetes-validations`: rules in CEL about `self`, and about `oldSelf` where something changes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kubesched.admission.rules import Mistakes
from kubesched.api.kinds import Object
from kubesched.cel.errors import CompileError, EvaluationError
from kubesched.cel.expression import compile_expression
from kubesched.cel.library.times import to_duration, to_timestamp
from kubesched.cel.types import BOOL, DYN, STRING
from kubesched_sandbox.custom.structure import Schema, is_embedded, keeps_unknown, property_of

_RULES = "x-kubernetes-validations"
_VARIABLES = ("self", "oldSelf")
_ABSENT = object()
_RESERVED = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if"),
        *("import", "let", "loop", "package", "namespace", "return", "var", "void", "while"),
    )
)
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}


def compile_rules(schema: Schema, path: str, mistakes: Mistakes) -> None:
    """Note every rule of a schema that is no CEL or does not come to true or false."""
    for i, rule in enumerate(schema.get(_RULES) or ()):
        for field, results in (("rule", (BOOL, DYN)), ("messageExpression", (STRING, DYN))):
            text = rule.get(field)
            if not text:
                continue
            here = f"{path}.{_RULES}[{i}].{field}"
            try:
                expression = compile_expression(text, _VARIABLES)
            except CompileError as error:
                mistakes.invalid(here, text, str(error).removeprefix("CEL compile error: "))
                continue
            if expression.result not in results:
                mistakes.invalid(here, text, f"must evaluate to {results[0]}")
    for name, inner in (schema.get("properties") or {}).items():
        compile_rules(inner, f"{path}.properties[{name}]", mistakes)
    for key in ("items", "additionalProperties"):
        if isinstance(inner := schema.get(key), Mapping):
            compile_rules(inner, f"{path}.{key}", mistakes)


def check_rules(new: Object, schema: Schema, mistakes: Mistakes, *, old: Object | None = None) -> None:
    """Note which rules an object breaks, at every level of its schema."""
    _check(_framed(new), schema, "", mistakes, _ABSENT if old is None else _framed(old))


def _framed(obj: Object) -> Object:
    """Of the metadata, rules see the name alone."""
    named = {key: obj["metadata"][key] for key in ("name", "generateName") if key in obj["metadata"]}
    return {**obj, "metadata": named}


def _check(value: Any, schema: Schema, path: str, mistakes: Mistakes, old: Any) -> None:
    if rules := schema.get(_RULES):
        seen = {"self": _view(value, schema)}
        if old is not _ABSENT:
            seen["oldSelf"] = _view(old, schema)
        for rule in rules:
            _check_rule(rule, seen, value, path, mistakes, unchanged=value == old)
    if isinstance(value, dict):
        is_map = isinstance(schema.get("additionalProperties"), Mapping)
        before = old if isinstance(old, dict) else {}
        for name, field in value.items():
            if (inner := property_of(schema, name)) is not None:
                below = f"{path}[{name}]" if is_map else f"{path}.{name}" if path else name
                _check(field, inner, below, mistakes, before.get(name, _ABSENT))
    elif isinstance(value, list) and (items := schema.get("items")):
        for i, item in enumerate(value):
            _check(item, items, f"{path}[{i}]", mistakes, _counterpart(item, old, schema))


def _counterpart(item: Any, old: Any, schema: Schema) -> Any:
    """The item of the old list that is meant by the same keys; without keys there is none."""
    keys = schema.get("x-kubernetes-list-map-keys")
    if not keys or not isinstance(old, list) or not isinstance(item, dict):
        return _ABSENT
    same = [other for other in old if isinstance(other, dict) and all(other.get(key) == item.get(key) for key in keys)]
    return same[0] if same else _ABSENT


def _check_rule(
    rule: Mapping[str, Any], seen: Mapping[str, Any], value: Any, path: str, mistakes: Mistakes, *, unchanged: bool
) -> None:
    text = rule["rule"]
    try:
        expression = compile_expression(text, _VARIABLES)
        is_transition = "oldSelf" in expression.names
        if (is_transition and "oldSelf" not in seen) or (unchanged and not is_transition):
            return
        held = expression.evaluate(seen)
    except CompileError as error:
        mistakes.invalid(path, _shown(value), f"rule compile error: {error}")
        return
    except EvaluationError as error:
        mistakes.invalid(path, _type(value), f"{error} evaluating rule: {_rule_words(rule)}")
        return
    if held is not True:
        _note(rule, _message(rule, seen), value, path, mistakes)


def _note(rule: Mapping[str, Any], message: str, value: Any, path: str, mistakes: Mistakes) -> None:
    here = f"{path}{rule['fieldPath']}".lstrip(".") if rule.get("fieldPath") else path
    match rule.get("reason"):
        case "FieldValueForbidden":
            mistakes.forbidden(here, message)
        case "FieldValueRequired":
            mistakes.required(here, message)
        case "FieldValueDuplicate":
            mistakes.duplicate(here, _shown(value))
        case _ if isinstance(value, dict | list):
            mistakes.invalid_whole(here, message)
        case _:
            mistakes.invalid(here, value, message)


def _message(rule: Mapping[str, Any], seen: Mapping[str, Any]) -> str:
    if rule.get("messageExpression"):
        try:
            said = compile_expression(rule["messageExpression"], _VARIABLES).evaluate(seen)
            if isinstance(said, str) and said.strip() and "\n" not in said:
                return said.strip()
        except (CompileError, EvaluationError):
            pass
    return str(rule["message"]).strip() if rule.get("message") else f"failed rule: {_rule_words(rule)}"


def _rule_words(rule: Mapping[str, Any]) -> str:
    return str(rule["rule"]).strip()


def _shown(value: Any) -> Any:
    return _type(value) if isinstance(value, dict | list) else value


def _type(value: Any) -> str:
    return {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer"}.get(type(value), "number")


def _view(value: Any, schema: Schema) -> Any:
    """A value as rules see it: with the fields that the schema names, by names that are identifiers."""
    if isinstance(value, dict):
        if isinstance(schema.get("additionalProperties"), Mapping):
            return {key: _view(field, schema["additionalProperties"]) for key, field in value.items()}
        if keeps_unknown(schema) and not schema.get("properties"):
            return value
        found = {}
        for name, field in value.items():
            inner = property_of(schema, name)
            if (
                inner is None
                and name in ("apiVersion", "kind", "metadata")
                and (schema.get("type") or is_embedded(schema))
            ):
                inner = {"x-kubernetes-preserve-unknown-fields": True}
            if inner is not None and field is not None:
                found[_escaped(name)] = _view(field, inner)
        return found
    if isinstance(value, list):
        return [_view(item, schema.get("items") or {}) for item in value]
    if isinstance(value, str) and (read := _FORMATS.get(schema.get("format", ""))):
        return read(value)
    if schema.get("type") == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


_FORMATS = {"date-time": to_timestamp, "duration": to_duration}


def _escaped(name: str) -> str:
    """A field's name as it is written in rules, where some are reserved and some have signs."""
    if name in _RESERVED:
        return f"__{name}__"
    return re.sub(r"__|[.\-/]", lambda found: _ESCAPES[found.group()], name)
