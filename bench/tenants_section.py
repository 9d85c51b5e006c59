"""What others pay for one tenant, in words and against the bars."""

from __future__ import annotations

from rich.console import Console
from tests.adversary import HOSTILE_CLAIMS

from bench import bars, groups, tenants
from bench.tables import verdict


def beside_one_tenant(console: Console) -> dict[str, float]:
    """Nothing is left of claims that come and go, and others do not pay for pods that wait or for terms."""
    results: dict[str, float] = {}
    most_mb, most_s = bars.CLAIMS_MB_LEFT, bars.CLAIM_TURN_SECONDS
    for sort in HOSTILE_CLAIMS:
        kept, turn, spent = tenants.claims(sort)
        results |= {f"tenant/{sort}-mb": round(kept, 1), f"tenant/{sort}-turn-seconds": round(turn, 3)}
        console.print(
            f"claims with {sort} that came and went: {kept:.1f} MB kept (bar {most_mb} MB, "
            f"{verdict(kept <= most_mb)}), a turn of {turn:.2f} s (bar {most_s} s, {verdict(turn <= most_s)}), "
            f"{spent:.1f} s of CPU in all"
        )
    most_ms = bars.WAITING_NODE_EVENT_MS
    for sort, ms in tenants.node_events():
        results[f"tenant/node-event-{sort}-ms"] = round(ms, 2)
        console.print(
            f"a node changes while pods wait by {sort}: {ms:.2f} ms (bar {most_ms} ms, {verdict(ms <= most_ms)})"
        )
    decided, (alone, beside) = tenants.sidecars(), tenants.beside_terms()
    results |= {"tenant/sidecars-seconds": round(decided, 3), "tenant/beside-terms-ms": round(beside, 2)}
    bar, times = bars.HOSTILE_SECONDS, bars.BESIDE_TERMS
    console.print(
        f"1,000 sidecars with 20 resources each: {decided:.2f} s (bar {bar} s, {verdict(decided <= bar)}); an "
        f"ordinary pod beside 5,000 terms for namespaces of their own: {beside:.2f} ms instead of {alone:.2f} "
        f"(bar {times} times, {verdict(beside <= times * alone)})"
    )
    pod, event = groups.beside_waiting_gangs()
    results |= {"tenant/beside-gangs-ms": round(pod, 3), "tenant/beside-gangs-event-ms": round(event, 3)}
    fast, short = bars.BESIDE_GANGS_MS, bars.BESIDE_GANGS_EVENT_MS
    console.print(
        f"beside 10,000 gangs that never get their quorum, an ordinary pod {pod:.2f} ms (bar {fast} ms, "
        f"{verdict(pod <= fast)}), an event of a node {event:.2f} ms (bar {short} ms, {verdict(event <= short)})"
    )
    return results
