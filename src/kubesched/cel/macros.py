"""Macros: has(), the comprehensions, cel.bind() and the optional mappers, expanded by the parser."""

from __future__ import annotations

from kubesched.cel.errors import IssueError
from kubesched.cel.syntax import Bind, Call, Fold, FoldKind, Ident, Literal, Select, SyntaxNode

_ACCUMULATORS = ("__result__", "@result")
_QUANTIFIERS = {
    "all": FoldKind.ALL,
    "exists": FoldKind.EXISTS,
    "exists_one": FoldKind.EXISTS_ONE,
    "existsOne": FoldKind.EXISTS_ONE,
}
_TRANSFORMS = {
    "transformList": FoldKind.MAP,
    "transformMap": FoldKind.TRANSFORM_MAP,
    "transformMapEntry": FoldKind.TRANSFORM_MAP_ENTRY,
}


def expand(offset: int, function: str, target: SyntaxNode | None, args: tuple[SyntaxNode, ...]) -> SyntaxNode | None:
    """What the call stands for, or None if it is just a call."""
    if target is None:
        return _has(offset, args[0]) if function == "has" and len(args) == 1 else None
    match function, len(args):
        case (("all" | "exists" | "exists_one" | "existsOne"), 2):
            variable = _variable(args[0], "argument must be a simple name")
            return Fold(offset, _QUANTIFIERS[function], target, (variable,), args[1])
        case (("all" | "exists" | "existsOne"), 3):
            return Fold(offset, _QUANTIFIERS[function], target, _two_variables(args), args[2])
        case (("transformList" | "transformMap" | "transformMapEntry"), (3 | 4)):
            predicate = args[2] if len(args) == 4 else None
            return Fold(offset, _TRANSFORMS[function], target, _two_variables(args), predicate, args[-1])
        case "map", (2 | 3):
            variable = _variable(args[0], "argument is not an identifier")
            return Fold(offset, FoldKind.MAP, target, (variable,), args[1] if len(args) == 3 else None, args[-1])
        case "filter", 2:
            variable = _variable(args[0], "argument is not an identifier")
            return Fold(offset, FoldKind.FILTER, target, (variable,), args[1])
        case "sortBy", 2:
            return _sort_by(offset, target, args)
        case "bind", 3 if isinstance(target, Ident) and target.name == "cel":
            name = _name(args[0], "cel.bind() variable names must be simple identifiers")
            return Bind(offset, name, args[1], args[2])
        case (("optMap" | "optFlatMap"), 2):
            return _optional_map(offset, function, target, args)
        case _:
            return None


def _has(offset: int, arg: SyntaxNode) -> SyntaxNode:
    if isinstance(arg, Select) and not arg.test_only and not arg.optional:
        return Select(offset, arg.operand, arg.field, test_only=True, field_offset=arg.field_offset)
    raise IssueError(arg.offset, "invalid argument to has() macro")


def _name(node: SyntaxNode, otherwise: str) -> str:
    if not isinstance(node, Ident):
        raise IssueError(node.offset, otherwise)
    return node.name


def _variable(node: SyntaxNode, otherwise: str) -> str:
    name = _name(node, otherwise)
    if name in _ACCUMULATORS:
        raise IssueError(node.offset, "iteration variable overwrites accumulator variable")
    return name


def _two_variables(args: tuple[SyntaxNode, ...]) -> tuple[str, str]:
    first = _variable(args[0], "argument must be a simple name")
    second = _variable(args[1], "argument must be a simple name")
    if first == second:
        raise IssueError(args[1].offset, f"duplicate variable name: {first}")
    return first, second


def _sort_by(offset: int, target: SyntaxNode, args: tuple[SyntaxNode, ...]) -> SyntaxNode:
    if isinstance(target, Literal):
        message = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise IssueError(target.offset, message)
    variable = _variable(args[0], "argument is not an identifier")
    elements = Ident(offset, "@__sortBy_input__")
    keys = Fold(offset, FoldKind.MAP, elements, (variable,), None, args[1])
    return Bind(offset, elements.name, target, Call(offset, "@sortByAssociatedKeys", elements, (keys,)))


def _optional_map(offset: int, function: str, target: SyntaxNode, args: tuple[SyntaxNode, ...]) -> SyntaxNode:
    name = _name(args[0], f"{function}() variable name must be a simple identifier")
    bound: SyntaxNode = Bind(offset, name, Call(offset, "value", target, ()), args[1])
    if function == "optMap":
        bound = Call(offset, "optional.of", None, (bound,))
    present = Call(offset, "hasValue", target, ())
    return Call(offset, "_?_:_", None, (present, bound, Call(offset, "optional.none", None, ())))
