from __future__ import annotations

import base64

from msgspec.structs import replace
from tests.unit.daemon.secure_server import OPEN, Ask, serve

from kubesched import config
from kubesched.config.configuration import ExtenderTLSConfig
from kubesched.daemon.serving.endpoints import HealthCheck, handlers_check, informers_check, shutdown_check
from kubesched.daemon.serving.pages import configz


def test_everybody_may_ask_for_health() -> None:
    async def talk(ask: Ask) -> None:
        for path in ("/healthz", "/livez", "/readyz"):
            answer = await ask(path)
            assert (answer.status, answer.text) == (200, "ok")
            assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"

    serve(talk)


def test_readiness_names_its_checks_and_keeps_reasons_to_itself() -> None:
    checks = (
        HealthCheck("leaderElection", lambda: "failed election to renew leadership on lease kube-scheduler"),
        shutdown_check(lambda: False),
        handlers_check(lambda: False),
        informers_check(lambda: ["pods", "nodes"]),
    )

    async def talk(ask: Ask) -> None:
        answer = await ask("/readyz")
        assert answer.status == 500
        assert answer.text == (
            "[-]leaderElection failed: reason withheld\n"
            "[+]shutdown ok\n"
            "[-]sched-handler-sync failed: reason withheld\n"
            "[-]informer-sync failed: reason withheld\n"
            "readyz check failed\n"
        )
        answer = await ask(
            "/readyz?verbose&exclude=leaderElection&exclude=sched-handler-sync&exclude=informer-sync&exclude=y&exclude=x"
        )
        assert answer.status == 200
        assert answer.text == (
            "[+]leaderElection excluded: ok\n"
            "[+]shutdown ok\n"
            "[+]sched-handler-sync excluded: ok\n"
            "[+]informer-sync excluded: ok\n"
            'warn: some health checks cannot be excluded: no matches for "x","y"\n'
            "readyz check passed\n"
        )
        one = await ask("/readyz/informer-sync")
        assert (one.status, one.text) == (
            500,
            "internal server error: 2 informers not started yet: [pods nodes]\n",
        )
        one = await ask("/readyz/leaderElection")
        assert one.text == "internal server error: failed election to renew leadership on lease kube-scheduler\n"
        assert (await ask("/readyz/shutdown")).text == "ok"
        assert (await ask("/livez/ping")).text == "ok"
        slis = (await ask("/metrics/slis")).text
        assert "\nprocess_start_time_seconds " in slis
        assert 'kubernetes_healthcheck{name="shutdown",type="readyz"} 1\n' in slis
        assert 'kubernetes_healthchecks_total{name="informer-sync",status="error",type="readyz"} 1\n' in slis

    serve(talk, served={"readyz": checks}, authorization_always_allow_paths=OPEN)


def test_metrics_are_served_in_prometheus_text_format_whatever_else_a_scraper_would_like() -> None:
    async def talk(ask: Ask) -> None:
        for accept in ("*/*", "application/openmetrics-text; version=1.0.0"):
            answer = await ask("/metrics", Accept=accept)
            assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
            assert "# TYPE scheduler_preemption_attempts_total counter" in answer.text

    serve(talk, authorization_always_allow_paths=OPEN)


def test_metrics_are_compressed_for_those_who_ask_for_it() -> None:
    async def talk(ask: Ask) -> None:
        for path in ("/metrics", "/metrics/slis", "/metrics/resources"):
            for wanted, expected in (("deflate, gzip", "gzip"), ("gzip;q=0", None), ("identity", None)):
                answer = await ask(path, Accept_Encoding=wanted)
                assert answer.headers.get("Content-Encoding") == expected, (path, wanted)

    serve(talk, authorization_always_allow_paths=OPEN)


def test_method_does_not_matter_and_unknown_paths_are_not_found() -> None:
    async def talk(ask: Ask) -> None:
        assert (await ask("/healthz", method="POST")).text == "ok"
        assert (await ask("/metrics", method="DELETE")).status == 405
        for path in ("/", "/nope", "/healthz/nope"):
            answer = await ask(path)
            assert (answer.status, answer.text) == (404, "404 page not found\n")
            assert "Server" not in answer.headers

    serve(talk, authorization_always_allow_paths=OPEN)


def test_resources_of_many_pods_are_streamed() -> None:
    lines = [f'kube_pod_resource_request{{pod="{i}"}} 1\n' for i in range(2000)]

    async def talk(ask: Ask) -> None:
        assert (await ask("/metrics/resources")).text == "".join(lines)

    serve(talk, served={"resource_lines": lambda: lines}, authorization_always_allow_paths=OPEN)


def test_configz_does_not_show_the_keys_of_extenders() -> None:
    tls = ExtenderTLSConfig(key_data=b"hunter2")
    extender = config.ExtenderConfig(url_prefix="https://me:hunter2@extender.example/v1", tls_config=tls)
    shown = configz(replace(config.default(), extenders=(extender,)), "newest")
    assert "hunter2" not in shown
    assert base64.b64encode(b"hunter2").decode() not in shown
    assert "extender.example/v1" in shown


def test_configuration_flags_and_status_have_the_shapes_of_kubernetes_components() -> None:
    async def talk(ask: Ask) -> None:
        found = (await ask("/configz")).json()
        assert found["componentconfig"] == config.to_plain(config.default())
        assert found["kubesched"] == {"release": "1.36", "releaseSource": "newest"}
        flags = (await ask("/flagz")).text.splitlines()
        assert flags[1] == "kube-scheduler flagz"
        assert "requestheader-group-headers=[x-remote-group]" in flags
        typed = await ask("/flagz", Accept="application/json;v=v1beta1;g=config.k8s.io;as=Flagz")
        assert typed.json()["flags"]["tls-min-version"] == ""
        status = (await ask("/statusz")).text
        assert "Started: Sun Nov 15 23:00:00 UTC 2026\nUp: 0 hr 00 min 00 sec\n" in status
        assert "Emulation version: 1.36\n" in status
        typed = await ask("/statusz", Accept="application/json;v=v1beta1;g=config.k8s.io;as=Statusz")
        assert typed.json()["startTime"] == "2026-11-15T23:00:00Z"
        assert {"/healthz", "/metrics", "/configz"} <= set(typed.json()["paths"])

    serve(talk, authorization_always_allow_paths=OPEN)


def test_debugging_shows_dumps_tasks_and_where_time_goes() -> None:
    async def talk(ask: Ask) -> None:
        assert (await ask("/debug/queue")).json() == {"active": ["default/p"]}
        assert (await ask("/debug/nominated")).text == "nobody"
        assert "/debug/pprof/profile" in (await ask("/debug/pprof/")).text
        assert "test_daemon_endpoints.py" in (await ask("/debug/pprof/profile?seconds=0.1")).text
        assert (await ask("/debug/pprof/profile?seconds=x")).status == 400
        assert "client authorities" in (await ask("/debug/pprof/goroutine")).text
        assert "MainThread" in (await ask("/debug/pprof/threads")).text
        try:
            assert "tracing begins" in (await ask("/debug/pprof/heap")).text
            assert "bytes" in (await ask("/debug/pprof/heap")).text
        finally:
            assert "ended" in (await ask("/debug/pprof/heap?stop=1")).text

    dumps = {"queue": lambda: {"active": ["default/p"]}, "nominated": lambda: "nobody"}
    serve(talk, served={"dumps": dumps}, authorization_always_allow_paths=OPEN)


def test_verbosity_can_be_changed_while_running() -> None:
    levels: list[int] = []

    async def talk(ask: Ask) -> None:
        answer = await ask("/debug/flags/v", method="PUT", data="4")
        assert answer.text == "successfully set klog.logging.verbosity to 4"
        assert (await ask("/debug/flags/v", method="PUT", data="loud")).status == 400
        assert levels == [4]

    serve(talk, served={"set_verbosity": levels.append}, authorization_always_allow_paths=OPEN)


def test_debugging_is_off_where_profiling_is() -> None:
    configuration = config.from_plain(
        {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "enableProfiling": False}
    )

    async def talk(ask: Ask) -> None:
        assert (await ask("/debug/pprof/")).status == 404
        assert (await ask("/debug/queue")).status == 404

    serve(
        talk,
        configuration=configuration,
        served={"dumps": {"queue": dict}},
        authorization_always_allow_paths=OPEN,
    )
