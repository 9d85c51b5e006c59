"""Which devices are in use, by which claim: what the watch says, what was written since, and what is set aside.

A claim that a pod was just placed with is pending until its allocation is written; then assumed until the watch shows
it. At every moment its devices are taken, so that two pods never get one device.
"""

from __future__ import annotations

import msgspec

from kubesched.api.device_claims import EXTENDED_RESOURCE_CLAIM, AllocatedDevice, AllocationResult, ResourceClaim
from kubesched.api.pod import Pod
from kubesched.api.quantity import Family, family_as_written, parse_quantity, spell
from kubesched.plugins.shared.devices.pools import PoolId
from kubesched.state.changes import ChangeLog, ChangeReader
from kubesched.state.objects import ObjectStore

DeviceId = tuple[str, str, str]

_GONE_KEPT = 1024
ANY_POD = "any pod"
"""In the place of a group's key, which always has a slash."""


class PoolUse:
    """The devices of one pool that are in use, by name."""

    __slots__ = ("capacity", "consumers", "exclusive", "families", "shares", "version")

    def __init__(self) -> None:
        self.exclusive: dict[str, int] = {}
        """By how many claims a device is held for themselves: one, unless claims contradict each other."""
        self.shares: dict[str, int] = {}
        self.capacity: dict[str, dict[str, int]] = {}
        """What shares have consumed of a device, in billionths; perhaps nothing at all, if they asked for that."""
        self.consumers: dict[str, int] = {}
        """How many shares of a device those are."""
        self.families: dict[tuple[str, str], Family] = {}
        self.version = 0

    def is_allocated(self, device: str) -> bool:
        return device in self.exclusive or device in self.shares or device in self.capacity

    @property
    def is_empty(self) -> bool:
        return not (self.exclusive or self.shares or self.capacity)

    def count(self, allocated: AllocatedDevice, sign: int) -> None:
        self.version += 1
        if allocated.share_id is None:
            _count(self.exclusive, allocated.device, sign)
            return
        _count(self.shares, allocated.device, sign)
        if not allocated.consumed_capacity:
            return
        consumed = self.capacity.setdefault(allocated.device, {})
        for name, text in allocated.consumed_capacity.items():
            before = consumed.get(name, 0)
            if not before:  # nothing is spelled like nothing else
                self.families[allocated.device, name] = family_as_written(text)
            consumed[name] = before + sign * parse_quantity(text).nano()
        _count(self.consumers, allocated.device, sign)
        if allocated.device not in self.consumers:
            del self.capacity[allocated.device]


NOTHING_IN_USE = PoolUse()


class Ledger:
    """All claims that hold devices, and those that are about to."""

    def __init__(self, objects: ObjectStore, *, shares: bool = True) -> None:
        """Without `shares`, a claim that has some of a device has all of it."""
        self.changes: ChangeLog[PoolId] = ChangeLog()
        """The pools whose use changed."""
        self._objects = objects
        self._shares = shares
        self._changes = ChangeReader(objects.changes(ResourceClaim))
        self._seen: dict[str, ResourceClaim] = {}
        """Claims by key, as the watch shows them."""
        self._assumed: dict[str, ResourceClaim] = {}
        """Claims as they were written, until the watch shows that or something newer."""
        self._gone: dict[str, None] = {}
        """Claims that the watch has shown to be deleted, the latest last: a write may return after that."""
        self._pending: dict[str, AllocationResult] = {}
        self._sharers: dict[str, tuple[str, int]] = {}
        """By identity of a pending claim that pods share: their group, or ANY_POD, and how many of them count on it."""
        self._held: dict[str, tuple[AllocatedDevice, ...]] = {}
        """By key of a claim, or of what is pending: the devices counted for it."""
        self._use: dict[PoolId, PoolUse] = {}
        self._extended: dict[str, str] = {}
        """By uid of a pod: the claim that was made for its extended resources."""

    # -- claims -------------------------------------------------------------------------------------------------------

    def claim(self, name: str, namespace: str) -> ResourceClaim | None:
        """The claim as it was last written or seen."""
        return self._current(f"{namespace}/{name}")

    def extended_claim_of(self, pod: Pod) -> ResourceClaim | None:
        """The claim made for the pod's extended resources, perhaps in an earlier attempt."""
        self.refresh()
        key = self._extended.get(pod.uid)
        return self._current(key) if key is not None else None

    def is_pending(self, claim: ResourceClaim) -> bool:
        return identity_of(claim) in self._pending

    # -- what is decided and written ----------------------------------------------------------------------------------

    def pending_for(self, sharers: str, claim: ResourceClaim) -> AllocationResult | None:
        """The allocation of a claim that is being written for one of these pods (a group, or ANY_POD)."""
        if not self._pending:
            return None
        identity = identity_of(claim)
        pending_sharers, _ = self._sharers.get(identity, ("", 0))
        return self._pending.get(identity) if sharers and pending_sharers == sharers else None

    def set_aside(self, claim: ResourceClaim, allocation: AllocationResult, sharers: str = "") -> None:
        """From now on the devices are taken, though nothing has been written yet. `sharers` may share them."""
        identity = identity_of(claim)
        _, count = self._sharers.get(identity, ("", 0))
        if sharers:
            self._sharers[identity] = sharers, count + 1
        self._pending[identity] = allocation
        self._count_pending(identity)

    def release(self, claim: ResourceClaim) -> None:
        """The allocation is written, or will not be: it is not pending any longer, unless others count on it."""
        identity = identity_of(claim)
        sharers, count = self._sharers.pop(identity, ("", 1))
        if count > 1:
            self._sharers[identity] = sharers, count - 1
            return
        if self._pending.pop(identity, None) is not None:
            self._hold(f"pending {identity}", ())

    def assume(self, claim: ResourceClaim) -> None:
        """The claim was written and is like this, whatever older versions the watch may still show."""
        self.refresh()
        seen = self._seen.get(claim.key)
        if claim.key in self._gone or (seen is not None and _is_at_least(seen, claim)):
            return
        self._assumed[claim.key] = claim
        self._count_claim(claim.key)
        self._count_pending_of(claim)

    def forget(self, claim: ResourceClaim) -> None:
        """The claim was deleted: nothing is assumed about it any longer."""
        if self._assumed.pop(claim.key, None) is not None:
            self._count_claim(claim.key)

    # -- devices ------------------------------------------------------------------------------------------------------

    def use_of(self, pool: PoolId) -> PoolUse:
        return self._use.get(pool, NOTHING_IN_USE)

    def devices_in_use(self) -> list[DeviceId]:
        """All devices that some claim holds for itself."""
        return sorted((*pool, device) for pool, use in self._use.items() for device in use.exclusive)

    def capacity_in_use(self) -> dict[DeviceId, dict[str, str]]:
        """The consumed capacity of shared devices."""
        return {
            (*pool, device): {name: spell(nano, use.families[device, name]) for name, nano in consumed.items()}
            for pool, use in self._use.items()
            for device, consumed in use.capacity.items()
        }

    def holders(self) -> dict[DeviceId, list[str]]:
        """By device the claims that hold it, or share it."""
        holders: dict[DeviceId, list[str]] = {}
        for claim, devices in sorted(self._held.items()):
            for device in devices:
                holders.setdefault(device.id, []).append(claim)
        return holders

    # -- bookkeeping --------------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Follow what the watch has shown meanwhile."""
        keys = self._changes.read()
        if keys is None:
            keys = [*self._seen, *(claim.key for claim in self._objects.all(ResourceClaim))]
        for key in keys:
            namespace, _, name = key.rpartition("/")
            self._see(key, self._objects.get(ResourceClaim, name, namespace))

    def _see(self, key: str, claim: ResourceClaim | None) -> None:
        before = self._seen.pop(key, None)
        self._gone.pop(key, None)
        if claim is not None:
            self._seen[key] = claim
        else:
            self._gone[key] = None
            if len(self._gone) > _GONE_KEPT:
                del self._gone[next(iter(self._gone))]
        assumed = self._assumed.get(key)
        if assumed is not None and (claim is None or _is_at_least(claim, assumed)):
            del self._assumed[key]  # also if it came and went between two looks
        self._count_claim(key)
        for version in (before, claim):
            if version is not None:
                self._index(version, is_there=version is claim)
                self._count_pending_of(version)

    def _index(self, claim: ResourceClaim, *, is_there: bool) -> None:
        owner = claim.metadata.controller
        if owner is None or claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM) != "true":
            return
        if is_there:
            self._extended[owner.uid] = claim.key
        elif self._extended.get(owner.uid) == claim.key:
            del self._extended[owner.uid]

    def _current(self, key: str) -> ResourceClaim | None:
        self.refresh()
        return self._assumed.get(key) or self._seen.get(key)

    def _count_claim(self, key: str) -> None:
        claim = self._assumed.get(key) or self._seen.get(key)
        devices = self._held_by(claim.status.allocation) if claim is not None else ()
        if claim is not None and self._pending and key not in self._held:
            pending = f"pending {identity_of(claim)}"
            if devices and self._held.get(pending) == devices:  # in the same hands as before: no row need look again
                self._held[key] = self._held.pop(pending)
                return
        self._hold(key, devices)

    def _count_pending_of(self, claim: ResourceClaim) -> None:
        if self._pending and (identity := identity_of(claim)) in self._pending:
            self._count_pending(identity)

    def _count_pending(self, identity: str) -> None:
        """A claim that is known to be allocated counts once, also while it is still thought to be pending."""
        key = identity.partition(" ")[0]
        claim = self._assumed.get(key) or self._seen.get(key)
        is_known = claim is not None and identity_of(claim) == identity and claim.status.allocation is not None
        self._hold(f"pending {identity}", () if is_known else self._held_by(self._pending[identity]))

    def _held_by(self, allocation: AllocationResult | None) -> tuple[AllocatedDevice, ...]:
        """The devices that a claim holds. Requests with admin access hold none: they use devices beside their owner."""
        if allocation is None:
            return ()
        held = (device for device in allocation.devices.results if not device.admin_access)
        return tuple(held if self._shares else (msgspec.structs.replace(device, share_id=None) for device in held))

    def _hold(self, holder: str, devices: tuple[AllocatedDevice, ...]) -> None:
        before = self._held.get(holder, ())
        if before == devices:
            return
        if devices:
            self._held[holder] = devices
        else:
            del self._held[holder]
        for sign, counted in ((-1, before), (1, devices)):
            for device in counted:
                pool = (device.driver, device.pool)
                use = self._use.get(pool)
                if use is None:
                    use = self._use[pool] = PoolUse()
                use.count(device, sign)
                self.changes.record(pool)
        for pool in {(device.driver, device.pool) for device in before}:
            if self._use[pool].is_empty:
                del self._use[pool]


def resource_claim_names(pod: Pod) -> list[str]:
    """The claims that the pod names, and those that its status says were made for it, each once."""
    of_spec = (entry.resource_claim_name for entry in pod.spec.resource_claims)
    of_status = (status.resource_claim_name for status in pod.status.resource_claim_statuses)
    return list(dict.fromkeys(name for name in (*of_spec, *of_status) if name is not None))


def identity_of(claim: ResourceClaim) -> str:
    """A claim that is made anew under the same name is another one."""
    return f"{claim.key} {claim.metadata.uid}"


def _is_at_least(seen: ResourceClaim, written: ResourceClaim) -> bool:
    """Whether the watch has shown what was written, or something newer."""
    if seen.metadata.uid != written.metadata.uid:
        return True
    try:
        return int(seen.metadata.resource_version) >= int(written.metadata.resource_version)
    except ValueError:
        return seen.status == written.status  # a world without versions


def _count(counts: dict[str, int], name: str, sign: int) -> None:
    counts[name] = counts.get(name, 0) + sign
    if not counts[name]:
        del counts[name]
