"""What somebody may read: some paths anybody, administrators all, and for the rest the API server is asked."""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.daemon.serving.reviews import AccessReviewer, User, Verdict

ADMINISTRATORS = "system:masters"


class Authorizer:
    """Decides about paths."""

    def __init__(self, always_allow_paths: Iterable[str], access: AccessReviewer | None) -> None:
        """Without a reviewer, all other paths are forbidden."""
        paths = [path.removeprefix("/") for path in always_allow_paths]
        self._paths = frozenset(path for path in paths if not path.endswith("*"))
        self._prefixes = tuple(path[:-1] for path in paths if path.endswith("*"))
        self._access = access

    def is_open(self, path: str) -> bool:
        """Whether everybody may read it."""
        relative = path.removeprefix("/")
        return relative in self._paths or relative.startswith(self._prefixes)

    async def may(self, user: User, verb: str, path: str) -> Verdict:
        """ReviewError if that cannot be found out."""
        if ADMINISTRATORS in user.groups or self.is_open(path):
            return Verdict(allowed=True)
        if self._access is None:
            return Verdict(allowed=False)
        return await self._access.may(user, verb, path)
