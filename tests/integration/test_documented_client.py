"""The client of docs/serving.md asks a real service."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.unit.docs.pages import ROOT, blocks

PAGE = ROOT / "docs" / "serving.md"
SHOP = ROOT / "examples" / "shop"


@contextmanager
def service(*arguments: str) -> Iterator[str]:
    """The command as a process; its address. It must end well."""
    command = [sys.executable, "-m", "kubesched", "serve", "--port", "0", *arguments]
    environ = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            assert said.startswith("Listening on "), said
            yield said.split()[2]
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0


def test_the_client_asks_a_service(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret\n")
    [code] = blocks(PAGE, "python")
    assert len([line for line in code.splitlines() if line.strip()]) <= 22
    names: dict[str, Any] = {}
    exec(compile(code, str(PAGE), "exec"), names)
    with service("-f", str(SHOP), "--token-file", str(token)) as url:
        client = names["Kubesched"](url, "secret")
        pod = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}
        assert client.ask("fit", pods=[pod])["placed"][0]["node"]
        assert client.ask("capacity", pod=pod)["fit"] > 1
        assert names["can_be_removed"](client, "web-c1", [pod]) is True
        with pytest.raises(ValueError, match="there is no node 'nowhere'"):
            names["can_be_removed"](client, "nowhere", [pod])
        with pytest.raises(ValueError, match="bearer token"):
            names["Kubesched"](url, "guess").ask("fit", pods=[pod])
