"""The recorder's Python half: cases that can be made again, and the right Go files for a release."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from tests.parity import config_adapter
from tools.recorder.building import MissingError, files_of_release, source_tree
from tools.recorder.generators.__main__ import FAMILIES
from tools.recorder.generators.drawing import Draw

DRAWN = [name for name in sorted(FAMILIES) if "/varied-" not in name]


@pytest.mark.parametrize("family", [*DRAWN, "decisions/varied-basics", "queue/varied-gates"])
def test_seed_gives_the_same_case_again_and_another_one_another(family: str) -> None:
    first, again, other = (json.dumps(FAMILIES[family](Draw(seed))) for seed in ("1", "1", "2"))
    assert first == again != other


@pytest.mark.parametrize("family", [name for name in DRAWN if name.startswith("queue/")])
def test_lives_change_only_what_they_have_made(family: str) -> None:
    made = FAMILIES[family](Draw("1"))
    known = {each["metadata"]["name"] for each in made["objects"]}
    for step in made["steps"]:
        if step["op"] == "create":
            known.add(step["object"]["metadata"]["name"])
        elif step["op"] in ("update", "delete"):
            # A node may have no CSINode: then the step is refused, which is recorded too.
            assert step["name"].rpartition("/")[2] in known


def test_supplied_lives_have_users_of_volumes_and_of_devices() -> None:
    steps = [step for seed in "123" for step in FAMILIES["queue/supplied"](Draw(seed))["steps"]]
    specs = [step["object"]["spec"] for step in steps if step.get("object", {}).get("kind") == "Pod"]
    assert any("volumes" in spec for spec in specs)
    assert any("resourceClaims" in spec for spec in specs)


def test_generated_configurations_are_accepted_invalid_and_unreadable() -> None:
    texts = [FAMILIES["config/plausible"](Draw(str(seed)))["text"] for seed in range(60)]
    outcomes = Counter(next(iter(config_adapter.read(text))) for text in texts)
    assert min(outcomes[outcome] for outcome in ("defaulted", "errors", "decodeError")) >= 5


@pytest.mark.parametrize(
    ("release", "folder"), [("1.30", "v1.36"), ("1.36", "v1.36"), ("1.37", "v1.37"), ("1.99", "v1.37")]
)
def test_files_of_the_release_are_taken_or_of_the_last_before_it(tmp_path: Path, release: str, folder: str) -> None:
    said = tmp_path / "staging/src/k8s.io/component-base/version/base.go"
    said.parent.mkdir(parents=True)
    said.write_text(f'const (\n\tDefaultKubeBinaryVersion = "{release}"\n)\n')
    assert {file.parent.name for file in files_of_release(tmp_path)} == {folder}


def test_folder_that_is_no_kubernetes_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="neither a Kubernetes source tree nor a git directory"):
        source_tree(tmp_path, "v1.36.4", tmp_path)
