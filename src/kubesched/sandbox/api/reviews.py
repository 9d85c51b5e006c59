"""Questions that are answered and not stored: who a user is, and what they may do."""

from __future__ import annotations

from kubesched.api.api_error import invalid, no_such_resource
from kubesched.api.kinds import Object, Resource
from kubesched.api.schema import Mistake
from kubesched.sandbox.api.identities import ANONYMOUS, AUDIENCE, Tokens, User

_ALLOWED = {"allowed": True, "reason": "everything is allowed in the sandbox"}
_DENIED = {"allowed": False, "reason": "a token is asked for"}


def review(resource: Resource, obj: Object, user: User, tokens: Tokens) -> Object:
    """The object with its answer as the status."""
    asked = {**obj, "kind": resource.kind, "apiVersion": resource.api_version}
    asked.setdefault("metadata", {})
    spec = obj.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    match resource.kind:
        case "TokenReview":
            return {**asked, "status": _token_review(resource, spec, tokens)}
        case "SelfSubjectReview":
            return {**asked, "status": {"userInfo": user.describe()}}
        case "SelfSubjectRulesReview":
            return {**asked, "status": _rules()}
        case "SubjectAccessReview" | "LocalSubjectAccessReview" | "SelfSubjectAccessReview":
            _check_access(resource, spec)
            is_refused = tokens.required and spec.get("user") == ANONYMOUS.name
            return {**asked, "status": _DENIED if is_refused else _ALLOWED}
        case _:
            raise no_such_resource()


def _token_review(resource: Resource, spec: Object, tokens: Tokens) -> Object:
    token = spec.get("token")
    if not isinstance(token, str) or not token:
        raise invalid(resource, "", [Mistake("spec.token", "Required value: must be set", "FieldValueRequired")])
    user = tokens.user(token)
    if user is None:
        return {"authenticated": False, "user": {}, "error": "invalid bearer token"}
    return {"authenticated": True, "user": user.describe(), "audiences": [AUDIENCE]}


def _check_access(resource: Resource, spec: Object) -> None:
    about = [key for key in ("resourceAttributes", "nonResourceAttributes") if spec.get(key)]
    if len(about) != 1:
        why = "Invalid value: exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise invalid(resource, "", [Mistake("spec.resourceAttributes", why)])


def _rules() -> Object:
    every = ["*"]
    return {
        "resourceRules": [{"verbs": every, "apiGroups": every, "resources": every}],
        "nonResourceRules": [{"verbs": every, "nonResourceURLs": every}],
        "incomplete": False,
    }
