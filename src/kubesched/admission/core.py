"""Kinds of a plain cluster: nodes, namespaces, Services and what routes to them, ConfigMaps, Secrets and events."""

from __future__ import annotations

import base64
import binascii
import zlib
from ipaddress import IPv4Address

from kubesched.admission import names
from kubesched.admission.pods.scheduling import EFFECTS
from kubesched.admission.reading import (
    copy_field,
    ensure_mapping,
    fill,
    mapping,
    metadata_of,
    name_of,
    quantities,
    sequence,
    text,
)
from kubesched.admission.resources import check_amount
from kubesched.admission.rules import Mistakes, Reader, Rules, check_labels
from kubesched.admission.selectors import check_key, check_optional_selector
from kubesched.api.api_error import bad_request
from kubesched.api.kinds import SERVICES, Object
from kubesched.api.well_known import NAMESPACE_NAME

_FINALIZER = "kubernetes"


def _fill_node(node: Object) -> None:
    ensure_mapping(node, "spec")
    status = mapping(node, "status")
    if status.get("capacity") and status.get("allocatable") is None:
        status["allocatable"] = dict(mapping(status, "capacity"))


def _check_node(node: Object, mistakes: Mistakes) -> None:
    spec, status = mapping(node, "spec"), mapping(node, "status")
    _check_taints(sequence(spec, "taints"), mistakes)
    for key in ("capacity", "allocatable"):
        for name, amount in quantities(status, key).items():
            check_amount(name, amount, status[key][name], f"status.{key}[{name}]", mistakes)


def _check_taints(taints: list[Object], mistakes: Mistakes) -> None:
    seen: set[tuple[str, str]] = set()
    for i, taint in enumerate(taints):
        where = f"spec.taints[{i}]"
        check_key(taint, "key", where, mistakes)
        value, effect = text(taint, "value"), text(taint, "effect")
        if reasons := names.label_value(value):
            mistakes.invalid(f"{where}.value", value, ";".join(reasons))
        mistakes.required_one_of(f"{where}.effect", effect, EFFECTS)
        identity = (effect, text(taint, "key"))
        if identity in seen:
            mistakes.duplicate(where, taint)
        seen.add(identity)


def _check_node_update(new: Object, old: Object, mistakes: Mistakes) -> None:
    spec, before = mapping(new, "spec"), mapping(old, "spec")
    if (provider := text(before, "providerID")) and spec.get("providerID") != provider:
        how = "modified" if spec.get("providerID") else "cleared"
        mistakes.invalid("spec.providerID", None, f"field cannot be {how} once set")
    if sequence(before, "podCIDRs") and spec.get("podCIDRs") != before["podCIDRs"]:
        mistakes.forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid')


def _fill_namespace(namespace: Object) -> None:
    ensure_mapping(namespace, "spec")
    metadata = ensure_mapping(namespace, "metadata")
    if name := name_of(namespace):
        metadata["labels"] = {**mapping(metadata, "labels"), NAMESPACE_NAME: name}


def _admit_namespace(namespace: Object, _: object) -> None:
    """The server's own finalizer holds a namespace until nothing is left in it."""
    spec = mapping(namespace, "spec")
    fill(spec, "finalizers", [])
    if _FINALIZER not in sequence(spec, "finalizers"):
        spec["finalizers"] = [*spec["finalizers"], _FINALIZER]


def _check_namespace(namespace: Object, mistakes: Mistakes) -> None:
    for finalizer in sequence(mapping(namespace, "spec"), "finalizers"):
        mistakes.invalid_each("spec.finalizers", finalizer, names.label_key(finalizer))


def _carry_over_finalizers(new: Object, old: Object) -> None:
    """Only a write to the subresource `finalize` changes the finalizers of a namespace."""
    new["spec"] = {**mapping(new, "spec")}
    copy_field(new["spec"], mapping(old, "spec"), "finalizers")


def _finalize(new: Object, old: Object, _: Mistakes) -> Object:
    return {**old, "metadata": new["metadata"], "spec": mapping(new, "spec")}


NODE = Rules(defaults=_fill_node, check=_check_node, check_update=_check_node_update, new_status=None)
NAMESPACE = Rules(
    name=names.label,
    defaults=_fill_namespace,
    admit=_admit_namespace,
    carry_over=_carry_over_finalizers,
    check=_check_namespace,
    new_status=lambda _: {"phase": "Active"},
    subresource_writes={"finalize": _finalize},
)


# -- networking -------------------------------------------------------------------------------------------------------


_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_FIRST_ADDRESS, _ADDRESSES = int(IPv4Address("10.96.0.0")), 2**20
_FIRST_NODE_PORT, _NODE_PORTS = 30000, 2768
_HEADLESS = "None"


def _fill_service(service: Object) -> None:
    spec = ensure_mapping(service, "spec")
    fill(spec, "type", "ClusterIP")
    fill(spec, "sessionAffinity", "None")
    for port in sequence(spec, "ports"):
        fill(port, "protocol", "TCP")
        if port.get("targetPort") in (None, 0, "") and "port" in port:
            port["targetPort"] = port["port"]
    if spec["type"] != "ExternalName":
        fill(spec, "internalTrafficPolicy", "Cluster")
        fill(spec, "ipFamilyPolicy", "SingleStack")
        fill(spec, "ipFamilies", ["IPv4"])
    if spec["type"] in ("LoadBalancer", "NodePort"):
        fill(spec, "externalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        fill(spec, "allocateLoadBalancerNodePorts", True)


def _assign_addresses(service: Object, reader: Reader) -> None:
    spec = service["spec"]
    kind, key = text(spec, "type"), f"{metadata_of(service).get('namespace')}/{name_of(service)}"
    if kind == "ExternalName":
        return
    taken_ports: set[int] = set()
    taken_addresses = {str(IPv4Address(_FIRST_ADDRESS)), str(IPv4Address(_FIRST_ADDRESS + 1))}
    for other in reader.select(SERVICES):
        other_spec = mapping(other, "spec")
        taken_addresses.add(text(other_spec, "clusterIP"))
        taken_ports.update(port.get("nodePort") or 0 for port in sequence(other_spec, "ports"))
    if not text(spec, "clusterIP"):
        spec["clusterIP"] = _free_address(key, taken_addresses)
    fill(spec, "clusterIPs", [spec["clusterIP"]])
    if kind in ("LoadBalancer", "NodePort"):
        for i, port in enumerate(sequence(spec, "ports")):
            if not port.get("nodePort"):
                port["nodePort"] = _free_port(f"{key}/{i}", taken_ports)
                taken_ports.add(port["nodePort"])


def _free_address(key: str, taken: set[str]) -> str:
    """A Service that is created again gets the same address, unless another one has it."""
    start = zlib.crc32(key.encode(errors="replace"))
    free = (str(IPv4Address(_FIRST_ADDRESS + (start + i) % _ADDRESSES)) for i in range(_ADDRESSES))
    return next(address for address in free if address not in taken)


def _free_port(key: str, taken: set[int]) -> int:
    start = zlib.crc32(key.encode(errors="replace"))
    ports = (_FIRST_NODE_PORT + (start + i) % _NODE_PORTS for i in range(_NODE_PORTS))
    return next((port for port in ports if port not in taken), _FIRST_NODE_PORT)


def _check_service(service: Object, mistakes: Mistakes) -> None:
    spec = service["spec"]
    kind = text(spec, "type")
    mistakes.one_of("spec.type", kind, _TYPES)
    mistakes.one_of("spec.sessionAffinity", text(spec, "sessionAffinity"), ("ClientIP", "None"))
    check_labels(mapping(spec, "selector"), "spec.selector", mistakes)
    headless = text(spec, "clusterIP") == _HEADLESS
    if kind == "ExternalName":
        external = text(spec, "externalName")
        mistakes.required_valid("spec.externalName", external, lambda name: names.subdomain(name.removesuffix(".")))
    ports = sequence(spec, "ports")
    if not ports and not headless and kind != "ExternalName":
        mistakes.required("spec.ports")
    _check_ports(ports, mistakes)


def _check_ports(ports: list[Object], mistakes: Mistakes) -> None:
    seen: set[str] = set()
    served: set[tuple[str, int]] = set()
    for i, port in enumerate(ports):
        where = f"spec.ports[{i}]"
        name = text(port, "name")
        if not name and len(ports) > 1:
            mistakes.required(f"{where}.name")
        elif name:
            mistakes.invalid_each(f"{where}.name", name, names.label(name))
            mistakes.unique(f"{where}.name", name, seen)
        number, protocol = port.get("port") or 0, text(port, "protocol")
        mistakes.invalid_each(f"{where}.port", number, names.port_number(number))
        mistakes.one_of(f"{where}.protocol", protocol, ("SCTP", "TCP", "UDP"))
        target = port.get("targetPort")
        mistakes.invalid_each(f"{where}.targetPort", target or 0, names.port(target))
        if (protocol, number) in served:
            mistakes.duplicate(where, {"protocol": protocol, "port": number})
        served.add((protocol, number))


def _carry_over_addresses(new: Object, old: Object) -> None:
    """An update that leaves out the addresses or node ports of a Service keeps them."""
    spec, before = new["spec"], mapping(old, "spec")
    if spec.get("type") == "ExternalName":
        return
    for key in ("clusterIP", "clusterIPs"):
        if key in before and not spec.get(key):
            spec[key] = before[key]
    node_ports = {_port_key(port): port["nodePort"] for port in sequence(before, "ports") if port.get("nodePort")}
    if spec.get("type") in ("LoadBalancer", "NodePort"):
        for port in sequence(spec, "ports"):
            if not port.get("nodePort") and _port_key(port) in node_ports:
                port["nodePort"] = node_ports[_port_key(port)]


def _port_key(port: Object) -> tuple[str, int]:
    return text(port, "protocol"), port.get("port") or 0


def _check_service_update(new: Object, old: Object, mistakes: Mistakes) -> None:
    spec, before = new["spec"], mapping(old, "spec")
    if "ExternalName" in (spec.get("type"), before.get("type")):
        return
    if before.get("clusterIP") and spec.get("clusterIP") != before["clusterIP"]:
        mistakes.invalid("spec.clusterIPs[0]", [spec.get("clusterIP")], "may not change once set")


SERVICE = Rules(
    name=names.label,
    defaults=_fill_service,
    admit=_assign_addresses,
    carry_over=_carry_over_addresses,
    check=_check_service,
    check_update=_check_service_update,
    new_status=lambda _: {"loadBalancer": {}},
)


_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")


def _check_ingress(ingress: Object, mistakes: Mistakes) -> None:
    spec = mapping(ingress, "spec")
    rules = sequence(spec, "rules")
    if not rules and spec.get("defaultBackend") is None:
        mistakes.invalid("spec", spec, "either `defaultBackend` or `rules` must be specified")
    for i, rule in enumerate(rules):
        for j, path in enumerate(sequence(mapping(rule, "http"), "paths")):
            where = f"spec.rules[{i}].http.paths[{j}]"
            if path.get("pathType") is None:
                mistakes.required(f"{where}.pathType", "pathType must be specified")
            else:
                mistakes.one_of(f"{where}.pathType", text(path, "pathType"), _PATH_TYPES)


def _fill_network_policy(policy: Object) -> None:
    spec = ensure_mapping(policy, "spec")
    ensure_mapping(spec, "podSelector")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", *(["Egress"] if sequence(spec, "egress") else [])]
    for key in ("ingress", "egress"):
        for rule in sequence(spec, key):
            for port in sequence(rule, "ports"):
                fill(port, "protocol", "TCP")


def _check_network_policy(policy: Object, mistakes: Mistakes) -> None:
    check_optional_selector(policy["spec"], "podSelector", "spec", mistakes)
    for i, kind in enumerate(sequence(policy["spec"], "policyTypes")):
        mistakes.one_of(f"spec.policyTypes[{i}]", kind, ("Egress", "Ingress"))


INGRESS = Rules(check=_check_ingress, new_status=lambda _: {"loadBalancer": {}}, counts_generations=True)
NETWORK_POLICY = Rules(defaults=_fill_network_policy, check=_check_network_policy, counts_generations=True)


# -- configuration and events -----------------------------------------------------------------------------------------


_LIMIT = 1024 * 1024
_IMMUTABLE = "field is immutable when `immutable` is set"


def _check_config_map(config_map: Object, mistakes: Mistakes) -> None:
    plain, binary = mapping(config_map, "data"), mapping(config_map, "binaryData")
    for field, data in (("data", plain), ("binaryData", binary)):
        for key in data:
            mistakes.invalid_each(f"{field}[{key}]", key, names.config_key(key))
    for key in plain.keys() & binary.keys():
        mistakes.invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    _decode(binary, "binaryData")
    if sum(len(value) for data in (plain, binary) for value in data.values()) > _LIMIT:
        mistakes.too_long("", _LIMIT)


def _decode(data: dict[str, str], field: str) -> dict[str, bytes]:
    try:
        return {key: base64.b64decode(value, validate=True) for key, value in data.items()}
    except (binascii.Error, ValueError):
        raise bad_request(f"illegal base64 data in {field}") from None


def _check_data_update(new: Object, old: Object, mistakes: Mistakes) -> None:
    if old.get("immutable") is not True:
        return
    if new.get("immutable") is not True:
        mistakes.forbidden("immutable", _IMMUTABLE)
    for key in ("data", "binaryData"):
        if new.get(key) != old.get(key):
            mistakes.forbidden(key, _IMMUTABLE)


def _fill_secret(secret: Object) -> None:
    fill(secret, "type", "Opaque")
    if plain := mapping(secret, "stringData"):
        encoded = {key: base64.b64encode(value.encode(errors="surrogatepass")).decode() for key, value in plain.items()}
        secret["data"] = {**mapping(secret, "data"), **encoded}
    secret.pop("stringData", None)


def _check_secret(secret: Object, mistakes: Mistakes) -> None:
    data = mapping(secret, "data")
    for key in data:
        mistakes.invalid_each(f"data[{key}]", key, names.config_key(key))
    if sum(map(len, _decode(data, "data").values())) > _LIMIT:
        mistakes.too_long("data", _LIMIT)


def _check_event(event: Object, mistakes: Mistakes) -> None:
    regarding = "involvedObject" if "involvedObject" in event else "regarding"
    namespace = text(mapping(event, regarding), "namespace")
    # Events about an object without a namespace are in the namespace "default".
    if text(metadata_of(event), "namespace") != (namespace or "default"):
        mistakes.invalid(f"{regarding}.namespace", namespace, "does not match event.namespace")


CONFIG_MAP = Rules(check=_check_config_map, check_update=_check_data_update)
SECRET = Rules(defaults=_fill_secret, check=_check_secret, immutable=("type",), check_update=_check_data_update)
EVENT = Rules(check=_check_event)
