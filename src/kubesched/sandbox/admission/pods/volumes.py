"""Volumes of pods."""

from __future__ import annotations

from kubesched.api.kinds import Object
from kubesched.sandbox.admission import names
from kubesched.sandbox.admission.faults import Faults
from kubesched.sandbox.admission.reading import fill, mapping, optional_mapping, text

_MODE = 0o644
_WITH_MODE = ("configMap", "secret", "projected", "downwardAPI")


def fill_volume(volume: Object, where: str) -> None:
    if not any(key != "name" for key in volume):
        volume["emptyDir"] = {}
    for key in _WITH_MODE:
        if volume.get(key) is not None:
            fill(mapping(volume, key, where), "defaultMode", _MODE)
    if volume.get("hostPath") is not None:
        fill(mapping(volume, "hostPath", where), "type", "")
    template = mapping(mapping(volume, "ephemeral", where), "volumeClaimTemplate", where)
    if template.get("spec") is not None:
        fill(mapping(template, "spec", where), "volumeMode", "Filesystem")


def check_volumes(volumes: list[Object], where: str, faults: Faults) -> frozenset[str]:
    """The names that containers may mount."""
    seen: set[str] = set()
    for i, volume in enumerate(volumes):
        field = f"{where}[{i}]"
        _check_source(volume, field, faults)
        name = text(volume, "name", field)
        if not name:
            faults.required(f"{field}.name")
        elif told := names.label(name):
            faults.invalid_each(f"{field}.name", name, told)
        if name in seen:
            faults.duplicate(f"{field}.name", name)
        seen.add(name)
    return frozenset(seen)


def _check_source(volume: Object, where: str, faults: Faults) -> None:
    sources = [key for key in volume if key != "name" and optional_mapping(volume, key, where) is not None]
    if not sources:
        faults.required(where, "must specify a volume type")
    for key in sources[1:]:
        faults.forbidden(f"{where}.{key}", "may not specify more than 1 volume type")
    if "persistentVolumeClaim" in sources and not text(volume["persistentVolumeClaim"], "claimName", where):
        faults.required(f"{where}.persistentVolumeClaim.claimName")
    if "ephemeral" in sources and not mapping(volume["ephemeral"], "volumeClaimTemplate", where):
        faults.required(f"{where}.ephemeral.volumeClaimTemplate")
    if "csi" in sources and not text(volume["csi"], "driver", where):
        faults.required(f"{where}.csi.driver")
    if "hostPath" in sources and not text(volume["hostPath"], "path", where):
        faults.required(f"{where}.hostPath.path")
