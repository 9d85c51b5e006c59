"""What the server fills in: times, uids, generated names; tokens of service accounts, and TokenReviews."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

from kubesched.api.api_error import bad_request, invalid, no_such_resource
from kubesched.api.kinds import SERVICE_ACCOUNTS, Object, Resource
from kubesched.api.schema import Mistake

# No vowels and no look-alikes, so that no generated name is a word.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
_LONGEST_BASE = 63 - _SUFFIX_LENGTH


class Stamps:
    """A clock and a source of randomness, both passed in."""

    def __init__(self, clock: Callable[[], float] = time.time, rng: random.Random | None = None) -> None:
        self._clock = clock
        self._rng = rng or random.Random()
        self._second = -1
        self._text = ""

    def time(self) -> float:
        return self._clock()

    def now(self) -> str:
        """The time as objects carry it, in whole seconds."""
        second = int(self._clock())
        if second != self._second:
            self._second, self._text = second, timestamp(second)
        return self._text

    def uid(self) -> str:
        digits = f"{self._rng.getrandbits(128):032x}"
        # Version 4, variant 1, as uuid.UUID would set them at three times the price.
        variant = "89ab"[int(digits[16], 16) & 3]
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"

    def name(self, base: str) -> str:
        """A name that begins like this and is most likely free."""
        return base[:_LONGEST_BASE] + "".join(self._rng.choices(_ALPHABET, k=_SUFFIX_LENGTH))

    def token(self) -> str:
        return f"{self._rng.getrandbits(256):064x}"


def timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_timestamp(seconds: float) -> str:
    """As leases carry it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds_of(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def identity(stamps: Stamps, metadata: Object, namespace: str) -> Object:
    """The metadata of a new object: fields that only the server sets replace what the client sent."""
    kept = {key: value for key, value in metadata.items() if key not in _SERVER_SIDE}
    if namespace:
        kept["namespace"] = namespace
    kept["uid"] = stamps.uid()
    kept["creationTimestamp"] = stamps.now()
    return kept


_SERVER_SIDE = frozenset(
    ("uid", "creationTimestamp", "resourceVersion", "generation", "selfLink", "deletionTimestamp",
     "deletionGracePeriodSeconds", "namespace")
)  # fmt: skip


# -- tokens, and reviews, which answer whose a token is and what its owner may do -------------------------------------


_SHORTEST, _DEFAULT_SECONDS = 600, 3600
AUDIENCE = "https://kubernetes.default.svc.cluster.local"


class UserInfo(NamedTuple):
    """A user as reviews describe it."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()

    def describe(self) -> Object:
        described: Object = {"username": self.name, "groups": list(self.groups)}
        return {**described, "uid": self.uid} if self.uid else described


ADMIN = UserInfo("kubernetes-admin", "", ("system:masters", "system:authenticated"))
"""A client with the server's token; any client where there is none."""
ANONYMOUS = UserInfo("system:anonymous", "", ("system:unauthenticated",))
"""A client without a token where the server asks for one."""


class Tokens:
    """Tokens with their users. A server without a token treats every client as the administrator."""

    def __init__(self, stamps: Stamps, secret: str | None = None) -> None:
        self._stamps = stamps
        self._known: dict[str, tuple[UserInfo, float]] = {}
        self.required = secret is not None
        if secret is not None:
            self._known[secret] = (ADMIN, float("inf"))

    def user(self, token: str) -> UserInfo | None:
        found = self._known.get(token)
        if found is None:
            return None
        user, expires = found
        if expires <= self._stamps.time():
            del self._known[token]
            return None
        return user

    def issue(self, account: Object, request: Object) -> Object:
        """Answer a TokenRequest of a service account with a token that is known from now on."""
        spec = request.get("spec")
        spec = spec if isinstance(spec, dict) else {}
        seconds = spec.get("expirationSeconds", _DEFAULT_SECONDS)
        name, namespace = account["metadata"]["name"], account["metadata"]["namespace"]
        if not isinstance(seconds, int) or isinstance(seconds, bool):
            raise bad_request("spec.expirationSeconds must be a number")
        if not _SHORTEST <= seconds <= 1 << 32:
            why = f"Invalid value: {seconds}: may not specify a duration less than 10 minutes"
            raise invalid(SERVICE_ACCOUNTS, name, [Mistake("spec.expirationSeconds", why)])
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
        user = UserInfo(f"system:serviceaccount:{namespace}:{name}", account["metadata"]["uid"], groups)
        token, expires = self._stamps.token(), self._stamps.time() + seconds
        self._known[token] = (user, expires)
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"name": name, "namespace": namespace, "creationTimestamp": self._stamps.now()},
            "spec": {"audiences": [AUDIENCE], **spec, "expirationSeconds": seconds},
            "status": {"token": token, "expirationTimestamp": timestamp(expires)},
        }


_ALLOWED = {"allowed": True, "reason": "everything is allowed in the sandbox"}
_DENIED = {"allowed": False, "reason": "a token is asked for"}


def review(resource: Resource, obj: Object, user: UserInfo, tokens: Tokens) -> Object:
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
