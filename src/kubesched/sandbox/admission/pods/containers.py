"""Containers: what is filled in and how they must be written."""

from __future__ import annotations

from kubesched.api.kinds import Object
from kubesched.sandbox.admission import names
from kubesched.sandbox.admission.faults import Faults
from kubesched.sandbox.admission.reading import (
    fill,
    int_or_text,
    integer,
    mapping,
    optional_mapping,
    records,
    text,
    texts,
)
from kubesched.sandbox.admission.resources import check_requirements, request_what_is_limited

KINDS = ("containers", "initContainers")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HANDLERS = ("exec", "grpc", "httpGet", "tcpSocket")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_PROTOCOLS = ("SCTP", "TCP", "UDP")


def fill_container(container: Object, where: str) -> None:
    fill(container, "terminationMessagePath", "/dev/termination-log")
    fill(container, "terminationMessagePolicy", "File")
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = "Always" if _is_latest(text(container, "image", where)) else "IfNotPresent"
    fill(container, "resources", {})
    for port in records(container, "ports", where):
        fill(port, "protocol", "TCP")
    for probe in _PROBES:
        if container.get(probe) is not None:
            _fill_probe(mapping(container, probe, where), f"{where}.{probe}")
    for variable in records(container, "env", where):
        source = mapping(variable, "valueFrom", f"{where}.env")
        if source.get("fieldRef") is not None:
            fill(mapping(source, "fieldRef", f"{where}.env"), "apiVersion", "v1")


def _is_latest(image: str) -> bool:
    """Whether the image's tag is `latest`, said or implied."""
    if "@" in image:
        return False
    tag = image.rpartition("/")[2].partition(":")[2]
    return tag in ("", "latest")


def fill_pods_container(container: Object, host_network: bool, where: str) -> None:
    """What is filled in only once a template has become a pod."""
    if container.get("resources"):
        request_what_is_limited(mapping(container, "resources", where), f"{where}.resources")
    if host_network:
        for port in records(container, "ports", where):
            if not integer(port, "hostPort", f"{where}.ports"):
                port["hostPort"] = integer(port, "containerPort", f"{where}.ports") or 0


def _fill_probe(probe: Object, where: str) -> None:
    for key, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        if not integer(probe, key, where):
            probe[key] = value
    if probe.get("httpGet") is not None:
        get = mapping(probe, "httpGet", where)
        fill(get, "path", "/")
        fill(get, "scheme", "HTTP")
    if probe.get("grpc") is not None:
        fill(mapping(probe, "grpc", where), "service", "")


def check_containers(spec: Object, volumes: frozenset[str], claims: frozenset[str], where: str, faults: Faults) -> None:
    """All containers of a pod."""
    containers = records(spec, "containers", where)
    if not containers:
        faults.required(f"{where}.containers")
    seen: set[str] = set()
    host_ports: set[tuple[str, str, int]] = set()
    for kind in KINDS:
        for i, container in enumerate(containers if kind == "containers" else records(spec, kind, where)):
            field = f"{where}.{kind}[{i}]"
            _check_container(container, volumes, claims, field, faults)
            name = text(container, "name", field)
            if name and name in seen:
                faults.duplicate(f"{field}.name", name)
            seen.add(name)
            if container.get("ports"):
                _check_ports(records(container, "ports", field), host_ports, f"{field}.ports", faults)
            policy = text(container, "restartPolicy", field)
            if kind == "initContainers" and policy != "Always" and "restartPolicy" in container:
                faults.one_of(f"{field}.restartPolicy", policy, ("Always", "Never", "OnFailure"))


def _check_container(
    container: Object, volumes: frozenset[str], claims: frozenset[str], where: str, faults: Faults
) -> None:
    name = text(container, "name", where)
    if not name:
        faults.required(f"{where}.name")
    elif told := names.label(name):
        faults.invalid_each(f"{where}.name", name, told)
    image = text(container, "image", where)
    if not image:
        faults.required(f"{where}.image")
    elif image != image.strip():
        faults.invalid(f"{where}.image", image, "must not have leading or trailing whitespace")
    policy = text(container, "terminationMessagePolicy", where)
    faults.one_of(f"{where}.terminationMessagePolicy", policy, _MESSAGE_POLICIES)
    faults.one_of(f"{where}.imagePullPolicy", text(container, "imagePullPolicy", where), _PULL_POLICIES)
    if resources := mapping(container, "resources", where):
        check_requirements(resources, f"{where}.resources", claims, faults)
    for key in ("command", "args"):
        texts(container, key, where)
    _check_environment(records(container, "env", where), f"{where}.env", faults)
    _check_mounts(container, volumes, where, faults)
    for probe in _PROBES:
        if container.get(probe) is not None:
            _check_probe(mapping(container, probe, where), f"{where}.{probe}", faults)


def _check_environment(variables: list[Object], where: str, faults: Faults) -> None:
    for i, variable in enumerate(variables):
        if not text(variable, "name", f"{where}[{i}]"):
            faults.required(f"{where}[{i}].name")
        if text(variable, "value", f"{where}[{i}]") and variable.get("valueFrom") is not None:
            faults.invalid(f"{where}[{i}].valueFrom", "", "may not be specified when `value` is not empty")


def _check_mounts(container: Object, volumes: frozenset[str], where: str, faults: Faults) -> None:
    for key, path_key in (("volumeMounts", "mountPath"), ("volumeDevices", "devicePath")):
        paths: set[str] = set()
        for i, mount in enumerate(records(container, key, where)):
            field = f"{where}.{key}[{i}]"
            name, path = text(mount, "name", field), text(mount, path_key, field)
            if not name:
                faults.required(f"{field}.name")
            if name not in volumes:
                faults.not_found(f"{field}.name", name)
            if not path:
                faults.required(f"{field}.{path_key}")
            elif path in paths:
                faults.invalid(f"{field}.{path_key}", path, "must be unique")
            paths.add(path)


def _check_ports(ports: list[Object], host_ports: set[tuple[str, str, int]], where: str, faults: Faults) -> None:
    seen: set[str] = set()
    for i, port in enumerate(ports):
        field = f"{where}[{i}]"
        if name := text(port, "name", field):
            faults.invalid_each(f"{field}.name", name, names.port_name(name))
            if name in seen:
                faults.duplicate(f"{field}.name", name)
            seen.add(name)
        inside, outside = integer(port, "containerPort", field), integer(port, "hostPort", field)
        if not inside:
            faults.required(f"{field}.containerPort")
        elif told := names.port_number(inside):
            faults.invalid_each(f"{field}.containerPort", inside, told)
        protocol = text(port, "protocol", field)
        faults.one_of(f"{field}.protocol", protocol, _PROTOCOLS)
        if outside:
            faults.invalid_each(f"{field}.hostPort", outside, names.port_number(outside))
            taken = (protocol, text(port, "hostIP", field), outside)
            if taken in host_ports:
                faults.duplicate(f"{field}.hostPort", "/".join(map(str, taken)))
            host_ports.add(taken)


def _check_probe(probe: Object, where: str, faults: Faults) -> None:
    handlers = [key for key in _HANDLERS if optional_mapping(probe, key, where) is not None]
    if not handlers:
        faults.required(where, "must specify a handler type")
    for key in handlers[1:]:
        faults.forbidden(f"{where}.{key}", "may not specify more than 1 handler type")
    for key in handlers[:1]:
        _check_handler(key, probe[key], f"{where}.{key}", faults)
    counts = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
    for key in counts:
        faults.not_negative(f"{where}.{key}", integer(probe, key, where))


def _check_handler(kind: str, handler: Object, where: str, faults: Faults) -> None:
    if kind == "exec":
        if not texts(handler, "command", where):
            faults.required(f"{where}.command")
        return
    port = int_or_text(handler, "port", where)
    told = names.port_name(port) if isinstance(port, str) else names.port_number(port or 0)
    faults.invalid_each(f"{where}.port", port or 0, told)
    if kind == "httpGet":
        faults.one_of(f"{where}.scheme", text(handler, "scheme", where), ("HTTP", "HTTPS"))
