"""Selectors: CEL expressions that say of a device whether it will do."""

from __future__ import annotations

from functools import lru_cache

from kubesched.cel import library, types
from kubesched.cel.checker import Checked, check
from kubesched.cel.compiler import FIRST_LOCAL, Compiler
from kubesched.cel.costs import Meter
from kubesched.cel.device import Device
from kubesched.cel.errors import AbsorbableError, CompileError, CostLimitError, EvaluationError, describe_issues
from kubesched.cel.metering import MeteringCompiler, may_become_expensive
from kubesched.cel.parser import parse
from kubesched.cel.syntax import Node
from kubesched.cel.validators import validate
from kubesched.cel.values import Value, type_name

__all__ = ["Selector", "compile_selector", "library"]

_MOST_EXPRESSIONS = 4096

_NO_BOOL = {
    "int": "unsupported type conversion from 'int' to bool",
    "uint": "unsupported type conversion from 'uint' to bool",
    "string": "unsupported native conversion from string to 'bool'",
    "double": "type conversion error from Double to 'bool'",
    "bytes": "type conversion error from Bytes to 'bool'",
    "list": "type conversion error from list to 'bool'",
    "map": "type conversion error from map to 'bool'",
    "type": "type conversion not supported for 'type'",
    "null_type": "type conversion error from 'null_type' to 'bool'",
    "kubernetes.Semver": "type conversion error from 'Semver' to 'bool'",
    "kubernetes.Quantity": "type conversion error from 'Quantity' to 'bool'",
    types.DURATION.name: "type conversion error from 'Duration' to 'bool'",
    types.TIMESTAMP.name: "type conversion error from 'Timestamp' to 'bool'",
}


class Selector:
    """A compiled expression. Costs are counted only where they could reach the limit."""

    def __init__(self, expression: str, tree: Node, checked: Checked) -> None:
        self.expression = expression
        self._tree = tree
        self._checked = checked
        self._cheap = not may_become_expensive(tree)
        compiler = Compiler(checked)
        self._run = compiler.build(tree).run
        self._after_device: list[Value] = [None] * (compiler.slots - 1)
        self._metered: MeteredSelector | None = None

    def __repr__(self) -> str:
        return f"Selector({self.expression!r})"

    def matches(self, device: Device) -> bool:
        """Whether the device will do; raises EvaluationError if the expression cannot tell."""
        if not (self._cheap and device.modest):
            return self.metered().matches(device)
        try:
            result = self._run([device, *self._after_device])
        except AbsorbableError as failure:
            raise EvaluationError(str(failure)) from None
        return result if type(result) is bool else _as_bool(result)

    def metered(self) -> MeteredSelector:
        """The same selector, always counting."""
        if self._metered is None:
            self._metered = MeteredSelector(self.expression, self._tree, self._checked)
        return self._metered


class MeteredSelector:
    """A compiled expression that counts what each evaluation costs, and stops it at the limit."""

    def __init__(self, expression: str, tree: Node, checked: Checked) -> None:
        self.expression = expression
        compiler = MeteringCompiler(checked)
        self._run = compiler.build(tree).run
        self._locals: list[Value] = [None] * (compiler.slots - FIRST_LOCAL)

    def __repr__(self) -> str:
        return f"MeteredSelector({self.expression!r})"

    def matches(self, device: Device, meter: Meter | None = None) -> bool:
        """Whether the device will do; raises EvaluationError if the expression cannot tell, or would cost too much.

        A meter that is given says afterwards how much of the limit is left.
        """
        if device.problem is not None:
            raise EvaluationError(device.problem)
        try:
            result = self._run([device, meter or Meter(), *self._locals])
        except (AbsorbableError, CostLimitError) as stopped:
            raise EvaluationError(str(stopped)) from None
        return result if type(result) is bool else _as_bool(result)


def _as_bool(value: Value) -> bool:
    name = type_name(value)
    reason = _NO_BOOL.get(name, f"type conversion error from '{name}' to 'bool'")
    raise EvaluationError(f"CEL result of type {name} could not be converted to bool: {reason}")


@lru_cache(maxsize=_MOST_EXPRESSIONS)
def compile_selector(expression: str) -> Selector:
    """Compile an expression, once: selectors are shared. Raises CompileError if it is not valid for devices."""
    tree, issues = parse(expression)
    if tree is None or issues:
        raise CompileError(f"compilation failed: {describe_issues(expression, issues)}")
    checked = check(tree)
    problems = checked.issues or validate(tree, checked)
    if problems:
        raise CompileError(f"compilation failed: {describe_issues(expression, problems)}")
    if checked.result not in (types.BOOL, types.ANY):
        raise CompileError(f"must evaluate to bool or the unknown type, not {checked.result}")
    return Selector(expression, tree, checked)
