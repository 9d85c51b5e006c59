from __future__ import annotations

import asyncio

from tests.unit.kube.test_leader_election import SharedLease, elector
from tests.virtual_time import now, run

from kubesched.daemon.supervision import act_when_elected
from kubesched.kube.lease import LeaseRecord


def test_who_waits_for_another_to_lose_the_lease_stops_at_once() -> None:
    lease = SharedLease(LeaseRecord(holder_identity="other", lease_duration_seconds=3600))

    async def act() -> None:
        raise AssertionError("another leads")

    async def main() -> None:
        stopping = asyncio.Event()
        waiting = asyncio.create_task(act_when_elected(stopping, elector(lease.lock()), act))
        await asyncio.sleep(10)
        stopping.set()
        await waiting
        assert now() == 10

    run(main())


def test_who_leads_finishes_first_and_then_gives_the_lease_up() -> None:
    lease = SharedLease()

    async def main() -> None:
        stopping = asyncio.Event()

        async def act() -> None:
            await stopping.wait()
            await asyncio.sleep(5)  # bindings under way

        leading = asyncio.create_task(act_when_elected(stopping, elector(lease.lock()), act))
        await asyncio.sleep(10)
        assert lease.record is not None
        assert lease.record.holder_identity == "me"
        stopping.set()
        await leading
        assert now() == 15
        assert lease.record.holder_identity == ""

    run(main())
