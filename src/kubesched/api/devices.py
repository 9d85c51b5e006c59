"""Device classes, as far as extended resources go: a class may serve what device plugins used to."""

from __future__ import annotations

from kubesched.api.meta import KubeObject, Record

IMPLICIT_PREFIX = "deviceclass.resource.kubernetes.io/"
"""Before the name of a class: the extended resource that every class serves."""


class DeviceClassSpec(Record, frozen=True):
    """What devices of the class stand for."""

    extended_resource_name: str | None = None


class DeviceClass(KubeObject, frozen=True):
    """A kind of device."""

    spec: DeviceClassSpec = DeviceClassSpec()
