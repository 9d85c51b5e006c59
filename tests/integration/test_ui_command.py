"""`kubesched ui` as a process, and the page of `kubesched sandbox`."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner

from kubesched.cli.main import main

EXAMPLE = Path(__file__).parents[2] / "examples" / "nightly.yaml"
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/\?token=[\w-]+")


def test_ui_prints_an_address_that_answers_and_ends_with_a_signal() -> None:
    command = [sys.executable, "-m", "kubesched", "ui", "-f", str(EXAMPLE), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            address = process.stdout.readline().strip()
            assert ADDRESS.fullmatch(address)
            root, _, token = address.partition("?token=")
            about = json.load(urllib.request.urlopen(f"{root}api/about?token={token}", timeout=60))
            assert (about["source"], about["live"]) == ("manifests", False)
            assert about["nodes"]["nodes"] > 0
            with pytest.raises(urllib.error.HTTPError):
                urllib.request.urlopen(f"{root}api/about", timeout=60)
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


def test_port_that_is_taken_is_said_in_a_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(main, ["ui", "-f", str(EXAMPLE), "--no-browser", "--port", str(port)])
    assert result.exit_code == 2
    assert f"127.0.0.1:{port}: address already in use" in result.output
    assert len(result.output.strip().splitlines()) == 1


@pytest.mark.parametrize(("more", "shown"), [((), True), (("--no-ui",), False)])
def test_sandbox_prints_the_address_of_its_page(more: tuple[str, ...], shown: bool) -> None:
    result = CliRunner().invoke(main, ["sandbox", "--nodes", "1", "--for", "0.1", *more])
    assert result.exit_code == 0, result.output
    assert bool(ADDRESS.search(result.output)) is shown


def test_sandbox_whose_page_finds_its_port_taken_says_so_and_ends() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(main, ["sandbox", "--nodes", "1", "--ui-port", str(port), "--for", "0.1"])
    assert result.exit_code == 2
    assert f"127.0.0.1:{port}: address already in use" in result.output
