"""/healthz, /livez, /readyz: named checks, and the words of Kubernetes for how they went."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kubesched.daemon.log import Log

log = Log(__name__)


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """A check by name. It says what is wrong, or nothing if all is well."""

    name: str
    problem: Callable[[], str | None]
    remark: Callable[[], str] = lambda: ""
    """What to say though all is well. Anyone may read it."""


PING = HealthCheck("ping", lambda: None)
STUCK_AFTER = 180.0
"""Seconds without a sign of life after which a thread is given up: more than any plugin should compute."""


def shutdown_check(is_stopping: Callable[[], bool]) -> HealthCheck:
    return HealthCheck("shutdown", lambda: "process is shutting down" if is_stopping() else None)


def handlers_check(are_synced: Callable[[], bool]) -> HealthCheck:
    problem = "handlers are not fully synchronized"
    return HealthCheck("sched-handler-sync", lambda: None if are_synced() else problem)


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
    """It never fails: one object that cannot be handled is no reason to take a scheduler away from all others."""

    def remark() -> str:
        return f"{count} objects skipped because of errors, see the log" if (count := skipped()) else ""

    return HealthCheck("objects-handled", lambda: None, remark)


class HealthReport(NamedTuple):
    """The response to a probe."""

    healthy: bool
    text: str


@dataclass(frozen=True, slots=True)
class HealthEndpoint:
    """All checks of one path. `observe` is called with the name and the outcome of each."""

    name: str
    checks: tuple[HealthCheck, ...] = (PING,)
    observe: Callable[[str, str, bool], None] = lambda check, endpoint, passed: None

    def report(self, *, excluded: Iterable[str] = (), verbose: bool = False) -> HealthReport:
        """Make all checks but those that are excluded. Why one failed is confidential, so only the log has it."""
        left_out = set(excluded)
        lines, failures = [], {}
        for check in self.checks:
            if check.name in left_out:
                lines.append(f"[+]{check.name} excluded: ok")
                continue
            problem = check.problem()
            self.observe(check.name, self.name, problem is None)
            if problem is None:
                remark = check.remark()
                lines.append(f"[+]{check.name} ok{remark and f': {remark}'}")
            else:
                lines.append(f"[-]{check.name} failed: reason withheld")
                failures[check.name] = problem
        if unknown := sorted(left_out - {check.name for check in self.checks}):
            quoted = ",".join(f'"{name}"' for name in unknown)
            lines.append(f"warn: some health checks cannot be excluded: no matches for {quoted}")
        if failures:
            log.info("Health check failed", v=2, endpoint=self.name, **failures)
            return HealthReport(False, "\n".join([*lines, f"{self.name} check failed\n"]))
        if not verbose:
            return HealthReport(True, "ok")
        return HealthReport(True, "\n".join([*lines, f"{self.name} check passed\n"]))

    def report_one(self, name: str) -> HealthReport | None:
        """One check by name; None if there is none of that name."""
        for check in self.checks:
            if check.name == name:
                problem = check.problem()
                return (
                    HealthReport(True, "ok")
                    if problem is None
                    else HealthReport(False, f"internal server error: {problem}\n")
                )
        return None
