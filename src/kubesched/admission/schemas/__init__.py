"""What objects look like: the fields of every kind that is admitted, and checks against them.

The facts (names, types, merge keys) come from one data file, fields.json; see table.py for what it is.
"""

from kubesched.admission.schemas.checking import (
    FieldMistake,
    decoding_error,
    field_mistakes,
    readable,
    strict_decoding_error,
)

__all__ = ["FieldMistake", "decoding_error", "field_mistakes", "readable", "strict_decoding_error"]
