"""What the API server does to an object between a client and the store: defaults, admission, validation.

Pure functions on JSON. The types of all fields are checked once, against the table in `schemas`; all that comes after
may rely on them. The sandbox admits what clients send, and the offline commands what is in manifests.
"""

from kubesched.admission.admit import admit_create, admit_update, deletion_grace, examine, is_graceful
from kubesched.admission.rules import Reader

__all__ = ["Reader", "admit_create", "admit_update", "deletion_grace", "examine", "is_graceful"]
