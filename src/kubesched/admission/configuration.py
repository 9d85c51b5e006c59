"""What pods are configured with: ConfigMaps, Secrets, ServiceAccounts; and events, which tell what became of them."""

from __future__ import annotations

import base64
import binascii

from kubesched.admission import names
from kubesched.admission.mistakes import Mistakes
from kubesched.admission.reading import fill, mapping, text
from kubesched.admission.rules import Rules
from kubesched.api.api_error import bad_request
from kubesched.api.kinds import Object

_LIMIT = 1024 * 1024
_FROZEN = "field is immutable when `immutable` is set"


def _check_config_map(config_map: Object, mistakes: Mistakes) -> None:
    plain, binary = mapping(config_map, "data"), mapping(config_map, "binaryData")
    for field, data in (("data", plain), ("binaryData", binary)):
        for key in data:
            mistakes.invalid_each(f"{field}[{key}]", key, names.config_key(key))
    for key in plain.keys() & binary.keys():
        mistakes.invalid(f"binaryData[{key}]", key, "duplicate of key present in data")
    _decoded(binary, "binaryData")
    if sum(len(value) for data in (plain, binary) for value in data.values()) > _LIMIT:
        mistakes.too_long("", _LIMIT)


def _decoded(data: dict[str, str], field: str) -> dict[str, bytes]:
    try:
        return {key: base64.b64decode(value, validate=True) for key, value in data.items()}
    except (binascii.Error, ValueError):
        raise bad_request(f"illegal base64 data in {field}") from None


def _frozen(new: Object, old: Object, mistakes: Mistakes) -> None:
    if old.get("immutable") is not True:
        return
    if new.get("immutable") is not True:
        mistakes.forbidden("immutable", _FROZEN)
    for key in ("data", "binaryData"):
        if new.get(key) != old.get(key):
            mistakes.forbidden(key, _FROZEN)


def _fill_secret(secret: Object) -> None:
    fill(secret, "type", "Opaque")
    plain = mapping(secret, "stringData")
    if plain:
        encoded = {key: base64.b64encode(value.encode(errors="surrogatepass")).decode() for key, value in plain.items()}
        secret["data"] = {**mapping(secret, "data"), **encoded}
    secret.pop("stringData", None)


def _check_secret(secret: Object, mistakes: Mistakes) -> None:
    data = mapping(secret, "data")
    for key in data:
        mistakes.invalid_each(f"data[{key}]", key, names.config_key(key))
    if sum(map(len, _decoded(data, "data").values())) > _LIMIT:
        mistakes.too_long("data", _LIMIT)


def _check_event(event: Object, mistakes: Mistakes) -> None:
    regarding = "involvedObject" if "involvedObject" in event else "regarding"
    about = mapping(event, regarding)
    elsewhere, here = text(about, "namespace"), text(mapping(event, "metadata"), "namespace")
    # What has no namespace tells its events in the default one.
    if here != (elsewhere or "default"):
        mistakes.invalid(f"{regarding}.namespace", elsewhere, "does not match event.namespace")


CONFIG_MAP = Rules(check=_check_config_map, check_update=_frozen)
SECRET = Rules(defaults=_fill_secret, check=_check_secret, immutable=("type",), check_update=_frozen)
EVENT = Rules(check=_check_event)
