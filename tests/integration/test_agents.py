"""`kubesched mcp` with the official client of the Model Context Protocol, about a sandbox that runs."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import jsonschema
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent
from tests.integration.live_cluster import wait_until
from tests.running_sandbox import Sandbox, running_sandbox

from kubesched.api.kinds import NODES, PODS
from kubesched_sandbox.http import kubeconfig, write_kubeconfig

pytestmark = [pytest.mark.slow, pytest.mark.live]
COMMAND = [sys.executable, "-m", "kubesched", "mcp"]
TALL = {"name": "tall", "resources": {"requests": {"cpu": "900"}}}


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Four nodes and a pod that fits nowhere."""
    with running_sandbox() as running:
        running.kubeconfig = tmp_path_factory.mktemp("agents") / "kubeconfig"
        write_kubeconfig(running.kubeconfig, kubeconfig(running.server.url))
        pod = {"metadata": {"name": "tall"}, "spec": {"containers": [{**TALL, "image": "i"}]}}
        running.call(lambda api: api.create(PODS, "default", pod))
        wait_until(lambda: _conditions(running), "its first attempt written down: from here on nothing changes it")
        yield running


def _conditions(sandbox: Sandbox) -> Any:
    return sandbox.call(lambda api: api.get(PODS, "default", "tall")["status"].get("conditions"))


def talk(sandbox: Sandbox, conversation: Callable[[Client], Awaitable[None]], *options: str) -> None:
    """Have a conversation over standard streams, as an agent on the same machine has it."""
    environment = {**os.environ, "KUBECONFIG": str(sandbox.kubeconfig)}
    server = StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], *options], env=environment)

    async def run() -> None:
        async with Client(server) as client:
            await conversation(client)

    asyncio.run(run())


def said_in(answer: Any) -> str:
    """The words of a result or a message."""
    content = answer.content[0] if isinstance(answer.content, list) else answer.content
    assert isinstance(content, TextContent)
    return content.text


def objects(sandbox: Sandbox) -> Any:
    """All pods, and the nodes without what their heartbeats change."""
    return sandbox.call(
        lambda api: (api.select(PODS), [(node["metadata"]["name"], node["spec"]) for node in api.select(NODES)])
    )


def test_an_agent_asks_every_question_and_the_answers_are_as_their_schemas_say(sandbox: Sandbox) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    asked: dict[str, dict[str, Any]] = {
        "pending": {},
        "explain": {"pod": "default/tall"},
        "place": {"pods": [pod]},
        "capacity": {"pod": pod, "most": 30},
        "what_if": {"drain": ["node-0"]},
        "plan": {"goal": "free", "nodes": 2},
        "compare_releases": {"before": "1.36", "after": "1.37"},
        "snapshot": {},
    }
    said: dict[str, str] = {}

    async def conversation(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == set(asked)
        for name, arguments in asked.items():
            tool = tools[name]
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint
            jsonschema.validate(arguments, tool.input_schema)
            found = await client.call_tool(name, arguments)
            assert not found.is_error, found.content
            assert tool.output_schema is not None
            jsonschema.validate(found.structured_content, tool.output_schema)
            assert found.structured_content["cluster"]["source"] == "watch"
            said[name] = said_in(found)

    talk(sandbox, conversation)
    assert "1 pending pod on 4 nodes" in said["pending"]
    assert "1 pod: Insufficient cpu (default/tall)" in said["pending"]
    assert "default/tall fits nowhere: Insufficient cpu" in said["explain"]
    assert "Would help: " in said["explain"]
    assert "1 of 1 pod find a node among 4" in said["place"]
    assert "30 or more more of default/p fit on 4 nodes" in said["capacity"]
    assert "With drain node-0:" in said["what_if"]
    assert "Free 2 nodes: found.\n2 nodes freed (free then: " in said["plan"]
    assert "4 nodes (" in said["snapshot"]
    assert "1 pending" in said["snapshot"]


def test_a_mistake_is_an_error_with_its_place_and_nothing_ends(sandbox: Sandbox) -> None:
    async def conversation(client: Client) -> None:
        for name, arguments, why in (
            ("explain", {"pod": "default/nobody"}, "there is no pod default/nobody"),
            ("explain", {}, "missing required field `pod`"),
            ("capacity", {"pod": "default/tall", "most": 0}, "$.most"),
            ("what_if", {"drain": ["nowhere"]}, "drain[0]"),
            ("plan", {"goal": "free", "nodes": 9}, "there are only 4 such nodes"),
            ("plan", {"goal": "pool", "prices": [{"type": "large"}]}, "prices[0]: cpu is missing"),
            ("scale", {}, "there is no tool 'scale'"),
        ):
            found = await client.call_tool(name, arguments)
            assert found.is_error
            assert why in said_in(found)
        assert not (await client.call_tool("snapshot", {})).is_error

    talk(sandbox, conversation)


def test_the_prompt_brings_along_what_the_scheduler_says(sandbox: Sandbox) -> None:
    async def conversation(client: Client) -> None:
        [prompt] = (await client.list_prompts()).prompts
        for arguments in ({}, {"pod": "default/tall"}):
            found = await client.get_prompt(prompt.name, arguments)
            text = said_in(found.messages[0])
            assert "Insufficient cpu" in text
            assert "run none that writes" in text

    talk(sandbox, conversation)


def test_a_question_that_takes_too_long_ends(sandbox: Sandbox) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}

    async def conversation(client: Client) -> None:
        found = await client.call_tool("capacity", {"pod": pod, "most": 100_000})
        assert found.is_error
        assert "took longer than" in said_in(found)

    talk(sandbox, conversation, "--question-timeout", "1ms")


def test_over_http_only_the_token_lets_in_and_nothing_is_written(sandbox: Sandbox) -> None:
    before = objects(sandbox)
    environment = {**os.environ, "KUBECONFIG": str(sandbox.kubeconfig)}
    command = [*COMMAND, "--transport", "http", "--port", "0"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().removeprefix("Listening on ").strip()
            token = process.stdout.readline().removeprefix("Token: ").strip()
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/mcp", url)

            async def conversation() -> None:
                async with httpx2.AsyncClient() as stranger:
                    assert (await stranger.post(url, json={})).status_code == 401
                headers = {"Authorization": f"Bearer {token}"}
                async with (
                    httpx2.AsyncClient(headers=headers, timeout=60) as http,
                    Client(streamable_http_client(url, http_client=http)) as client,
                ):
                    found = await client.call_tool("what_if", {"lose": ["node-1"]})
                    assert "With lose node-1:" in said_in(found)

            asyncio.run(conversation())
        finally:
            process.terminate()
            process.wait(30)
    assert objects(sandbox) == before


def test_files_are_a_cluster_too() -> None:
    examples = Path(__file__).parents[2] / "examples" / "planning"
    files = [part for name in ("cluster.yaml", "training.yaml") for part in ("-f", str(examples / name))]
    server = StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], *files], env={**os.environ})

    async def run() -> None:
        async with Client(server) as client:
            found = await client.call_tool("pending", {"remedies": False})
            assert found.structured_content["cluster"]["source"] == "files"
            planned = await client.call_tool("plan", {"goal": "fit", "target": "job/train"})
            assert "2 moves in 1 wave, 2 pending pods placed.\nIt comes to 2 moves; no plan does" in said_in(planned)

    asyncio.run(run())
