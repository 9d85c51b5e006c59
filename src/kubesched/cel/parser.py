"""Tokens to trees: recursive descent over CEL's grammar, macros expanded on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kubesched.cel.errors import Issue, IssueError
from kubesched.cel.macros import expand
from kubesched.cel.syntax import (
    Call,
    Ident,
    Index,
    ListNode,
    Literal,
    Logic,
    MapEntry,
    MapNode,
    Message,
    Select,
    SyntaxNode,
    children,
)
from kubesched.cel.tokens import END, EscapeError, Token, read_bytes, read_string, tokenize
from kubesched.cel.values import Uint

_DEEPEST_NESTING, _DEEPEST_TREE = 40, 150
"""Deeper expressions are refused, for trees are walked recursively. Upstream refuses them too, only later."""
_TOO_DEEP = "expression recursion limit exceeded"

_RESERVED = frozenset(
    (
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop"),
        *("package", "namespace", "return", "var", "void", "while"),
    )
)
_STARTS = (
    *("[", "{", "(", ".", "-", "!", "true", "false", "null"),
    *("NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES", "IDENTIFIER"),
)
_RELATIONS = ("<", "<=", ">=", ">", "==", "!=", "in")
_FUNCTION_OF = {op: f"_{op}_" for op in (*_RELATIONS, "+", "-", "*", "/", "%")} | {"in": "@in"}


def parse(text: str) -> tuple[SyntaxNode | None, list[Issue]]:
    """The tree of an expression, or what is wrong with the text."""
    tokens, issues = tokenize(text)
    parser = _Parser(tokens)
    try:
        tree = parser.start()
    except IssueError as error:
        issue = error.issue if text else Issue(-1, error.issue.message)
        return None, [*issues, *parser.issues, issue]
    if _depth_of(tree) > _DEEPEST_TREE:
        return None, [Issue(tree.offset, _TOO_DEEP)]
    return tree, [*issues, *parser.issues]


def _depth_of(tree: SyntaxNode) -> int:
    depth, level = 0, [tree]
    while level:
        depth += 1
        level = [child for node in level for child in children(node)]
    return depth


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self.issues: list[Issue] = []
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def start(self) -> SyntaxNode:
        tree = self._expression()
        self._expect(END)
        return tree

    # -- reading tokens ------------------------------------------------------------------------------------------

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _take(self, *kinds: str) -> Token | None:
        token = self._tokens[self._at]
        if token.kind not in kinds:
            return None
        self._at += token.kind != END
        return token

    def _expect(self, *kinds: str) -> Token:
        token = self._take(*kinds)
        if token is None:
            raise self._unexpected(kinds)
        return token

    def _unexpected(self, expected: tuple[str, ...]) -> IssueError:
        """The generated parser's words: it tells a word too many from a wrong one, and from a missing bracket."""
        token = self._next
        after = self._tokens[min(self._at + 1, len(self._tokens) - 1)]
        if token.kind == END and expected[0] in (")", "]"):
            return self._syntax_issue(f"missing '{expected[0]}' at '{END}'")
        names = [kind if kind.isupper() or kind == END or "_" in kind else f"'{kind}'" for kind in expected]
        shown = names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"
        verb = "extraneous" if token.kind != END and after.kind in expected else "mismatched"
        return self._syntax_issue(f"{verb} input '{token.shown}' expecting {shown}")

    def _syntax_issue(self, message: str) -> IssueError:
        return IssueError(self._next.offset, f"Syntax error: {message}")

    # -- the grammar, from the loosest binding to the tightest ----------------------------------------------------

    def _expression(self) -> SyntaxNode:
        self._depth += 1
        if self._depth > _DEEPEST_NESTING:
            raise IssueError(self._next.offset, _TOO_DEEP)
        condition = self._chain("||", "_||_", lambda: self._chain("&&", "_&&_", self._relation))
        if question := self._take("?"):
            then = self._chain("||", "_||_", lambda: self._chain("&&", "_&&_", self._relation))
            self._expect(":")
            condition = Call(question.offset, "_?_:_", None, (condition, then, self._expression()))
        self._depth -= 1
        return condition

    def _chain(self, sign: str, function: str, term: Callable[[], SyntaxNode]) -> SyntaxNode:
        terms, offset = [term()], 0
        while token := self._take(sign):
            offset = offset or token.offset
            terms.append(term())
        return terms[0] if len(terms) == 1 else Logic(offset, function, tuple(terms))

    def _relation(self) -> SyntaxNode:
        return self._binary(_RELATIONS, self._sum)

    def _sum(self) -> SyntaxNode:
        return self._binary(("+", "-"), self._product)

    def _product(self) -> SyntaxNode:
        return self._binary(("*", "/", "%"), self._unary)

    def _binary(self, signs: tuple[str, ...], operand: Callable[[], SyntaxNode]) -> SyntaxNode:
        left = operand()
        while token := self._take(*signs):
            left = Call(token.offset, _FUNCTION_OF[token.kind], None, (left, operand()))
        return left

    def _unary(self) -> SyntaxNode:
        sign = self._next
        if sign.kind == "!" or (sign.kind == "-" and self._tokens[self._at + 1].kind not in ("NUM_INT", "NUM_FLOAT")):
            count = 0
            while self._next.kind == sign.kind:
                self._at += 1
                count += 1
            operand = self._member()
            return Call(sign.offset, f"{sign.kind}_", None, (operand,)) if count % 2 else operand
        return self._member()

    def _member(self) -> SyntaxNode:
        node = self._primary()
        while token := self._take(".", "["):
            node = self._select(node, token) if token.kind == "." else self._index(node, token)
        return node

    def _select(self, operand: SyntaxNode, dot: Token) -> SyntaxNode:
        optional = self._take("?") is not None
        name = self._take("IDENTIFIER", "ESC_IDENTIFIER")
        if name is None:
            raise self._no_member_name(optional=optional)
        if name.kind == "ESC_IDENTIFIER":
            self.issues.append(Issue(name.offset, "unsupported syntax: '`'"))
        if not optional and (opening := self._take("(")):
            return self._call(opening, name.text, operand, self._arguments())
        return Select(dot.offset, operand, name.text, optional=optional, field_offset=name.offset)

    def _no_member_name(self, *, optional: bool) -> IssueError:
        token = self._next
        if optional:
            return self._unexpected(("IDENTIFIER", "ESC_IDENTIFIER"))
        if token.kind in ("true", "false", "null"):
            return self._syntax_issue(f"mismatched input '{token.kind}' expecting IDENTIFIER")
        return self._syntax_issue(f"no viable alternative at input '.{'' if token.kind == END else token.shown}'")

    def _index(self, operand: SyntaxNode, opening: Token) -> SyntaxNode:
        optional = self._take("?") is not None
        key = self._expression()
        self._expect("]")
        return Index(opening.offset, operand, key, optional=optional)

    def _arguments(self) -> tuple[SyntaxNode, ...]:
        if self._take(")"):
            return ()
        if self._next.kind not in _STARTS:
            raise self._unexpected((*_STARTS[:3], ")", *_STARTS[3:]))
        arguments = [self._expression()]
        while self._take(","):
            arguments.append(self._expression())
        self._expect(")")
        return tuple(arguments)

    def _call(
        self, opening: Token, function: str, target: SyntaxNode | None, args: tuple[SyntaxNode, ...]
    ) -> SyntaxNode:
        try:
            return expand(opening.offset, function, target, args) or Call(opening.offset, function, target, args)
        except IssueError as error:
            self.issues.append(error.issue)
            return Literal(opening.offset, None)

    def _primary(self) -> SyntaxNode:
        token = self._take(*_STARTS)
        if token is None or token.kind == "!":
            self._at -= token is not None
            raise self._unexpected(_STARTS)
        match token.kind:
            case "(":
                inner = self._expression()
                self._expect(")")
                return inner
            case "[":
                return self._list(token)
            case "{":
                return self._map(token)
            case "." | "IDENTIFIER":
                return self._name(token)
            case _:
                return self._literal(token)

    def _list(self, opening: Token) -> SyntaxNode:
        elements: list[SyntaxNode] = []
        optional = set()
        while self._next.kind not in ("]", ",", END):
            if self._take("?"):
                optional.add(len(elements))
            elements.append(self._expression())
            if not self._take(","):
                break
        else:
            self._trailing_comma(elements)
        if not self._take("]"):
            comma = self._tokens[self._at - 1].kind == ","
            raise self._unexpected(("]",) if comma else ("]", ","))
        return ListNode(opening.offset, tuple(elements), frozenset(optional))

    def _map(self, opening: Token) -> SyntaxNode:
        entries: list[MapEntry] = []
        while self._next.kind not in ("}", ","):
            optional = self._take("?") is not None
            key = self._expression()
            colon = self._expect(":")
            entries.append(MapEntry(colon.offset, key, self._expression(), optional=optional))
            if not self._take(","):
                break
        else:
            self._trailing_comma(entries)
        if not self._take("}"):
            raise self._unexpected(("}", ",") if entries else ("}",))
        return MapNode(opening.offset, tuple(entries))

    def _trailing_comma(self, before: Sequence[SyntaxNode]) -> None:
        """The grammar allows a comma behind the last element, even where there is none before it."""
        if not before:
            self._take(",")

    def _name(self, token: Token) -> SyntaxNode:
        dot, name = "", token
        if token.kind == ".":
            if self._next.kind != "IDENTIFIER":
                raise self._no_member_name(optional=False)
            dot, name = ".", self._expect("IDENTIFIER")
        if message := self._message(dot, name):
            return message
        if name.text in _RESERVED:
            self.issues.append(Issue(token.offset, f"reserved identifier: {name.text}"))
            return Literal(token.offset, None)
        if opening := self._take("("):
            return self._call(opening, dot + name.text, None, self._arguments())
        return Ident(name.offset, dot + name.text)

    def _message(self, dot: str, name: Token) -> SyntaxNode | None:
        """`a.b.C{...}`, which needs a look ahead: up to the brace it looks like a selection."""
        ahead, full = self._at, dot + name.text
        while self._tokens[ahead].kind == "." and self._tokens[ahead + 1].kind == "IDENTIFIER":
            full += f".{self._tokens[ahead + 1].text}"
            ahead += 2
        opening = self._tokens[ahead]
        if opening.kind != "{":
            return None
        self._at = ahead + 1
        while self._next.kind != "}":
            self._take("?")
            self._expect("IDENTIFIER", "ESC_IDENTIFIER")
            self._expect(":")
            self._expression()
            if not self._take(","):
                break
        self._expect("}")
        return Message(opening.offset, full)

    def _literal(self, token: Token) -> SyntaxNode:
        start, sign = token.offset, ""
        if token.kind == "-":
            sign, token = "-", self._expect("NUM_INT", "NUM_FLOAT")
        if token.kind in ("true", "false", "null"):
            return Literal(start, {"true": True, "false": False, "null": None}[token.kind])
        try:
            match token.kind:
                case "STRING":
                    return Literal(start, read_string(token.text))
                case "BYTES":
                    return Literal(start, read_bytes(token.text[1:]))
                case "NUM_FLOAT":
                    return Literal(start, _double(sign + token.text))
                case "NUM_UINT":
                    return Literal(start, Uint(_within(token.text[:-1], 0, 2**64 - 1, "uint")))
                case _:
                    return Literal(start, _within(sign + token.text, -(2**63), 2**63 - 1, "int"))
        except EscapeError as error:
            self.issues.append(Issue(start, str(error)))
            return Literal(start, None)


def _within(text: str, least: int, most: int, kind: str) -> int:
    number = int(text, 16 if "0x" in text else 10) if len(text) < 100 else most + 1
    if not least <= number <= most:
        raise EscapeError(f"invalid {kind} literal")
    return number


def _double(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise EscapeError("invalid double literal")
    return number
