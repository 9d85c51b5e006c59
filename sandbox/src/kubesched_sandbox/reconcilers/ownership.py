"""Owners: objects by the uid of their controller, the pods that a workload creates, and the revisions that it keeps."""

from __future__ import annotations

from collections.abc import Callable

from kubesched.admission.selectors import compile_label_selector
from kubesched.api.api_error import ApiError
from kubesched.api.kinds import CONTROLLER_REVISIONS, PODS, Object, Resource
from kubesched.controllers.pod_templates import REVISION_HASH, hash_of, owner_reference, revision_data
from kubesched_sandbox.api import Api, ApiEvent
from kubesched_sandbox.reconcilers.events import Recorder
from kubesched_sandbox.reconcilers.reconciler import MANAGER, controller_of, key_of


def _matcher(selector: Object) -> Callable[[dict[str, str]], bool]:
    if selector.get("matchExpressions"):
        return compile_label_selector(selector).matches
    # The usual selector, asked for every pod of a large set: comparing mappings is ten times as fast.
    wanted = selector["matchLabels"].items()
    return lambda labels: wanted <= labels.items()


def is_terminating_namespace(error: ApiError) -> bool:
    """Whether a creation failed only because its namespace is terminating."""
    causes = error.details.get("causes") or ()
    return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)


class Grouped:
    """An index of the objects of one resource by a function: pods by node, pods by claim, volumes by class."""

    def __init__(self, api: Api, resource: Resource, groups: Callable[[Object], tuple[str, ...]]) -> None:
        self._groups = groups
        self._members: dict[str, dict[str, Object]] = {}
        api.subscribe((resource,), self._observe)

    def of(self, group: str) -> list[Object]:
        return list(self._members.get(group, {}).values())

    def _observe(self, event: ApiEvent) -> None:
        uid = event.object["metadata"]["uid"]
        groups = () if event.type == "DELETED" else self._groups(event.object)
        for group in self._groups(event.old) if event.old is not None else ():
            if group not in groups and group in self._members:
                self._members[group].pop(uid, None)
                if not self._members[group]:
                    del self._members[group]
        for group in groups:
            self._members.setdefault(group, {})[uid] = event.object


class Owned(Grouped):
    """The objects of one resource by the uid of their controller, and those that have none by namespace."""

    def __init__(self, api: Api, resource: Resource) -> None:
        super().__init__(api, resource, _group_by_controller)
        self.resource = resource
        self._api = api

    def owned_by(self, owner: Object) -> list[Object]:
        """What this object controls, oldest first."""
        return self.of(owner["metadata"]["uid"])

    def claim(self, resource: Resource, owner: Object, selector: Object) -> list[Object]:
        """What the owner controls, after orphans that its selector matches are adopted and others are released."""
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            return self.owned_by(owner)
        matches = _matcher(selector)
        going = "deletionTimestamp" in owner["metadata"]
        for obj in [] if going else self.of(_orphans_of(owner["metadata"]["namespace"])):
            metadata = obj["metadata"]
            if "deletionTimestamp" not in metadata and matches(metadata.get("labels") or {}):
                others = metadata.get("ownerReferences") or []
                self._rewrite(obj, [*others, owner_reference(resource, owner)])
        for obj in self.owned_by(owner):
            metadata = obj["metadata"]
            if "deletionTimestamp" not in metadata and not matches(metadata.get("labels") or {}):
                others = [
                    reference
                    for reference in metadata["ownerReferences"]
                    if reference["uid"] != owner["metadata"]["uid"]
                ]
                self._rewrite(obj, others)
        return self.owned_by(owner)

    def _rewrite(self, obj: Object, references: list[Object]) -> None:
        metadata = obj["metadata"]
        changed = {**obj, "metadata": {**metadata, "ownerReferences": references}}
        self._api.update(self.resource, metadata["namespace"], metadata["name"], changed, manager=MANAGER)


def _group_by_controller(obj: Object) -> tuple[str]:
    reference = controller_of(obj)
    return (_orphans_of(obj["metadata"].get("namespace", "")) if reference is None else reference["uid"],)


def _orphans_of(namespace: str) -> str:
    """The group of the objects that nothing controls: no uid has a slash."""
    return f"{namespace}/"


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
        message = f"Created pod: {created['metadata']['name']}"
        self._recorder.normal(self._resource, owner, "SuccessfulCreate", message)
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


class Revisions:
    """The revisions of the workloads of one resource."""

    def __init__(self, api: Api, resource: Resource, owned: Owned) -> None:
        self._api, self._resource, self._owned = api, resource, owned

    def current(self, owner: Object) -> Object:
        """The revision of the template that the owner has now; it becomes the newest one."""
        data = revision_data(owner)
        known = sorted(self._owned.claim(self._resource, owner, owner["spec"]["selector"]), key=number_of)
        latest = number_of(known[-1]) if known else 0
        same = next((revision for revision in known if revision.get("data") == data), None)
        if same is not None:
            if number_of(same) == latest:
                return same
            again = {**same, "revision": latest + 1}
            return self._api.update(CONTROLLER_REVISIONS, *key_of(same), again, manager=MANAGER)
        return self._create(owner, data, latest + 1)

    def template(self, owner: Object, name: str) -> Object | None:
        """The template of a revision by its name, if it is still known."""
        for revision in self._owned.owned_by(owner):
            if revision["metadata"]["name"] == name:
                found: Object = dict(revision["data"]["spec"]["template"])
                found.pop("$patch", None)
                return found
        return None

    def forget(self, owner: Object, in_use: set[str]) -> None:
        """Drop revisions beyond the limit, oldest first, but for those that pods still have."""
        limit = owner["spec"].get("revisionHistoryLimit")
        idle = [revision for revision in self._owned.owned_by(owner) if revision["metadata"]["name"] not in in_use]
        excess = len(idle) - (10 if limit is None else limit)
        for revision in sorted(idle, key=number_of)[: max(0, excess)]:
            self._api.delete(CONTROLLER_REVISIONS, *key_of(revision), uid=revision["metadata"]["uid"])

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
