"""OpenAPI documents of what is served: as much as kubectl reads to validate, patch and explain.

kubectl wants v3 first, in JSON, one document per group and version. It asks for v2 only when v3 failed it, and then
insists on protobuf; the JSON that is served at /openapi/v2 is for other clients.
"""

from __future__ import annotations

from kubesched.sandbox.openapi.documents import openapi_v2, openapi_v3, openapi_v3_index

__all__ = ["openapi_v2", "openapi_v3", "openapi_v3_index"]
