"""Takes pods out of the state for a what-if, on many nodes at once, and puts all of them back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType

from kubesched.state.pods import PlacedPod, PodTable


class Absence:
    """A context in which placed pods may leave and return. Pods that are absent when it ends return then.

    Only ClusterState makes one. Whoever else changes the state meanwhile must undo it before the end.
    """

    def __init__(self, pods: PodTable, remove: Callable[[PlacedPod], None], place: Callable[[PlacedPod], None]) -> None:
        self._pods = pods
        self._remove = remove
        self._place = place
        self._absent: dict[str, PlacedPod] = {}
        self._on_row: dict[int, list[PlacedPod]] = {}
        """By row the pods that were there before, in the order that decides between victims."""

    def __enter__(self) -> Absence:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bring_back(list(self._absent.values()))
        for row, pods in self._on_row.items():
            self._pods.restore(row, pods)

    def take(self, pods: Iterable[PlacedPod]) -> None:
        """Take these pods away, until `bring_back` or the end."""
        for pod in pods:
            if pod.row not in self._on_row:
                self._on_row[pod.row] = list(self._pods.pods_on(pod.row))
            self._remove(pod)
            self._absent[pod.pod.identity] = pod

    def bring_back(self, pods: Iterable[PlacedPod]) -> None:
        for pod in pods:
            self._place(self._absent.pop(pod.pod.identity))
