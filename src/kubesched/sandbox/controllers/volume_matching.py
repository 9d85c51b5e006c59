"""Which volume suits a claim: the smallest that is large enough, of the right class, mode and labels."""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.admission.selectors import compiled
from kubesched.api.kinds import Object
from kubesched.api.quantity import Quantity, parse_quantity

_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"


def class_of(obj: Object) -> str:
    """The storage class of a claim or volume; empty if it has none."""
    named = (obj["metadata"].get("annotations") or {}).get(_OLD_CLASS)
    return str(named if named is not None else obj["spec"].get("storageClassName") or "")


def request_of(claim: Object) -> Quantity:
    return parse_quantity(claim["spec"]["resources"]["requests"]["storage"])


def is_claimed_by(volume: Object, claim: Object) -> bool:
    """Whether the volume is promised to this claim, by name or by uid too."""
    reference, metadata = volume["spec"].get("claimRef") or {}, claim["metadata"]
    if (reference.get("namespace"), reference.get("name")) != (metadata["namespace"], metadata["name"]):
        return False
    return reference.get("uid") in (None, "", metadata["uid"])


def best_volume(claim: Object, volumes: Iterable[Object]) -> Object | None:
    """The smallest free volume that suits, the first by name among equals."""
    suitable = [volume for volume in volumes if "claimRef" not in volume["spec"] and _suits(volume, claim)]
    return min(suitable, key=lambda volume: (_capacity(volume).value(), volume["metadata"]["name"]), default=None)


def _capacity(volume: Object) -> Quantity:
    return parse_quantity(volume["spec"]["capacity"]["storage"])


def _suits(volume: Object, claim: Object) -> bool:
    wanted, offered = claim["spec"], volume["spec"]
    if wanted.get("volumeMode") != offered.get("volumeMode") or class_of(volume) != class_of(claim):
        return False
    if not set(wanted["accessModes"]) <= set(offered["accessModes"]):
        return False
    if request_of(claim).exceeds(_capacity(volume)):
        return False
    selector = wanted.get("selector")
    return selector is None or compiled(selector).matches(volume["metadata"].get("labels") or {})
