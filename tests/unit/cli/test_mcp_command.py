"""`kubesched mcp` where the extra is not installed."""

from __future__ import annotations

import sys

import pytest
from click.testing import CliRunner

from kubesched.cli.main import main


def test_without_the_extra_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "kubesched.mcp.server", raising=False)
    for name in ("mcp", "mcp.server", "mcp_types"):
        monkeypatch.setitem(sys.modules, name, None)
    done = CliRunner().invoke(main, ["mcp", "-f", "examples/shop"])
    assert done.exit_code == 2
    assert "the extra `mcp` are not installed" in done.output


def test_it_does_not_listen_beyond_loopback_without_tls() -> None:
    done = CliRunner().invoke(main, ["mcp", "-f", "examples/shop", "--transport", "http", "--bind-address", "0.0.0.0"])
    assert done.exit_code == 2
    assert "will not listen on 0.0.0.0" in done.output
