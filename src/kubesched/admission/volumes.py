"""Claims on volumes and the volumes themselves."""

from __future__ import annotations

from kubesched.admission.limits import limit_claim
from kubesched.admission.metadata import metadata_of, name_of
from kubesched.admission.mistakes import Mistakes
from kubesched.admission.names import subdomain
from kubesched.admission.reading import fill, filled, mapping, quantities, sequence, text
from kubesched.admission.resources import check_amount
from kubesched.admission.rules import Reader, Rules
from kubesched.admission.selectors import check_node_selector, check_optional_selector
from kubesched.api.kinds import STORAGE_CLASSES, Object
from kubesched.api.quantity import parse_quantity
from kubesched.api.well_known import DEFAULT_STORAGE_CLASS, STORAGE_CLASS

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_MODES = ("Block", "Filesystem")
_RECLAIM = ("Delete", "Recycle", "Retain")
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


def _check_access_modes(spec: Object, where: str, mistakes: Mistakes) -> None:
    modes = sequence(spec, "accessModes")
    for mode in modes:
        mistakes.one_of(f"{where}.accessModes", mode, ACCESS_MODES)
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        mistakes.forbidden(f"{where}.accessModes", "may not use ReadWriteOncePod with other access modes")


def _check_volume_mode(spec: Object, where: str, mistakes: Mistakes) -> None:
    if spec.get("volumeMode") is not None:
        mistakes.one_of(f"{where}.volumeMode", text(spec, "volumeMode"), _MODES)
    if name := text(spec, "storageClassName"):
        mistakes.invalid_each(f"{where}.storageClassName", name, subdomain(name))


# -- claims -----------------------------------------------------------------------------------------------------------


def fill_claim_spec(spec: Object) -> None:
    fill(spec, "volumeMode", "Filesystem")


def check_claim_spec(spec: Object, where: str, mistakes: Mistakes) -> None:
    mistakes.not_empty(f"{where}.accessModes", sequence(spec, "accessModes"), "at least 1 access mode is required")
    check_optional_selector(spec, "selector", where, mistakes)
    _check_access_modes(spec, where, mistakes)
    amounts = quantities(mapping(spec, "resources"), "requests")
    if "storage" not in amounts:
        mistakes.required(f"{where}.resources[storage]")
    elif amounts["storage"].amount <= 0:
        shown = str(spec["resources"]["requests"]["storage"])
        mistakes.invalid(f"{where}.resources[storage]", shown, "must be greater than zero")
    _check_volume_mode(spec, where, mistakes)


def _fill_claim(claim: Object) -> None:
    fill_claim_spec(filled(claim, "spec"))


def choose_class(claim: Object, reader: Reader) -> None:
    """A claim that names no class gets the default one: of several the newest, then the first by name."""
    spec = claim["spec"]
    if spec.get("storageClassName") is not None:
        return
    if STORAGE_CLASS in mapping(metadata_of(claim), "annotations"):
        return
    marked = [each for each in reader.select(STORAGE_CLASSES) if _is_default(each)]
    marked.sort(key=name_of)
    marked.sort(key=lambda each: text(metadata_of(each), "creationTimestamp"), reverse=True)
    if marked:
        spec["storageClassName"] = name_of(marked[0])


def _admit_claim(claim: Object, reader: Reader) -> None:
    choose_class(claim, reader)
    limit_claim(claim, reader)


def _is_default(storage_class: Object) -> bool:
    return mapping(metadata_of(storage_class), "annotations").get(DEFAULT_STORAGE_CLASS) == "true"


def _check_claim(claim: Object, mistakes: Mistakes) -> None:
    check_claim_spec(claim["spec"], "spec", mistakes)


def _claim_stays(new: Object, old: Object, mistakes: Mistakes) -> None:
    spec, before = dict(new["spec"]), mapping(old, "spec")
    bound = mapping(old, "status").get("phase") == "Bound"
    if not text(before, "volumeName"):
        spec.pop("volumeName", None)  # set once, when the claim is bound
    if "storageClassName" not in before:
        spec.pop("storageClassName", None)  # a default class that came later
    if bound:
        _check_growth(spec, before, mistakes)
        spec["resources"] = before.get("resources", {})
        for key in ("volumeAttributesClassName",):
            spec.pop(key, None)
            if key in before:
                spec[key] = before[key]
    if spec != before:
        mistakes.forbidden("spec", _CLAIM_STAYS)


def _check_growth(spec: Object, before: Object, mistakes: Mistakes) -> None:
    where = "spec.resources.requests"
    new, old = (mapping(mapping(each, "resources"), "requests") for each in (spec, before))
    if "storage" in new and "storage" in old:
        small, large = (parse_quantity(each["storage"]) for each in (new, old))
        if large.exceeds(small):
            mistakes.forbidden(f"{where}.storage", "field can not be less than previous value")


# -- volumes ----------------------------------------------------------------------------------------------------------


def _fill_volume(volume: Object) -> None:
    spec = filled(volume, "spec")
    fill(spec, "persistentVolumeReclaimPolicy", "Retain")
    fill(spec, "volumeMode", "Filesystem")


def _sources(spec: Object) -> dict[str, Object]:
    """What backs the volume, by its kind: csi, nfs, local, ..."""
    return {key: mapping(spec, key) for key in spec if key not in _NOT_SOURCES}


def _check_volume(volume: Object, mistakes: Mistakes) -> None:
    spec = volume["spec"]
    mistakes.not_empty("spec.accessModes", sequence(spec, "accessModes"))
    _check_access_modes(spec, "spec", mistakes)
    capacity = quantities(spec, "capacity")
    if not capacity:
        mistakes.required("spec.capacity")
    elif set(capacity) != {"storage"}:
        mistakes.unsupported("spec.capacity", spec["capacity"], ("storage",))
    for name, amount in capacity.items():
        check_amount(name, amount, spec["capacity"][name], f"spec.capacity[{name}]", mistakes)
    policy = text(spec, "persistentVolumeReclaimPolicy")
    mistakes.one_of("spec.persistentVolumeReclaimPolicy", policy, _RECLAIM)
    _check_volume_affinity(spec, mistakes)
    sources = list(_sources(spec))
    mistakes.not_empty("spec", sources, "must specify a volume type")
    for key in sources[1:]:
        mistakes.forbidden(f"spec.{key}", "may not specify more than 1 volume type")
    _check_volume_mode(spec, "spec", mistakes)


def _check_volume_affinity(spec: Object, mistakes: Mistakes) -> None:
    affinity = spec.get("nodeAffinity")
    if affinity is not None:
        required = affinity.get("required")
        if required is None:
            mistakes.required("spec.nodeAffinity.required", "must specify required node constraints")
        else:
            check_node_selector(required, "spec.nodeAffinity.required", mistakes)
    elif "local" in spec:
        mistakes.required("spec.nodeAffinity", "Local volume requires node affinity")


def _volume_stays(new: Object, old: Object, mistakes: Mistakes) -> None:
    spec, before = new["spec"], mapping(old, "spec")
    if _sources(spec) != _sources(before):
        why = "spec.persistentvolumesource is immutable after creation"
        mistakes.forbidden("spec.persistentvolumesource", why)
    mistakes.immutable("volumeMode", spec.get("volumeMode"), before.get("volumeMode"))
    if "nodeAffinity" in before:
        mistakes.immutable("spec.nodeAffinity", spec.get("nodeAffinity"), before["nodeAffinity"])


CLAIM = Rules(
    defaults=_fill_claim,
    admit=_admit_claim,
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
