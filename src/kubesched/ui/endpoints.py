"""The questions of the page, as HTTP: JSON documents, and errors that say what is wrong."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from kubesched.api.errors import UserError
from kubesched.ask import html
from kubesched.ask.headroom import Headroom
from kubesched.ask.headroom import headroom as most_that_fit
from kubesched.ask.output import document, plain
from kubesched.ask.pending import pending_pods as place_pending
from kubesched.ask.releases.question import ReleaseQuestion, compare_now
from kubesched.ask.remedies import remedies
from kubesched.ask.service import QueryService
from kubesched.ask.targets import RequestError
from kubesched.ask.what_if.what_if import PageWhatIfQuestion, WhatIfOutcome
from kubesched.http.errors import json_response
from kubesched.simulate.cluster import ClusterModel
from kubesched.state.facts import PodFacts
from kubesched.ui.model.lists import Listing, ListQuery
from kubesched.ui.model.nodes import NodePage
from kubesched.ui.model.owners import WorkloadName
from kubesched.ui.model.pods import PodView
from kubesched.ui.model.shadow import ShadowView
from kubesched.ui.model.upgrade import upgrade_view
from kubesched.ui.model.what_if import what_if_view
from kubesched.ui.model.workloads import WorkloadPage
from kubesched.ui.stream import stream
from kubesched.ui.travel import TimeTravel
from kubesched.ui.views import PageViews, ViewsProvider

SHOWN: web.AppKey[ViewsProvider] = web.AppKey("shown")
"""What the page looks at."""
COUNTING = web.AppKey("counting", set[asyncio.Task[None]])
"""The task that counts headroom which takes long, if there is one."""
TRAVEL = web.AppKey("travel", TimeTravel)
"""Only with a recording."""

T = TypeVar("T")

_MOST_ROWS = 300
MOST_PENDING = 1_000
"""So many pending pods are placed and explained together, in the order of the queue; of more, the first."""
_LISTENING = 0.5
"""Seconds after which it is looked whether somebody still waits for an answer that takes long."""
_PATIENCE = 30.0
"""Seconds for the body of a question to arrive."""


def routes() -> list[web.AbstractRouteDef]:
    """All paths under api/."""
    return [
        web.get("/api/about", _shows("About", lambda views, _: views.about())),
        web.get("/api/map", _shows("NodeMap", lambda views, request: views.map.whole(request.query.get("group", "")))),
        web.get("/api/slices", _shows("NodeSlices", lambda views, request: views.nodes.slices(_rows(request)))),
        web.get("/api/headroom", headroom),
        web.get("/api/pending", _shows("Pending", lambda views, _: views.pending_groups())),
        web.get("/api/pending/{group}", pending_pods),
        web.get("/api/pods/{namespace}/{name}", _shows("PodView", _pod)),
        web.get("/api/nodes/{name}", _shows("NodeView", _node)),
        web.get("/api/workloads/{namespace}/{kind}/{name}", _shows("WorkloadView", _workload)),
        web.get("/api/lists/{list}", _shows("Listing", _list)),
        web.get("/api/help/pending", help_for_pending),
        web.get("/api/help/pods/{namespace}/{name}", help_for_pod),
        web.get("/api/queue", _shows("QueueView", lambda views, _: views.queue.view())),
        web.get("/api/shadow", _shows("ShadowView", _shadow)),
        web.get("/api/search", _shows("Found", lambda views, request: views.pods.search(request.query.get("q", "")))),
        web.get("/api/stream", stream_of_changes),
        web.post("/api/try", try_it),
        web.post("/api/what-if", what_if),
        web.post("/api/what-if/page", what_if_page),
        web.post("/api/plan", plan),
        web.post("/api/upgrade", upgrade),
        web.get("/api/timeline", timeline),
        web.post("/api/timeline", go_to_moment),
    ]


def _shows(kind: str, look: Callable[[PageViews, web.Request], object]) -> Handler:
    """Answers with what a look at the views gives."""

    async def handler(request: web.Request) -> web.Response:
        return _answer(kind, await _ask(request, lambda views: look(views, request)))

    return handler


def _rows(request: web.Request) -> list[int]:
    return [_number(part) for part in request.query.get("rows", "").split(",")[:_MOST_ROWS] if part]


def _pod(views: PageViews, request: web.Request) -> PodView:
    return _found(views.pods.view(_key(request)), _no_pod(request))


def _node(views: PageViews, request: web.Request) -> NodePage:
    name, offset = request.match_info["name"], _number(request.query.get("offset", "0"))
    return _found(views.nodes.view(name, offset), f"There is no node {name}; it may be gone.")


def _workload(views: PageViews, request: web.Request) -> WorkloadPage:
    name = WorkloadName(*(request.match_info[part] for part in ("namespace", "kind", "name")))
    missing = f"There is no {name.kind} {name.namespace}/{name.name}; it may be gone."
    return _found(views.workloads.view(name), missing)


def _list(views: PageViews, request: web.Request) -> Listing:
    """A page of a list, as the query says: `text`, `namespace`, `state`, `sort`, `offset`."""
    lists = {"nodes": views.lists.nodes, "pods": views.lists.pods, "workloads": views.lists.workloads}
    make = _found(lists.get(request.match_info["list"]), "There are lists of nodes, pods and workloads.")
    words = {name: request.query.get(name, "") for name in ("text", "namespace", "state", "sort")}
    return make(ListQuery(**words, offset=_number(request.query.get("offset", "0"))))


def _shadow(views: PageViews, request: web.Request) -> ShadowView:
    """How often the scheduler in charge and this one agree, and where they do not."""
    shown = _found(views.shadow, "This is not shadow mode: there is nobody to compare with.")
    return shown.view(request.query.get("cause", ""))


async def headroom(request: web.Request) -> web.Response:
    """At once what is known at once; where that is only the least, the rest is counted until the next question."""
    rooms, service = await _ask(request, lambda views: (views.rooms(), views.service))
    if service is not None and any(room.at_least for room in rooms) and not request.app[COUNTING]:
        task = asyncio.create_task(_count_on_copy(request.app[SHOWN], service), name="headroom")
        request.app[COUNTING].add(task)
        task.add_done_callback(request.app[COUNTING].discard)
    return json_response({"kind": "Headroom", "rooms": plain(rooms)})


async def _count_on_copy(shown: ViewsProvider, service: QueryService) -> None:
    version, pods = await shown.ask(lambda views: views.headroom.unknown())

    def count(cluster: ClusterModel) -> dict[PodFacts, Headroom]:
        return {facts: most_that_fit(cluster, pod) for facts, pod in pods.items()}

    with contextlib.suppress(UserError):  # busy, or about to end: the page asks again
        found = await service.ask_copy(count, is_read_only=True)
        await shown.ask(lambda views: views.headroom.learn(version, found))


async def pending_pods(request: web.Request) -> web.Response:
    offset, group = _number(request.query.get("offset", "0")), request.match_info["group"]
    total, pods = await _ask(request, lambda views: views.pending.pods_of(group, offset))
    return json_response({"kind": "PendingPods", "total": total, "offset": offset, "pods": plain(pods)})


async def help_for_pod(request: web.Request) -> web.Response:
    """What would help a pod that fits nowhere. Takes seconds in a large cluster, so it is asked for by itself."""
    key = _key(request)
    await _ask(request, lambda views: _found(views.observed.pods.get(key), _no_pod(request)))
    service = await _service(request)
    late = service.is_late()
    question = service.ask_copy(
        lambda cluster: remedies(cluster, cluster.pods[key], out_of_time=late), is_read_only=True
    )
    return _answer("PodHelp", await _while_open(request, question))


async def help_for_pending(request: web.Request) -> web.Response:
    """What would help all pods that wait."""
    service = await _service(request)
    question = service.ask_copy(lambda cluster: place_pending(cluster, most=MOST_PENDING))
    return _answer("PendingHelp", await _while_open(request, question))


async def try_it(request: web.Request) -> web.Response:
    """A pod as somebody is editing it, as YAML or JSON: what would become of it. Changes nothing."""
    asked = await read_body(request, _Try)
    try:
        verdict = await _ask(request, lambda views: views.pods.try_it(asked.manifest, asked.pod))
    except RequestError as error:  # an answer, since every pod is wrong while somebody types
        return json_response({"kind": "Trial", "mistakes": error.lines})
    return json_response({"kind": "Trial", "mistakes": [], "verdict": plain(verdict)})


async def what_if(request: web.Request) -> web.Response:
    """What changes to the cluster would come to: two maps and the difference. Changes nothing."""
    question = await read_body(request, PageWhatIfQuestion)
    outcome = await _outcome(request, question)
    return _answer("WhatIfView", await asyncio.to_thread(what_if_view, outcome, question.group))


async def what_if_page(request: web.Request) -> web.Response:
    """The whole difference as one page of HTML, to be sent to others."""
    outcome = await _outcome(request, await read_body(request, PageWhatIfQuestion))
    text = html.what_if_page(outcome.difference)
    return web.Response(text=text, content_type="text/html", charset="utf-8")


async def _outcome(request: web.Request, question: PageWhatIfQuestion) -> WhatIfOutcome:
    outcome, _ = await _while_open(request, (await _service(request)).what_if(question))
    return outcome


async def plan(request: web.Request) -> web.Response:
    """A plan, and the map wave by wave. Changes nothing."""
    service = await _service(request)
    from kubesched.planning.question import PlanQuestion  # a scheduler at work has no service, and no plans
    from kubesched.serve.plans import plan_now
    from kubesched.ui.model.plan import plan_view

    question, group = await read_body(request, PlanQuestion), request.query.get("group", "")
    planning = plan_now(question, service, lambda made, cluster: plan_view(made, cluster, group))
    return _answer("PlanView", await _while_open(request, planning))


async def upgrade(request: web.Request) -> web.Response:
    """What another release of Kubernetes does differently with the pods. Changes nothing."""
    question = await read_body(request, ReleaseQuestion)
    comparison, _ = await _while_open(request, compare_now(question, await _service(request)))
    return _answer("UpgradeView", await _ask(request, lambda views: upgrade_view(comparison, views.observed.pods)))


async def timeline(request: web.Request) -> web.Response:
    return _answer("Timeline", _travel(request).timeline())


async def go_to_moment(request: web.Request) -> web.Response:
    """Show another moment of a recording, to all pages that are open."""
    return _answer("Timeline", await _travel(request).go((await read_body(request, _Moment)).moment))


async def stream_of_changes(request: web.Request) -> web.StreamResponse:
    return await stream(request, request.app[SHOWN])


class _Try(msgspec.Struct):
    manifest: str
    pod: str = ""
    """The pod that is edited; empty for a new one."""


class _Moment(msgspec.Struct):
    moment: float


async def read_body(request: web.Request, kind: type[T]) -> T:
    """What the body of a request says. It refuses whatever a form of another site could send."""
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType(text="expected application/json")
    try:
        async with asyncio.timeout(_PATIENCE):
            body = await request.read()
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise web.HTTPBadRequest(text=str(error)) from error
    except TimeoutError:
        raise web.HTTPRequestTimeout(text="the body of the request did not come") from None


async def _ask(request: web.Request, question: Callable[[PageViews], T]) -> T:
    return await request.app[SHOWN].ask(question)


async def _service(request: web.Request) -> QueryService:
    missing = "A scheduler at work has no time for what takes seconds: ask `kubesched ui` on the same cluster."
    return await _ask(request, lambda views: _found(views.service, missing))


async def _while_open(request: web.Request, answering: Coroutine[Any, Any, T]) -> T:
    """The answer, unless whoever asked leaves the view or asks something else: then nobody works on it any more."""
    task = asyncio.create_task(answering)
    try:
        while not (await asyncio.wait((task,), timeout=_LISTENING))[0]:
            if request.transport is None or request.transport.is_closing():
                task.cancel()
        return await task
    finally:
        task.cancel()


def _found(value: T | None, missing: str) -> T:
    if value is None:
        raise web.HTTPNotFound(text=missing)
    return value


def _key(request: web.Request) -> str:
    return f"{request.match_info['namespace']}/{request.match_info['name']}"


def _no_pod(request: web.Request) -> str:
    return f"There is no pod {_key(request)}; it may be gone, or have finished."


def _travel(request: web.Request) -> TimeTravel:
    return _found(request.app.get(TRAVEL), "This is no recording, so there is no other moment to go to.")


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise web.HTTPBadRequest(text=f"expected a number, got {text!r}")
    return int(text)


def _answer(kind: str, answer: object) -> web.Response:
    return json_response(document(kind, answer))
