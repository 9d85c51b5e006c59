"""The errors of requests to the API server: one hierarchy, in words for people."""

from __future__ import annotations

import msgspec

from kubesched.api.errors import UserError

# The reason for a status code whose body names none, as in apimachinery.
_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Gone",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
_SHOWN = 200  # characters of an answer that is no Status


class KubeError(UserError):
    """Anything that went wrong with the API server or on the way to it."""

    maybe_done = False
    """Whether the request may have taken effect all the same: this try, or an earlier one, ended without an answer."""


class ConnectionSettingsError(KubeError):
    """A kubeconfig, flag or service account that cannot be used. The message has file, field and what was expected."""


class CredentialsError(KubeError):
    """There are no credentials: a token file, an exec plugin or an identity provider failed."""


class UnreachableError(KubeError):
    """No whole answer came."""

    def __init__(self, message: str, *, maybe_done: bool = False) -> None:
        super().__init__(message)
        self.maybe_done = maybe_done


class AnswerTimeoutError(UnreachableError):
    """The answer did not come in time."""


class StatusCause(msgspec.Struct, frozen=True):
    """One of several mistakes."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(msgspec.Struct, frozen=True, rename="camel"):
    """The object and the causes of an error."""

    name: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: int = 0


class ApiStatus(msgspec.Struct, frozen=True):
    """The API's Status of an error: the body of an answer, or the object of an ERROR event in a watch."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: StatusDetails | None = None
    kind: str = ""


_decoder = msgspec.json.Decoder(ApiStatus)


class ApiStatusError(KubeError):
    """The API server answered, and the answer is an error."""

    def __init__(
        self,
        code: int,
        reason: str = "",
        message: str = "",
        details: StatusDetails | None = None,
        retry_after: float | None = None,
    ) -> None:
        self.code = code
        self.reason = reason or _REASONS.get(code, "Unknown")
        self.message = message
        self.details = details or StatusDetails()
        self.retry_after = retry_after
        super().__init__(message or f"the server answered with status {code} ({self.reason})")

    @classmethod
    def of_answer(cls, code: int, body: bytes, retry_after: float | None = None) -> ApiStatusError:
        """The error in an HTTP answer, whose body need not be a Status: proxies have their own pages."""
        try:
            status = _decoder.decode(body)
        except msgspec.DecodeError:
            status = ApiStatus()
        if status.kind != "Status":
            text = " ".join(body[: 4 * _SHOWN].decode(errors="replace").split())[:_SHOWN]
            shown = f": {text}" if text else ""
            return cls(code, message=f"the server answered with status {code}{shown}", retry_after=retry_after)
        after = status.details.retry_after_seconds if status.details is not None else 0
        return cls(code, status.reason, status.message, status.details, retry_after or after or None)

    @classmethod
    def of_event(cls, raw: msgspec.Raw | bytes) -> ApiStatusError:
        """The error in an ERROR event of a watch."""
        try:
            status = _decoder.decode(raw)
        except msgspec.DecodeError:
            status = ApiStatus(message="the watch ended with an ERROR event that is no Status")
        return cls(status.code or 500, status.reason, status.message, status.details)

    @property
    def is_expired(self) -> bool:
        """The server no longer has the resourceVersion of the request."""
        return self.code == 410 or self.reason in ("Expired", "Gone")

    @property
    def is_from_the_future(self) -> bool:
        """The server has not reached the resourceVersion of the request: it lags behind, or lost its past."""
        if any(
            cause.reason == "ResourceVersionTooLarge" or cause.message == "Too large resource version"
            for cause in self.details.causes
        ):
            return True
        return self.reason == "Timeout" and "Too large resource version" in self.message


class UnreadableAnswerError(KubeError):
    """The API server answered 200 with a body that cannot be read."""
