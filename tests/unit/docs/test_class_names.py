"""A public class name stands for one thing in `src`, as record 074 and the glossary say."""

from __future__ import annotations

import re
from collections import Counter

from tests.unit.docs.pages import ROOT

SHARED = {"Kind", "ReplicaSet", "StatefulSet", "UserInfo", "WorkloadSpec"}
"""Names of Kubernetes' own of which two parts of the code need different fields. At most 15."""


def test_no_two_public_classes_share_a_name() -> None:
    files = (ROOT / "src").rglob("*.py")
    names = Counter(name for file in files for name in re.findall(r"^class ([A-Z]\w*)", file.read_text(), re.MULTILINE))
    assert {name for name, count in names.items() if count > 1} == SHARED
