"""ControllerRevisions: the pod templates that a StatefulSet or DaemonSet had, for `kubectl rollout undo`."""

from __future__ import annotations

from kubesched.api.kinds import CONTROLLER_REVISIONS, Object, Resource
from kubesched.controllers.pod_templates import REVISION_HASH, hash_of, owner_reference, revision_data
from kubesched.sandbox.api import Api
from kubesched.sandbox.reconcilers.ownership import Owned
from kubesched.sandbox.reconcilers.reconciler import MANAGER, key_of


class Revisions:
    """The revisions of the workloads of one resource."""

    def __init__(self, api: Api, resource: Resource, owned: Owned) -> None:
        self._api, self._resource, self._owned = api, resource, owned

    def current(self, owner: Object) -> Object:
        """The revision of the template that the owner has now; it becomes the newest one."""
        data = revision_data(owner)
        known = sorted(self._owned.claim(self._resource, owner, owner["spec"]["selector"]), key=number_of)
        latest = number_of(known[-1]) if known else 0
        same = next((each for each in known if each.get("data") == data), None)
        if same is not None:
            if number_of(same) == latest:
                return same
            again = {**same, "revision": latest + 1}
            return self._api.update(CONTROLLER_REVISIONS, *key_of(same), again, manager=MANAGER)
        return self._create(owner, data, latest + 1)

    def template(self, owner: Object, name: str) -> Object | None:
        """The template of a revision by its name, if it is still known."""
        for revision in self._owned.of(owner):
            if revision["metadata"]["name"] == name:
                found: Object = dict(revision["data"]["spec"]["template"])
                found.pop("$patch", None)
                return found
        return None

    def forget(self, owner: Object, in_use: set[str]) -> None:
        """Drop revisions beyond the limit, oldest first, but for those that pods still have."""
        limit = owner["spec"].get("revisionHistoryLimit")
        idle = [each for each in self._owned.of(owner) if each["metadata"]["name"] not in in_use]
        excess = len(idle) - (10 if limit is None else limit)
        for each in sorted(idle, key=number_of)[: max(0, excess)]:
            self._api.delete(CONTROLLER_REVISIONS, *key_of(each), uid=each["metadata"]["uid"])

    def _create(self, owner: Object, data: Object, number: int) -> Object:
        metadata = owner["metadata"]
        revision_hash = hash_of(data)
        labels = (owner["spec"]["template"].get("metadata") or {}).get("labels") or {}
        revision = {
            "metadata": {
                "name": f"{metadata['name']}-{revision_hash}",
                "labels": {**labels, REVISION_HASH: revision_hash},
                "annotations": _inherited(metadata.get("annotations") or {}),
                "ownerReferences": [owner_reference(self._resource, owner)],
            },
            "data": data,
            "revision": number,
        }
        return self._api.create(CONTROLLER_REVISIONS, metadata["namespace"], revision, manager=MANAGER)


def number_of(revision: Object) -> int:
    return int(revision.get("revision", 0))


def revision_of(pod: Object) -> str:
    """The revision that a pod was made of, as its label says."""
    return str((pod["metadata"].get("labels") or {}).get(REVISION_HASH, ""))


def hash_in(revision: Object) -> str:
    return str(revision["metadata"]["labels"][REVISION_HASH])


def _inherited(annotations: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in annotations.items() if not key.endswith("last-applied-configuration")}
