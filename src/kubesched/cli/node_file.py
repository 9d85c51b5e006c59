"""The file of `kubesched sandbox --node-file`: Node manifests that may leave things out, and may say `count`."""

from __future__ import annotations

from collections import Counter
from typing import Any

from kubesched.api.kinds import Object
from kubesched.api.node import Node
from kubesched.api.schema import convert
from kubesched.api.yaml import YamlError, documents
from kubesched.cli.input import read, refuse
from kubesched.sandbox.nodes import node_manifests


def nodes_of(file: str) -> list[Object]:
    """The nodes that the file stands for; or all that is wrong with it, and the end."""
    source, text = read(file)
    try:
        templates = _templates([document.value for document in documents(text)])
    except YamlError as error:
        refuse([f"{source}: {error}"])
    mistakes = [f"{source}: {mistake}" for i, each in enumerate(templates, 1) for mistake in _mistakes(i, each)]
    if mistakes or not templates:
        refuse(mistakes or [f"{source}: no Node in it"])
    nodes = node_manifests(templates)
    names = Counter(node["metadata"]["name"] for node in nodes)
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        refuse([f"{source}: there are {names[name]} nodes named {name!r}" for name in twice])
    return nodes


def _templates(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        is_list = isinstance(value, dict) and value.get("kind") == "List" and isinstance(value.get("items"), list)
        found += value["items"] if is_list else [value]
    return found


def _mistakes(number: int, template: Any) -> list[str]:
    """What is wrong with the shape of a template; what its values may be is for the API to say."""
    if not isinstance(template, dict) or template.get("kind") != "Node":
        return [f"document {number}: expected a Node"]
    _, mistakes = convert(template, Node, shape_only=True)
    lines = [f"document {number}: {mistake}" for mistake in mistakes]
    count = template.get("count")
    if count is not None and (type(count) is not int or count < 0):
        lines.append(f"document {number}: count: expected how many there are, got {count!r}")
    return lines
