"""The questions of the page, as HTTP: JSON documents, and errors that say what is wrong."""

from __future__ import annotations

from typing import Any

import msgspec
from aiohttp import web

from kubesched.api.errors import UserError
from kubesched.framework.errors import PluginError
from kubesched.questions.output import document, plain
from kubesched.ui.guard import Handler
from kubesched.ui.model.asking import TryError
from kubesched.ui.stream import stream
from kubesched.ui.views import Views

VIEWS = web.AppKey("views", Views)

_MOST_ROWS = 300


def routes() -> list[web.AbstractRouteDef]:
    """All paths under /api. What if, time travel, shadow mode and reports are to have theirs here."""
    return [
        web.get("/api/about", about),
        web.get("/api/map", node_map),
        web.get("/api/slices", slices),
        web.get("/api/headroom", headroom),
        web.get("/api/pending", pending),
        web.get("/api/pending/{group}", pending_pods),
        web.get("/api/pods/{namespace}/{name}", pod),
        web.get("/api/nodes/{name}", node),
        web.get("/api/queue", queue),
        web.get("/api/search", search),
        web.get("/api/stream", stream_of_changes),
        web.post("/api/try", try_it),
    ]


@web.middleware
async def errors_as_documents(request: web.Request, handler: Handler) -> web.StreamResponse:
    """What a user can put right is said; nothing else is hidden."""
    try:
        return await handler(request)
    except UserError as error:
        return _refusal(400, error.lines)
    except PluginError as error:
        return _refusal(500, (str(error),))
    except web.HTTPException as error:
        return _refusal(error.status, (error.text or error.reason,))


async def about(request: web.Request) -> web.Response:
    return _answer("About", _views(request).about())


async def node_map(request: web.Request) -> web.Response:
    return _answer("NodeMap", _views(request).map.whole(request.query.get("group", "")))


async def slices(request: web.Request) -> web.Response:
    rows = [_number(part) for part in request.query.get("rows", "").split(",")[:_MOST_ROWS] if part]
    return _answer("NodeSlices", _views(request).nodes.slices(rows))


async def headroom(request: web.Request) -> web.Response:
    return _json({"kind": "Headroom", "rooms": plain(_views(request).headroom.rooms())})


async def pending(request: web.Request) -> web.Response:
    return _answer("Pending", _views(request).pending.groups())


async def pending_pods(request: web.Request) -> web.Response:
    offset = _number(request.query.get("offset", "0"))
    total, pods = _views(request).pending.pods_of(request.match_info["group"], offset)
    return _json({"kind": "PendingPods", "total": total, "offset": offset, "pods": plain(pods)})


async def pod(request: web.Request) -> web.Response:
    key = f"{request.match_info['namespace']}/{request.match_info['name']}"
    found = _views(request).pods.view(key)
    if found is None:
        raise web.HTTPNotFound(text=f"There is no pod {key}; it may be gone, or have finished.")
    return _answer("PodView", found)


async def node(request: web.Request) -> web.Response:
    name = request.match_info["name"]
    found = _views(request).nodes.view(name, _number(request.query.get("offset", "0")))
    if found is None:
        raise web.HTTPNotFound(text=f"There is no node {name}; it may be gone.")
    return _answer("NodeView", found)


async def queue(request: web.Request) -> web.Response:
    return _answer("QueueView", _views(request).queue.view())


async def search(request: web.Request) -> web.Response:
    return _answer("Found", _views(request).pods.search(request.query.get("q", "")))


async def try_it(request: web.Request) -> web.Response:
    """A pod as somebody is editing it, as YAML or JSON: what would become of it. Changes nothing."""
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType(text="expected application/json")
    try:
        asked = msgspec.json.decode(await request.read(), type=_Try)
    except msgspec.DecodeError as error:
        raise web.HTTPBadRequest(text=str(error)) from error
    try:
        verdict = _views(request).pods.try_it(asked.manifest, asked.pod)
    except TryError as error:  # an answer, since every pod is wrong while somebody types
        return _json({"kind": "Trial", "mistakes": error.lines})
    return _json({"kind": "Trial", "mistakes": [], "verdict": plain(verdict)})


async def stream_of_changes(request: web.Request) -> web.StreamResponse:
    return await stream(request, _views(request))


class _Try(msgspec.Struct):
    manifest: str
    pod: str = ""
    """The pod that is edited; empty for a new one."""


def _views(request: web.Request) -> Views:
    return request.app[VIEWS]


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise web.HTTPBadRequest(text=f"expected a number, got {text!r}")
    return int(text)


def _answer(kind: str, answer: object) -> web.Response:
    return _json(document(kind, answer))


def _json(value: Any) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")


def _refusal(status: int, lines: tuple[str, ...] | list[str]) -> web.Response:
    body = msgspec.json.encode({"kind": "Error", "errors": list(lines)})
    return web.Response(status=status, body=body, content_type="application/json")
