"""CONTRIBUTING.md's lists for a flag, a plugin and a kind, followed on a copy of the tree."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()

NODES = """
apiVersion: v1
kind: Node
metadata: {name: quiet, labels: {quiet: "yes"}}
status: {capacity: {cpu: "4", memory: 8Gi, pods: "10"}, allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: Node
metadata: {name: loud}
status: {capacity: {cpu: "4", memory: 8Gi, pods: "10"}, allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: app, image: app}]}
"""
RUNTIME_CLASS = """
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: quiet}
handler: runc
"""
FILTER = '''"""QuietNodes: a filter made to be added."""

from __future__ import annotations

from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import NodeView
from kubesched.framework.plugin import FilterPlugin
from kubesched.framework.status import Status, unschedulable


class QuietNodes(FilterPlugin):
    """Rejects nodes that are not quiet."""

    name = "QuietNodes"

    def filter_node(self, cycle: Cycle, node: NodeView) -> Status | None:
        return None if "quiet" in node.labels else unschedulable("node(s) were loud")
'''
RECORD = '''"""RuntimeClasses: a record made to be added."""

from __future__ import annotations

from kubesched.api.meta import KubeObject


class RuntimeClass(KubeObject, frozen=True):
    """A way to run containers."""

    handler: str = ""
'''
CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [{name: QuietNodes}]}}
"""


class CopiedTree:
    """A copy of the sources, changed only in files that a section of CONTRIBUTING.md names."""

    def __init__(self, root: Path, section: str) -> None:
        self.root = root
        self._named = CONTRIBUTING.split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0]
        for folder in ("src", "sandbox"):
            shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", root)

    def named(self, pattern: str) -> str:
        """The path that the list names in these words."""
        found = re.search(pattern, self._named)
        assert found, f"the list has no {pattern}"
        return found[1]

    def write(self, path: str, text: str) -> None:
        assert f"`{path}`" in self._named or f"`{Path(path).parent}/`" in self._named, f"the list does not name {path}"
        (self.root / path).write_text(text)

    def insert(self, path: str, text: str, *, after: str) -> None:
        """Put text after the first match of a pattern."""
        before = (self.root / path).read_text()
        found = re.search(after, before, re.MULTILINE)
        assert found, f"{path} has no {after}"
        self.write(path, before[: found.end()] + text + before[found.end() :])

    def run(self, *command: str) -> str:
        """What a command prints that imports kubesched from here."""
        environment = {
            **os.environ,
            "PYTHONPATH": f"{self.root / 'src'}{os.pathsep}{self.root / 'sandbox/src'}",
            "COLUMNS": "120",
        }
        done = subprocess.run(command, cwd=self.root, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def kubesched(self, *arguments: str) -> str:
        return self.run(sys.executable, "-m", "kubesched", *arguments)

    def python(self, *lines: str) -> str:
        return self.run(sys.executable, "-c", "\n".join(lines))


def test_a_flag_is_a_row_and_a_field_and_a_flag_of_the_scheduler_a_setting(tmp_path: Path) -> None:
    tree = CopiedTree(tmp_path, "Adding a flag to `kubesched run`")
    assembly = tree.named(r"`settings_of` in `([\w/.]+)`")
    module = assembly.removeprefix("src/").removesuffix(".py").replace("/", ".")
    row = "\t".join(("Kubesched", "event-window", "", "duration", "How long to wait.", ""))
    tree.insert("src/kubesched/daemon/flags.tsv", f"{row}\n", after=r"^group\t.*\n")
    tree.insert(
        "src/kubesched/daemon/options.py", "\n    event_window: Duration = Duration(2)", after=r"^ +ui_port: int = 0"
    )
    tree.insert(
        "src/kubesched/scheduler/assembly.py",
        "    event_window: float = 0.0\n",
        after=r"^class SchedulerSettings:\n(?:.*\n)*?    mode: .*\n",
    )
    tree.insert(
        assembly,
        "        event_window=float(options.event_window),\n",
        after=r"^    return SchedulerSettings\(\n",
    )
    tree.insert(
        "src/kubesched/daemon/checks.py",
        'if options.event_window >= 0 else ["--event-window must not be negative"]',
        after=r"^def mistakes_in\(.*\n.*\n    return \[.*\] ?",
    )
    assert re.search(r"--event-window duration +How long to wait\. \(default 2s\)", tree.kubesched("run", "--help"))
    printed = tree.python(
        "from kubesched.api.release import NEWEST",
        "from kubesched.daemon.checks import mistakes_in",
        "from kubesched.daemon.options import parse_options",
        f"from {module} import settings_of",
        "options = parse_options(['--event-window', '1m30s'])",
        "print(settings_of(options).event_window, options.shown()['event-window'], mistakes_in(options, NEWEST))",
        "print(mistakes_in(parse_options(['--event-window=-1s']), NEWEST))",
    )
    assert printed == "90.0 1m30s []\n['--event-window must not be negative']\n"


def test_a_plugin_is_a_file_two_lines_of_the_registry_and_one_of_the_contract(tmp_path: Path) -> None:
    tree = CopiedTree(tmp_path, "Adding a plugin")
    tree.write("src/kubesched/plugins/quiet_nodes.py", FILTER)
    registry = "src/kubesched/plugins/registry.py"
    tree.insert(
        registry,
        "from kubesched.plugins.quiet_nodes import QuietNodes\n",
        after=r"^from kubesched\.plugins\.pod_topology_spread.*\n",
    )
    tree.insert(registry, "    QuietNodes,\n", after=r"^IN_TREE = \(\n")
    tree.insert("pyproject.toml", " | quiet_nodes", after=r"\| pod_topology_spread\b")
    linter = Path(sys.executable).with_name("lint-imports")
    assert "0 broken" in tree.run(str(linter), "--no-cache")
    (tmp_path / "cluster.yaml").write_text(NODES)
    (tmp_path / "scheduler.yaml").write_text(CONFIGURATION)
    explained = tree.kubesched("explain", "-f", "cluster.yaml", "--config", "scheduler.yaml", "--pod", "default/web")
    assert "It goes to quiet" in explained
    assert "were loud (QuietNodes)" in explained


def test_a_kind_is_a_record_a_row_of_the_table_and_a_member_of_the_events(tmp_path: Path) -> None:
    tree = CopiedTree(tmp_path, "Adding a kind")
    tree.write("src/kubesched/api/runtime_classes.py", RECORD)
    kinds, events = "src/kubesched/api/kinds.py", "src/kubesched/framework/events.py"
    tree.insert(
        kinds, "from kubesched.api.runtime_classes import RuntimeClass\n", after=r"^from kubesched\.api\.pod import.*\n"
    )
    tree.insert(kinds, '    "node.k8s.io/v1": (RuntimeClass,),\n', after=r"^_RECORDS: .*\n")
    tree.insert(events, '    RUNTIME_CLASS = KINDS["RuntimeClass"].event\n', after=r"^    POD_GROUP = .*\n")
    printed = tree.python(
        "import kubesched.scheduler.event_handlers",
        "from kubesched.api.kinds import KINDS, WATCHED",
        "from kubesched.framework.events import Kind",
        "kind = KINDS['RuntimeClass']",
        "print(kind in WATCHED, kind.resource.path, Kind(kind.event).name)",
    )
    assert printed == "True /apis/node.k8s.io/v1/runtimeclasses RUNTIME_CLASS\n"
    (tmp_path / "cluster.yaml").write_text(NODES + RUNTIME_CLASS)
    tree.kubesched("simulate", "-f", "cluster.yaml", "--record", "recording.jsonl")
    assert re.search(r'"RuntimeClass".*"handler":"runc"', (tmp_path / "recording.jsonl").read_text())
    assert tree.kubesched("replay", "recording.jsonl")


@pytest.mark.parametrize("section", ["Adding a flag to `kubesched run`", "Adding a plugin", "Adding a kind"])
def test_every_file_that_a_list_names_exists(section: str) -> None:
    text = CONTRIBUTING.split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0]
    named = re.findall(r"`((?:src|tests|tools|deploy)/[\w./-]+)`", text)
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []
