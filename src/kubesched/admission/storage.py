"""Storage: PersistentVolumes and claims on them, StorageClasses, VolumeAttachments and the objects of CSI drivers."""

from __future__ import annotations

from kubesched.admission import names
from kubesched.admission.limits import limit_claim
from kubesched.admission.reading import copy_field, mapping, metadata_of, name_of, quantities, sequence, text
from kubesched.admission.resources import check_amount
from kubesched.admission.rules import NEGATIVE, NOT_POSITIVE, Mistakes, Reader, Rules
from kubesched.admission.selectors import check_key, check_node_selector, check_optional_selector
from kubesched.api.api_error import forbidden
from kubesched.api.kinds import PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES, Object
from kubesched.api.quantity import Quantity, parse_quantity
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
_CLAIM_IS_IMMUTABLE = (
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
        mistakes.invalid_each(f"{where}.storageClassName", name, names.subdomain(name))


# -- claims -----------------------------------------------------------------------------------------------------------


CLAIM_DEFAULTS: Object = {"spec": {"volumeMode": "Filesystem"}}


def check_claim_spec(spec: Object, where: str, mistakes: Mistakes) -> None:
    mistakes.not_empty(f"{where}.accessModes", sequence(spec, "accessModes"), "at least 1 access mode is required")
    check_optional_selector(spec, "selector", where, mistakes)
    _check_access_modes(spec, where, mistakes)
    amounts = quantities(mapping(spec, "resources"), "requests")
    if "storage" not in amounts:
        mistakes.required(f"{where}.resources[storage]")
    elif amounts["storage"].amount <= 0:
        mistakes.invalid(f"{where}.resources[storage]", str(spec["resources"]["requests"]["storage"]), NOT_POSITIVE)
    _check_volume_mode(spec, where, mistakes)


def choose_class(claim: Object, reader: Reader) -> None:
    """A claim that names no class gets the default one: of several the newest, then the first by name."""
    spec = claim["spec"]
    if spec.get("storageClassName") is not None:
        return
    if STORAGE_CLASS in mapping(metadata_of(claim), "annotations"):
        return
    defaults = sorted(filter(_is_default, reader.select(STORAGE_CLASSES)), key=name_of)
    if defaults:
        newest = max(defaults, key=lambda storage_class: text(metadata_of(storage_class), "creationTimestamp"))
        spec["storageClassName"] = name_of(newest)


def _admit_claim(claim: Object, reader: Reader) -> None:
    choose_class(claim, reader)
    limit_claim(claim, reader)


def _is_default(storage_class: Object) -> bool:
    return mapping(metadata_of(storage_class), "annotations").get(DEFAULT_STORAGE_CLASS) == "true"


def _check_claim_update(new: Object, old: Object, mistakes: Mistakes) -> None:
    spec, before = dict(new["spec"]), mapping(old, "spec")
    if not text(before, "volumeName"):
        spec.pop("volumeName", None)  # set once, when the claim is bound
    if "storageClassName" not in before:
        spec.pop("storageClassName", None)  # a default class that came later
    if mapping(old, "status").get("phase") == "Bound":
        _check_growth(spec, before, mistakes)
        spec["resources"] = before.get("resources", {})
        copy_field(spec, before, "volumeAttributesClassName")
    if spec != before:
        mistakes.forbidden("spec", _CLAIM_IS_IMMUTABLE)


def _admit_growth(new: Object, old: Object, reader: Reader) -> None:
    """As the admission plugin PersistentVolumeClaimResize has it."""
    size, old_size = (_requested_size(claim["spec"]) for claim in (new, old))
    if size is None or old_size is None or not size.exceeds(old_size):
        return
    storage_class = reader.find(STORAGE_CLASSES, "", text(new["spec"], "storageClassName"))
    if storage_class is None or not storage_class.get("allowVolumeExpansion"):
        why = "only dynamically provisioned pvc can be resized"
        why = f"{why} and the storageclass that provisions the pvc must support resize"
        raise forbidden(PERSISTENT_VOLUME_CLAIMS, name_of(new), why)


def _check_growth(spec: Object, before: Object, mistakes: Mistakes) -> None:
    size, old_size = _requested_size(spec), _requested_size(before)
    if size is not None and old_size is not None and old_size.exceeds(size):
        mistakes.forbidden("spec.resources.requests.storage", "field can not be less than previous value")


def _requested_size(spec: Object) -> Quantity | None:
    return quantities(mapping(spec, "resources"), "requests").get("storage")


# -- volumes ----------------------------------------------------------------------------------------------------------


def _sources(spec: Object) -> dict[str, Object]:
    """The source of the volume, by its kind: csi, nfs, local, ..."""
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


def _check_volume_update(new: Object, old: Object, mistakes: Mistakes) -> None:
    spec, before = new["spec"], mapping(old, "spec")
    if _sources(spec) != _sources(before):
        mistakes.forbidden("spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation")
    mistakes.immutable("volumeMode", spec.get("volumeMode"), before.get("volumeMode"))
    if "nodeAffinity" in before:
        mistakes.immutable("spec.nodeAffinity", spec.get("nodeAffinity"), before["nodeAffinity"])


CLAIM = Rules(
    fills=CLAIM_DEFAULTS,
    admit=_admit_claim,
    check=lambda claim, mistakes: check_claim_spec(claim["spec"], "spec", mistakes),
    check_update=_check_claim_update,
    admit_update=_admit_growth,
    new_status=lambda _: {"phase": "Pending"},
)
VOLUME = Rules(
    fills={"spec": {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"}},
    check=_check_volume,
    check_update=_check_volume_update,
    new_status=lambda _: {"phase": "Pending"},
)


# -- classes ----------------------------------------------------------------------------------------------------------


_NODE_ID_LIMIT = 192


def _check_class(storage_class: Object, mistakes: Mistakes) -> None:
    mistakes.required_valid("provisioner", text(storage_class, "provisioner").lower(), names.label_key)
    for key in mapping(storage_class, "parameters"):
        if not key:
            mistakes.invalid("parameters", key, "field can not be empty.")
    mistakes.one_of("reclaimPolicy", text(storage_class, "reclaimPolicy"), ("Delete", "Retain"))
    mode = text(storage_class, "volumeBindingMode")
    mistakes.one_of("volumeBindingMode", mode, ("Immediate", "WaitForFirstConsumer"))
    for i, term in enumerate(sequence(storage_class, "allowedTopologies")):
        _check_topology(term, f"allowedTopologies[{i}]", mistakes)


def _check_topology(term: Object, where: str, mistakes: Mistakes) -> None:
    seen: set[str] = set()
    for i, expression in enumerate(sequence(term, "matchLabelExpressions")):
        field = f"{where}.matchLabelExpressions[{i}]"
        mistakes.not_empty(f"{field}.values", sequence(expression, "values"))
        check_key(expression, "key", field, mistakes)
        mistakes.unique(f"{field}.key", text(expression, "key"), seen)


# -- drivers ----------------------------------------------------------------------------------------------------------


def _check_csi_node(node: Object, mistakes: Mistakes) -> None:
    seen: set[str] = set()
    for i, driver in enumerate(sequence(node["spec"], "drivers")):
        field = f"spec.drivers[{i}]"
        name, node_id = text(driver, "name"), text(driver, "nodeID")
        _check_driver_name(name, f"{field}.name", mistakes)
        mistakes.unique(f"{field}.name", name, seen)
        if not node_id:
            mistakes.required(f"{field}.nodeID")
        elif len(node_id) > _NODE_ID_LIMIT:
            mistakes.invalid(f"{field}.nodeID", node_id, f"must be {_NODE_ID_LIMIT} characters or less")
        mistakes.not_negative(f"{field}.allocatable.count", mapping(driver, "allocatable").get("count"))
        for key in sequence(driver, "topologyKeys"):
            mistakes.invalid_each(field, key, names.label_key(key))


def _check_driver_name(name: str, field: str, mistakes: Mistakes) -> None:
    if not name:
        mistakes.required(field)
    elif len(name) > 63:
        mistakes.too_long(field, 63)
    else:
        mistakes.invalid_each(field, name, names.subdomain(name.lower()))


def _check_csi_node_update(new: Object, old: Object, mistakes: Mistakes) -> None:
    """Drivers come and go; of a driver that stays only the limit of volumes may change."""
    old_drivers = {driver.get("name"): driver for driver in sequence(mapping(old, "spec"), "drivers")}
    for driver in sequence(new["spec"], "drivers"):
        old_driver = old_drivers.get(driver.get("name"))
        if old_driver is not None and _without_count(driver) != _without_count(old_driver):
            mistakes.immutable("spec.drivers", driver, old_driver)


def _without_count(driver: Object) -> Object:
    return {key: value for key, value in driver.items() if key != "allocatable"}


_DRIVER_DEFAULTS: Object = {
    "attachRequired": True,
    **dict.fromkeys(("podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"), False),
    "fsGroupPolicy": "ReadWriteOnceWithFSType",
}


def _fill_driver_modes(driver: Object) -> None:
    if not driver["spec"].get("volumeLifecycleModes"):
        driver["spec"]["volumeLifecycleModes"] = ["Persistent"]


def _check_driver(driver: Object, mistakes: Mistakes) -> None:
    spec = driver["spec"]
    _check_driver_name(name_of(driver), "metadata.name", mistakes)
    policy = text(spec, "fsGroupPolicy")
    mistakes.one_of("spec.fsGroupPolicy", policy, ("File", "None", "ReadWriteOnceWithFSType"))
    for mode in sequence(spec, "volumeLifecycleModes"):
        mistakes.one_of("spec.volumeLifecycleModes", mode, ("Ephemeral", "Persistent"))


def _check_driver_update(new: Object, old: Object, mistakes: Mistakes) -> None:
    before = mapping(old, "spec")
    # "attachedRequired" is what an API server calls the field in its message.
    for key, field in (("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")):
        mistakes.immutable(f"spec.{field}", new["spec"].get(key), before.get(key))


def _check_capacity(capacity: Object, mistakes: Mistakes) -> None:
    mistakes.required_valid("storageClassName", text(capacity, "storageClassName"), names.subdomain)
    for key in ("capacity", "maximumVolumeSize"):
        if capacity.get(key) is not None and parse_quantity(capacity[key]).amount < 0:
            mistakes.invalid(key, str(capacity[key]), NEGATIVE)
    check_optional_selector(capacity, "nodeTopology", "", mistakes)


# -- attachments ------------------------------------------------------------------------------------------------------


def _check_attachment(attachment: Object, mistakes: Mistakes) -> None:
    spec = attachment["spec"]
    _check_driver_name(text(spec, "attacher"), "spec.attacher", mistakes)
    source = mapping(spec, "source")
    inline = source.get("inlineVolumeSpec")
    volume = source.get("persistentVolumeName")
    why = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if inline is None and volume is None:
        mistakes.required("spec.source", why)
    elif inline is not None and volume is not None:
        mistakes.forbidden("spec.source", why)
    elif inline is None and not volume:
        mistakes.required("spec.source.persistentVolumeName", "must specify non empty persistentVolumeName")
    node = text(spec, "nodeName")
    mistakes.invalid_each("spec.nodeName", node, names.subdomain(node))


CLASS = Rules(
    fills={"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
    check=_check_class,
    immutable=("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"),
)
CSI_NODE = Rules(fills={"spec": {}}, check=_check_csi_node, check_update=_check_csi_node_update)
CSI_DRIVER = Rules(
    fills={"spec": _DRIVER_DEFAULTS},
    defaults=_fill_driver_modes,
    check=_check_driver,
    check_update=_check_driver_update,
)
CSI_CAPACITY = Rules(check=_check_capacity, immutable=("nodeTopology", "storageClassName"))
ATTACHMENT = Rules(
    fills={"spec": {}}, check=_check_attachment, immutable=("spec",), new_status=lambda _: {"attached": False}
)
