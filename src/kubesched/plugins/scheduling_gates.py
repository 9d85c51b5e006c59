"""SchedulingGates: a pod with gates is not looked at until they are gone."""

from __future__ import annotations

from kubesched.api.pod import Pod
from kubesched.framework.events import Action, Interest
from kubesched.framework.plugin import PreEnqueuePlugin
from kubesched.framework.status import Status, unresolvable
from kubesched.plugins.shared.hinting import waits_for_pods
from kubesched.state.cluster import ClusterState


class SchedulingGates(PreEnqueuePlugin):
    """Holds back pods that have scheduling gates."""

    name = "SchedulingGates"

    def events_to_register(self) -> tuple[Interest, ...]:
        return waits_for_pods(self.context.features.release, own=Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)

    def pre_enqueue(self, pod: Pod, state: ClusterState) -> Status | None:
        gates = [gate.name for gate in pod.spec.scheduling_gates]
        if not gates:
            return None
        return unresolvable(f"waiting for scheduling gates: [{' '.join(gates)}]")
