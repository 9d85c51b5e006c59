"""Cases of lives in which pods use volumes and devices, which come, change and go as well."""

from __future__ import annotations

from collections.abc import Callable

from tools.recorder.generators import lives, usage
from tools.recorder.generators.drawing import NAMESPACES, Draw, Json


class SuppliedHistory(lives.History):
    """A history with storage and devices. Names are never used twice: a volume that was provisioned stays."""

    def __init__(self, draw: Draw, *, nodes: int, placed: int, modes: tuple[str, ...]) -> None:
        super().__init__(draw, nodes=nodes, placed=placed)
        self._modes = modes
        self._volume_claims: list[str] = []
        self._device_claims: list[str] = []
        self._volumes: list[str] = []
        self._slices = {name for name in self.nodes if draw.chance(0.5)}
        self.objects = [*usage.storage_classes(), *usage.device_classes(), *self.objects]
        self.objects += [usage.device_slice(draw, name) for name in sorted(self._slices)]
        self.objects += [each for name in self.nodes if draw.chance(0.6) for each in [usage.csi_node(draw, name)]]
        for _ in range(draw.number(1, 4)):
            self.objects.append(self._new_volume())
        for _ in range(draw.number(2, 6)):
            self.objects += self._new_volume_claim()

    # -- storage ------------------------------------------------------------------------------------------------------

    def add_volume(self) -> None:
        self.steps.append({"op": "create", "object": self._new_volume()})

    def delete_volume(self) -> None:
        self._delete("PersistentVolume", self._volumes)

    def add_volume_claim(self) -> None:
        self.steps += [{"op": "create", "object": each} for each in self._new_volume_claim()]

    def delete_volume_claim(self) -> None:
        self._delete("PersistentVolumeClaim", self._volume_claims)

    def change_volume_limit(self) -> None:
        """The CSI driver of a node says how many volumes it can take."""
        name = self.draw.one(self.nodes)
        driver = {"name": "csi.example.com", "nodeID": name, "allocatable": {"count": self.draw.number(0, 4)}}
        patch = {"spec": {"drivers": [driver]}}
        self.steps.append({"op": "update", "kind": "CSINode", "name": name, "patch": patch})

    def _new_volume(self) -> Json:
        number = self._number()
        made = usage.volume(self.draw, f"pv{number}", self._labels(), f"{10 + number}Gi")
        self._volumes.append(made["metadata"]["name"])
        return made

    def _new_volume_claim(self) -> list[Json]:
        name, namespace = f"claim{self._number()}", self.draw.one(NAMESPACES)
        self._volume_claims.append(f"{namespace}/{name}")
        return usage.volume_claim(self.draw, name, namespace, self._modes)

    def _labels(self) -> Json:
        nodes = [each["metadata"] for each in self.objects if each["kind"] == "Node"]
        return self.draw.one(nodes)

    # -- devices ------------------------------------------------------------------------------------------------------

    def add_slice(self) -> None:
        without = [name for name in self.nodes if name not in self._slices]
        if without:
            name = self.draw.one(without)
            self._slices.add(name)
            self.steps.append({"op": "create", "object": usage.device_slice(self.draw, name)})

    def replace_slice(self) -> None:
        """Other devices, in a newer generation of the pool."""
        if self._slices:
            name = self.draw.one(sorted(self._slices))
            spec = usage.device_slice(self.draw, name)["spec"]
            spec["pool"]["generation"] = self._number()
            self.steps.append(
                {"op": "update", "kind": "ResourceSlice", "name": f"slice-{name}", "patch": {"spec": spec}}
            )

    def delete_slice(self) -> None:
        if self._slices:
            name = self.draw.one(sorted(self._slices))
            self._slices.remove(name)
            self.steps.append({"op": "delete", "kind": "ResourceSlice", "name": f"slice-{name}"})

    def release_devices(self) -> None:
        """What the controller does when all users of a claim are gone."""
        if self._device_claims:
            patch = {"status": {"reservedFor": None, "allocation": None}}
            name = self.draw.one(self._device_claims)
            self.steps.append({"op": "update", "kind": "ResourceClaim", "name": name, "patch": patch})

    def delete_device_claim(self) -> None:
        self._delete("ResourceClaim", self._device_claims)

    # -- their users --------------------------------------------------------------------------------------------------

    def furnish(self, pod: Json) -> None:
        """Some use a claim for a volume, some one for devices, which may come after them."""
        namespace = pod["metadata"]["namespace"]
        claims = [name.split("/")[1] for name in self._volume_claims if name.startswith(f"{namespace}/")]
        if claims and self.draw.chance(0.5):
            source = {"persistentVolumeClaim": {"claimName": self.draw.one(claims)}}
            pod["spec"]["volumes"] = [{"name": "v", **source}]
        if self.draw.chance(0.35):
            name = self._device_claim(namespace)
            pod["spec"]["resourceClaims"] = [{"name": "d", "resourceClaimName": name}]
            # Which of two gates kube-scheduler asks first is left to chance: docs/differences.md.
            pod["spec"].pop("schedulingGates", None)

    def _device_claim(self, namespace: str) -> str:
        """An existing one, or one that is made before or after the pod."""
        known = [name.split("/")[1] for name in self._device_claims if name.startswith(f"{namespace}/")]
        if known and self.draw.chance(0.3):
            return self.draw.one(known)
        name = f"devices{self._number()}"
        self._device_claims.append(f"{namespace}/{name}")
        step = {"op": "create", "object": usage.device_claim(self.draw, name, namespace)}
        self.steps.insert(len(self.steps) - (1 if self.draw.chance(0.7) else 0), step)
        return name

    def _delete(self, kind: str, names: list[str]) -> None:
        if names:
            name = names.pop(self.draw.number(0, len(names) - 1))
            self.steps.append({"op": "delete", "kind": kind, "name": name})


_SUPPLIES: tuple[Callable[[SuppliedHistory], None], ...] = (
    SuppliedHistory.add_volume,
    SuppliedHistory.delete_volume,
    SuppliedHistory.add_volume_claim,
    SuppliedHistory.add_volume_claim,
    SuppliedHistory.delete_volume_claim,
    SuppliedHistory.change_volume_limit,
    SuppliedHistory.add_slice,
    SuppliedHistory.add_slice,
    SuppliedHistory.replace_slice,
    SuppliedHistory.delete_slice,
    SuppliedHistory.release_devices,
    SuppliedHistory.delete_device_claim,
)


def supplied(draw: Draw) -> Json:
    """A cluster whose pods use volumes and devices, through a hundred steps.

    Where claims are for one pod only, nodes stay: users of such a claim on a node that is gone are counted on purpose
    (docs/differences.md).
    """
    exclusive = draw.chance(0.3)
    modes = ("ReadWriteOnce", "ReadWriteOncePod") if exclusive else ("ReadWriteOnce",)
    told = SuppliedHistory(draw, nodes=draw.number(2, 6), placed=draw.number(0, 6), modes=modes)
    told.keeps_nodes = exclusive
    steps = draw.number(40, 160)
    while len(told.steps) < steps:
        if draw.chance(0.2):
            draw.one(_SUPPLIES)(told)
        else:
            draw.one(lives.OFTEN if draw.chance(0.6) else lives.SELDOM)(told)
    return lives.case_of(told)


FAMILIES: dict[str, Callable[[Draw], Json]] = {"supplied": supplied}
