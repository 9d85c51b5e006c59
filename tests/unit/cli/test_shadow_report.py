"""`kubesched shadow report`, and the file that it is made from."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from kubesched.cli.main import main
from kubesched.scheduler import shadow_ledger
from kubesched.scheduler.shadow_ledger import DifferingPod, LedgerError, ShadowLedger, load_ledger, write_ledger

MONDAY = 1_700_000_000.0
DAY = 86_400.0


def judged(at: float, judgement: str, pod: str = "shop/p") -> DifferingPod:
    return DifferingPod(at, pod, judgement, "n1", "n2", "because")


def add(ledger: ShadowLedger, at: float, judgement: str, *, cause: str = "", plugin: str = "", of: str = "w") -> None:
    agrees = judgement in ("same", "tie")
    ledger.add(judged(at, judgement), agrees=agrees, cause=cause, plugin=plugin, workload=of)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A week of pods: 96 agree, four do not."""
    ledger = ShadowLedger()
    for i in range(96):
        add(ledger, MONDAY + i * 6_000, "same" if i % 4 else "tie")
    for i in range(3):
        add(ledger, MONDAY + i * DAY, "lower", cause="ImageLocality prefers another node", plugin="ImageLocality")
    add(ledger, MONDAY + DAY, "rejected", cause="NodeAffinity: no", plugin="NodeAffinity", of="shop/deployment/web")
    write_ledger(msgspec.json.encode(ledger), str(tmp_path / "shadow.json"))
    return tmp_path / "shadow.json"


def report(file: Path, *options: str) -> str:
    done = CliRunner().invoke(main, ["shadow", "report", "-f", str(file), *options])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_week_is_summed_up(file: Path) -> None:
    found = json.loads(report(file, "-o", "json"))
    assert (found["kind"], found["pods"], found["agreeing"]) == ("ShadowReport", 100, 0.96)
    assert found["judgements"] == {"tie": 24, "same": 72, "lower": 3, "rejected": 1}
    assert found["causes"] == {"ImageLocality prefers another node": 3, "NodeAffinity: no": 1}
    assert found["plugins"] == {"ImageLocality": 3, "NodeAffinity": 1}
    assert found["workloads"] == {"w": 3, "shop/deployment/web": 1}
    assert len(found["days"]) == 8  # it began late in the evening
    assert len(found["examples"]) == 4


def test_people_get_words_and_a_page(file: Path) -> None:
    assert "96.00%" in report(file)
    page = report(file, "-o", "html")
    assert "96.00 % agreement on 100 pods" in page
    assert "ImageLocality prefers another node" in page


def test_what_an_earlier_process_found_counts_on(file: Path) -> None:
    ledger = load_ledger(str(file))
    add(ledger, MONDAY + 8 * DAY, "same")
    write_ledger(msgspec.json.encode(ledger), str(file))
    assert json.loads(report(file, "-o", "json"))["pods"] == 101
    assert load_ledger(str(file.with_name("none.json"))) == ShadowLedger()


def test_a_file_that_is_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text('{"kind": "Pod", "apiVersion": "v1"}')
    with pytest.raises(LedgerError, match="expected a ShadowLedger"):
        load_ledger(str(other))
    with pytest.raises(LedgerError, match=r"No such file|Is a directory"):
        write_ledger(b"", str(tmp_path / "missing" / "file"))
    assert "Pod" in other.read_text()


def test_a_ledger_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("MOST_HOURS", "MOST_NAMES", "MOST_EXAMPLES"):
        monkeypatch.setattr(shadow_ledger, limit, 3)
    ledger = ShadowLedger()
    for i in range(10):
        add(ledger, MONDAY + i * 3_600, "rejected", cause=f"cause {i}", plugin=f"p{i}", of=f"w{i}")
    assert [len(each) for each in (ledger.hours, ledger.examples)] == [3, 3]
    assert set(ledger.causes) == {"cause 0", "cause 1", "cause 2", "others"}
    assert ledger.workloads["others"] == {"rejected": 7}
    assert ledger.counts == {"rejected": 10}  # of all the time that the causes are of
    assert str(int((MONDAY + 9 * 3_600) // 3_600) * 3_600) in ledger.hours
