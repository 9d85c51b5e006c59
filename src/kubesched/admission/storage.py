"""Storage classes, and what CSI drivers say of themselves and their volumes."""

from __future__ import annotations

from kubesched.admission import names
from kubesched.admission.metadata import name_of
from kubesched.admission.mistakes import Mistakes
from kubesched.admission.reading import fill, fill_spec, mapping, sequence, text
from kubesched.admission.rules import Rules
from kubesched.admission.selectors import check_key, check_optional_selector
from kubesched.api.kinds import Object
from kubesched.api.quantity import parse_quantity

_NODE_ID_LIMIT = 192
_DRIVER_FLAGS = ("attachRequired", "podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount")


def _fill_class(storage_class: Object) -> None:
    fill(storage_class, "reclaimPolicy", "Delete")
    fill(storage_class, "volumeBindingMode", "Immediate")


def _check_class(storage_class: Object, mistakes: Mistakes) -> None:
    if not text(storage_class, "provisioner"):
        mistakes.required("provisioner")
    else:
        provisioner = storage_class["provisioner"].lower()
        mistakes.invalid_each("provisioner", provisioner, names.label_key(provisioner))
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
        key = text(expression, "key")
        mistakes.unique(f"{field}.key", key, seen)


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
        count = mapping(driver, "allocatable").get("count")
        mistakes.not_negative(f"{field}.allocatable.count", count)
        for key in sequence(driver, "topologyKeys"):
            mistakes.invalid_each(field, key, names.label_key(key))


def _check_driver_name(name: str, field: str, mistakes: Mistakes) -> None:
    if not name:
        mistakes.required(field)
    elif len(name) > 63:
        mistakes.too_long(field, 63)
    else:
        mistakes.invalid_each(field, name, names.subdomain(name.lower()))


def _csi_node_stays(new: Object, old: Object, mistakes: Mistakes) -> None:
    """A driver may come, go, and change how much it can attach, and no more."""
    before = {each.get("name"): each for each in sequence(mapping(old, "spec"), "drivers")}
    for driver in sequence(new["spec"], "drivers"):
        earlier = before.get(driver.get("name"))
        if earlier is not None and _uncounted(driver) != _uncounted(earlier):
            mistakes.immutable("spec.drivers", driver, earlier)


def _uncounted(driver: Object) -> Object:
    return {key: value for key, value in driver.items() if key != "allocatable"}


def _fill_driver(driver: Object) -> None:
    fill_spec(driver)
    spec = driver["spec"]
    fill(spec, "attachRequired", True)
    for key in _DRIVER_FLAGS[1:]:
        fill(spec, key, False)
    fill(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType")
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def _check_driver(driver: Object, mistakes: Mistakes) -> None:
    spec = driver["spec"]
    _check_driver_name(name_of(driver), "metadata.name", mistakes)
    policy = text(spec, "fsGroupPolicy")
    mistakes.one_of("spec.fsGroupPolicy", policy, ("File", "None", "ReadWriteOnceWithFSType"))
    for mode in sequence(spec, "volumeLifecycleModes"):
        mistakes.one_of("spec.volumeLifecycleModes", mode, ("Ephemeral", "Persistent"))


def _driver_stays(new: Object, old: Object, mistakes: Mistakes) -> None:
    before = mapping(old, "spec")
    for key, words in (("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")):
        mistakes.immutable(f"spec.{words}", new["spec"].get(key), before.get(key))


def _check_capacity(capacity: Object, mistakes: Mistakes) -> None:
    name = text(capacity, "storageClassName")
    mistakes.named("storageClassName", name, names.subdomain)
    for key in ("capacity", "maximumVolumeSize"):
        if capacity.get(key) is not None and parse_quantity(capacity[key]).amount < 0:
            mistakes.invalid(key, str(capacity[key]), "must be greater than or equal to 0")
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
    elif inline is None and not text(source, "persistentVolumeName"):
        mistakes.required("spec.source.persistentVolumeName", "must specify non empty persistentVolumeName")
    node = text(spec, "nodeName")
    mistakes.invalid_each("spec.nodeName", node, names.subdomain(node))


CLASS = Rules(
    defaults=_fill_class,
    check=_check_class,
    immutable=("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"),
)
CSI_NODE = Rules(defaults=fill_spec, check=_check_csi_node, check_update=_csi_node_stays)
CSI_DRIVER = Rules(defaults=_fill_driver, check=_check_driver, check_update=_driver_stays)
CSI_CAPACITY = Rules(check=_check_capacity, immutable=("nodeTopology", "storageClassName"))
ATTACHMENT = Rules(
    defaults=fill_spec,
    check=_check_attachment,
    immutable=("spec",),
    new_status=lambda _: {"attached": False},
)
