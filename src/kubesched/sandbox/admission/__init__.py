"""What the API server does to an object between a client and the store: defaults, admission, validation.

Pure functions on JSON: an object goes in, a new one comes out or an ApiError says what is wrong with it.
"""

from kubesched.sandbox.admission.admit import admit_create, admit_update, deletion_grace, is_graceful
from kubesched.sandbox.admission.pods import SYSTEM_CLASSES
from kubesched.sandbox.admission.rules import Reader

__all__ = ["SYSTEM_CLASSES", "Reader", "admit_create", "admit_update", "deletion_grace", "is_graceful"]
