"""Services, with an address of their own that no other has; Ingresses and NetworkPolicies, kept as they are."""

from __future__ import annotations

import zlib
from ipaddress import IPv4Address

from kubesched.admission import names
from kubesched.admission.metadata import check_labels, metadata_of, name_of
from kubesched.admission.mistakes import Mistakes
from kubesched.admission.reading import fill, filled, mapping, sequence, text
from kubesched.admission.rules import Reader, Rules
from kubesched.admission.selectors import check_optional_selector
from kubesched.api.kinds import SERVICES, Object

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_FIRST_ADDRESS, _ADDRESSES = int(IPv4Address("10.96.0.0")), 2**20
_FIRST_NODE_PORT, _NODE_PORTS = 30000, 2768
_HEADLESS = "None"


def _defaults(service: Object) -> None:
    spec = filled(service, "spec")
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


def _give_addresses(service: Object, reader: Reader) -> None:
    spec = service["spec"]
    kind, own = text(spec, "type"), f"{metadata_of(service).get('namespace')}/{name_of(service)}"
    if kind == "ExternalName":
        return
    taken_ports: set[int] = set()
    taken: set[str] = {str(IPv4Address(_FIRST_ADDRESS)), str(IPv4Address(_FIRST_ADDRESS + 1))}
    for other in reader.select(SERVICES):
        theirs = mapping(other, "spec")
        taken.add(text(theirs, "clusterIP"))
        taken_ports.update(port.get("nodePort") or 0 for port in sequence(theirs, "ports"))
    if not text(spec, "clusterIP"):
        spec["clusterIP"] = _free_address(own, taken)
    fill(spec, "clusterIPs", [spec["clusterIP"]])
    if kind in ("LoadBalancer", "NodePort"):
        for i, port in enumerate(sequence(spec, "ports")):
            if not port.get("nodePort"):
                port["nodePort"] = _free_port(f"{own}/{i}", taken_ports)
                taken_ports.add(port["nodePort"])


def _free_address(own: str, taken: set[str]) -> str:
    """The same service gets the same address again, unless another service has it."""
    start = zlib.crc32(own.encode(errors="replace"))
    free = (str(IPv4Address(_FIRST_ADDRESS + (start + i) % _ADDRESSES)) for i in range(_ADDRESSES))
    return next(address for address in free if address not in taken)


def _free_port(own: str, taken: set[int]) -> int:
    start = zlib.crc32(own.encode(errors="replace"))
    ports = (_FIRST_NODE_PORT + (start + i) % _NODE_PORTS for i in range(_NODE_PORTS))
    return next((port for port in ports if port not in taken), _FIRST_NODE_PORT)


def _check(service: Object, mistakes: Mistakes) -> None:
    spec = service["spec"]
    kind = text(spec, "type")
    mistakes.one_of("spec.type", kind, _TYPES)
    mistakes.one_of("spec.sessionAffinity", text(spec, "sessionAffinity"), ("ClientIP", "None"))
    check_labels(mapping(spec, "selector"), "spec.selector", mistakes)
    headless = text(spec, "clusterIP") == _HEADLESS
    if kind == "ExternalName":
        external = text(spec, "externalName")
        if not external:
            mistakes.required("spec.externalName")
        else:
            mistakes.invalid_each("spec.externalName", external, names.subdomain(external.removesuffix(".")))
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
        words = names.port_name(target) if isinstance(target, str) else names.port_number(target or 0)
        mistakes.invalid_each(f"{where}.targetPort", target or 0, words)
        if (protocol, number) in served:
            mistakes.duplicate(where, {"protocol": protocol, "port": number})
        served.add((protocol, number))


def _carry_over(new: Object, old: Object) -> None:
    """An address once given is kept by updates that do not mention it."""
    spec, before = new["spec"], mapping(old, "spec")
    if spec.get("type") == "ExternalName":
        return
    for key in ("clusterIP", "clusterIPs"):
        if key in before and not spec.get(key):
            spec[key] = before[key]
    given = {_port_key(port): port["nodePort"] for port in sequence(before, "ports") if port.get("nodePort")}
    if spec.get("type") in ("LoadBalancer", "NodePort"):
        for port in sequence(spec, "ports"):
            if not port.get("nodePort") and _port_key(port) in given:
                port["nodePort"] = given[_port_key(port)]


def _port_key(port: Object) -> tuple[str, int]:
    return text(port, "protocol"), port.get("port") or 0


def _address_stays(new: Object, old: Object, mistakes: Mistakes) -> None:
    spec, before = new["spec"], mapping(old, "spec")
    if "ExternalName" in (spec.get("type"), before.get("type")):
        return
    if before.get("clusterIP") and spec.get("clusterIP") != before["clusterIP"]:
        mistakes.invalid("spec.clusterIPs[0]", [spec.get("clusterIP")], "may not change once set")


RULES = Rules(
    name=names.label,
    defaults=_defaults,
    admit=_give_addresses,
    carry_over=_carry_over,
    check=_check,
    check_update=_address_stays,
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


def _fill_policy(policy: Object) -> None:
    spec = filled(policy, "spec")
    filled(spec, "podSelector")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", *(["Egress"] if sequence(spec, "egress") else [])]
    for key in ("ingress", "egress"):
        for rule in sequence(spec, key):
            for port in sequence(rule, "ports"):
                fill(port, "protocol", "TCP")


def _check_policy(policy: Object, mistakes: Mistakes) -> None:
    check_optional_selector(policy["spec"], "podSelector", "spec", mistakes)
    for i, kind in enumerate(sequence(policy["spec"], "policyTypes")):
        mistakes.one_of(f"spec.policyTypes[{i}]", kind, ("Egress", "Ingress"))


INGRESS = Rules(check=_check_ingress, new_status=lambda _: {"loadBalancer": {}}, counts_generations=True)
POLICY = Rules(defaults=_fill_policy, check=_check_policy, counts_generations=True)
