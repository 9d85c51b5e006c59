from __future__ import annotations

from tests.living_sandbox import LivingSandbox

from kubesched.api.kinds import CONFIG_MAPS, NAMESPACES
from kubesched_sandbox.api.conditions import condition_of


def test_every_namespace_has_the_certificate_authority_also_without_tls() -> None:
    cluster = LivingSandbox()
    cluster.create(NAMESPACES, {"metadata": {"name": "team"}})
    for namespace in ("default", "kube-system", "team"):
        assert cluster.get(CONFIG_MAPS, "kube-root-ca.crt", namespace)["data"] == {"ca.crt": ""}


def test_a_published_authority_that_was_changed_or_deleted_comes_back() -> None:
    cluster = LivingSandbox()
    cluster.change(CONFIG_MAPS, "kube-root-ca.crt", {"data": {"ca.crt": "mine"}})
    assert cluster.get(CONFIG_MAPS, "kube-root-ca.crt")["data"] == {"ca.crt": ""}
    cluster.delete(CONFIG_MAPS, "kube-root-ca.crt")
    assert cluster.get(CONFIG_MAPS, "kube-root-ca.crt")["data"] == {"ca.crt": ""}


def test_a_namespace_that_is_being_deleted_says_what_keeps_it() -> None:
    cluster = LivingSandbox()
    cluster.create(NAMESPACES, {"metadata": {"name": "team"}})
    cluster.create(CONFIG_MAPS, {"metadata": {"name": "held", "finalizers": ["example.com/keep"]}}, "team")
    cluster.delete(NAMESPACES, "team")
    conditions = {each["type"]: each for each in cluster.get(NAMESPACES, "team")["status"]["conditions"]}
    assert [each["status"] for each in conditions.values()] == ["False", "False", "False", "True", "True"]
    remaining = conditions["NamespaceContentRemaining"]
    assert remaining["reason"] == "SomeResourcesRemain"
    assert remaining["message"] == "Some resources are remaining: configmaps. has 1 resource instances"
    told = "Some content in the namespace has finalizers remaining: example.com/keep in 1 resource instances"
    assert conditions["NamespaceFinalizersRemaining"]["message"] == told
    cluster.api.patch(CONFIG_MAPS, "team", "held", {"metadata": {"finalizers": None}})
    assert cluster.api.find(NAMESPACES, "", "team") is None


def test_the_conditions_of_a_namespace_follow_what_is_left_in_it() -> None:
    cluster = LivingSandbox()
    cluster.create(NAMESPACES, {"metadata": {"name": "team"}})
    for name in ("one", "two"):
        cluster.create(CONFIG_MAPS, {"metadata": {"name": name, "finalizers": ["example.com/keep"]}}, "team")
    cluster.delete(NAMESPACES, "team")
    cluster.api.patch(CONFIG_MAPS, "team", "one", {"metadata": {"finalizers": None}})
    cluster.run(5)
    remaining = condition_of(cluster.get(NAMESPACES, "team"), "NamespaceContentRemaining")
    assert remaining is not None
    assert remaining["message"] == "Some resources are remaining: configmaps. has 1 resource instances"
