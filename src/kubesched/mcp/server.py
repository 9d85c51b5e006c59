"""The tools on the official server of the Model Context Protocol: over standard streams, or streamable HTTP."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server

from kubesched import __version__
from kubesched.ask.service import QueryService
from kubesched.http.access import BearerToken
from kubesched.mcp.tools import TOOLS, ToolError, call

PROMPT = "why-pending"
PATH = "/mcp"
_INSTRUCTIONS = (
    "Answers about where pods of a Kubernetes cluster go, by the decisions of its scheduler. Everything is read-only: "
    "a drain or a new node is supposed, never done. Begin with `pending` for pods that wait; `explain` takes one pod, "
    "as namespace/name or as a manifest. Numbers are exact for the cluster as it is; repeat them rather than estimate."
)
_TASK = (
    "Find out why {what} pending, and say what would help.\n"
    "1. Below is what the scheduler says now. Do not guess beyond it.\n"
    "2. Name the cause in one sentence, with how many nodes fail for which reason.\n"
    "3. Say which of the remedies costs least, and check it with the tool `what_if` or `explain` with `changes` before "
    "you recommend it.\n4. Propose commands; run none that writes to the cluster.\n\n{found}"
)

Context = ServerRequestContext[Any]
Scope = dict[str, Any]
Application = Callable[[Scope, Any, Any], Awaitable[None]]


def mcp_server(service: QueryService, timeout: float) -> Server[Any]:
    """The server of one cluster. `timeout` is in seconds, for each question."""

    async def list_tools(context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        hints = types.ToolAnnotations(
            read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        )
        tools = [
            types.Tool(
                name=name,
                description=tool.description,
                input_schema=tool.input_schema,
                output_schema=tool.output_schema,
                annotations=hints,
            )
            for name, tool in TOOLS.items()
        ]
        return types.ListToolsResult(tools=tools)

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            summary, document = await call(params.name, params.arguments or {}, service, timeout)
        except ToolError as error:
            return types.CallToolResult(content=[types.TextContent(text="\n".join(error.lines))], is_error=True)
        return types.CallToolResult(content=[types.TextContent(text=summary)], structured_content=document)

    async def list_prompts(context: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        pod = types.PromptArgument(name="pod", description="namespace/name of one pod; all pending ones if not given")
        prompt = types.Prompt(name=PROMPT, description="Why are pods pending, and what would help?", arguments=[pod])
        return types.ListPromptsResult(prompts=[prompt])

    async def get_prompt(context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        if params.name != PROMPT:
            raise ValueError(f"there is no prompt {params.name!r}; there is {PROMPT!r}")
        pod = (params.arguments or {}).get("pod", "")
        try:
            tool, arguments = ("explain", {"pod": pod}) if pod else ("pending", {})
            answer, _ = await call(tool, arguments, service, timeout)
        except ToolError as error:
            answer = "\n".join(error.lines)
        text = _TASK.format(what=f"the pod {pod} is" if pod else "pods are", found=answer)
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=types.TextContent(text=text))])

    return Server(
        "kubesched",
        version=__version__,
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )


async def serve_streams(server: Server[Any]) -> None:
    """Until standard input ends."""
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def http_application(server: Server[Any], token: BearerToken, host: str) -> Application:
    """Streamable HTTP at `/mcp`, for who has the token."""
    served: Application = server.streamable_http_app(streamable_http_path=PATH, host=host)

    async def guarded(scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
            if not token.admits(headers.get("authorization", "")):
                challenge = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")]
                await send({"type": "http.response.start", "status": 401, "headers": challenge})
                await send({"type": "http.response.body", "body": b"this needs the bearer token\n"})
                return
        await served(scope, receive, send)

    return guarded
