"""Services, with an address of their own that no other has."""

from __future__ import annotations

import zlib
from ipaddress import IPv4Address

from kubesched.api.kinds import SERVICES, Object
from kubesched.sandbox.admission import names
from kubesched.sandbox.admission.faults import Faults
from kubesched.sandbox.admission.metadata import check_labels, metadata_of, name_of
from kubesched.sandbox.admission.reading import fill, int_or_text, integer, mapping, records, string_map, text
from kubesched.sandbox.admission.rules import Reader, Rules
from kubesched.sandbox.admission.workloads import spec_to_fill

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_FIRST_ADDRESS, _ADDRESSES = int(IPv4Address("10.96.0.0")), 2**20
_FIRST_NODE_PORT, _NODE_PORTS = 30000, 2768
_HEADLESS = "None"


def _defaults(service: Object) -> None:
    spec = spec_to_fill(service)
    fill(spec, "type", "ClusterIP")
    fill(spec, "sessionAffinity", "None")
    for port in records(spec, "ports", "spec"):
        fill(port, "protocol", "TCP")
        if int_or_text(port, "targetPort", "spec.ports") in (None, 0, "") and "port" in port:
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
    kind, own = text(spec, "type", "spec"), f"{metadata_of(service).get('namespace')}/{name_of(service)}"
    if kind == "ExternalName":
        return
    taken_ports: set[int] = set()
    taken: set[str] = {str(IPv4Address(_FIRST_ADDRESS)), str(IPv4Address(_FIRST_ADDRESS + 1))}
    for other in reader.select(SERVICES):
        theirs = mapping(other, "spec", "")
        taken.add(text(theirs, "clusterIP", "spec"))
        taken_ports.update(integer(port, "nodePort", "") or 0 for port in records(theirs, "ports", "spec"))
    if not text(spec, "clusterIP", "spec"):
        spec["clusterIP"] = _free_address(own, taken)
    fill(spec, "clusterIPs", [spec["clusterIP"]])
    if kind in ("LoadBalancer", "NodePort"):
        for i, port in enumerate(records(spec, "ports", "spec")):
            if not integer(port, "nodePort", "spec.ports"):
                port["nodePort"] = _free_port(f"{own}/{i}", taken_ports)
                taken_ports.add(port["nodePort"])


def _free_address(own: str, taken: set[str]) -> str:
    """The same service gets the same address again, unless somebody has it."""
    start = zlib.crc32(own.encode(errors="replace"))
    free = (str(IPv4Address(_FIRST_ADDRESS + (start + i) % _ADDRESSES)) for i in range(_ADDRESSES))
    return next(address for address in free if address not in taken)


def _free_port(own: str, taken: set[int]) -> int:
    start = zlib.crc32(own.encode(errors="replace"))
    ports = (_FIRST_NODE_PORT + (start + i) % _NODE_PORTS for i in range(_NODE_PORTS))
    return next((port for port in ports if port not in taken), _FIRST_NODE_PORT)


def _check(service: Object, faults: Faults) -> None:
    spec = service["spec"]
    kind = text(spec, "type", "spec")
    faults.one_of("spec.type", kind, _TYPES)
    faults.one_of("spec.sessionAffinity", text(spec, "sessionAffinity", "spec"), ("ClientIP", "None"))
    check_labels(string_map(spec, "selector", "spec"), "spec.selector", faults)
    headless = text(spec, "clusterIP", "spec") == _HEADLESS
    if kind == "ExternalName":
        external = text(spec, "externalName", "spec")
        if not external:
            faults.required("spec.externalName")
        else:
            faults.invalid_each("spec.externalName", external, names.subdomain(external.removesuffix(".")))
    ports = records(spec, "ports", "spec")
    if not ports and not headless and kind != "ExternalName":
        faults.required("spec.ports")
    _check_ports(ports, faults)


def _check_ports(ports: list[Object], faults: Faults) -> None:
    seen: set[str] = set()
    served: set[tuple[str, int]] = set()
    for i, port in enumerate(ports):
        where = f"spec.ports[{i}]"
        name = text(port, "name", where)
        if not name and len(ports) > 1:
            faults.required(f"{where}.name")
        elif name:
            faults.invalid_each(f"{where}.name", name, names.label(name))
            if name in seen:
                faults.duplicate(f"{where}.name", name)
            seen.add(name)
        number, protocol = integer(port, "port", where) or 0, text(port, "protocol", where)
        faults.invalid_each(f"{where}.port", number, names.port_number(number))
        faults.one_of(f"{where}.protocol", protocol, ("SCTP", "TCP", "UDP"))
        target = int_or_text(port, "targetPort", where)
        told = names.port_name(target) if isinstance(target, str) else names.port_number(target or 0)
        faults.invalid_each(f"{where}.targetPort", target or 0, told)
        if (protocol, number) in served:
            faults.duplicate(where, {"protocol": protocol, "port": number})
        served.add((protocol, number))


def _carry_over(new: Object, old: Object) -> None:
    """An address once given is kept by updates that do not mention it."""
    spec, before = new["spec"], mapping(old, "spec", "")
    if spec.get("type") == "ExternalName":
        return
    for key in ("clusterIP", "clusterIPs"):
        if key in before and not spec.get(key):
            spec[key] = before[key]
    given = {_port_key(port): port["nodePort"] for port in records(before, "ports", "spec") if port.get("nodePort")}
    if spec.get("type") in ("LoadBalancer", "NodePort"):
        for port in records(spec, "ports", "spec"):
            if not port.get("nodePort") and _port_key(port) in given:
                port["nodePort"] = given[_port_key(port)]


def _port_key(port: Object) -> tuple[str, int]:
    return text(port, "protocol", "spec.ports"), integer(port, "port", "spec.ports") or 0


def _address_stays(new: Object, old: Object, faults: Faults) -> None:
    spec, before = new["spec"], mapping(old, "spec", "")
    if "ExternalName" in (spec.get("type"), before.get("type")):
        return
    if before.get("clusterIP") and spec.get("clusterIP") != before["clusterIP"]:
        faults.invalid("spec.clusterIPs[0]", [spec.get("clusterIP")], "may not change once set")


RULES = Rules(
    name=names.label,
    defaults=_defaults,
    admit=_give_addresses,
    carry_over=_carry_over,
    check=_check,
    check_update=_address_stays,
    new_status=lambda _: {"loadBalancer": {}},
)
