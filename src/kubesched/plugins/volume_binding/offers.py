"""Volumes that are there for the taking: by class, smallest first, with all that a claim may ask for at hand."""

from __future__ import annotations

from bisect import bisect_left
from itertools import count

from kubesched.api.quantity import parse_quantity
from kubesched.api.selectors import compile_selector
from kubesched.api.storage import PersistentVolume, PersistentVolumeClaim
from kubesched.plugins.volume_binding.assumed import Assumed
from kubesched.plugins.volume_binding.reach import only_label_values, reach_of
from kubesched.plugins.volume_claims import class_of
from kubesched.state.objects import ObjectStore

_FILESYSTEM = "Filesystem"
_STORAGE = "storage"


def nano_bytes(spelled: dict[str, str | int | float]) -> int:
    """An amount of storage as one exact whole number, so that amounts compare as numbers do."""
    quantity = parse_quantity(spelled.get(_STORAGE, 0))
    return int(quantity.amount * 10 ** (quantity.scale + 9))


class Offer:
    """A volume that may be bound to a claim."""

    __slots__ = ("access_modes", "attributes_class", "listed", "mode", "order", "reach", "serial", "volume")

    def __init__(self, volume: PersistentVolume, serial: int) -> None:
        spec = volume.spec
        self.volume = volume
        self.serial = serial
        """A number of its own."""
        self.order = (nano_bytes(spec.capacity), volume.name)
        self.mode = spec.volume_mode or _FILESYSTEM
        self.attributes_class = spec.volume_attributes_class_name or ""
        self.access_modes = frozenset(spec.access_modes)
        self.reach = reach_of(volume)
        self.listed = only_label_values(self.reach)

    def suits(self, claim: PersistentVolumeClaim) -> bool:
        """Whether the volume is of the kind that the claim asks for, and large enough."""
        return (
            self.order[0] >= nano_bytes(claim.spec.resources.requests)
            and self.mode == (claim.spec.volume_mode or _FILESYSTEM)
            and self.attributes_class == (claim.spec.volume_attributes_class_name or "")
        )


class Offers:
    """All volumes that are on offer or promised to a claim, kept in step with the watch and with what is assumed."""

    def __init__(self, objects: ObjectStore, assumed: Assumed[PersistentVolume]) -> None:
        self._objects = objects
        self._assumed = assumed
        self._serials = count()
        self._seen: tuple[int, int] = (-1, -1)
        self._offers: dict[str, Offer] = {}
        self._free: dict[str, list[Offer]] = {}
        self._promised: dict[str, list[Offer]] = {}
        self._by_serial: dict[int, Offer] = {}

    def refresh(self) -> None:
        version = (self._objects.version(PersistentVolume), self._assumed.changes)
        if version == self._seen:
            return
        offers: dict[str, Offer] = {}
        changed = False
        for stored in self._objects.all(PersistentVolume):
            volume = self._assumed.current(stored)
            offer = self._offers.get(volume.name)
            if offer is None or offer.volume is not volume:
                offer = Offer(volume, next(self._serials))
                changed = True
            offers[volume.name] = offer
        self._seen = (self._objects.version(PersistentVolume), self._assumed.changes)
        if changed or len(offers) != len(self._offers):
            self._offers = offers
            self._sort()

    def volume(self, serial: int) -> PersistentVolume:
        """The volume behind an offer."""
        return self._by_serial[serial].volume

    def promised_to(self, claim: PersistentVolumeClaim) -> list[Offer]:
        """Volumes of the claim's class that name it as theirs, and suit it."""
        return [
            offer
            for offer in self._promised.get(claim.key, ())
            if (reference := offer.volume.spec.claim_ref) is not None
            and reference.uid in ("", claim.metadata.uid)
            and class_of(offer.volume) == class_of(claim)
            and offer.suits(claim)
        ]

    def for_claim(self, claim: PersistentVolumeClaim) -> list[Offer]:
        """Free volumes that suit the claim, the smallest first; those of equal size by name."""
        free = self._free.get(class_of(claim), [])
        spec = claim.spec
        mode, attributes_class = spec.volume_mode or _FILESYSTEM, spec.volume_attributes_class_name or ""
        access_modes = frozenset(spec.access_modes)
        large_enough = bisect_left(free, (nano_bytes(spec.resources.requests), ""), key=lambda offer: offer.order)
        suitable = [
            offer
            for offer in free[large_enough:]
            if offer.mode == mode and offer.attributes_class == attributes_class and access_modes <= offer.access_modes
        ]
        if spec.selector is None:
            return suitable
        selector = compile_selector(spec.selector)
        return [offer for offer in suitable if selector.matches(offer.volume.metadata.labels)]

    def _sort(self) -> None:
        self._free, self._promised = {}, {}
        self._by_serial = {offer.serial: offer for offer in self._offers.values()}
        for offer in sorted(self._offers.values(), key=lambda offer: offer.order):
            volume = offer.volume
            if volume.metadata.deletion_timestamp:
                continue
            reference = volume.spec.claim_ref
            if reference is not None:
                self._promised.setdefault(f"{reference.namespace}/{reference.name}", []).append(offer)
            elif volume.status.phase == "Available":
                self._free.setdefault(class_of(volume), []).append(offer)
