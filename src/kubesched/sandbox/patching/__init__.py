"""Strategic merge patches, server-side apply, and the bookkeeping of who owns which field.

Everything is a pure function: objects come in and are never changed, new objects come out.
JSON patches and merge patches are in `kubesched.api`: others need them too.
"""

from __future__ import annotations

from kubesched.sandbox.patching.applying import apply, track
from kubesched.sandbox.patching.strategic import strategic_merge

__all__ = ["apply", "strategic_merge", "track"]
