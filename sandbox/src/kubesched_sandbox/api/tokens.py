"""Who asks: users, the signed tokens of service accounts, and reviews of tokens and of access.

A token is a JWT, as kube-apiserver issues it, so nothing of it is kept: it is good until it expires, as long as its
service account, and the object that it is bound to, are there.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from kubesched.api.api_error import bad_request, conflict, invalid, no_such_resource
from kubesched.api.kinds import NODES, PODS, SECRETS, SERVICE_ACCOUNTS, Object, Resource
from kubesched.api.schema import Mistake
from kubesched_sandbox.api.reading import Reading
from kubesched_sandbox.api.stamps import timestamp

ISSUER = "https://kubernetes.default.svc.cluster.local"
"""Issues every token, and is the audience of those that name none."""
_SHORTEST, _DEFAULT_SECONDS, _LONGEST = 600, 3600, 1 << 32
_BOUND = {"Pod": PODS, "Secret": SECRETS, "Node": NODES}
_TOKEN_REQUESTS = Resource("authentication.k8s.io", "v1", "tokenrequests", "TokenRequest")


class UserInfo(NamedTuple):
    """A user as reviews describe it."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, str], ...] = ()
    """Of a token: which it is, and the pod and node that it is bound to."""

    def describe(self) -> Object:
        described: Object = {"username": self.name, "groups": list(self.groups)}
        if self.uid:
            described["uid"] = self.uid
        if self.extra:
            described["extra"] = {f"authentication.kubernetes.io/{key}": [value] for key, value in self.extra}
        return described


ADMIN = UserInfo("kubernetes-admin", "", ("system:masters", "system:authenticated"))
"""A client with the server's token; any client where there is none."""
ANONYMOUS = UserInfo("system:anonymous", "", ("system:unauthenticated",))
"""A client without a token where the server asks for one."""


class InvalidTokenError(Exception):
    """A token that was issued here, and is good no longer or not for this audience."""


class _SigningKey:
    """A key that signs JWTs by ES256: ECDSA with P-256 and SHA-256."""

    def __init__(self) -> None:
        self._private = ec.generate_private_key(ec.SECP256R1())
        numbers = self._private.public_key().public_numbers()
        x, y = (_base64(number.to_bytes(32, "big")) for number in (numbers.x, numbers.y))
        self.identity = _base64(hashlib.sha256(f"{x}.{y}".encode()).digest())
        self.public: Object = {
            "use": "sig",
            "kty": "EC",
            "kid": self.identity,
            "crv": "P-256",
            "alg": "ES256",
            "x": x,
            "y": y,
        }
        self._header = _base64(msgspec.json.encode({"alg": "ES256", "kid": self.identity}))

    def signed(self, claims: Object) -> str:
        text = f"{self._header}.{_base64(msgspec.json.encode(claims))}"
        r, s = decode_dss_signature(self._private.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{text}.{_base64(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"

    def verified(self, token: str) -> Object | None:
        """What a token says; None unless this key signed it."""
        text, _, signature = token.rpartition(".")
        header, _, payload = text.partition(".")
        try:
            raw = _from_base64(signature)
            if header != self._header or len(raw) != 64:
                return None
            encoded = encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
            self._private.public_key().verify(encoded, text.encode(), ec.ECDSA(hashes.SHA256()))
            claims: Object = msgspec.json.decode(_from_base64(payload))
            return claims
        except (InvalidSignature, ValueError):
            return None


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _from_base64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4))


class Tokens:
    """The server's own token, and those of service accounts. Without its own, any client is the administrator."""

    def __init__(self, api: Reading, secret: str | None = None) -> None:
        self._api, self._secret = api, secret
        self.required = secret is not None

    @cached_property
    def _key(self) -> _SigningKey:
        return _SigningKey()

    @property
    def key_set(self) -> Object:
        """The JSON Web Key Set by which others verify tokens."""
        return {"keys": [self._key.public]}

    def user(self, token: str, audiences: tuple[str, ...] = (ISSUER,)) -> UserInfo | None:
        """Whose token it is; None unless it was issued here. InvalidTokenError if it is not good for the audiences."""
        if self._secret is not None and hmac.compare_digest(token.encode(errors="replace"), self._secret.encode()):
            return ADMIN
        claims = self._key.verified(token)
        if claims is None:
            return None
        if not set(audiences) & set(claims["aud"]):
            expected, actual = _quoted(audiences), _quoted(claims["aud"])
            why = f"token audiences {actual} is invalid for the target audiences {expected}"
            raise InvalidTokenError(f"[invalid bearer token, {why}]")
        if claims["exp"] <= self._api.stamps.time():
            raise InvalidTokenError("[invalid bearer token, service account token has expired]")
        bound = claims["kubernetes.io"]
        if not self._is_there(bound):
            raise InvalidTokenError("[invalid bearer token, service account token has been invalidated]")
        extra = {"credential-id": f"JTI={claims['jti']}"}
        for kind in ("pod", "node"):
            extra |= {f"{kind}-{key}": bound[kind][key] for key in ("name", "uid") if kind in bound}
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{bound['namespace']}", "system:authenticated")
        return UserInfo(claims["sub"], bound["serviceaccount"]["uid"], groups, tuple(extra.items()))

    def audiences_of(self, token: str, audiences: tuple[str, ...]) -> list[str]:
        """For which of these a token is good, once its user is known."""
        claims = self._key.verified(token)
        return [audience for audience in audiences if claims is None or audience in claims["aud"]]

    def issue(self, account: Object, request: Object) -> Object:
        """Answer a TokenRequest of a service account."""
        spec = request.get("spec")
        spec = dict(spec) if isinstance(spec, dict) else {}
        seconds = spec.setdefault("expirationSeconds", _DEFAULT_SECONDS)
        audiences = spec["audiences"] = spec.get("audiences") or [ISSUER]
        if not isinstance(seconds, int) or isinstance(seconds, bool):
            raise bad_request("spec.expirationSeconds must be a number")
        if not isinstance(audiences, list) or not all(isinstance(audience, str) for audience in audiences):
            raise bad_request("spec.audiences must be a list of texts")
        if not _SHORTEST <= seconds <= _LONGEST:
            limit = "less than 10 minutes" if seconds < _SHORTEST else "larger than 2^32 seconds"
            why = f"Invalid value: {seconds}: may not specify a duration {limit}"
            raise invalid(_TOKEN_REQUESTS, "", [Mistake("spec.expirationSeconds", why)])
        now, metadata = self._api.stamps.time(), account["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        bound = {"namespace": namespace, "serviceaccount": _reference(account)}
        claims = {
            "aud": audiences,
            "exp": int(now) + seconds,
            "iat": int(now),
            "iss": ISSUER,
            "jti": self._api.stamps.uid(),
            "kubernetes.io": bound | self._bound_to(spec.get("boundObjectRef"), namespace, name),
            "nbf": int(now),
            "sub": f"system:serviceaccount:{namespace}:{name}",
        }
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {**_reference(account), "namespace": namespace, "creationTimestamp": self._api.stamps.now()},
            "spec": spec,
            "status": {"token": self._key.signed(claims), "expirationTimestamp": timestamp(now + seconds)},
        }

    def _bound_to(self, reference: Any, namespace: str, account: str) -> Object:
        """The object that a token is to be bound to, and of a pod its node, too."""
        if reference is None:
            return {}
        if not isinstance(reference, dict) or reference.get("kind") not in _BOUND:
            raise bad_request(f"cannot bind token to object of type {reference}")
        kind, name = reference["kind"], str(reference.get("name", ""))
        resource = _BOUND[kind]
        obj = self._api.get(resource, namespace if resource.namespaced else "", name)
        bound = {kind.lower(): _reference(obj)}
        if resource is PODS:
            if obj["spec"].get("serviceAccountName") != account:
                why = "pod running with different serviceaccount name."
                raise bad_request(f'cannot bind token for serviceaccount "{account}" to {why}')
            node = self._api.find(NODES, "", obj["spec"].get("nodeName") or "")
            if node is not None:
                bound["node"] = _reference(node)
        if reference.get("uid") and reference["uid"] != obj["metadata"]["uid"]:
            why = f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record."
            raise conflict(resource, name, f"{why} The object might have been deleted and then recreated")
        return bound

    def _is_there(self, bound: Object) -> bool:
        """Whether the service account of a token, and the object that it is bound to, are those that they were."""
        holders = {"serviceaccount": SERVICE_ACCOUNTS, "pod": PODS, "secret": SECRETS}
        if "pod" not in bound:
            holders["node"] = NODES
        for kind in holders.keys() & bound.keys():
            namespace = bound["namespace"] if holders[kind].namespaced else ""
            obj = self._api.find(holders[kind], namespace, bound[kind]["name"])
            if obj is None or obj["metadata"]["uid"] != bound[kind]["uid"]:
                return False
        return True


def _reference(obj: Object) -> Object:
    return {key: obj["metadata"][key] for key in ("name", "uid")}


def _quoted(texts: Any) -> str:
    return "[" + " ".join(f'"{text}"' for text in texts) + "]"


# -- reviews ----------------------------------------------------------------------------------------------------------


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
    audiences = tuple(spec.get("audiences") or (ISSUER,))
    try:
        user = tokens.user(token, audiences)
    except InvalidTokenError as error:
        return {"user": {}, "error": str(error)}
    if user is None:
        return {"user": {}, "error": "invalid bearer token"}
    return {"authenticated": True, "user": user.describe(), "audiences": tokens.audiences_of(token, audiences)}


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
