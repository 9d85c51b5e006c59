"""Volumes of pods."""

from __future__ import annotations

from kubesched.admission import names
from kubesched.admission.mistakes import Mistakes
from kubesched.admission.reading import fill, mapping, text
from kubesched.api.kinds import Object

_MODE = 0o644
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
        if not name:
            mistakes.required(f"{field}.name")
        elif told := names.label(name):
            mistakes.invalid_each(f"{field}.name", name, told)
        if name in seen:
            mistakes.duplicate(f"{field}.name", name)
        seen.add(name)
    return frozenset(seen)


def _check_source(volume: Object, where: str, mistakes: Mistakes) -> None:
    sources = [key for key in volume if key != "name" and volume.get(key) is not None]
    if not sources:
        mistakes.required(where, "must specify a volume type")
    for key in sources[1:]:
        mistakes.forbidden(f"{where}.{key}", "may not specify more than 1 volume type")
    if "persistentVolumeClaim" in sources and not text(volume["persistentVolumeClaim"], "claimName"):
        mistakes.required(f"{where}.persistentVolumeClaim.claimName")
    if "ephemeral" in sources and not mapping(volume["ephemeral"], "volumeClaimTemplate"):
        mistakes.required(f"{where}.ephemeral.volumeClaimTemplate")
    if "csi" in sources and not text(volume["csi"], "driver"):
        mistakes.required(f"{where}.csi.driver")
    if "hostPath" in sources and not text(volume["hostPath"], "path"):
        mistakes.required(f"{where}.hostPath.path")
