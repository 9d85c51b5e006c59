"""`kubesched plan -o sh`: the script does what the plan says, and stops at a surprise."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from kubesched.cli.main import main

CLUSTER = ("-f", str(Path(__file__).parents[2] / "examples" / "planning" / "cluster.yaml"))

KUBECTL = """
import json, sys
arguments, state = sys.argv[2:], json.load(open(sys.argv[1]))
done = state.setdefault("done", [])
if arguments[:2] == ["get", "pods"]:
    for pod in state["pods"]:
        print("ReplicaSet/" + pod["app"], pod["name"], pod["uid"], pod["node"], "True")
elif arguments[0] == "create":
    name = json.loads(sys.stdin.read())["metadata"]["name"]
    pod = next(pod for pod in state["pods"] if pod["name"] == name)
    done.append("evict " + name)
    pod |= {"name": name + "-new", "uid": name + "-new-uid", "node": state["lands"].get(name, pod["node"])}
else:
    done.append(" ".join(arguments[:2]))
json.dump(state, open(sys.argv[1], "w"))
"""


def planned(*arguments: str) -> str:
    return CliRunner().invoke(main, ["plan", *arguments]).stdout


def run_script(tmp_path: Path, *, strays: bool = False) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """The script of a plan, with a kubectl that plays the cluster."""
    script = planned("free", *CLUSTER, "--nodes", "2", "--pool", "large", "-o", "sh")
    found = json.loads(planned("free", *CLUSTER, "--nodes", "2", "--pool", "large", "-o", "json"))
    moves = [(move["pod"].split("/")[1], move["fromNode"], move["toNode"]) for move in found["moves"]]
    uids = {line.split()[2]: line.split()[3] for line in script.splitlines() if line.startswith("evict ")}
    pods = [{"app": n.rpartition("-")[0], "name": n, "uid": uids[n], "node": at} for n, at, _ in moves]
    if strays:
        pods[0]["node"] = "elsewhere"
    state = tmp_path / "state.json"
    state.write_text(json.dumps({"pods": pods, "lands": {name: to for name, _, to in moves}}))
    (tmp_path / "kubectl.py").write_text(KUBECTL)
    (tmp_path / "plan.sh").write_text(script)
    kubectl = f"{sys.executable} {tmp_path / 'kubectl.py'} {state}"
    environment = {"KUBECTL": kubectl, "PAUSE": "0", "TRIES": "2", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        ["sh", str(tmp_path / "plan.sh")], env=environment, capture_output=True, text=True, check=False
    )
    return done, json.loads(state.read_text()).get("done", [])


def test_script_cordons_evicts_and_waits(tmp_path: Path) -> None:
    done, calls = run_script(tmp_path)
    assert done.returncode == 0, done.stderr
    assert calls[:2] == ["cordon large-1", "cordon large-3"]
    assert len([call for call in calls if call.startswith("evict")]) == 4
    assert "large-3 is free" in done.stdout


def test_script_stops_where_a_pod_is_not_where_the_plan_saw_it(tmp_path: Path) -> None:
    done, calls = run_script(tmp_path, strays=True)
    assert done.returncode == 1
    assert "is not on large-1 any more. Nothing else was done" in done.stderr
    assert not [call for call in calls if call.startswith("evict")]


def test_script_waits_for_nodes_that_are_to_be_added(tmp_path: Path) -> None:
    folder = Path(CLUSTER[1]).parent
    script = planned(
        "pool", *CLUSTER, "-f", str(folder / "training.yaml"), "--prices", str(folder / "prices.csv"), "-o", "sh"
    )
    (tmp_path / "plan.sh").write_text(script)
    state = tmp_path / "state.json"
    pods = [{"app": "train", "name": f"train-{i}", "uid": f"u{i}", "node": "-"} for i in range(2)]
    state.write_text(json.dumps({"pods": pods, "lands": {}}))
    (tmp_path / "kubectl.py").write_text(KUBECTL.replace('"ReplicaSet/"', '"Job/"'))
    kubectl = f"{sys.executable} {tmp_path / 'kubectl.py'} {state}"
    environment = {"KUBECTL": kubectl, "PAUSE": "0", "TRIES": "2", "PATH": "/usr/bin:/bin"}

    def run(**more: str) -> subprocess.CompletedProcess[str]:
        command = ["sh", str(tmp_path / "plan.sh")]
        return subprocess.run(command, env=environment | more, capture_output=True, text=True, check=False)

    refused = run()
    assert refused.returncode == 1
    assert "Add these nodes first: 2 x gpu" in refused.stderr
    assert run(NODES_ADDED="gpu-4=ip-1 gpu-5=ip-2").returncode == 0
    assert json.loads(state.read_text())["done"] == ["patch pod", "patch pod"]
