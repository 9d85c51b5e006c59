"""Free volumes: by class and by where they can be reached, the smallest first."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from functools import cached_property
from itertools import count
from operator import attrgetter
from typing import Generic, TypeVar

from kubesched.api.meta import KubeObject
from kubesched.api.quantity import QuantityText, parse_quantity
from kubesched.api.selectors import Requirement, compile_selector
from kubesched.api.storage import PersistentVolume, PersistentVolumeClaim
from kubesched.plugins.shared.volume_claims import class_of
from kubesched.plugins.volume_binding.reach import Reach, only_label_values, reach_of
from kubesched.state.objects import ObjectStore

K = TypeVar("K", bound=KubeObject)


class AssumedObjects(Generic[K]):
    """Objects of one kind with assumed changes laid over them. The store itself stays what the watch said."""

    def __init__(self, kind: type[K], objects: ObjectStore, on_change: Callable[[str], object] | None = None) -> None:
        self._kind = kind
        self._objects = objects
        self._assumed: dict[str, K] = {}
        self._seen = 0
        self._on_change = on_change
        """Called with the name of an object when something is assumed of it, or no longer is."""

    def get(self, name: str, namespace: str = "") -> K | None:
        """The object as assumed, or else as last seen; None if it does not exist."""
        stored = self._objects.get(self._kind, name, namespace)
        return None if stored is None else self.current(stored)

    def current(self, stored: K) -> K:
        """The assumed version of a stored object, unless the store has a newer one."""
        self.expire()
        return self._assumed.get(stored.key, stored)

    def assume(self, obj: K) -> None:
        self._assumed[obj.key] = obj
        self._notify(obj)

    def restore(self, obj: K) -> None:
        """Take an assumption back, if it is still the one that was made."""
        if self._assumed.get(obj.key) is obj:
            del self._assumed[obj.key]
            self._notify(obj)

    def expire(self) -> None:
        """Drop what the watch has overtaken."""
        version = self._objects.version(self._kind)
        if version == self._seen:
            return
        self._seen = version
        for key, assumed in list(self._assumed.items()):
            stored = self._objects.get(self._kind, assumed.name, assumed.namespace)
            if stored is None or stored.metadata.resource_version != assumed.metadata.resource_version:
                del self._assumed[key]
                self._notify(assumed)

    def _notify(self, obj: K) -> None:
        if self._on_change is not None:
            self._on_change(obj.name)


_FILESYSTEM = "Filesystem"
_STORAGE = "storage"
_ORDER = attrgetter("order")


class Offer:
    """A volume that may be bound to a claim."""

    def __init__(self, volume: PersistentVolume, serial: int) -> None:
        spec = volume.spec
        self.volume = volume
        self.serial = serial
        """A number of its own."""
        self.order = (nano_bytes(spec.capacity), volume.name)
        """Sorts the smallest first, those of one size by name."""
        self.mode = spec.volume_mode or _FILESYSTEM
        self.attributes_class = spec.volume_attributes_class_name or ""
        self.access_modes = frozenset(spec.access_modes)

    @cached_property
    def reach(self) -> Reach | None:
        return reach_of(self.volume)

    @cached_property
    def listed(self) -> Requirement | None:
        """The label values that the reach comes down to, if it does."""
        return only_label_values(self.reach)


class ClaimRequest:
    """What a claim asks for."""

    def __init__(self, claim: PersistentVolumeClaim) -> None:
        spec = claim.spec
        self.claim = claim
        self.class_name = class_of(claim)
        self.size = nano_bytes(spec.resources.requests)
        self._mode = spec.volume_mode or _FILESYSTEM
        self._attributes_class = spec.volume_attributes_class_name or ""
        self._access_modes = frozenset(spec.access_modes)
        self._selector = None if spec.selector is None else compile_selector(spec.selector)

    def may_have(self, offer: Offer) -> bool:
        """Whether the volume is large enough and of the right kind: all that counts for one reserved for the claim."""
        return (
            offer.order[0] >= self.size
            and offer.mode == self._mode
            and offer.attributes_class == self._attributes_class
        )

    def picks(self, offer: Offer) -> bool:
        """Whether a volume that is free is what the claim looks for."""
        return (
            self.may_have(offer)
            and self._access_modes <= offer.access_modes
            and (self._selector is None or self._selector.matches(offer.volume.metadata.labels))
        )

    def first(self, offers: list[Offer], how_many: int) -> list[Offer]:
        """The smallest of some sorted offers that the claim could take."""
        matching: list[Offer] = []
        for offer in offers:
            if self.picks(offer):
                matching.append(offer)
                if len(matching) == how_many:
                    break
        return matching


class FreeVolumes:
    """The free volumes of one class, sorted by size."""

    def __init__(self) -> None:
        self.by_label: dict[str, dict[str, list[Offer]]] = {}
        """Offers for nodes with one of some values of one label: label -> value -> offers."""
        self.others: list[Offer] = []

    def put(self, offer: Offer) -> None:
        if offer.listed is None:
            insort(self.others, offer, key=_ORDER)
            return
        by_value = self.by_label.setdefault(offer.listed.key, {})
        for value in offer.listed.values:
            insort(by_value.setdefault(value, []), offer, key=_ORDER)

    def take(self, offer: Offer) -> None:
        if offer.listed is None:
            self.others.remove(offer)
            return
        by_value = self.by_label[offer.listed.key]
        for value in offer.listed.values:
            by_value[value].remove(offer)
            if not by_value[value]:
                del by_value[value]


class VolumeOffers:
    """All volumes that are free or reserved for a claim, kept in step with the watch and with what is assumed."""

    def __init__(self, objects: ObjectStore) -> None:
        self.touched: set[str] = set()
        """Names of volumes of which something is newly assumed, or no longer is."""
        self._objects = objects
        self._serials = count()
        self._version = -1
        self._seen: dict[str, PersistentVolume] = {}
        self._offers: dict[str, Offer] = {}
        self._by_serial: dict[int, Offer] = {}
        self._free_volumes: dict[str, FreeVolumes] = {}
        self._reserved: dict[str, list[Offer]] = {}

    def refresh(self, assumed: AssumedObjects[PersistentVolume]) -> None:
        assumed.expire()
        for name in self.touched:
            self._replace(name, assumed.get(name))
        self.touched.clear()
        version = self._objects.version(PersistentVolume)
        if version != self._version:
            self._version = version
            self._follow_watch(assumed)

    def volume(self, serial: int) -> PersistentVolume:
        """The volume behind an offer."""
        return self._by_serial[serial].volume

    def free_volumes(self, request: ClaimRequest) -> FreeVolumes:
        """The free volumes of the class that is asked for."""
        return self._free_volumes.get(request.class_name) or FreeVolumes()

    def reserved_for(self, request: ClaimRequest) -> list[Offer]:
        """Volumes of the class that name the claim as theirs, and suit it."""
        return [
            offer
            for offer in self._reserved.get(request.claim.key, ())
            if (reference := offer.volume.spec.claim_ref) is not None
            and reference.uid in ("", request.claim.metadata.uid)
            and class_of(offer.volume) == request.class_name
            and request.may_have(offer)
        ]

    def _follow_watch(self, assumed: AssumedObjects[PersistentVolume]) -> None:
        seen = self._seen
        current = {volume.metadata.name: volume for volume in self._objects.all(PersistentVolume)}
        changed = [name for name, volume in current.items() if seen.get(name) is not volume]
        for name in changed:
            self._replace(name, assumed.current(current[name]))
        if len(self._offers) > len(current):
            for name in seen.keys() - current.keys():
                self._replace(name, None)
        self._seen = current

    def _replace(self, name: str, volume: PersistentVolume | None) -> None:
        old = self._offers.pop(name, None)
        if old is not None:
            del self._by_serial[old.serial]
            self._withdraw(old)
        if volume is not None:
            offer = self._offers[name] = Offer(volume, next(self._serials))
            self._by_serial[offer.serial] = offer
            self._make(offer)

    def _make(self, offer: Offer) -> None:
        reference = offer.volume.spec.claim_ref
        if reference is not None and not offer.volume.metadata.deletion_timestamp:
            reserved = self._reserved.setdefault(f"{reference.namespace}/{reference.name}", [])
            insort(reserved, offer, key=_ORDER)
        elif _is_free(offer.volume):
            self._free_volumes.setdefault(class_of(offer.volume), FreeVolumes()).put(offer)

    def _withdraw(self, offer: Offer) -> None:
        reference = offer.volume.spec.claim_ref
        if reference is not None and not offer.volume.metadata.deletion_timestamp:
            key = f"{reference.namespace}/{reference.name}"
            self._reserved[key].remove(offer)
            if not self._reserved[key]:
                del self._reserved[key]
        elif _is_free(offer.volume):
            self._free_volumes[class_of(offer.volume)].take(offer)


def nano_bytes(amounts: dict[str, QuantityText]) -> int:
    """An amount of storage as one exact whole number, so that amounts compare as numbers do."""
    quantity = parse_quantity(amounts.get(_STORAGE, 0))
    return int(quantity.amount * 10 ** (quantity.scale + 9))


def _is_free(volume: PersistentVolume) -> bool:
    is_going = volume.metadata.deletion_timestamp != ""
    return volume.spec.claim_ref is None and volume.status.phase == "Available" and not is_going
