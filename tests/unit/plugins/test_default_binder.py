from __future__ import annotations

from tests.builders import make_cluster, make_pod

from kubesched.framework.cycle import Cycle
from kubesched.plugins.default_binder import Binding, DefaultBinder


def test_a_binding_is_for_this_pod_and_no_other_of_its_name() -> None:
    pod = make_pod("web", uid="42").build()
    binding = DefaultBinder().bind(Cycle(pod, make_cluster()), pod, "n1")
    assert binding == Binding(namespace="default", name="web", uid="42", node_name="n1")
