"""Objects out of protobuf, the format that clients written in Go send by default.

Only reading: every such client accepts JSON as an answer.
"""

from __future__ import annotations

from kubesched.sandbox.http.protobuf.objects import decode_object
from kubesched.sandbox.http.protobuf.wire import ProtobufError

__all__ = ["ProtobufError", "decode_object"]
