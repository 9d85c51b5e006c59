"""What `kubesched serve` and `kubesched mcp` share: where to listen, who may ask, and the service behind both."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from math import inf
from typing import Any, TypeVar, cast

import click

from kubesched.ask.service import QueryService
from kubesched.ask.sources.following import ClusterFeed, Files, following
from kubesched.cli.cluster_options import SchedulerConfig, manifests_of
from kubesched.cli.cluster_source import ClusterSource, DurationType
from kubesched.framework.budget import LIMIT, Budget
from kubesched.scheduler import garbage
from kubesched.simulate.cluster import ClusterModel

F = TypeVar("F", bound=Callable[..., Any])

MOST_WHAT_IFS = 4
"""How many may be under way: one is answered, the others wait for their turn."""


@dataclass(frozen=True)
class ServiceOptions:
    """The options of `service_options`, a field each."""

    host: str
    port: int
    token_file: str
    tls_cert_file: str
    tls_private_key_file: str
    question_timeout: float | None
    """None for no limit."""


def service_options(*, port: int, timeout: str) -> Callable[[F], F]:
    """Where to listen, the token, TLS, and the time for a question. The command gets them as `options`."""

    def decorate(command: F) -> F:
        @functools.wraps(command)
        def with_options(*arguments: Any, **values: Any) -> Any:
            options = ServiceOptions(**{name: values.pop(name) for name in ServiceOptions.__dataclass_fields__})
            return command(*arguments, options=options, **values)

        wrapped: Any = with_options
        for option in (
            click.option(
                "--question-timeout",
                type=DurationType(),
                default=timeout,
                show_default=True,
                metavar="DURATION",
                help="How long a question may take; 0 is no limit.",
            ),
            click.option("--tls-private-key-file", default="", metavar="FILE", help="Its key."),
            click.option("--tls-cert-file", default="", metavar="FILE", help="Certificate to show, for HTTPS."),
            click.option(
                "--token-file", default="", metavar="FILE", help="File with the bearer token; else one is printed."
            ),
            click.option(
                "--port", type=click.IntRange(0, 65535), default=port, show_default=True, help="0 picks a free one."
            ),
            click.option(
                "--bind-address", "host", default="127.0.0.1", show_default=True, help="Address to listen on."
            ),
        ):
            wrapped = option(wrapped)
        return cast(F, wrapped)

    return decorate


def query_service(
    source: ClusterSource, config: SchedulerConfig, *, timeout: float | None, slow_timeout: float | None
) -> AbstractAsyncContextManager[QueryService]:
    """The service for questions about the cluster that is meant, which is read at once. None is no limit."""
    cluster, current = _cluster_and_feed(source, config)

    @asynccontextmanager
    async def answering() -> AsyncIterator[QueryService]:
        async with current as feed:
            service = QueryService(
                cluster,
                feed,
                stands_still=isinstance(feed, Files),
                timeout=timeout or inf,
                slow_timeout=slow_timeout or inf,
                most_waiting=MOST_WHAT_IFS,
            )
            try:
                yield service
            finally:
                service.close()

    return answering()


def _cluster_and_feed(
    source: ClusterSource, config: SchedulerConfig
) -> tuple[ClusterModel, AbstractAsyncContextManager[ClusterFeed]]:
    """The cluster, and what keeps it current. Of equally good nodes the first is chosen: a question has one answer.

    For files, the pods that workloads lack are made, as other commands do; in a live cluster its controllers make them.
    """
    live = source.live
    objects = manifests_of(source, config, workloads=True).objects if live is None else ()
    budget = Budget(time.thread_time, limit=LIMIT)
    make = ClusterModel.with_missing_pods if live is None else ClusterModel
    cluster = make(objects, config.settings, profiles=config.profiles, draw=lambda among: 0, budget=budget)
    if live is None:
        return cluster, nullcontext(Files(source.origin))
    garbage.collect_seldom()
    custom = config.custom_resources
    return cluster, following(cluster, live.settings, os.environ, custom=custom, origin=live.origin)
