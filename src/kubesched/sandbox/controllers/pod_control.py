"""Creating and deleting the pods of a workload, with the events that tell of it."""

from __future__ import annotations

from kubesched.api.api_error import ApiError
from kubesched.api.kinds import PODS, Object, Resource
from kubesched.sandbox.api import Api
from kubesched.sandbox.controllers.controller import MANAGER
from kubesched.sandbox.controllers.ownership import is_terminating_namespace, owner_reference
from kubesched.sandbox.controllers.recorder import Recorder

_LONGEST_PREFIX = 253 - 5


def pod_from(template: Object, *, prefix: str = "", name: str = "") -> Object:
    """A pod as a template describes it, to be named by the server or by the caller."""
    given = template.get("metadata") or {}
    metadata = {key: given[key] for key in ("labels", "annotations", "finalizers") if given.get(key)}
    if name:
        metadata["name"] = name
    else:
        metadata["generateName"] = f"{prefix[: _LONGEST_PREFIX - 1]}-"
    return {"metadata": metadata, "spec": dict(template.get("spec") or {})}


class PodControl:
    """Pods of the workloads of one resource."""

    def __init__(self, api: Api, resource: Resource, recorder: Recorder) -> None:
        self._api, self._resource, self._recorder = api, resource, recorder

    def create(self, owner: Object, pod: Object) -> Object | None:
        """Create a pod that the owner controls. None where nothing can be created since the namespace is going."""
        namespace = owner["metadata"]["namespace"]
        metadata = {**pod["metadata"], "ownerReferences": [owner_reference(self._resource, owner)]}
        try:
            created = self._api.create(PODS, namespace, {**pod, "metadata": metadata}, manager=MANAGER)
        except ApiError as error:
            if is_terminating_namespace(error):
                return None
            self._recorder.warning(self._resource, owner, "FailedCreate", f"Error creating: {error.message}")
            raise
        told = f"Created pod: {created['metadata']['name']}"
        self._recorder.normal(self._resource, owner, "SuccessfulCreate", told)
        return created

    def delete(self, owner: Object, pod: Object) -> None:
        """Ask a pod to end."""
        metadata = pod["metadata"]
        try:
            self._api.delete(PODS, metadata["namespace"], metadata["name"], uid=metadata["uid"])
        except ApiError as error:
            if error.code in (404, 409):  # gone, or another pod has its name by now
                return
            self._recorder.warning(self._resource, owner, "FailedDelete", f"Error deleting: {error.message}")
            raise
        self._recorder.normal(self._resource, owner, "SuccessfulDelete", f"Deleted pod: {metadata['name']}")
