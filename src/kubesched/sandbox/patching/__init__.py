"""The four ways to patch an object, and the bookkeeping of who owns which field.

Everything is a pure function: objects come in and are never changed, new objects come out.
"""

from __future__ import annotations

from kubesched.api.json_patch import json_patch, merge_patch
from kubesched.sandbox.patching.applying import apply
from kubesched.sandbox.patching.strategic import strategic_merge
from kubesched.sandbox.patching.tracking import track

__all__ = ["apply", "json_patch", "merge_patch", "strategic_merge", "track"]
