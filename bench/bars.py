"""The bars: what each benchmark may cost at most, and what kube-scheduler costs on the same kind of machine."""

from __future__ import annotations

SIZES = (5000, 15_000)
LARGE_FACTOR = 3.5
"""By how much the bars of the engine are higher for the larger cluster."""

ENGINE_US = {
    "basic": 80,
    "node-affinity": 100,
    "spread-soft": 250,
    "spread-hard": 250,
    "preferred-affinity": 300,
    "required-anti-affinity": 300,
    "fills-a-node": 80,
    "fits-nowhere": 300,
    "fits-nowhere-again": 50,
    "first-of-kind": 1500,
    "preemption": 8000,
}
LOOP_US = {
    "basic": 200,
    "spread-soft": 400,
    "preferred-affinity": 400,
    "daemonset": 250,
    "indexed": 400,
    "alone": 1000,
    "beside-gated": 150,
}
TRICKLE_US = {"basic": 450, "spread-hard": 600}
"""CPU of the daemon's process per pod when they come one by one."""
EVENT_US = {
    "node-label": 50_000,
    "small-node": 50_000,
    "small-node-all-different": 1000,
    "other-pod-bound": 50_000,
    "condition-written": 40,
}
"""An event that helps none of the pods that wait."""
WAITING_ATTEMPT_KB = 40
"""What an attempt holds that waits for volumes, its pod and its claim included."""
UNDER_WAY_KB = 12
"""What a pod holds while its binding is being written; a column of 5,000 nodes takes 5 to 40."""
BESIDE_WAITING_US = 300
"""The whole loop for a pod that waits for nothing, with 10,000 attempts that wait."""
DEVICES_US = 5000
STATE_MB = 350
SIMULATE_SECONDS = 15
QUEUE_POINTS = 0.1
"""How far the whole queue of a trace may be from the bound, in points of GPUs."""
QUEUE_POINTS_SPECIFIC = 0.3
"""The same where a quarter of the pods or more ask for a model of GPUs."""
QUEUE_SECONDS, QUEUE_DEFAULT_SECONDS = 60, 10
BOUND_SECONDS, BOUND_LARGE_SECONDS = 2, 10
POOL_PERCENT, POOL_SECONDS, POOL_SAVED = 1.0, 20, 8.0
"""How far a pool may be from the bound, in how many seconds, and how much cheaper than one type alone it must be."""
SAVED_SHARE, SAVED_SECONDS = 0.985, 60
"""How much of what can be saved at all a plan saves, on 500 nodes."""
SAVED_MOVES, FREED_MOVES = 1.1, 1.05
"""How many times the moves of the bound a plan may make that saves a share, or frees nodes."""
FIRST_PLAN_SECONDS, VERIFIED_SECONDS = 30, 5
"""For a plan that is checked with its bound on 5,000 nodes, and for 10,000 moves that the engine decides."""
STORM_MS = 5
"""CPU of one of as many preemptors as there are nodes, from its first attempt to its binding."""
STORM_VOLUMES_MS = 5
"""The same where each has a volume of its own."""
STORM_SIMULATE_SECONDS = 5
STORM_GROWTH = 2.3
"""By how much twice as many preemptors on twice as many nodes may cost more."""

MEGA_US = {
    "basic": 80,
    "spread-hard": 350,
    "spread-soft": 450,
    "preferred-affinity": 900,
    "required-anti-affinity": 900,
    "first-of-kind": 3000,
    "fits-nowhere": 500,
    "preemption": 60_000,
}
"""CPU of a decision on 130,000 nodes with 500,000 placed pods of 1,000 kinds."""
MEGA_STATE_MB, MEGA_EVENT_MS, MEGA_GANG_SECONDS = 1200, 5, 1.5
"""Memory of that state, an event of a node with 100,000 pods waiting, and a gang of 10,000 pods."""
MEGA_EXPLAIN_MS, MEGA_PAGE_MS, MEGA_MAP_MB = 6000, 2000, 15
"""A question about one pod, and what a page asks for first."""

GANG_MS = {1000: 100, 100: 15}
"""CPU of deciding a gang of so many identical pods on 5,000 nodes."""
GANG_RACK_MS = 50
"""A gang of 100 that must stay in one of 500 racks."""
GANG_PREEMPTION_MS = 100
"""A gang of 100 on a full cluster of 5,000 nodes."""
GANG_EVENT_MS = 50
"""An event that helps none of 1,000 gangs of 10 that wait."""
HOSTILE_SECONDS, LARGER_HOSTILE_SECONDS = 0.3, 0.5
"""CPU of an attempt at one very large pod."""
WAIT_SECONDS = 1
"""CPU until an ordinary pod is decided that comes right behind one as large as the API server accepts."""
BESIDE_LARGEST_MS = 5
"""CPU of an ordinary pod with new labels while such pods are placed or wait."""
HOSTILE_MB_LEFT = 10
"""What may still be held after such pods were deleted."""
ASSIGNED_POD_MS = {"10,000 different pods": 2, "5,000 pods with affinity": 5}
"""CPU of an event that helps none of the pods that wait."""
DIFFERENT_PODS_MB = 250
CLAIMS_MB_LEFT, CLAIM_TURN_SECONDS = 20, 0.25
"""What may be held of claims that came and went, and the longest turn of an attempt at one of them."""
BESIDE_GANGS_MS, BESIDE_GANGS_EVENT_MS = 0.5, 2
"""CPU of an ordinary pod and of an event of a node beside 10,000 gangs that wait for pods which never come."""
WAITING_NODE_EVENT_MS, BESIDE_TERMS = 2, 2
"""CPU of an event of a node that helps none of one tenant's pods; how much more an ordinary pod costs beside terms."""

REQUEST = (60, 200, 62)
"""Microseconds of CPU of one POST over TLS, in a row and in bursts, and function calls by it; a bound pod is two."""
LIVE_US = {"basic": 1000, "spread-soft": 1300, "spread-hard": 1300, "required-anti-affinity": 1300}
"""CPU of the daemon's process per pod, its Event included."""
START_SECONDS = 6
START_MB = 500
SNAPSHOT_SECONDS = 6
SNAPSHOT_MB = 600

EXPLAIN_MS = 200
"""CPU of the explanation of one pod on 5,000 nodes with 50,000 pods."""
REMEDIES_MS = 2000
"""The same with all that would help it."""

QUESTION_US = 1000
"""CPU of `kubesched serve` for one question over HTTP: a thousand a second on one core."""

CREATIONS_PER_SECOND = 500
BINDINGS_PER_SECOND = 1000
LIST_SECONDS = 1.5

PAGE_FIRST_PICTURE_SECONDS = 2
PAGE_FRAMES_PER_SECOND = 50
PAGE_EDIT_MS = 100
PAGE_DECISION_MS = 300
PAGE_HEADROOM_SECONDS = 2.0
PAGE_LOOKED_AT_PERCENT = 3
PAGE_MEMORY_MB = 300

KUBE_SCHEDULER_US = {
    "basic": {5000: 27_000, 15_000: 89_000},
    "spread-soft": {5000: 39_000, 15_000: 126_000},
    "spread-hard": {5000: 36_000, 15_000: 104_000},
    "preferred-affinity": {5000: 32_000, 15_000: 110_000},
    "required-anti-affinity": {5000: 41_000, 15_000: 118_000},
}
"""kube-scheduler v1.36.4 with all nodes scored, schedulePod and assume alone, on the same kind of machine."""
