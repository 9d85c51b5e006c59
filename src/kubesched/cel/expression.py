"""CEL over plain values: the rules of CustomResourceDefinitions, which speak of `self` and `oldSelf`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from kubesched.cel import types
from kubesched.cel.compiler import FIRST_LOCAL
from kubesched.cel.costs import CostMeter
from kubesched.cel.errors import AbsorbableError, CostLimitError, EvaluationError
from kubesched.cel.metering import MeteringCompiler
from kubesched.cel.selector import parse_and_check
from kubesched.cel.syntax import Ident, SyntaxNode, children
from kubesched.cel.values import Value, readable

_MOST_EXPRESSIONS = 1024


class CelExpression:
    """A compiled expression of some variables, which are dynamic. What it costs is counted, and limited."""

    def __init__(self, text: str, variables: tuple[str, ...]) -> None:
        """Raises CompileError if the text is no expression of these variables."""
        tree, checked = parse_and_check(readable(text), dict.fromkeys(variables, types.DYN))
        compiler = MeteringCompiler(checked, variables)
        self.result = checked.result
        self.names = frozenset(_names(tree))
        """All names in it, those of its variables among them."""
        self._run = compiler.build(tree).run
        self._variables = variables
        self._other_locals: list[Value] = [None] * (compiler.slots - FIRST_LOCAL - len(variables))

    def evaluate(self, values: Mapping[str, Value]) -> Value:
        """What it comes to; raises EvaluationError if it comes to nothing, or would cost too much."""
        arguments = [values.get(name) for name in self._variables]
        try:
            return self._run([None, CostMeter(), *arguments, *self._other_locals])
        except (AbsorbableError, CostLimitError) as error:
            raise EvaluationError(str(error)) from None


def _names(node: SyntaxNode) -> list[str]:
    own = [node.name] if isinstance(node, Ident) else []
    return [*own, *(name for child in children(node) for name in _names(child))]


@lru_cache(maxsize=_MOST_EXPRESSIONS)
def compile_expression(text: str, variables: tuple[str, ...]) -> CelExpression:
    """Compile an expression, once."""
    return CelExpression(text, variables)
