"""Discovery: what an API server says it serves, in the legacy form and in the aggregated one.

Everything is made from Resources, so a CustomResourceDefinition shows up as soon as its Resource is in the list.
"""

from __future__ import annotations

from kubesched.sandbox.discovery.aggregated import aggregated
from kubesched.sandbox.discovery.legacy import api_group, api_group_list, api_resource_list, api_versions
from kubesched.sandbox.discovery.subresources import Subresource, subresources

__all__ = [
    "Subresource",
    "aggregated",
    "api_group",
    "api_group_list",
    "api_resource_list",
    "api_versions",
    "subresources",
]
