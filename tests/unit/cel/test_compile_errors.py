from __future__ import annotations

import pytest
from tests.unit.cel.devices import spelled_out

from kubesched.cel import CompileError, compile_selector

EXPRESSION_STARTS = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)


def words_for(expression: str) -> str:
    with pytest.raises(CompileError) as caught:
        compile_selector(spelled_out(expression))
    return str(caught.value).removeprefix("CEL compile error: ")


def test_error_shows_the_place_under_the_expression() -> None:
    assert words_for("device.nope == 1") == (
        "compilation failed: ERROR: <input>:1:7: undefined field 'nope'\n | device.nope == 1\n | ......^"
    )


def test_error_on_a_later_line_shows_only_that_line() -> None:
    assert words_for("true &&\n\tdevice.nope == 1").endswith(
        "ERROR: <input>:2:8: undefined field 'nope'\n |  device.nope == 1\n | .......^"
    )


def test_wide_characters_are_marked_by_wide_dots() -> None:
    assert words_for('"ä" == 1').endswith('\n | "ä" == 1\n | .\uff0e..^')


def test_all_errors_are_told_in_order() -> None:
    words = words_for("math.greatest(a, 1) > 2")
    assert [line.partition(": ")[2] for line in words.splitlines() if "<input>" in line] == [
        "ERROR: <input>:1:1: undeclared reference to 'math' (in container '')",
        "<input>:1:14: undeclared reference to 'greatest' (in container '')",
        "<input>:1:15: undeclared reference to 'a' (in container '')",
    ]


def test_empty_expression_has_no_place_to_show() -> None:
    expected = f"Syntax error: mismatched input '<EOF>' expecting {EXPRESSION_STARTS}"
    assert words_for("") == f"compilation failed: ERROR: <input>:1:0: {expected}"


@pytest.mark.parametrize(
    ("expression", "type_name"),
    [
        ('"a100"', "string"),
        ("1", "int"),
        ("[1]", "list(int)"),
        ('{"a": [1]}', "map(string, list(int))"),
        ("dyn(true)", "dyn"),
        ("#.memory", "kubernetes.Quantity"),
        ("$.?mig", "optional_type(any)"),
        ('device.attributes["gpu.example.com"]', "map(string, any)"),
    ],
)
def test_result_of_another_type_is_refused(expression: str, type_name: str) -> None:
    assert words_for(expression) == f"must evaluate to bool or the unknown type, not {type_name}"


@pytest.mark.parametrize(
    "expression", ["$.mig", "$.?mig.orValue(false)", "true ? $.mig : false", "cel.bind(x, $.mig, x)", "[true][0]"]
)
def test_result_that_may_be_bool_is_accepted(expression: str) -> None:
    assert compile_selector(spelled_out(expression))


MESSAGES = {
    # syntax
    "1 +": f"1:4: Syntax error: mismatched input '<EOF>' expecting {EXPRESSION_STARTS}",
    "? 1": f"1:1: Syntax error: extraneous input '?' expecting {EXPRESSION_STARTS}",
    "(1": "1:3: Syntax error: missing ')' at '<EOF>'",
    "[1": "1:3: Syntax error: missing ']' at '<EOF>'",
    "{1": "1:3: Syntax error: mismatched input '<EOF>' expecting ':'",
    "{1:2": "1:5: Syntax error: mismatched input '<EOF>' expecting {'}', ','}",
    "1 2": "1:3: Syntax error: extraneous input '2' expecting <EOF>",
    "[1 2]": "1:4: Syntax error: extraneous input '2' expecting {']', ','}",
    "1 ? 2": "1:6: Syntax error: mismatched input '<EOF>' expecting ':'",
    "a.": "1:3: Syntax error: no viable alternative at input '.'",
    "a.true": "1:3: Syntax error: mismatched input 'true' expecting IDENTIFIER",
    "true @": "1:6: Syntax error: token recognition error at: '@'",
    '"abc': "1:1: Syntax error: token recognition error at: '\"abc'",
    "device = 1": "1:8: Syntax error: token recognition error at: '= '",
    "if == 1": "1:1: reserved identifier: if",
    "9223372036854775808 == 1": "1:1: invalid int literal",
    "18446744073709551616u == 1u": "1:1: invalid uint literal",
    # macros
    "has(device)": "1:5: invalid argument to has() macro",
    "[1].all(1, true)": "1:9: argument must be a simple name",
    "[1].map(1, true) == []": "1:9: argument is not an identifier",
    "cel.bind(1, 2, true)": "1:10: cel.bind() variable names must be simple identifiers",
    "[1].all(x, x, true)": "1:12: duplicate variable name: x",
    # types
    'dev.driver == "x"': "1:1: undeclared reference to 'dev' (in container '')",
    "foo(1)": "1:4: undeclared reference to 'foo' (in container '')",
    "some.Type{}": "1:10: undeclared reference to 'some.Type' (in container '')",
    "device.driver == 5": "1:15: found no matching overload for '_==_' applied to '(string, int)'",
    "$.ver > semver('1.0.0')": "1:42: found no matching overload for '_>_' applied to '(any, kubernetes.Semver)'",
    "device.driver.isGreaterThan(semver('1.0.0'))": (
        "1:28: found no matching overload for 'isGreaterThan' applied to 'string.(kubernetes.Semver)'"
    ),
    "#.memory.sign() == 1": "1:47: found no matching overload for 'sign' applied to 'kubernetes.Quantity.()'",
    "1 + 'a' == 2": "1:3: found no matching overload for '_+_' applied to '(int, string)'",
    "1 && true": "1:1: expected type 'bool' but found 'int'",
    "1 ? true : false": "1:3: found no matching overload for '_?_:_' applied to '(int, bool, bool)'",
    "[1].all(x, x)": "1:12: expected type 'bool' but found 'int'",
    "device.driver.all(x, true)": (
        "1:7: expression of type 'string' cannot be range of a comprehension (must be list, map, or dynamic)"
    ),
    "device.driver.x == 1": "1:14: type 'string' does not support field selection",
    "[1, 'a'] == []": "1:5: expected type 'int' but found 'string'",
    "{1: 1, 'a': 1} == {}": "1:8: expected type 'int' but found 'string'",
    "device.driver.size(1) == 1": "1:19: found no matching overload for 'size' applied to 'string.(int)'",
    # literals that can never work
    "[$.mem, 40].max() == 40": "1:44: expected type 'any' but found 'int'",
    "duration('x') == duration('1s')": "1:10: invalid duration argument",
    "timestamp('x') == timestamp('x')": "1:11: invalid timestamp argument",
    "device.driver.matches('(')": "1:23: invalid matches argument",
    "'%d'.format(['x']) == ''": (
        "1:14: error during formatting: decimal clause can only be used on integers, was given string"
    ),
    "'%s'.format([1, 2]) == ''": "1:12: too many arguments supplied to string.format (expected 1, got 2)",
    "'%q'.format([1]) == ''": '1:12: could not parse formatting clause: unrecognized formatting clause "q"',
}


@pytest.mark.parametrize(("expression", "message"), MESSAGES.items(), ids=list(MESSAGES))
def test_invalid_expression_is_refused_with_the_words_of_upstream(expression: str, message: str) -> None:
    first = words_for(expression).splitlines()[0]
    assert first == f"compilation failed: ERROR: <input>:{message}"


@pytest.mark.parametrize(
    "expression",
    ["(" * 500 + "true" + ")" * 500, "!" * 10 + "-" * 5, " + ".join("1" * 5000), "[" * 5000, "device" + ".x" * 5000],
)
def test_expression_too_deep_to_walk_is_refused(expression: str) -> None:
    with pytest.raises(CompileError):
        compile_selector(expression)


def test_long_chains_of_terms_are_no_problem() -> None:
    assert compile_selector(" || ".join(f"device.driver == 'd{i}'" for i in range(1000)))
