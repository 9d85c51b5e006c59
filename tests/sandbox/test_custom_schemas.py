"""kubectl and a CustomResourceDefinition with a schema: it explains, refuses, fills in and selects."""

from __future__ import annotations

import pytest
from tests.running_sandbox import Sandbox

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    selectableFields: [{jsonPath: .spec.color}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            description: What the widget should be.
            properties:
              size: {type: integer, maximum: 10, description: How large it is.}
              color: {type: string, default: red}
            x-kubernetes-validations: [{rule: "self.size != 7", message: not seven}]
"""


@pytest.fixture(scope="module")
def widgets(sandbox: Sandbox) -> Sandbox:
    sandbox.kubectl("apply", "-f", "-", stdin=DEFINITION)
    return sandbox


def apply(sandbox: Sandbox, name: str, spec: str, *, fails: bool = False) -> str:
    manifest = f"apiVersion: example.com/v1\nkind: Widget\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n"
    return sandbox.kubectl("apply", "-f", "-", stdin=manifest, fails=fails)


def test_explain_knows_the_fields(widgets: Sandbox) -> None:
    explained = widgets.kubectl("explain", "widget.spec")
    assert "How large it is." in explained
    assert "size\t<integer>" in explained


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("size: 300", "spec.size in body should be less than or equal to 10"),
        ("size: 7", "spec: Invalid value: not seven"),
        ("size: 1, colour: red", 'unknown field "spec.colour"'),
    ],
)
def test_apply_says_what_is_wrong(widgets: Sandbox, spec: str, words: str) -> None:
    assert words in apply(widgets, "wrong", spec, fails=True)


def test_defaults_are_there_and_fields_select(widgets: Sandbox) -> None:
    apply(widgets, "plain", "size: 1")
    apply(widgets, "special", "size: 2, color: green")
    assert widgets.kubectl("get", "widget", "plain", "-o", "jsonpath={.spec.color}") == "red"
    found = widgets.kubectl("get", "widgets", "--field-selector=spec.color=green", "-o", "name")
    assert found == "widget.example.com/special\n"
