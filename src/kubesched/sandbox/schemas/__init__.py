"""What objects look like: the fields of every served kind, checks against them, and OpenAPI documents made of them.

The facts (names, types, merge keys) come from one data file, fields.json; see table.py for what it is.
"""

from __future__ import annotations

from kubesched.sandbox.schemas.openapi import openapi_v2, openapi_v3, openapi_v3_index
from kubesched.sandbox.schemas.validation import Problem, decoding_error, problems, strict_decoding_error

__all__ = [
    "Problem",
    "decoding_error",
    "openapi_v2",
    "openapi_v3",
    "openapi_v3_index",
    "problems",
    "strict_decoding_error",
]
