"""Errors as Kubernetes words them: a Status object with a code and a reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubesched.api.kinds import Resource
from kubesched.api.schema import Mistake


class ApiError(Exception):
    """An error as the answer of an API server to a client."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: dict[str, Any] | None = None,
        retry_after: int | None = None,
        mistakes: Sequence[Mistake] = (),
    ) -> None:
        super().__init__(message)
        self.mistakes = tuple(mistakes)
        """The fields that are wrong, where the error is about some."""
        self.code, self.reason, self.message = code, reason, message
        self.details = dict(details or {})
        if retry_after is not None:
            self.details["retryAfterSeconds"] = retry_after

    def status(self) -> dict[str, Any]:
        """The body of the answer."""
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
        if self.details:
            status["details"] = self.details
        return status


def _details(resource: Resource, name: str, kind: str = "") -> dict[str, Any]:
    details = {"name": name, "group": resource.group, "kind": kind or resource.plural}
    return {key: value for key, value in details.items() if value}


def not_found(resource: Resource, name: str) -> ApiError:
    return ApiError(404, "NotFound", f'{resource.qualified} "{name}" not found', _details(resource, name))


def already_exists(resource: Resource, name: str) -> ApiError:
    return ApiError(409, "AlreadyExists", f'{resource.qualified} "{name}" already exists', _details(resource, name))


def conflict(resource: Resource, name: str, why: str) -> ApiError:
    message = f'Operation cannot be fulfilled on {resource.qualified} "{name}": {why}'
    return ApiError(409, "Conflict", message, _details(resource, name))


STALE = "the object has been modified; please apply your changes to the latest version and try again"
"""Why an update from an old resourceVersion is a conflict."""


def invalid(resource: Resource, name: str, mistakes: Sequence[Mistake]) -> ApiError:
    messages = [f"{mistake.path}: {mistake.problem}" for mistake in mistakes]
    text = messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"
    qualified = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    details = _details(resource, name, resource.kind)
    listed = [{"reason": mistake.reason, "message": mistake.problem, "field": mistake.path} for mistake in mistakes]
    message = f'{qualified} "{name}" is invalid: {text}'
    return ApiError(422, "Invalid", message, {**details, "causes": listed}, mistakes=mistakes)


def bad_request(message: str, mistakes: Sequence[Mistake] = ()) -> ApiError:
    return ApiError(400, "BadRequest", message, mistakes=mistakes)


def forbidden(resource: Resource, name: str, why: str, field: str = "") -> ApiError:
    message = f'{resource.qualified} "{name}" is forbidden: {why}'
    return ApiError(403, "Forbidden", message, _details(resource, name), mistakes=[Mistake(field, why)])


def gone(message: str) -> ApiError:
    return ApiError(410, "Expired", message)


def method_not_allowed() -> ApiError:
    return ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")


def no_such_resource() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def unsupported_media_type(accepted: Sequence[str]) -> ApiError:
    message = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    return ApiError(415, "UnsupportedMediaType", message)


def unprocessable(why: str) -> ApiError:
    """A patch that can be read but not carried out; the reason is one of its causes."""
    message = "the server rejected our request due to an error in our request"
    causes = [{"reason": "UnexpectedServerResponse", "message": why}]
    return ApiError(422, "Invalid", message, {"causes": causes})
