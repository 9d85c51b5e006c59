"""PodGroups and Workloads in both versions: stored as v1.36 has them (v1alpha2), shown as v1.37 does (v1beta1)."""

from __future__ import annotations

from kubesched.api.kinds import POD_GROUPS, POD_GROUPS_BY_VERSION, Object

_NEWER, _OLDER = POD_GROUPS_BY_VERSION[0].api_version, POD_GROUPS.api_version
_MODES: dict[str, Object] = {"Pod": {"single": {}}, "PodGroup": {"all": {}}}


def newer_group(group: Object) -> Object:
    """As v1beta1 shows it."""
    return _relabelled(group, _newer_spec(group["spec"]), _NEWER)


def stored_group(group: Object) -> Object:
    """As it is stored."""
    return _relabelled(group, {"disruptionMode": "Pod", **_older_spec(group["spec"])}, _OLDER)


def newer_workload(workload: Object) -> Object:
    """As v1beta1 shows it."""
    templates = [_newer_spec(template) for template in workload["spec"].get("podGroupTemplates") or ()]
    return _relabelled(workload, {**workload["spec"], "podGroupTemplates": templates}, _NEWER)


def stored_workload(workload: Object) -> Object:
    """As it is stored."""
    templates = [_older_spec(template) for template in workload["spec"].get("podGroupTemplates") or ()]
    return _relabelled(workload, {**workload["spec"], "podGroupTemplates": templates}, _OLDER)


def _newer_spec(spec: Object) -> Object:
    made = {name: value for name, value in spec.items() if name not in ("podGroupTemplateRef", "disruptionMode")}
    if spec.get("disruptionMode"):
        made["disruptionMode"] = _MODES.get(spec["disruptionMode"], {})
    reference = (spec.get("podGroupTemplateRef") or {}).get("workload")
    if reference:
        names = {"workloadName": reference["workloadName"], "templateName": reference["podGroupTemplateName"]}
        made["workloadRef"] = names
    return made


def _older_spec(spec: Object) -> Object:
    made = {name: value for name, value in spec.items() if name not in ("workloadRef", "disruptionMode")}
    mode = spec.get("disruptionMode")
    if mode is not None:
        made["disruptionMode"] = next((word for word, known in _MODES.items() if known == mode), "Pod")
    if reference := spec.get("workloadRef"):
        names = {"workloadName": reference["workloadName"], "podGroupTemplateName": reference["templateName"]}
        made["podGroupTemplateRef"] = {"workload": names}
    return made


def _relabelled(obj: Object, spec: Object, api_version: str) -> Object:
    """Its owners are of the same version: a Workload owns its groups."""
    metadata = obj["metadata"]
    if owners := metadata.get("ownerReferences"):
        known = (_NEWER, _OLDER)
        owners = [{**owner, "apiVersion": api_version} if owner["apiVersion"] in known else owner for owner in owners]
        metadata = {**metadata, "ownerReferences": owners}
    return {**obj, "apiVersion": api_version, "metadata": metadata, "spec": spec}
