"""What pods are configured with: ConfigMaps, Secrets, ServiceAccounts; and events, which tell what became of them."""

from __future__ import annotations

import base64
import binascii

from kubesched.api.kinds import Object
from kubesched.sandbox.admission import names
from kubesched.sandbox.admission.faults import Faults
from kubesched.sandbox.admission.reading import fill, flag, mapping, records, string_map, text
from kubesched.sandbox.admission.rules import Rules
from kubesched.sandbox.errors import bad_request

_LIMIT = 1024 * 1024
_FROZEN = "field is immutable when `immutable` is set"


def _check_config_map(config_map: Object, faults: Faults) -> None:
    plain, binary = string_map(config_map, "data", ""), string_map(config_map, "binaryData", "")
    flag(config_map, "immutable", "")
    for field, data in (("data", plain), ("binaryData", binary)):
        for key in data:
            faults.invalid_each(f"{field}[{key}]", key, names.config_key(key))
    for key in plain.keys() & binary.keys():
        faults.invalid(f"binaryData[{key}]", key, "duplicate of key present in data")
    _decoded(binary, "binaryData")
    if sum(len(value) for data in (plain, binary) for value in data.values()) > _LIMIT:
        faults.too_long("", _LIMIT)


def _decoded(data: dict[str, str], field: str) -> dict[str, bytes]:
    try:
        return {key: base64.b64decode(value, validate=True) for key, value in data.items()}
    except (binascii.Error, ValueError):
        raise bad_request(f"illegal base64 data in {field}") from None


def _frozen(new: Object, old: Object, faults: Faults) -> None:
    if old.get("immutable") is not True:
        return
    if new.get("immutable") is not True:
        faults.forbidden("immutable", _FROZEN)
    for key in ("data", "binaryData"):
        if new.get(key) != old.get(key):
            faults.forbidden(key, _FROZEN)


def _fill_secret(secret: Object) -> None:
    fill(secret, "type", "Opaque")
    plain = string_map(secret, "stringData", "")
    if plain:
        encoded = {key: base64.b64encode(value.encode(errors="surrogatepass")).decode() for key, value in plain.items()}
        secret["data"] = {**mapping(secret, "data", ""), **encoded}
    secret.pop("stringData", None)


def _check_secret(secret: Object, faults: Faults) -> None:
    text(secret, "type", "")
    flag(secret, "immutable", "")
    data = string_map(secret, "data", "")
    for key in data:
        faults.invalid_each(f"data[{key}]", key, names.config_key(key))
    if sum(map(len, _decoded(data, "data").values())) > _LIMIT:
        faults.too_long("data", _LIMIT)


def _secret_stays(new: Object, old: Object, faults: Faults) -> None:
    faults.immutable("type", new.get("type"), old.get("type"))
    _frozen(new, old, faults)


def _check_account(account: Object, _: Faults) -> None:
    for key in ("secrets", "imagePullSecrets"):
        records(account, key, "")
    flag(account, "automountServiceAccountToken", "")


def _check_event(event: Object, faults: Faults) -> None:
    regarding = "involvedObject" if "involvedObject" in event else "regarding"
    about = mapping(event, regarding, "")
    elsewhere, here = text(about, "namespace", regarding), text(mapping(event, "metadata", ""), "namespace", "")
    # What has no namespace tells its events in the default one.
    if here != (elsewhere or "default"):
        faults.invalid(f"{regarding}.namespace", elsewhere, "does not match event.namespace")
    for key in ("reason", "type"):
        text(event, key, "")


CONFIG_MAP = Rules(check=_check_config_map, check_update=_frozen)
SECRET = Rules(defaults=_fill_secret, check=_check_secret, check_update=_secret_stays)
SERVICE_ACCOUNT = Rules(check=_check_account)
EVENT = Rules(check=_check_event)
