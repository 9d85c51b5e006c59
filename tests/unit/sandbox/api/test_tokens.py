from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from tests.living_sandbox import pod
from tests.sandbox_server import fresh_api, refused

from kubesched.admission import REVIEWS
from kubesched.api.kinds import NODES, PODS, SECRETS, SERVICE_ACCOUNTS, Object
from kubesched_sandbox.api import Api
from kubesched_sandbox.api.tokens import ADMIN, ISSUER, InvalidTokenError, Tokens, review

NOW = 1_800_000_000
TOKEN_REVIEWS = next(resource for resource in REVIEWS if resource.kind == "TokenReview")


class Issuer:
    """Issues tokens of the default service account, and asks about them, at a time that tests set."""

    def __init__(self) -> None:
        self.now = float(NOW)
        self.api: Api = fresh_api(clock=lambda: self.now)
        self.tokens = Tokens(self.api)
        self.account = self.api.get(SERVICE_ACCOUNTS, "default", "default")

    def request(self, **spec: Any) -> Object:
        return self.tokens.issue(self.account, {"spec": spec})

    def token(self, **spec: Any) -> str:
        token: str = self.request(**spec)["status"]["token"]
        return token

    def review(self, token: str, **spec: Any) -> Object:
        status: Object = review(TOKEN_REVIEWS, {"spec": {"token": token, **spec}}, ADMIN, self.tokens)["status"]
        return status

    def bound_to(self, kind: str, obj: Object, **more: str) -> str:
        return self.token(boundObjectRef={"kind": kind, "apiVersion": "v1", "name": obj["metadata"]["name"], **more})


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def claims_of(token: str) -> Any:
    return msgspec.json.decode(decoded(token.split(".")[1]))


def test_a_token_is_a_jwt_with_the_claims_of_kubernetes() -> None:
    issuer = Issuer()
    claims = claims_of(issuer.token())
    account = {"name": "default", "uid": issuer.account["metadata"]["uid"]}
    assert len(claims.pop("jti")) == 36
    assert claims == {
        "aud": [ISSUER],
        "exp": NOW + 3600,
        "iat": NOW,
        "iss": ISSUER,
        "nbf": NOW,
        "sub": "system:serviceaccount:default:default",
        "kubernetes.io": {"namespace": "default", "serviceaccount": account},
    }


def test_others_can_verify_a_token_by_the_published_key() -> None:
    issuer = Issuer()
    token = issuer.token()
    (key,) = issuer.tokens.key_set["keys"]
    text, _, signature = token.rpartition(".")
    header = msgspec.json.decode(decoded(text.split(".")[0]))
    assert (header["alg"], header["kid"]) == (key["alg"], key["kid"]) == ("ES256", key["kid"])
    x, y, r, s = (
        int.from_bytes(part, "big")
        for part in (decoded(key["x"]), decoded(key["y"]), decoded(signature)[:32], decoded(signature)[32:])
    )
    public = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
    public.verify(encode_dss_signature(r, s), text.encode(), ec.ECDSA(hashes.SHA256()))


def test_a_token_lasts_and_is_for_whom_the_request_says() -> None:
    issuer = Issuer()
    request = issuer.request(expirationSeconds=600, audiences=["vault", "ci"])
    assert claims_of(request["status"]["token"])["exp"] == NOW + 600
    assert claims_of(request["status"]["token"])["aud"] == ["vault", "ci"]
    assert request["status"]["expirationTimestamp"] == "2027-01-15T08:10:00Z"


def test_a_review_names_the_account_and_the_credential() -> None:
    issuer = Issuer()
    token = issuer.token()
    assert issuer.review(token) == {
        "authenticated": True,
        "audiences": [ISSUER],
        "user": {
            "username": "system:serviceaccount:default:default",
            "uid": issuer.account["metadata"]["uid"],
            "groups": ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
            "extra": {"authentication.kubernetes.io/credential-id": [f"JTI={claims_of(token)['jti']}"]},
        },
    }


def test_a_review_answers_for_the_audiences_that_it_is_asked_about() -> None:
    issuer = Issuer()
    token = issuer.token(audiences=["vault"])
    assert issuer.review(token, audiences=["vault", "ci"])["audiences"] == ["vault"]
    refusal = 'token audiences ["vault"] is invalid for the target audiences ["ci"]'
    assert issuer.review(token, audiences=["ci"]) == {"user": {}, "error": f"[invalid bearer token, {refusal}]"}


def test_a_token_is_good_until_it_expires() -> None:
    issuer = Issuer()
    token = issuer.token(expirationSeconds=600)
    issuer.now += 599
    assert issuer.review(token)["authenticated"] is True
    issuer.now += 1
    assert issuer.review(token) == {"user": {}, "error": "[invalid bearer token, service account token has expired]"}


def test_a_token_of_another_server_or_with_other_words_is_unknown() -> None:
    issuer = Issuer()
    head, words, signature = issuer.token().split(".")
    forged = base64.urlsafe_b64encode(decoded(words).replace(b":default", b":builder")).decode().rstrip("=")
    for token in (
        Issuer().token(),
        f"{head}.{forged}.{signature}",
        f"{head}.{words}.",
        f"{head}.{words}.é",
        "abc",
        "..",
    ):
        assert issuer.review(token) == {"user": {}, "error": "invalid bearer token"}


@pytest.mark.parametrize("kind", ["Pod", "Secret", "Node"])
def test_a_bound_token_ends_with_its_object(kind: str) -> None:
    issuer = Issuer()
    resource = {"Pod": PODS, "Secret": SECRETS, "Node": NODES}[kind]
    namespace = "default" if resource.namespaced else ""
    obj = issuer.api.create(resource, namespace, pod("x") if kind == "Pod" else {"metadata": {"name": "x"}})
    token = issuer.bound_to(kind, obj, uid=obj["metadata"]["uid"])
    assert claims_of(token)["kubernetes.io"][kind.lower()] == {"name": "x", "uid": obj["metadata"]["uid"]}
    assert issuer.review(token)["authenticated"] is True
    issuer.api.delete(resource, namespace, "x", grace=0)
    assert "authenticated" not in issuer.review(token)


def test_a_token_of_a_pod_names_its_node() -> None:
    issuer = Issuer()
    node = issuer.api.create(NODES, "", {"metadata": {"name": "n"}})
    placed = issuer.api.create(PODS, "default", pod("x", nodeName="n"))
    token = issuer.bound_to("Pod", placed)
    assert claims_of(token)["kubernetes.io"]["node"] == {"name": "n", "uid": node["metadata"]["uid"]}
    assert issuer.review(token)["user"]["extra"]["authentication.kubernetes.io/node-name"] == ["n"]


def test_a_token_ends_with_its_account() -> None:
    issuer = Issuer()
    token = issuer.token()
    issuer.api.delete(SERVICE_ACCOUNTS, "default", "default")
    with pytest.raises(InvalidTokenError):
        issuer.tokens.user(token)


@pytest.mark.parametrize("seconds", [599, 2**32 + 1])
def test_a_token_for_too_short_or_too_long_is_refused(seconds: int) -> None:
    with refused(422, "Invalid"):
        Issuer().request(expirationSeconds=seconds)


def test_a_token_is_bound_only_to_what_is_there_and_belongs_to_the_account() -> None:
    issuer = Issuer()
    with refused(404, "NotFound"):
        issuer.bound_to("Secret", {"metadata": {"name": "missing"}})
    other = issuer.api.create(SERVICE_ACCOUNTS, "default", {"metadata": {"name": "other"}})
    stranger = issuer.api.create(PODS, "default", pod("x", serviceAccountName=other["metadata"]["name"]))
    with refused(400, "BadRequest"):
        issuer.bound_to("Pod", stranger)
    secret = issuer.api.create(SECRETS, "default", {"metadata": {"name": "s"}})
    with refused(409, "Conflict"):
        issuer.bound_to("Secret", secret, uid="another")
    with refused(400, "BadRequest"):
        issuer.bound_to("ConfigMap", secret)
