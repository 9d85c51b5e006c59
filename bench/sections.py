"""What is not measured in rounds: whole programs, and processes that talk to each other."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial

from rich.console import Console
from tests import chromium

from bench import (
    answering,
    asking,
    bars,
    devices,
    groups,
    hostile,
    http_clients,
    largest,
    live,
    looking,
    page_memory,
    pages,
    serving,
    simulating,
    snapshots,
    storm,
    waiting_attempts,
)
from bench.mega_section import largest_cluster
from bench.memory_section import hour_of_churn, memory
from bench.planning_section import plans
from bench.tables import verdict
from bench.tenants_section import beside_one_tenant

Results = dict[str, float]


def simulate(console: Console, rounds: int) -> Results:
    results = {}
    for kind in ("pods", "deployments"):
        spent = round(statistics.median(simulating.cpu_seconds(kind) for _ in range(rounds)), 1)
        results[f"simulate/{kind}-seconds/5000x50000"] = spent
        bar = bars.SIMULATE_SECONDS
        console.print(f"simulate, {kind}: {spent} s of CPU (bar {bar} s, {verdict(spent <= bar)})")
    return results


def preemptors(console: Console, rounds: int) -> Results:
    """As many preemptors as there are nodes: the cost of each must not grow with their number."""
    results: Results = {}
    spent = {size: min(storm.cpu_ms_per_preemptor(size) for _ in range(rounds)) for size in storm.SIZES}
    for size, each in spent.items():
        results[f"storm/preemptor-ms/{size}"] = round(each, 2)
        console.print(
            f"storm of {size:,} preemptors: {each:.1f} ms of CPU each "
            f"(bar {bars.STORM_MS} ms, {verdict(each <= bars.STORM_MS)})"
        )
    size, bar = storm.SIZES[0], bars.STORM_VOLUMES_MS
    each = min(storm.cpu_ms_per_preemptor(size, volumes=True) for _ in range(rounds))
    results[f"storm/preemptor-with-volume-ms/{size}"] = round(each, 2)
    console.print(f"{size:,} with a volume each: {each:.1f} ms of CPU each (bar {bar} ms, {verdict(each <= bar)})")
    small, large = (min(simulating.storm_cpu_seconds(size) for _ in range(rounds)) for size in storm.SIZES)
    results |= {f"storm/simulate-seconds/{size}": round(s, 2) for size, s in zip(storm.SIZES, (small, large))}
    bar, growth = bars.STORM_SIMULATE_SECONDS, large / small
    console.print(
        f"the same, simulated: {small:.1f} s of CPU, {large:.1f} s for twice as many (bar {bar} s, "
        f"{verdict(large <= bar)}), {growth:.1f} times as much (bar {bars.STORM_GROWTH}, "
        f"{verdict(growth <= bars.STORM_GROWTH)})"
    )
    return results


def questions(console: Console, rounds: int) -> Results:
    """`kubesched explain` once the cluster has been read."""
    cluster, results = asking.full_cluster(), Results()
    for kind in asking.ASKED:
        for what, with_remedies, bar in (("explain", False, bars.EXPLAIN_MS), ("remedies", True, bars.REMEDIES_MS)):
            spent = statistics.median(
                asking.cpu_ms(cluster, kind, each, with_remedies=with_remedies) for each in range(rounds)
            )
            results[f"questions/{what}-{kind}-ms/{asking.NODES}x{asking.PODS}"] = round(spent, 1)
            console.print(f"{what}, {kind}: {spent:.0f} ms of CPU (bar {bar:,} ms, {verdict(spent <= bar)})")
    return results


def claims(console: Console, rounds: int) -> Results:
    """Devices: the cost must not grow with the claims that are allocated already."""
    per_pod = devices.growing()
    first, last, bar = per_pod[0], per_pod[-1], bars.DEVICES_US
    console.print(
        f"claims for one or two of 40,000 devices: {first:,.0f} us per pod at first, {last:,.0f} us with "
        f"{len(per_pod) - 1},000 claims allocated (bar {bar:,} us, {verdict(max(per_pod) <= bar)})"
    )
    return {"devices/first-thousand/5000x8": round(first, 1), "devices/last-thousand/5000x8": round(last, 1)}


def waiting(console: Console, rounds: int) -> Results:
    """Attempts that wait for volumes: the other pods must not notice."""
    attempts = 10_000
    runs = [waiting_attempts.measured(attempts) for _ in range(rounds)]
    held, other = (round(statistics.median(values), 1) for values in list(zip(*runs, strict=True))[:2])
    most_kb, most_us = bars.WAITING_ATTEMPT_KB, bars.BESIDE_WAITING_US
    console.print(
        f"{attempts:,} attempts that wait for volumes: {held} KB each (bar {most_kb} KB, {verdict(held <= most_kb)}); "
        f"another pod costs {other:.0f} us (bar {most_us} us, {verdict(other <= most_us)})"
    )
    return {f"loop/waiting-attempt-kb/{attempts}": held, f"loop/beside-waiting-us/{attempts}": other}


def pod_groups(console: Console, rounds: int) -> Results:
    """Gangs on 5,000 nodes: decided, kept in a rack, let in by preemption, or waiting."""
    measured: dict[str, tuple[Callable[[], float], int]] = {
        f"groups/gang-ms/{size}": (partial(groups.gang_ms, size), bar) for size, bar in bars.GANG_MS.items()
    }
    measured["groups/rack-ms/500x100"] = groups.rack_ms, bars.GANG_RACK_MS
    measured["groups/preemption-ms/100"] = groups.preemption_ms, bars.GANG_PREEMPTION_MS
    measured["groups/event-ms/1000x10"] = groups.event_ms, bars.GANG_EVENT_MS
    results: Results = {}
    for name, (work, bar) in measured.items():
        spent = results[name] = round(min(work() for _ in range(rounds)), 1)
        console.print(f"{name}: {spent} ms of CPU (bar {bar} ms, {verdict(spent <= bar)})")
    return results


def very_large_pods(console: Console, rounds: int) -> Results:
    """Very large pods, and very many different ones: decisions for other pods must not get slower."""
    results: Results = {}
    for name, (_, small, large, label_groups) in hostile.PODS.items():
        first, second, other = hostile.deciding(name)
        bar, higher = bars.HOSTILE_SECONDS, bars.LARGER_HOSTILE_SECONDS
        results |= {
            f"hostile/{name}-seconds/{small}": round(first, 3),
            f"hostile/{name}-seconds/{large}": round(second, 3),
        }
        console.print(
            f"one pod with {name} x {small:,}: {first:.3f} s of CPU (bar {bar} s, {verdict(first <= bar)}); "
            f"x {large:,}: {second:.3f} s (bar {higher} s, {verdict(second <= higher)}); "
            f"{label_groups:,} groups of labels, an ordinary pod beside them {other / 1000:.1f} ms"
        )
    results |= _behind_the_largest(console) | beside_one_tenant(console)
    left, different = hostile.left_behind(), hostile.different_pods_mb()
    results |= {"hostile/left-mb/5000": round(left, 1), "hostile/different-pods-mb/50000": round(different, 1)}
    console.print(
        f"left of them after they were deleted: {left:.1f} MB (bar {bars.HOSTILE_MB_LEFT} MB, "
        f"{verdict(left <= bars.HOSTILE_MB_LEFT)}); state of 50,000 different pods: {different:.0f} MB "
        f"(bar {bars.DIFFERENT_PODS_MB} MB, {verdict(different <= bars.DIFFERENT_PODS_MB)})"
    )
    for (who, most), (pods, near) in zip(bars.ASSIGNED_POD_MS.items(), ((10_000, False), (5_000, True))):
        spent = hostile.WaitingForOthers(pods, with_affinity=near).assigned_pod_ms()
        results[f"hostile/assigned-pod-ms/{pods}"] = round(spent, 2)
        console.print(f"a pod is bound while {who} wait: {spent:.2f} ms (bar {most} ms, {verdict(spent <= most)})")
    return results


def _behind_the_largest(console: Console) -> Results:
    """No ordinary pod waits for one as large as the API server accepts, of whatever sort, nor for many of them."""
    results, bar, beside = Results(), bars.WAIT_SECONDS, bars.BESIDE_LARGEST_MS
    for name, spent, other in (*largest.alone(), ("a stream of them all", *largest.stream())):
        results |= {f"largest/{name}-seconds": round(spent, 3), f"largest/beside-{name}-ms": round(other, 2)}
        console.print(
            f"behind the largest pod with {name}: an ordinary one waits {spent:.2f} s of CPU (bar {bar} s, "
            f"{verdict(spent <= bar)}), beside it costs {other:.1f} ms (bar {beside} ms, {verdict(other <= beside)})"
        )
    return results


def requests(console: Console, rounds: int) -> Results:
    """One write to an API server, as our HTTP client does it."""
    measured = [statistics.median(each) for each in zip(*(http_clients.cost() for _ in range(rounds)))]
    row, bursts, calls = measured
    is_met = all(value <= bar for value, bar in zip(measured, bars.REQUEST))
    console.print(
        f"a POST over TLS: {row:.0f} us of CPU, in bursts {bursts:.0f} us, {calls:.1f} calls "
        f"(bars {bars.REQUEST}, {verdict(is_met)})"
    )
    return {"requests/row-us": round(row, 1), "requests/bursts-us": round(bursts, 1), "requests/calls": round(calls, 1)}


def daemon(console: Console, rounds: int) -> Results:
    """`kubesched run` on the sandbox's API server."""
    results: Results = {}
    samples: dict[str, list[float]] = {kind: [] for kind in bars.LIVE_US}
    trickles: dict[str, list[float]] = {kind: [] for kind in bars.TRICKLE_US}
    starts = []
    for _ in range(rounds):  # in turns: a noisy minute must not be the fate of one kind
        for kind in samples:
            samples[kind].append(live.binding(kind))
        for kind in trickles:
            trickles[kind].append(live.binding(kind, per_second=live.TRICKLE))
        starts.append(live.starting())
    for kind, values in samples.items():
        spent, bar = statistics.median(values), bars.LIVE_US[kind]
        results[f"live/{kind}-us/{live.NODES}x{live.PODS[kind]}"] = round(spent)
        console.print(
            f"kubesched run, {kind}: {spent:.0f} us of CPU per pod bound, its Event written "
            f"(bar {bar:,} us, {verdict(spent <= bar)})"
        )
    for kind, values in trickles.items():
        spent, bar = statistics.median(values), bars.TRICKLE_US[kind]
        results[f"live/trickle-{kind}-us/{live.NODES}x{live.TRICKLE}"] = round(spent)
        console.print(
            f"the same, {live.TRICKLE} pods a second, {kind}: {spent:.0f} us (bar {bar} us, {verdict(spent <= bar)})"
        )
    seconds, held = statistics.median(s.cpu_seconds for s in starts), statistics.median(s.peak_rss_mb for s in starts)
    results["live/start-seconds/5000x30000"], results["live/start-mb/5000x30000"] = round(seconds, 2), round(held)
    console.print(
        f"kubesched run, start with 5,000 nodes and 30,000 running pods: {seconds:.1f} s of CPU "
        f"(bar {bars.START_SECONDS} s, {verdict(seconds <= bars.START_SECONDS)}), at most {held:.0f} MB "
        f"(bar {bars.START_MB} MB, {verdict(held <= bars.START_MB)})"
    )
    return results


def snapshot(console: Console, rounds: int) -> Results:
    """`kubesched snapshot` of a large cluster."""
    runs = [snapshots.taking() for _ in range(rounds)]
    seconds, held = (statistics.median(values) for values in list(zip(*runs, strict=True))[:2])
    most_s, most_mb = bars.SNAPSHOT_SECONDS, bars.SNAPSHOT_MB
    console.print(
        f"kubesched snapshot of 5,000 nodes and 50,000 pods: {seconds:.1f} s of CPU (bar {most_s} s, "
        f"{verdict(seconds <= most_s)}), at most {held:.0f} MB (bar {most_mb} MB, {verdict(held <= most_mb)}), "
        f"a file of {runs[-1].file_mb:.1f} MB"
    )
    return {"snapshot/seconds/5000x50000": round(seconds, 2), "snapshot/mb/5000x50000": round(held)}


def serve(console: Console, rounds: int) -> Results:
    """`kubesched serve`: one pod against the current state, as it is or with a few nodes cordoned or lost."""
    results: Results = {}
    for kind, runs in answering.answering(rounds).items():
        spent = statistics.median(run.server_us for run in runs)
        rate, wait = statistics.median(run.per_second for run in runs), statistics.median(run.median_ms for run in runs)
        results[f"serve/{kind}-us/{answering.NODES}x{answering.PODS}"] = round(spent)
        console.print(
            f"kubesched serve, {kind}: {spent:.0f} us of CPU per question (bar {bars.QUESTION_US:,} us, "
            f"{verdict(spent <= bars.QUESTION_US)}); {rate:,.0f} a second as asked, {wait:.1f} ms each"
        )
    return results


def api_server(console: Console, rounds: int) -> Results:
    """The sandbox's API server over HTTP."""
    results: Results = {}
    for where, on_disk in (("memory", False), ("disk", True)):
        runs = [serving.serving(on_disk=on_disk) for _ in range(rounds)]
        creations = statistics.median(run.creations.per_second for run in runs)
        bindings = statistics.median(run.bindings.per_second for run in runs)
        seconds = statistics.median(run.list_seconds for run in runs)
        held = statistics.median(run.rss_mb for run in runs)
        results |= {
            f"serving/creations-per-second/{where}": round(creations),
            f"serving/creation-server-us/{where}": round(statistics.median(r.creations.server_us for r in runs)),
            f"serving/bindings-per-second/{where}": round(bindings),
            f"serving/binding-server-us/{where}": round(statistics.median(r.bindings.server_us for r in runs)),
            f"serving/list-seconds/{where}": round(seconds, 3),
            f"serving/rss-mb/{where}": round(held),
        }
        console.print(
            f"sandbox {'on' if on_disk else 'in'} {where}, {serving.WATCHERS} watchers: {creations:,.0f} creations/s "
            f"(bar {bars.CREATIONS_PER_SECOND}, {verdict(creations >= bars.CREATIONS_PER_SECOND)}), "
            f"{bindings:,.0f} bindings/s (bar {bars.BINDINGS_PER_SECOND:,}, "
            f"{verdict(bindings >= bars.BINDINGS_PER_SECOND)}), list of 10,000 pods {seconds:.2f} s "
            f"(bar {bars.LIST_SECONDS} s, {verdict(seconds <= bars.LIST_SECONDS)}), {held:.0f} MB"
        )
    return results


def whole_sandbox(console: Console, rounds: int) -> Results:
    """Hollow nodes, controllers and the scheduler in one process."""
    runs = [live.running_in_sandbox() for _ in range(rounds)]
    wall, cpu = statistics.median(run.wall_seconds for run in runs), statistics.median(run.cpu_seconds for run in runs)
    console.print(
        f"sandbox with 5,000 hollow nodes: 10,000 pods of 100 Deployments run after {wall:.1f} s "
        f"({cpu:.1f} s of CPU), {runs[-1].rss_mb:.0f} MB; at rest {runs[-1].idle_percent:.0f} % of a core"
    )
    return {"sandbox/running-wall-seconds/5000x10000": round(wall, 1), "sandbox/running-cpu-seconds/5000x10000": cpu}


def web_page(console: Console, rounds: int) -> Results:
    """The web page in a real browser; skipped without one."""
    if chromium.MISSING:
        console.print(f"web page: skipped, {chromium.MISSING}")
        return {}
    runs = [pages.measured() for _ in range(rounds)]
    first, frames, edit, loaded, heap = (statistics.median(values) for values in zip(*runs, strict=True))
    seen = statistics.median(pages.decision_seen_ms() for _ in range(rounds))
    headroom = statistics.median(pages.exact_headroom_seconds() for _ in range(rounds))
    console.print(
        f"web page of 5,000 nodes and 50,000 pods: first picture after {first:.2f} s "
        f"(bar {bars.PAGE_FIRST_PICTURE_SECONDS} s, {verdict(first <= bars.PAGE_FIRST_PICTURE_SECONDS)}), "
        f"{frames:.0f} frames/s while panning (bar {bars.PAGE_FRAMES_PER_SECOND}, "
        f"{verdict(frames >= bars.PAGE_FRAMES_PER_SECOND)}), an edit answered in {edit:.0f} ms "
        f"(bar {bars.PAGE_EDIT_MS} ms, {verdict(edit <= bars.PAGE_EDIT_MS)}), a decision seen after {seen:.0f} ms "
        f"(bar {bars.PAGE_DECISION_MS} ms, {verdict(seen <= bars.PAGE_DECISION_MS)}), "
        f"exact headroom after {headroom:.2f} s (bar {bars.PAGE_HEADROOM_SECONDS:g} s, "
        f"{verdict(headroom <= bars.PAGE_HEADROOM_SECONDS)}); {loaded:.0f} KB loaded, "
        f"{heap:.0f} MB of JavaScript heap"
    )
    return {
        "ui/first-picture-seconds/5000x50000": round(first, 2),
        "ui/frames-per-second/5000x50000": round(frames),
        "ui/edit-ms/5000x50000": round(edit),
        "ui/decision-seen-ms/50": round(seen),
        "ui/exact-headroom-seconds/5000": round(headroom, 2),
        "ui/loaded-kb/5000x50000": round(loaded),
        "ui/heap-mb/5000x50000": round(heap, 1),
    }


def page_in_churn(console: Console, rounds: int) -> Results:
    """What the browser holds after ten minutes in which pods came and went. Once, whatever the rounds."""
    if chromium.MISSING:
        console.print(f"memory of the page: skipped, {chromium.MISSING}")
        return {}
    first, last, heap = page_memory.measured()
    console.print(
        f"web page after {page_memory.MINUTES:g} minutes of churn: {last:.0f} MB of memory "
        f"(bar {bars.PAGE_MEMORY_MB} MB, {verdict(last <= bars.PAGE_MEMORY_MB)}), {first:.0f} MB after one minute; "
        f"{heap:.1f} MB of it JavaScript heap"
    )
    return {"ui/memory-mb": round(last), "ui/memory-heap-mb": round(heap, 1)}


def looking_on(console: Console, rounds: int) -> Results:
    """What a page costs a daemon: one that is closed, and each part of one that is open."""
    kinds = {"without": (False, False), "unseen": (True, False), "seen": (True, True)}
    spent: dict[str, list[looking.Spent]] = {name: [] for name in kinds}
    for _ in range(max(rounds, 3)):
        for name, (serves, looks) in kinds.items():
            spent[name].append(looking.spent(serves=serves, looks=looks))
    without, unseen, seen = (looking.Spent(*map(statistics.median, zip(*each))) for each in spent.values())
    added = looking.Added(*map(statistics.median, zip(*(looking.added() for _ in range(max(rounds, 3))))))
    serving, of_nobody = seen.serving - without.serving, unseen.serving - without.serving
    more, most = 100 * (serving + sum(added)) / without.in_all, bars.PAGE_LOOKED_AT_PERCENT
    console.print(
        f"a daemon with {looking.NODES:,} nodes, CPU per bound pod: {without.in_all:.0f} us without a page, "
        f"{unseen.in_all:.0f} us with one, {seen.in_all:.0f} us while somebody looks. The page adds {of_nobody:.1f} us "
        f"of serving while nobody looks; {serving:.1f} us of serving, {added.noting:.1f} us of noting decisions, "
        f"{added.answering:.1f} us of answers while one does ({more:+.1f} %, bar {most} %, {verdict(more <= most)})"
    )
    totals = {"without": without.in_all, "unseen": unseen.in_all, "seen": seen.in_all}
    parts = {"serving": serving, "noting": added.noting, "answering": added.answering}
    return {f"ui/daemon-{name}-us/{looking.NODES}": round(value, 1) for name, value in (totals | parts).items()}


ONLY_BY_NAME = ("page-memory", "mega")
"""What takes so long that it runs only if it is asked for."""

SECTIONS: dict[str, Callable[[Console, int], Results]] = {
    "memory": memory,
    "churn": hour_of_churn,
    "simulate": simulate,
    "planning": plans,
    "storm": preemptors,
    "devices": claims,
    "questions": questions,
    "waiting-attempts": waiting,
    "groups": pod_groups,
    "hostile": very_large_pods,
    "requests": requests,
    "live": daemon,
    "snapshot": snapshot,
    "serve": serve,
    "serving": api_server,
    "sandbox": whole_sandbox,
    "ui": web_page,
    "looking": looking_on,
    "page-memory": page_in_churn,
    "mega": largest_cluster,
}
