"""The form of an answer that a client can read, out of those it accepts."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple

from kubesched.api.api_error import ApiError
from kubesched.sandbox.http.content import ACCEPTED, JSON, YAML

Form = Literal["object", "table", "metadata"]
_FORMS: dict[str, Form] = {
    "": "object",
    "Table": "table",
    "PartialObjectMetadata": "metadata",
    "PartialObjectMetadataList": "metadata",
}


class Accepted(NamedTuple):
    """A format and a shape."""

    media: str = JSON
    form: Form = "object"
    group: str = ""
    """What `as` is a version of, kept for discovery, whose documents have versions too."""
    version: str = ""
    shape: str = ""


@lru_cache(maxsize=512)
def negotiate(header: str) -> Accepted:
    """The first acceptable thing that is offered here; NotAcceptable when there is none."""
    if not header:
        return Accepted()
    for media, parameters in sorted(map(_range, header.split(",")), key=_preference):
        shape = parameters.get("as", "")
        form = _FORMS.get(shape)
        if media in ("*/*", "application/*", JSON):
            chosen = JSON
        elif media in (YAML, "text/yaml"):
            chosen = YAML
        else:
            continue
        if form is None and parameters.get("g") != "apidiscovery.k8s.io":
            continue
        return Accepted(chosen, form or "object", parameters.get("g", ""), parameters.get("v", ""), shape)
    message = f"only the following media types are accepted: {', '.join(ACCEPTED[:2])}"
    raise ApiError(406, "NotAcceptable", message)


def _range(text: str) -> tuple[str, dict[str, str]]:
    media, *parameters = (part.strip() for part in text.split(";"))
    return media.lower(), dict(part.split("=", 1) for part in parameters if "=" in part)


def _preference(parsed: tuple[str, dict[str, str]]) -> float:
    try:
        return -float(parsed[1].get("q", "1"))
    except ValueError:
        return -1.0
