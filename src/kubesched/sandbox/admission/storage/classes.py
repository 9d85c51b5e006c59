"""Storage classes, and what CSI drivers say of themselves and their volumes."""

from __future__ import annotations

from kubesched.api.kinds import Object
from kubesched.sandbox.admission import names
from kubesched.sandbox.admission.faults import Faults
from kubesched.sandbox.admission.metadata import name_of
from kubesched.sandbox.admission.reading import (
    fill,
    flag,
    integer,
    mapping,
    optional_mapping,
    quantity,
    records,
    string_map,
    text,
    texts,
)
from kubesched.sandbox.admission.rules import Rules
from kubesched.sandbox.admission.selectors import check_key, check_optional_selector

_NODE_ID_LIMIT = 192
_DRIVER_FLAGS = ("attachRequired", "podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount")


def _fill_class(storage_class: Object) -> None:
    fill(storage_class, "reclaimPolicy", "Delete")
    fill(storage_class, "volumeBindingMode", "Immediate")


def _check_class(storage_class: Object, faults: Faults) -> None:
    if not text(storage_class, "provisioner", ""):
        faults.required("provisioner")
    else:
        provisioner = storage_class["provisioner"].lower()
        faults.invalid_each("provisioner", provisioner, names.label_key(provisioner))
    for key in string_map(storage_class, "parameters", ""):
        if not key:
            faults.invalid("parameters", key, "field can not be empty.")
    faults.one_of("reclaimPolicy", text(storage_class, "reclaimPolicy", ""), ("Delete", "Retain"))
    mode = text(storage_class, "volumeBindingMode", "")
    faults.one_of("volumeBindingMode", mode, ("Immediate", "WaitForFirstConsumer"))
    for i, term in enumerate(records(storage_class, "allowedTopologies", "")):
        _check_topology(term, f"allowedTopologies[{i}]", faults)
    flag(storage_class, "allowVolumeExpansion", "")


def _check_topology(term: Object, where: str, faults: Faults) -> None:
    seen: set[str] = set()
    for i, expression in enumerate(records(term, "matchLabelExpressions", where)):
        field = f"{where}.matchLabelExpressions[{i}]"
        if not texts(expression, "values", field):
            faults.required(f"{field}.values")
        check_key(expression, "key", field, faults)
        key = text(expression, "key", field)
        if key in seen:
            faults.duplicate(f"{field}.key", key)
        seen.add(key)


def _class_stays(new: Object, old: Object, faults: Faults) -> None:
    for key in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
        faults.immutable(key, new.get(key), old.get(key))


# -- drivers ----------------------------------------------------------------------------------------------------------


def _fill_spec(obj: Object) -> None:
    fill(obj, "spec", {})
    mapping(obj, "spec", "")


def _check_csi_node(node: Object, faults: Faults) -> None:
    seen: set[str] = set()
    for i, driver in enumerate(records(node["spec"], "drivers", "spec")):
        field = f"spec.drivers[{i}]"
        name, node_id = text(driver, "name", field), text(driver, "nodeID", field)
        _check_driver_name(name, f"{field}.name", faults)
        if name in seen:
            faults.duplicate(f"{field}.name", name)
        seen.add(name)
        if not node_id:
            faults.required(f"{field}.nodeID")
        elif len(node_id) > _NODE_ID_LIMIT:
            faults.invalid(f"{field}.nodeID", node_id, f"must be {_NODE_ID_LIMIT} characters or less")
        count = integer(mapping(driver, "allocatable", field), "count", field)
        faults.not_negative(f"{field}.allocatable.count", count)
        for key in texts(driver, "topologyKeys", field):
            faults.invalid_each(field, key, names.label_key(key))


def _check_driver_name(name: str, field: str, faults: Faults) -> None:
    if not name:
        faults.required(field)
    elif len(name) > 63:
        faults.too_long(field, 63)
    else:
        faults.invalid_each(field, name, names.subdomain(name.lower()))


def _csi_node_stays(new: Object, old: Object, faults: Faults) -> None:
    """A driver may come, go, and change how much it can attach, and no more."""
    before = {each.get("name"): each for each in records(mapping(old, "spec", ""), "drivers", "spec")}
    for driver in records(new["spec"], "drivers", "spec"):
        earlier = before.get(driver.get("name"))
        if earlier is not None and _uncounted(driver) != _uncounted(earlier):
            faults.immutable("spec.drivers", driver, earlier)


def _uncounted(driver: Object) -> Object:
    return {key: value for key, value in driver.items() if key != "allocatable"}


def _fill_driver(driver: Object) -> None:
    _fill_spec(driver)
    spec = driver["spec"]
    fill(spec, "attachRequired", True)
    for key in _DRIVER_FLAGS[1:]:
        fill(spec, key, False)
    fill(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType")
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def _check_driver(driver: Object, faults: Faults) -> None:
    spec = driver["spec"]
    _check_driver_name(name_of(driver), "metadata.name", faults)
    for key in _DRIVER_FLAGS:
        flag(spec, key, "spec")
    policy = text(spec, "fsGroupPolicy", "spec")
    faults.one_of("spec.fsGroupPolicy", policy, ("File", "None", "ReadWriteOnceWithFSType"))
    for mode in texts(spec, "volumeLifecycleModes", "spec"):
        faults.one_of("spec.volumeLifecycleModes", mode, ("Ephemeral", "Persistent"))


def _driver_stays(new: Object, old: Object, faults: Faults) -> None:
    before = mapping(old, "spec", "")
    for key, told in (("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")):
        faults.immutable(f"spec.{told}", new["spec"].get(key), before.get(key))


def _check_capacity(capacity: Object, faults: Faults) -> None:
    name = text(capacity, "storageClassName", "")
    if not name:
        faults.required("storageClassName")
    else:
        faults.invalid_each("storageClassName", name, names.subdomain(name))
    for key in ("capacity", "maximumVolumeSize"):
        if capacity.get(key) is not None and quantity(capacity[key], key).amount < 0:
            faults.invalid(key, str(capacity[key]), "must be greater than or equal to 0")
    check_optional_selector(capacity, "nodeTopology", "", faults)


def _capacity_stays(new: Object, old: Object, faults: Faults) -> None:
    for key in ("nodeTopology", "storageClassName"):
        faults.immutable(key, new.get(key), old.get(key))


# -- attachments ------------------------------------------------------------------------------------------------------


def _check_attachment(attachment: Object, faults: Faults) -> None:
    spec = attachment["spec"]
    _check_driver_name(text(spec, "attacher", "spec"), "spec.attacher", faults)
    source = mapping(spec, "source", "spec")
    inline = optional_mapping(source, "inlineVolumeSpec", "spec.source")
    volume = source.get("persistentVolumeName")
    why = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if inline is None and volume is None:
        faults.required("spec.source", why)
    elif inline is not None and volume is not None:
        faults.forbidden("spec.source", why)
    elif inline is None and not text(source, "persistentVolumeName", "spec.source"):
        faults.required("spec.source.persistentVolumeName", "must specify non empty persistentVolumeName")
    node = text(spec, "nodeName", "spec")
    faults.invalid_each("spec.nodeName", node, names.subdomain(node))


def _spec_stays(new: Object, old: Object, faults: Faults) -> None:
    faults.immutable("spec", new["spec"], old.get("spec"))


CLASS = Rules(defaults=_fill_class, check=_check_class, check_update=_class_stays)
CSI_NODE = Rules(defaults=_fill_spec, check=_check_csi_node, check_update=_csi_node_stays)
CSI_DRIVER = Rules(defaults=_fill_driver, check=_check_driver, check_update=_driver_stays)
CSI_CAPACITY = Rules(check=_check_capacity, check_update=_capacity_stays)
ATTACHMENT = Rules(
    defaults=_fill_spec,
    check=_check_attachment,
    check_update=_spec_stays,
    new_status=lambda _: {"attached": False},
)
