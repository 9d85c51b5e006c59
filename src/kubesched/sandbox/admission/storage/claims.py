"""Claims on volumes and the volumes themselves."""

from __future__ import annotations

from kubesched.api.kinds import STORAGE_CLASSES, Object
from kubesched.sandbox.admission.faults import Faults
from kubesched.sandbox.admission.metadata import metadata_of, name_of
from kubesched.sandbox.admission.names import subdomain
from kubesched.sandbox.admission.reading import (
    fill,
    mapping,
    optional_mapping,
    quantities,
    quantity,
    string_map,
    text,
    texts,
)
from kubesched.sandbox.admission.resources import check_amount
from kubesched.sandbox.admission.rules import Reader, Rules
from kubesched.sandbox.admission.selectors import check_node_selector, check_optional_selector

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_MODES = ("Block", "Filesystem")
_RECLAIM = ("Delete", "Recycle", "Retain")
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
_NOT_SOURCES = frozenset(
    (
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    )
)
_CLAIM_STAYS = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)


def _spec(obj: Object) -> Object:
    if obj.get("spec") is None:
        obj["spec"] = {}
    return mapping(obj, "spec", "")


def _check_access_modes(spec: Object, where: str, faults: Faults) -> None:
    modes = texts(spec, "accessModes", where)
    for mode in modes:
        if mode not in ACCESS_MODES:
            faults.unsupported(f"{where}.accessModes", mode, ACCESS_MODES)
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        faults.forbidden(f"{where}.accessModes", "may not use ReadWriteOncePod with other access modes")


def _check_volume_mode(spec: Object, where: str, faults: Faults) -> None:
    if spec.get("volumeMode") is not None:
        faults.one_of(f"{where}.volumeMode", text(spec, "volumeMode", where), _MODES)
    if name := text(spec, "storageClassName", where):
        faults.invalid_each(f"{where}.storageClassName", name, subdomain(name))


# -- claims -----------------------------------------------------------------------------------------------------------


def fill_claim_spec(spec: Object) -> None:
    fill(spec, "volumeMode", "Filesystem")


def check_claim_spec(spec: Object, where: str, faults: Faults) -> None:
    if not texts(spec, "accessModes", where):
        faults.required(f"{where}.accessModes", "at least 1 access mode is required")
    check_optional_selector(spec, "selector", where, faults)
    _check_access_modes(spec, where, faults)
    amounts = quantities(mapping(spec, "resources", where), "requests", f"{where}.resources")
    if "storage" not in amounts:
        faults.required(f"{where}.resources[storage]")
    elif amounts["storage"].amount <= 0:
        shown = str(spec["resources"]["requests"]["storage"])
        faults.invalid(f"{where}.resources[storage]", shown, "must be greater than zero")
    _check_volume_mode(spec, where, faults)


def _fill_claim(claim: Object) -> None:
    fill_claim_spec(_spec(claim))


def _choose_class(claim: Object, reader: Reader) -> None:
    """A claim that names no class gets the default one: of several the newest, then the first by name."""
    spec = claim["spec"]
    if spec.get("storageClassName") is not None:
        return
    if _OLD_CLASS in string_map(metadata_of(claim), "annotations", "metadata"):
        return
    marked = [each for each in reader.select(STORAGE_CLASSES) if _is_default(each)]
    marked.sort(key=name_of)
    marked.sort(key=lambda each: text(metadata_of(each), "creationTimestamp", ""), reverse=True)
    if marked:
        spec["storageClassName"] = name_of(marked[0])


def _is_default(storage_class: Object) -> bool:
    return string_map(metadata_of(storage_class), "annotations", "metadata").get(_DEFAULT_CLASS) == "true"


def _check_claim(claim: Object, faults: Faults) -> None:
    check_claim_spec(claim["spec"], "spec", faults)


def _claim_stays(new: Object, old: Object, faults: Faults) -> None:
    spec, before = dict(new["spec"]), mapping(old, "spec", "")
    bound = mapping(old, "status", "").get("phase") == "Bound"
    if not text(before, "volumeName", "spec"):
        spec.pop("volumeName", None)  # set once, by whoever binds the claim
    if "storageClassName" not in before:
        spec.pop("storageClassName", None)  # a default class that came later
    if bound:
        _check_growth(spec, before, faults)
        spec["resources"] = before.get("resources", {})
        for key in ("volumeAttributesClassName",):
            spec.pop(key, None)
            if key in before:
                spec[key] = before[key]
    if spec != before:
        faults.forbidden("spec", _CLAIM_STAYS)


def _check_growth(spec: Object, before: Object, faults: Faults) -> None:
    where = "spec.resources.requests"
    new, old = (mapping(mapping(each, "resources", "spec"), "requests", where) for each in (spec, before))
    if "storage" in new and "storage" in old:
        small, large = (quantity(each["storage"], where) for each in (new, old))
        if large.exceeds(small):
            faults.forbidden(f"{where}.storage", "field can not be less than previous value")


# -- volumes ----------------------------------------------------------------------------------------------------------


def _fill_volume(volume: Object) -> None:
    spec = _spec(volume)
    fill(spec, "persistentVolumeReclaimPolicy", "Retain")
    fill(spec, "volumeMode", "Filesystem")


def _sources(spec: Object) -> dict[str, Object]:
    """What backs the volume, by its kind: csi, nfs, local, ..."""
    return {key: mapping(spec, key, "spec") for key in spec if key not in _NOT_SOURCES}


def _check_volume(volume: Object, faults: Faults) -> None:
    spec = volume["spec"]
    if not texts(spec, "accessModes", "spec"):
        faults.required("spec.accessModes")
    _check_access_modes(spec, "spec", faults)
    capacity = quantities(spec, "capacity", "spec")
    if not capacity:
        faults.required("spec.capacity")
    elif set(capacity) != {"storage"}:
        faults.unsupported("spec.capacity", spec["capacity"], ("storage",))
    for name, amount in capacity.items():
        check_amount(name, amount, spec["capacity"][name], f"spec.capacity[{name}]", faults)
    policy = text(spec, "persistentVolumeReclaimPolicy", "spec")
    faults.one_of("spec.persistentVolumeReclaimPolicy", policy, _RECLAIM)
    _check_volume_affinity(spec, faults)
    sources = list(_sources(spec))
    if not sources:
        faults.required("spec", "must specify a volume type")
    for key in sources[1:]:
        faults.forbidden(f"spec.{key}", "may not specify more than 1 volume type")
    _check_volume_mode(spec, "spec", faults)
    mapping(spec, "claimRef", "spec")


def _check_volume_affinity(spec: Object, faults: Faults) -> None:
    affinity = optional_mapping(spec, "nodeAffinity", "spec")
    if affinity is not None:
        required = optional_mapping(affinity, "required", "spec.nodeAffinity")
        if required is None:
            faults.required("spec.nodeAffinity.required", "must specify required node constraints")
        else:
            check_node_selector(required, "spec.nodeAffinity.required", faults)
    elif "local" in spec:
        faults.required("spec.nodeAffinity", "Local volume requires node affinity")


def _volume_stays(new: Object, old: Object, faults: Faults) -> None:
    spec, before = new["spec"], mapping(old, "spec", "")
    if _sources(spec) != _sources(before):
        why = "spec.persistentvolumesource is immutable after creation"
        faults.forbidden("spec.persistentvolumesource", why)
    faults.immutable("volumeMode", spec.get("volumeMode"), before.get("volumeMode"))
    if "nodeAffinity" in before:
        faults.immutable("spec.nodeAffinity", spec.get("nodeAffinity"), before["nodeAffinity"])


CLAIM = Rules(
    defaults=_fill_claim,
    admit=_choose_class,
    check=_check_claim,
    check_update=_claim_stays,
    new_status=lambda _: {"phase": "Pending"},
)
VOLUME = Rules(
    defaults=_fill_volume,
    check=_check_volume,
    check_update=_volume_stays,
    new_status=lambda _: {"phase": "Pending"},
)
