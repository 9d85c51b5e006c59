"""What extends an API server: webhooks and policies, which a sandbox never asks; requests for certificates."""

from __future__ import annotations

from kubesched.admission.mistakes import Mistakes
from kubesched.admission.reading import mapping
from kubesched.admission.rules import Rules
from kubesched.api.kinds import Object, Resource

WEBHOOKS = frozenset(("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"))
POLICIES = frozenset(
    (
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    )
)
_INERT = {
    **dict.fromkeys(WEBHOOKS, "webhooks are stored, and never called"),
    **dict.fromkeys(POLICIES, "admission policies are stored, and never asked"),
    "APIService": "API services are stored, and no request is passed on to them",
    "NetworkPolicy": "network policies are stored; hollow pods have no network",
    "CertificateSigningRequest": "requests are stored and can be approved; nothing signs them",
}


def is_inert(resource: Resource) -> str:
    """What a user should know who writes such an object: that nothing follows from it here. Empty for other kinds."""
    words = _INERT.get(resource.kind, "") if resource.group.endswith(".k8s.io") else ""
    return words and f"in a sandbox, {words}"


def _approved(new: Object, old: Object, _: Mistakes) -> Object:
    conditions = mapping(new, "status").get("conditions") or []
    return {**old, "status": {**mapping(old, "status"), "conditions": conditions}}


SIGNING_REQUEST = Rules(immutable=("spec",), takes={"approval": _approved})
