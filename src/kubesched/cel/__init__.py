"""CEL as device selectors use it: Kubernetes' environment, its semantics and the words of its errors.

Pure: an expression is compiled once to closures and then asked about devices; nothing here reads or writes anything.
"""

from kubesched.cel.attributes import Names
from kubesched.cel.device import AttributeValue, CelDevice, Version, view_device
from kubesched.cel.errors import CelError, CompileError, EvaluationError
from kubesched.cel.selector import CompiledSelector, compile_selector

__all__ = [
    "AttributeValue",
    "CelDevice",
    "CelError",
    "CompileError",
    "CompiledSelector",
    "EvaluationError",
    "Names",
    "Version",
    "compile_selector",
    "view_device",
]
