"""Replaces the names of a cluster: each by one other, in the same sort order, that says nothing about the original.

Words are numbered in the order in which they sort, so whatever goes by the order of names, such as a draw among equals,
goes the same way afterwards. A digest would not keep the order, and of a common name anyone could guess it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from kubesched.api.devices import IMPLICIT_PREFIX
from kubesched.api.well_known import HOSTNAME, SYSTEM_PRIORITY_CLASSES
from kubesched.plugins.shared.csi_migration import MIGRATIONS

KEPT_DOMAINS = ("kubernetes.io", "k8s.io")
"""Keys of labels, taints and gates in these and what is below them are Kubernetes' own, and stay."""
KEPT_KEYS = frozenset(("metadata.name", *(migration.zone_key for migration in MIGRATIONS.values())))
"""The field that nodes are selected by, and the labels that stand for zones."""
KEPT_VALUES_OF = frozenset(
    (
        "topology.kubernetes.io",
        "failure-domain.beta.kubernetes.io",
        "node.kubernetes.io",
        "beta.kubernetes.io",
    )
)
"""Domains whose values stay: zones, regions, types of machines. What volumes are called is derived from some."""
KEPT_VALUES = frozenset(("kubernetes.io/arch", "kubernetes.io/os", *KEPT_KEYS)) - {"metadata.name"}
KEPT_WORDS = frozenset(SYSTEM_PRIORITY_CLASSES)

_ORDINAL = re.compile(r"(?P<base>.+)-(?P<ordinal>\d+)")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_TAG = ":latest"
_EBS = "aws://"
_EBS_ID = "vol-"


class Pseudonyms:
    """Collects names first; once `settle` was called, gives a pseudonym for each.

    Some names are made of others: the claim of an ephemeral volume, the pods and claims of a StatefulSet. Those are
    noted with `made_of` and `numbered`, and stay made of them.
    """

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._instead: dict[str, str] = {}
        self._made_of: dict[str, tuple[str, ...]] = {}
        self._bases: dict[str, tuple[str, ...]] = {}
        self._compared: set[str] = set()
        self._disks: set[str] = set()
        self._originals: dict[str, str] = {}
        self._selecting: set[str] = set()

    # -- what is noted while collecting -------------------------------------------------------------------------------

    def selects(self, text: str) -> None:
        """Devices are selected by the attributes that this text names."""
        if text:
            self._selecting.update(_IDENTIFIER.findall(text))

    def is_selected_by(self, attribute: str) -> bool:
        """Whether an expression or a constraint names the attribute, with its domain or without."""
        return attribute.rpartition("/")[2] in self._selecting

    def made_of(self, parts: tuple[str, ...]) -> None:
        """There may be an object whose name is these, joined by dashes."""
        self._seen.update(parts)
        self._made_of["-".join(parts)] = parts

    def numbered(self, parts: tuple[str, ...]) -> None:
        """There may be objects with these, joined by dashes, and a number behind another dash."""
        self._seen.update(parts)
        self._bases["-".join(parts)] = parts

    def compared(self, key: str) -> None:
        """Values of this label are compared as numbers."""
        self._compared.add(key)

    def settle(self) -> None:
        """All words have been seen: number them."""
        width = len(str(len(self._seen)))
        self._instead = {word: f"n{i:0{width}}" for i, word in enumerate(sorted(self._seen))}
        self._instead |= {disk: f"{_EBS_ID}{self._instead[disk]}" for disk in self._disks if disk.startswith(_EBS_ID)}
        numbered = {}
        for word in self._seen:
            numbered_name = _ORDINAL.fullmatch(word)
            if numbered_name is not None and numbered_name["base"] in self._bases:
                numbered[word] = f"{self._joined(self._bases[numbered_name['base']])}-{numbered_name['ordinal']}"
        self._instead |= numbered
        self._instead |= {word: self._joined(parts) for word, parts in self._made_of.items() if word in self._seen}

    def _joined(self, parts: tuple[str, ...]) -> str:
        return "-".join(self._instead[part] for part in parts)

    # -- another word -------------------------------------------------------------------------------------------------

    def name(self, word: str) -> str:
        """For the name of anything; equal names stay equal, whatever they are names of."""
        if not word or word in KEPT_WORDS:
            return word
        if self._instead:
            return self._instead[word]
        self._seen.add(word)
        return word

    def key(self, key: str) -> str:
        """For the key of a label, a taint or a condition."""
        return key if is_kept(key) else self.name(key)

    def value(self, key: str, value: str) -> str:
        """For the value of a label or a taint with this key."""
        if key in KEPT_VALUES or (key != HOSTNAME and key.partition("/")[0] in KEPT_VALUES_OF):
            return value
        if key in self._compared and value.lstrip("-").isdigit():
            return value
        return self.name(value)

    def labels(self, labels: Mapping[str, str]) -> dict[str, str]:
        return {self.key(key): self.value(key, value) for key, value in labels.items()}

    def values(self, key: str, values: Iterable[str]) -> tuple[str, ...]:
        return tuple(self.value(key, value) for value in values)

    def image(self, image: str) -> str:
        """For an image. One without a tag means the latest, and the name of a node's image has its tag."""
        if not image:
            return image
        return self.image_of_node(image if image.rfind(":") > image.rfind("/") else f"{image}{_TAG}")

    def image_of_node(self, image: str) -> str:
        """For an image under a name that a node has for it, which is not completed."""
        return f"{self.name(image)}{_TAG}"

    def disk(self, volume_id: str) -> str:
        """For a disk. Those of EBS may be written aws://zone/id, and are then called by the id."""
        if not volume_id.startswith(_EBS):
            return self.name(volume_id)
        bare = volume_id.rpartition("/")[2]
        self._disks.add(bare)
        return f"{_EBS}/{self.name(bare)}"

    def knows(self, word: str) -> bool:
        """Whether there is another word for it."""
        return word in self._instead

    def original(self, word: str) -> str:
        """What a pseudonym stands for; itself if it stands for nothing."""
        if len(self._originals) != len(self._instead):
            self._originals = {other: original for original, other in self._instead.items()}
        return self._originals.get(word, word)

    def resource(self, name: str) -> str:
        """For a resource: its name stays, as configurations have it, unless it has the name of a class in it."""
        if name.startswith(IMPLICIT_PREFIX):
            return f"{IMPLICIT_PREFIX}{self.name(name.removeprefix(IMPLICIT_PREFIX))}"
        return name

    def request(self, name: str) -> str:
        """For a request of a claim, or one of its alternatives: `gpu/large`."""
        return "/".join(map(self.name, name.split("/")))


def is_kept(key: str) -> bool:
    """Whether a key is one that Kubernetes itself gives a meaning to."""
    domain = key.partition("/")[0] if "/" in key else ""
    return key in KEPT_KEYS or any(domain == kept or domain.endswith(f".{kept}") for kept in KEPT_DOMAINS)
