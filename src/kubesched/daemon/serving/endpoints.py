"""The HTTPS endpoints: health checks, metrics, configuration and debugging, and the path of each."""

from __future__ import annotations

import asyncio
import datetime
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler
from prometheus_client import ProcessCollector

from kubesched.config import SchedulerConfiguration
from kubesched.daemon.feature_gates import FeatureGates, ReleaseSource
from kubesched.daemon.log import Log
from kubesched.daemon.metrics.registry import CONTENT_TYPE, HEALTH, MetricFamily, MetricsRegistry, exposition
from kubesched.daemon.options import Options
from kubesched.daemon.serving import pages
from kubesched.http.connections import HEAD_SECONDS

log = Log(__name__)


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """A named check. `problem` says what is wrong; None if nothing is."""

    name: str
    problem: Callable[[], str | None]
    remark: Callable[[], str] = lambda: ""
    """Shown with ?verbose beside a check that passed. Anyone may read it."""


PING = HealthCheck("ping", lambda: None)
STUCK_AFTER = 180.0
"""Seconds without a sign of life after which a thread counts as stuck: more than any plugin should compute."""


def shutdown_check(is_stopping: Callable[[], bool]) -> HealthCheck:
    return HealthCheck("shutdown", lambda: "process is shutting down" if is_stopping() else None)


def handlers_check(are_synced: Callable[[], bool]) -> HealthCheck:
    return HealthCheck("sched-handler-sync", lambda: None if are_synced() else "handlers are not fully synchronized")


def informers_check(not_synced: Callable[[], Sequence[str]]) -> HealthCheck:
    def problem() -> str | None:
        names = not_synced()
        return f"{len(names)} informers not started yet: [{' '.join(names)}]" if names else None

    return HealthCheck("informer-sync", problem)


def thread_check(silence: Callable[[], float]) -> HealthCheck:
    """kube-scheduler has no such check: one that is stuck for ever in a plugin keeps its lease there."""

    def problem() -> str | None:
        return f"no sign of life for {seconds:.0f} s" if (seconds := silence()) > STUCK_AFTER else None

    return HealthCheck("scheduling-thread", problem)


def skipped_check(skipped: Callable[[], int]) -> HealthCheck:
    """Never fails: one object that cannot be handled is no reason to take a scheduler away from all others."""

    def remark() -> str:
        return f"{count} objects skipped because of errors, see the log" if (count := skipped()) else ""

    return HealthCheck("objects-handled", lambda: None, remark)


Observe = Callable[[str, str, bool], None]
"""Called with the name of a check, that of its endpoint, and whether it passed."""


def health_report(
    endpoint: str,
    checks: Sequence[HealthCheck],
    *,
    excluded: Iterable[str] = (),
    verbose: bool = False,
    observe: Observe = lambda check, endpoint, passed: None,
) -> tuple[bool, str]:
    """Whether all checks but the excluded ones pass, and the answer to a probe.

    Why a check failed is confidential, so only the log has it.
    """
    excluded_names = set(excluded)
    lines, failures = [], {}
    for check in checks:
        if check.name in excluded_names:
            lines.append(f"[+]{check.name} excluded: ok")
            continue
        problem = check.problem()
        observe(check.name, endpoint, problem is None)
        if problem is None:
            remark = check.remark()
            lines.append(f"[+]{check.name} ok{remark and f': {remark}'}")
        else:
            lines.append(f"[-]{check.name} failed: reason withheld")
            failures[check.name] = problem
    if unknown := sorted(excluded_names - {check.name for check in checks}):
        quoted = ",".join(f'"{name}"' for name in unknown)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {quoted}")
    if failures:
        log.info("Health check failed", v=2, endpoint=endpoint, **failures)
    if not failures and not verbose:
        return True, "ok"
    return not failures, "\n".join([*lines, f"{endpoint} check {'failed' if failures else 'passed'}\n"])


_LINES_AT_ONCE = 500
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "OPTIONS")
"""kube-scheduler ignores the method, except that DELETE resets metrics, which nothing here does."""

_PROCESS = ProcessCollector(registry=None)
_NO_SNIFFING = {"X-Content-Type-Options": "nosniff"}

Call = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Calls a function somewhere, and returns what it returned."""


async def at_once(function: Callable[[], Any]) -> Any:
    """Call it in this thread."""
    return function()


def utc_now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


@dataclass(frozen=True)
class Served:
    """Everything that the endpoints show."""

    options: Options
    configuration: SchedulerConfiguration
    gates: FeatureGates
    metrics: MetricsRegistry
    release_source: str = ReleaseSource.NEWEST
    healthz: tuple[HealthCheck, ...] = ()
    livez: tuple[HealthCheck, ...] = ()
    readyz: tuple[HealthCheck, ...] = ()
    """The checks of each endpoint; only `PING` for one without."""
    resource_lines: Callable[[], Iterable[str]] = tuple
    """The text of /metrics/resources, line by line; nothing unless this is the leader."""
    dumps: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    """The functions whose answers /debug/NAME shows, as text or as JSON."""
    set_verbosity: Callable[[int], None] = lambda verbosity: None
    now: Callable[[], datetime.datetime] = utc_now
    call: Call = at_once
    """Metrics, dumps and lines are made where the scheduler lives, between two things that it does."""


class Endpoints:
    """The routes of one server."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._started = served.now()
        self._checks = {series.name: MetricFamily(series) for series in HEALTH}
        self.routes: dict[str, Handler] = {
            "/configz": self._configz,
            "/metrics": self._metrics,
            "/metrics/resources": self._resources,
            "/metrics/slis": self._slis,
        }
        for name, checks in (("healthz", served.healthz), ("livez", served.livez), ("readyz", served.readyz)):
            self._add_health(name, checks or (PING,))
        if served.gates["ComponentFlagz"]:
            self.routes["/flagz"] = self._flagz
        if served.gates["ComponentStatusz"]:
            self.routes["/statusz"] = self._statusz
        if served.configuration.enable_profiling:
            self._add_debugging()

    def application(self, *middlewares: Any) -> web.Application:
        """An aiohttp application with all routes behind the middlewares."""
        application = web.Application(middlewares=middlewares)
        for path, handler in self.routes.items():
            for method in _METHODS:
                application.router.add_route(method, path, handler)
        if self._served.configuration.enable_profiling:
            application.router.add_put("/debug/flags/v", self._put_verbosity)
        application.router.add_route("*", "/{anything_else:.*}", self._refuse)
        application.on_response_prepare.append(_with_headers)
        return application

    async def _refuse(self, request: web.Request) -> web.Response:
        if request.path in self.routes:
            return web.Response(status=405, text=f"{request.method} is not served here\n", headers=_NO_SNIFFING)
        return web.Response(status=404, text="404 page not found\n", headers=_NO_SNIFFING)

    # -- health -------------------------------------------------------------------------------------------------------

    def _add_health(self, endpoint: str, checks: tuple[HealthCheck, ...]) -> None:
        async def all_checks(request: web.Request) -> web.Response:
            excluded, verbose = request.query.getall("exclude", []), "verbose" in request.query
            return _healthy_or_not(
                *health_report(endpoint, checks, excluded=excluded, verbose=verbose, observe=self._count_check)
            )

        async def one_check(request: web.Request) -> web.Response:
            problem = by_path[request.path].problem()
            return _healthy_or_not(problem is None, f"internal server error: {problem}\n" if problem else "ok")

        by_path = {f"/{endpoint}/{check.name}": check for check in checks}
        self.routes[f"/{endpoint}"] = all_checks
        self.routes |= dict.fromkeys(by_path, one_check)

    def _count_check(self, check: str, endpoint: str, passed: bool) -> None:
        self._checks["kubernetes_healthcheck"].child(check, endpoint).set(passed)
        self._checks["kubernetes_healthchecks_total"].child(check, endpoint, "success" if passed else "error").inc()

    async def _slis(self, request: web.Request) -> web.Response:
        started = (metric for metric in _PROCESS.collect() if metric.name == "process_start_time_seconds")
        return _metrics_text(request, exposition([*started, *(family.shown() for family in self._checks.values())]))

    # -- metrics ------------------------------------------------------------------------------------------------------

    async def _metrics(self, request: web.Request) -> web.Response:
        return _metrics_text(request, await self._served.call(self._served.metrics.exposed))

    async def _resources(self, request: web.Request) -> web.StreamResponse:
        """The lines are made in parts, between which scheduling goes on: there is a line for each pod."""
        response = web.StreamResponse(headers={"Content-Type": CONTENT_TYPE})
        _compress_if_wanted(request, response)
        await response.prepare(request)
        lines: Iterator[str] = await self._served.call(lambda: iter(self._served.resource_lines()))
        while chunk := await self._served.call(lambda: "".join(islice(lines, _LINES_AT_ONCE))):
            await response.write(chunk.encode())
            await asyncio.sleep(0)
        await response.write_eof()
        return response

    # -- about the process --------------------------------------------------------------------------------------------

    async def _configz(self, _: web.Request) -> web.Response:
        body = pages.configz(self._served.configuration, self._served.release_source).encode()
        return web.Response(body=body, headers={"Content-Type": "application/json", **_NO_SNIFFING})

    async def _flagz(self, request: web.Request) -> web.Response:
        flags = self._served.options.shown()
        if _wants_object(request, "Flagz"):
            return web.json_response(pages.flagz_object(flags))
        return web.Response(text=pages.flagz_text(flags))

    async def _statusz(self, request: web.Request) -> web.Response:
        release, now, paths = self._served.gates.release, self._served.now(), sorted(self.routes)
        if _wants_object(request, "Statusz"):
            return web.json_response(pages.statusz_object(release, self._started, now, paths))
        return web.Response(text=pages.statusz_text(release, self._started, now, paths))

    # -- debugging ----------------------------------------------------------------------------------------------------

    def _add_debugging(self) -> None:
        async def profile(request: web.Request) -> web.Response:
            try:
                seconds = float(request.query.get("seconds", "30"))
            except ValueError:
                return web.Response(status=400, text="seconds: expected a number\n")
            return web.Response(text=await pages.sampled_stacks(seconds))

        async def heap(request: web.Request) -> web.Response:
            return web.Response(text=pages.heap(stop="stop" in request.query))

        async def tasks(_: web.Request) -> web.Response:
            return web.Response(text=await self._served.call(pages.tasks) + pages.tasks())

        self.routes |= {
            "/debug/pprof": _dumping(pages.pprof_index, at_once),
            "/debug/pprof/": _dumping(pages.pprof_index, at_once),
            "/debug/pprof/profile": profile,
            "/debug/pprof/heap": heap,
            "/debug/pprof/goroutine": tasks,
            "/debug/pprof/threads": _dumping(pages.threads, at_once),
        }
        for name, dump in self._served.dumps.items():
            self.routes[f"/debug/{name}"] = _dumping(dump, self._served.call)

    async def _put_verbosity(self, request: web.Request) -> web.Response:
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                text = (await request.text()).strip()
        except TimeoutError:
            return web.Response(status=408, text="the body of the request did not come\n")
        if not (text.isascii() and text.isdigit()):
            return web.Response(status=400, text=f'failed to set klog.logging.verbosity "{text}": expected a number\n')
        self._served.set_verbosity(int(text))
        return web.Response(text=f"successfully set klog.logging.verbosity to {text}")


def _dumping(dump: Callable[[], Any], call: Call) -> Handler:
    async def show(_: web.Request) -> web.Response:
        shown = await call(dump)
        if isinstance(shown, str):
            return web.Response(text=shown)
        return web.Response(text=json.dumps(shown, indent=2, default=str) + "\n", content_type="application/json")

    return show


def _metrics_text(request: web.Request, body: bytes) -> web.Response:
    response = web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})
    _compress_if_wanted(request, response)
    return response


def _compress_if_wanted(request: web.Request, response: web.StreamResponse) -> None:
    """Scrapers ask for gzip, which makes it ten times smaller."""
    codings = (coding.partition(";") for coding in request.headers.get("Accept-Encoding", "").split(","))
    if any(name.strip() == "gzip" and quality.strip() not in ("q=0", "q=0.0") for name, _, quality in codings):
        response.enable_compression(web.ContentCoding.gzip)


async def _with_headers(_: web.Request, response: web.StreamResponse) -> None:
    """Responses are not to be cached, and do not name the library that serves them, nor its version."""
    response.headers.setdefault("Cache-Control", "no-cache, private")
    response.headers.pop("Server", None)


def _healthy_or_not(is_healthy: bool, text: str) -> web.Response:
    return web.Response(status=200 if is_healthy else 500, text=text, headers=_NO_SNIFFING)


def _wants_object(request: web.Request, kind: str) -> bool:
    return f"as={kind}" in request.headers.get("Accept", "").replace(" ", "")
