"""The spec of a pod, of its own or in the template of a workload: its containers and its volumes."""

from __future__ import annotations

from kubesched.admission import names
from kubesched.admission.pods.scheduling import check_affinity, check_gates, check_spread, check_tolerations
from kubesched.admission.reading import fill, mapping, quantities, sequence, text
from kubesched.admission.resources import CONTAINER_KINDS, check_amount, check_requirements, request_what_is_limited
from kubesched.admission.rules import Mistakes, check_labels
from kubesched.api.kinds import Object

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HANDLERS = ("exec", "grpc", "httpGet", "tcpSocket")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_PROTOCOLS = ("SCTP", "TCP", "UDP")


def fill_container(container: Object) -> None:
    fill(container, "terminationMessagePath", "/dev/termination-log")
    fill(container, "terminationMessagePolicy", "File")
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = "Always" if _is_latest(text(container, "image")) else "IfNotPresent"
    fill(container, "resources", {})
    for port in sequence(container, "ports"):
        fill(port, "protocol", "TCP")
    for probe in _PROBES:
        if container.get(probe) is not None:
            _fill_probe(mapping(container, probe))
    for variable in sequence(container, "env"):
        source = mapping(variable, "valueFrom")
        if source.get("fieldRef") is not None:
            fill(mapping(source, "fieldRef"), "apiVersion", "v1")


def _is_latest(image: str) -> bool:
    """Whether the image's tag is `latest`, or left out."""
    if "@" in image:
        return False
    tag = image.rpartition("/")[2].partition(":")[2]
    return tag in ("", "latest")


def fill_pods_container(container: Object, host_network: bool) -> None:
    """What is filled in only once a template has become a pod."""
    if container.get("resources"):
        request_what_is_limited(mapping(container, "resources"))
    if host_network:
        for port in sequence(container, "ports"):
            if not port.get("hostPort"):
                port["hostPort"] = port.get("containerPort") or 0


def _fill_probe(probe: Object) -> None:
    for key, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        if not probe.get(key):
            probe[key] = value
    if probe.get("httpGet") is not None:
        get = mapping(probe, "httpGet")
        fill(get, "path", "/")
        fill(get, "scheme", "HTTP")
    if probe.get("grpc") is not None:
        fill(mapping(probe, "grpc"), "service", "")


def check_containers(
    spec: Object, volumes: frozenset[str], claims: frozenset[str], where: str, mistakes: Mistakes
) -> None:
    """All containers of a pod."""
    containers = sequence(spec, "containers")
    mistakes.not_empty(f"{where}.containers", containers)
    seen: set[str] = set()
    host_ports: set[tuple[str, str, int]] = set()
    for kind in CONTAINER_KINDS:
        for i, container in enumerate(containers if kind == "containers" else sequence(spec, kind)):
            field = f"{where}.{kind}[{i}]"
            _check_container(container, volumes, claims, field, mistakes)
            if name := text(container, "name"):
                mistakes.unique(f"{field}.name", name, seen)
            if container.get("ports"):
                _check_ports(sequence(container, "ports"), host_ports, f"{field}.ports", mistakes)
            policy = text(container, "restartPolicy")
            if kind == "initContainers" and policy != "Always" and "restartPolicy" in container:
                mistakes.one_of(f"{field}.restartPolicy", policy, ("Always", "Never", "OnFailure"))


def _check_container(
    container: Object, volumes: frozenset[str], claims: frozenset[str], where: str, mistakes: Mistakes
) -> None:
    mistakes.required_valid(f"{where}.name", text(container, "name"), names.label)
    image = text(container, "image")
    if not image:
        mistakes.required(f"{where}.image")
    elif image != image.strip():
        mistakes.invalid(f"{where}.image", image, "must not have leading or trailing whitespace")
    policy = text(container, "terminationMessagePolicy")
    mistakes.one_of(f"{where}.terminationMessagePolicy", policy, _MESSAGE_POLICIES)
    mistakes.one_of(f"{where}.imagePullPolicy", text(container, "imagePullPolicy"), _PULL_POLICIES)
    if resources := mapping(container, "resources"):
        check_requirements(resources, f"{where}.resources", claims, mistakes)
    _check_environment(sequence(container, "env"), f"{where}.env", mistakes)
    _check_mounts(container, volumes, where, mistakes)
    for probe in _PROBES:
        if container.get(probe) is not None:
            _check_probe(mapping(container, probe), f"{where}.{probe}", mistakes)


def _check_environment(variables: list[Object], where: str, mistakes: Mistakes) -> None:
    for i, variable in enumerate(variables):
        mistakes.not_empty(f"{where}[{i}].name", text(variable, "name"))
        if text(variable, "value") and variable.get("valueFrom") is not None:
            mistakes.invalid(f"{where}[{i}].valueFrom", "", "may not be specified when `value` is not empty")


def _check_mounts(container: Object, volumes: frozenset[str], where: str, mistakes: Mistakes) -> None:
    for key, path_key in (("volumeMounts", "mountPath"), ("volumeDevices", "devicePath")):
        paths: set[str] = set()
        for i, mount in enumerate(sequence(container, key)):
            field = f"{where}.{key}[{i}]"
            name, path = text(mount, "name"), text(mount, path_key)
            mistakes.not_empty(f"{field}.name", name)
            if name not in volumes:
                mistakes.not_found(f"{field}.name", name)
            if not path:
                mistakes.required(f"{field}.{path_key}")
            elif path in paths:
                mistakes.invalid(f"{field}.{path_key}", path, "must be unique")
            paths.add(path)


def _check_ports(ports: list[Object], host_ports: set[tuple[str, str, int]], where: str, mistakes: Mistakes) -> None:
    seen: set[str] = set()
    for i, port in enumerate(ports):
        field = f"{where}[{i}]"
        if name := text(port, "name"):
            mistakes.invalid_each(f"{field}.name", name, names.port_name(name))
            mistakes.unique(f"{field}.name", name, seen)
        mistakes.required_valid(f"{field}.containerPort", port.get("containerPort"), names.port_number)
        protocol = text(port, "protocol")
        mistakes.one_of(f"{field}.protocol", protocol, _PROTOCOLS)
        if number := port.get("hostPort"):
            mistakes.invalid_each(f"{field}.hostPort", number, names.port_number(number))
            host_port = (protocol, text(port, "hostIP"), number)
            if host_port in host_ports:
                mistakes.duplicate(f"{field}.hostPort", "/".join(map(str, host_port)))
            host_ports.add(host_port)


def _check_probe(probe: Object, where: str, mistakes: Mistakes) -> None:
    handlers = [key for key in _HANDLERS if probe.get(key) is not None]
    mistakes.not_empty(where, handlers, "must specify a handler type")
    for key in handlers[1:]:
        mistakes.forbidden(f"{where}.{key}", "may not specify more than 1 handler type")
    for key in handlers[:1]:
        _check_handler(key, probe[key], f"{where}.{key}", mistakes)
    for key in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"):
        mistakes.not_negative(f"{where}.{key}", probe.get(key))


def _check_handler(kind: str, handler: Object, where: str, mistakes: Mistakes) -> None:
    if kind == "exec":
        mistakes.not_empty(f"{where}.command", sequence(handler, "command"))
        return
    port = handler.get("port")
    mistakes.invalid_each(f"{where}.port", port or 0, names.port(port))
    if kind == "httpGet":
        mistakes.one_of(f"{where}.scheme", text(handler, "scheme"), ("HTTP", "HTTPS"))


# -- the spec ---------------------------------------------------------------------------------------------------------


RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_INT32 = 2**31 - 1
_NAMES = (
    ("nodeName", names.subdomain),
    ("serviceAccountName", names.subdomain),
    ("priorityClassName", names.subdomain),
    ("hostname", names.label),
    ("subdomain", names.label),
)


def fill_pod_spec(spec: Object) -> None:
    """Set the defaults of a pod, or of the pods of a template."""
    fill(spec, "restartPolicy", "Always")
    fill(spec, "terminationGracePeriodSeconds", 30)
    fill(spec, "dnsPolicy", "ClusterFirst")
    fill(spec, "schedulerName", "default-scheduler")
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    if account := text(spec, "serviceAccountName") or text(spec, "serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for kind in CONTAINER_KINDS:
        for container in sequence(spec, kind):
            fill_container(container)
    for volume in sequence(spec, "volumes"):
        fill_volume(volume)


def check_pod_spec(spec: Object, where: str, mistakes: Mistakes, *, added: frozenset[str] = frozenset()) -> None:
    """`added` are the volumes that a controller adds to the pods of a template."""
    volumes = added | check_volumes(sequence(spec, "volumes"), f"{where}.volumes", mistakes)
    claims = _check_claims(sequence(spec, "resourceClaims"), f"{where}.resourceClaims", mistakes)
    check_containers(spec, volumes, claims, where, mistakes)
    mistakes.one_of(f"{where}.restartPolicy", text(spec, "restartPolicy"), RESTART_POLICIES)
    mistakes.one_of(f"{where}.dnsPolicy", text(spec, "dnsPolicy"), _DNS_POLICIES)
    if spec.get("nodeSelector"):
        check_labels(mapping(spec, "nodeSelector"), f"{where}.nodeSelector", mistakes)
    if spec.get("affinity"):
        check_affinity(mapping(spec, "affinity"), f"{where}.affinity", mistakes)
    if (group := spec.get("schedulingGroup")) is not None:
        at = f"{where}.schedulingGroup"
        if not group.get("podGroupName"):
            mistakes.invalid(at, group, "must specify one of: `podGroupName`")
        else:
            mistakes.required_valid(f"{at}.podGroupName", group["podGroupName"], names.subdomain)
    if spec.get("schedulingGates"):
        check_gates(sequence(spec, "schedulingGates"), f"{where}.schedulingGates", mistakes)
    if spec.get("topologySpreadConstraints"):
        constraints = sequence(spec, "topologySpreadConstraints")
        check_spread(constraints, f"{where}.topologySpreadConstraints", mistakes)
    if spec.get("tolerations"):
        check_tolerations(sequence(spec, "tolerations"), f"{where}.tolerations", mistakes)
    _check_plain_fields(spec, where, mistakes)
    _check_pod_level(spec, claims, where, mistakes)


def _check_plain_fields(spec: Object, where: str, mistakes: Mistakes) -> None:
    for key, rule in _NAMES:
        if name := text(spec, key):
            mistakes.invalid_each(f"{where}.{key}", name, rule(name))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _INT32:
        why = f"must be between 1 and {_INT32}, inclusive"
        mistakes.invalid(f"{where}.activeDeadlineSeconds", deadline, why)
    if policy := text(spec, "preemptionPolicy"):
        mistakes.one_of(f"{where}.preemptionPolicy", policy, ("PreemptLowerPriority", "Never"))
    for i, gate in enumerate(sequence(spec, "readinessGates")):
        condition = text(gate, "conditionType")
        mistakes.invalid_each(f"{where}.readinessGates[{i}].conditionType", condition, names.label_key(condition))


def _check_pod_level(spec: Object, claims: frozenset[str], where: str, mistakes: Mistakes) -> None:
    """The pod-level resources and the overhead."""
    if resources := mapping(spec, "resources"):
        check_requirements(resources, f"{where}.resources", claims, mistakes)
    for name, amount in quantities(spec, "overhead").items():
        check_amount(name, amount, spec["overhead"][name], f"{where}.overhead[{name}]", mistakes)


def _check_claims(claims: list[Object], where: str, mistakes: Mistakes) -> frozenset[str]:
    """The names by which containers may refer to resource claims."""
    seen: set[str] = set()
    for i, claim in enumerate(claims):
        field = f"{where}[{i}]"
        name = text(claim, "name")
        if not name:
            mistakes.required(f"{field}.name")
        elif name in seen:
            mistakes.duplicate(f"{field}.name", name)
        else:
            mistakes.invalid_each(f"{field}.name", name, names.label(name))
        seen.add(name)
        sources = [key for key in ("resourceClaimName", "resourceClaimTemplateName") if text(claim, key)]
        if len(sources) > 1:
            why = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            mistakes.invalid(field, claim, why)
        if not sources:
            mistakes.invalid(field, claim, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
        for key in sources:
            mistakes.invalid_each(f"{field}.{key}", claim[key], names.subdomain(claim[key]))
    return frozenset(seen)


_MODE = 0o644
_NEEDED_BY_SOURCES = (
    ("persistentVolumeClaim", "claimName"),
    ("ephemeral", "volumeClaimTemplate"),
    ("csi", "driver"),
    ("hostPath", "path"),
)
_WITH_MODE = ("configMap", "secret", "projected", "downwardAPI")


def fill_volume(volume: Object) -> None:
    if not any(key != "name" for key in volume):
        volume["emptyDir"] = {}
    for key in _WITH_MODE:
        if volume.get(key) is not None:
            fill(mapping(volume, key), "defaultMode", _MODE)
    if volume.get("hostPath") is not None:
        fill(mapping(volume, "hostPath"), "type", "")
    template = mapping(mapping(volume, "ephemeral"), "volumeClaimTemplate")
    if template.get("spec") is not None:
        fill(mapping(template, "spec"), "volumeMode", "Filesystem")


def check_volumes(volumes: list[Object], where: str, mistakes: Mistakes) -> frozenset[str]:
    """The names that containers may mount."""
    seen: set[str] = set()
    for i, volume in enumerate(volumes):
        field = f"{where}[{i}]"
        _check_source(volume, field, mistakes)
        name = text(volume, "name")
        mistakes.required_valid(f"{field}.name", name, names.label)
        mistakes.unique(f"{field}.name", name, seen)
    return frozenset(seen)


def _check_source(volume: Object, where: str, mistakes: Mistakes) -> None:
    sources = [key for key in volume if key != "name" and volume.get(key) is not None]
    mistakes.not_empty(where, sources, "must specify a volume type")
    for key in sources[1:]:
        mistakes.forbidden(f"{where}.{key}", "may not specify more than 1 volume type")
    for source, key in _NEEDED_BY_SOURCES:
        if source in sources:
            mistakes.not_empty(f"{where}.{source}.{key}", volume[source].get(key))
