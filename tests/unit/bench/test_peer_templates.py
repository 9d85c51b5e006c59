from __future__ import annotations

import pytest
from bench.peer.templates import Template, TemplateError


def test_object_without_actions_is_read_once() -> None:
    template = Template("kind: Pod\nspec: {priority: 10}")
    assert template.object(3, 5) == {"kind": "Pod", "spec": {"priority": 10}}
    assert template.object(4, 5) is template.object(3, 5)


@pytest.mark.parametrize(
    ("action", "value"),
    [
        ("{{.Index}}", 7),
        ("{{ .Count }}", 30),
        ("{{Mod .Index 5}}", 2),
        ("{{ DivideInt 30000 .Count }}", 1000),
        ("{{DivideInt .Index 5}}", 1),
        ("{{DivideFloat .Index 2}}", 3.5),
        ("{{AddInt .Index 1 2}}", 10),
        ("{{AddFloat .Index 0.5}}", 7.5),
        ("{{MultiplyInt .Index .Count}}", 210),
        ("{{MultiplyFloat .Index 0.1}}", 0.7),
        ("{{SubtractInt .Count .Index}}", 23),
        ("{{SubtractFloat .Count 0.5}}", 29.5),
    ],
)
def test_actions_are_evaluated(action: str, value: float) -> None:
    assert Template(f"value: {action}").object(index=7, count=30) == {"value": value}


@pytest.mark.parametrize(
    "action", ["{{ .Name }}", "{{ if .Index }}", "{{ Mod .Index }}", "{{ Mod .Index x }}", "{{ }}"]
)
def test_action_that_is_not_understood_is_named_with_its_file(action: str) -> None:
    with pytest.raises(TemplateError, match=r"pod\.yaml: cannot evaluate \{\{ "):
        Template(f"value: {action}", "pod.yaml").object()
