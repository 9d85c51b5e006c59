"""Write protobuf_numbers.json: the numbers of the fields of Kubernetes types in protobuf, from the types of a release.

Usage: python tools/protobuf_table.py KUBERNETES_CHECKOUT > sandbox/src/kubesched_sandbox/http/protobuf_numbers.json
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGES = {
    **{
        f"io.k8s.api.{group}.v1": f"staging/src/k8s.io/api/{group}/v1"
        for group in (
            "admissionregistration",
            "apps",
            "authentication",
            "authorization",
            "autoscaling",
            "batch",
            "certificates",
            "coordination",
            "core",
            "discovery",
            "events",
            "flowcontrol",
            "networking",
            "node",
            "policy",
            "rbac",
            "resource",
            "scheduling",
            "storage",
        )
    },
    "io.k8s.api.autoscaling.v2": "staging/src/k8s.io/api/autoscaling/v2",
    "io.k8s.apimachinery.pkg.apis.meta.v1": "staging/src/k8s.io/apimachinery/pkg/apis/meta/v1",
}
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^\s*(?:\w+\s+)?(?P<type>[\w.*\[\]]+)\s+`(?P<tags>[^`]*)`", re.MULTILINE)
_NUMBER = re.compile(r'protobuf:"\w+,(\d+),')
_NAME = re.compile(r'json:"([^",]*)([^"]*)"')


def fields(package: str, body: str) -> Iterator[str]:
    """Each field as `NUMBER NAME`; a star marks one that may be absent, angle brackets a type whose fields are ours."""
    for field in _FIELD.finditer(body):
        number, name = _NUMBER.search(field["tags"]), _NAME.search(field["tags"])
        if number is None or name is None:
            continue
        if name[1]:
            yield f"{number[1]} {'*' if field['type'].startswith('*') else ''}{name[1]}"
        else:
            yield f"{number[1]} <{package}.{field['type'].rpartition('.')[2]}>"


def main(checkout: Path) -> None:
    table = {}
    for package, folder in PACKAGES.items():
        for source in sorted((checkout / folder).glob("*types.go")):
            for struct in _STRUCT.finditer(source.read_text()):
                listed = list(fields(package, struct[2]))
                if listed:
                    table[f"{package}.{struct[1]}"] = listed
    lines = [f"{json.dumps(name)}: {json.dumps(', '.join(listed))}" for name, listed in sorted(table.items())]
    sys.stdout.write("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
