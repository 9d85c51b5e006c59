"""Everything around the scheduler fails at once, for a short while; `make soak` does the same for long."""

from __future__ import annotations

import pytest
from soak import chaos


def test_scheduler_lives_through_chaos_and_loses_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    code = chaos.main(seconds=15, seed=3, is_patient=True)
    assert code == 0, capsys.readouterr().out
