"""Requests about objects: from a method and a target to a call of the API, and back to an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from aiohttp import web
from msgspec import structs

from kubesched.admission import REVIEWS
from kubesched.admission.definitions import inert_warning
from kubesched.api.api_error import ApiError, bad_request, method_not_allowed, no_such_resource, not_found
from kubesched.api.kinds import CERTIFICATE_SIGNING_REQUESTS, PODS, SERVICE_ACCOUNTS, Object, Resource
from kubesched_sandbox.api import Api, ListSelector, PatchKind, selection
from kubesched_sandbox.api.catalog import COMPONENT_STATUSES, METRICS, component_statuses
from kubesched_sandbox.api.reading import is_returned_when_deleted
from kubesched_sandbox.api.reviewing import Patches
from kubesched_sandbox.api.tokens import Tokens, UserInfo, review
from kubesched_sandbox.api.usage import metrics
from kubesched_sandbox.http.answers import Lists, Shapes, formatted, json_answer, large_answer, success
from kubesched_sandbox.http.content import (
    JSON,
    PROTOBUF,
    Accepted,
    Body,
    check_fields,
    negotiate,
    not_acceptable,
    read_delete_options,
    read_kind,
    read_object,
    read_patch,
)
from kubesched_sandbox.http.protobuf_writing import message_of_kind
from kubesched_sandbox.http.query import Query, Target
from kubesched_sandbox.http.watches import Watcher, Watches
from kubesched_sandbox.http.webhooks import Webhooks, Write

_COLLECTION_VERBS = {"GET": "list", "HEAD": "list", "POST": "create", "DELETE": "deletecollection"}
_OBJECT_VERBS = {"GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_OF_CONTAINERS = frozenset(("attach", "exec", "log", "portforward", "proxy"))
_CREATED_SUBRESOURCES = frozenset(("binding", "eviction", "token"))


class RequestInfo(NamedTuple):
    """One request, with what was found out about it."""

    request: web.BaseRequest
    resource: Resource
    target: Target
    verb: str
    query: Query
    user: UserInfo

    @property
    def namespace(self) -> str:
        return self.target.namespace or ""

    @property
    def address(self) -> tuple[Resource, str, str]:
        """Of one object, as calls of the API take it."""
        return self.resource, self.namespace, self.target.name

    @property
    def accepted(self) -> Accepted:
        return negotiate(self.request.headers.get("Accept", ""))

    def formatted(self, body: bytes | Object) -> tuple[bytes, str]:
        """A body as the client accepts it, and its content type."""
        return formatted(body, self.accepted.media, pretty=bool(self.query.text("pretty")))

    @property
    def manager(self) -> str:
        """Who is asking, as managed fields name it: what the client says, or the beginning of its user agent."""
        given = self.query.text("fieldManager")
        return given or self.request.headers.get("User-Agent", "unknown").partition("/")[0][:128]


class Requests:
    """Answers requests about objects."""

    def __init__(self, api: Api, tokens: Tokens, watches: Watches, *, schedules: bool) -> None:
        """`schedules`: whether there is a scheduler in this process."""
        self._api, self._tokens, self._watches, self._schedules = api, tokens, watches, schedules
        self._lists = Lists(api)
        self._webhooks = Webhooks(api)

    def understand(self, request: web.BaseRequest, target: Target, query: Query, user: UserInfo) -> RequestInfo:
        """What the request asks for; a NotFound or MethodNotAllowed when that is nothing that is served."""
        resource = self._api.catalog.lookup(target.group, target.version, target.plural)
        if resource is None:
            return self._understand_legacy_binding(request, target, query, user)
        if resource.namespaced:
            if target.namespace is None and (target.name or request.method not in ("GET", "HEAD")):
                if resource in REVIEWS or target.name:
                    raise no_such_resource()
                raise method_not_allowed()
        elif target.namespace is not None:
            raise no_such_resource()
        if target.subresource and target.subresource not in resource.subresources:
            if resource is PODS and target.subresource in _OF_CONTAINERS:
                raise bad_request(f"hollow pods run no containers, so there is no {target.subresource} in a sandbox")
            raise no_such_resource()
        return RequestInfo(request, resource, target, _verb(request.method, resource, target, query), query, user)

    async def answer(self, info: RequestInfo) -> web.StreamResponse:
        _check_format(info)
        match info.verb:
            case "get" | "list" if info.resource in METRICS:
                return self._metrics(info)
            case "get" | "list" if info.resource is COMPONENT_STATUSES:
                return self._component_statuses(info)
            case "get":
                return self._get(info)
            case "list":
                return await self._list(info)
            case "watch":
                return await self._watch(info)
            case "create" if info.target.subresource:
                return await self._create_subresource(info)
            case "create":
                return await self._create(info)
            case "update":
                return await self._update(info)
            case "patch":
                return await self._patch(info)
            case "delete":
                return await self._delete(info)
            case _:
                return await self._delete_collection(info)

    # Reading

    def _get(self, info: RequestInfo) -> web.Response:
        resource, target = info.resource, info.target
        if target.subresource == "scale":
            return self._send(info, self._api.scale(*info.address))
        record = self._api.record(*info.address)
        if record is None:
            raise not_found(resource, target.name)
        shapes = self._shapes(info)
        return self._send(info, record.encoded if shapes.is_plain else shapes.one(record.object))

    async def _list(self, info: RequestInfo) -> web.Response:
        namespace, wanted = info.target.namespace, _selection(info)
        body = self._lists.answer(info.resource, namespace, wanted, info.query, self._shapes(info))
        if info.accepted.media == JSON:
            data, content_type = info.formatted(body)
        else:
            data, content_type = await asyncio.to_thread(info.formatted, body)
        return await large_answer(data, content_type, info.request.headers.get("Accept-Encoding", ""))

    def _metrics(self, info: RequestInfo) -> web.Response:
        """What pods or nodes use: worked out now, from those that are there."""
        resource, namespace, about = info.resource, info.target.namespace, METRICS[info.resource]
        wanted = selection(about, info.query.text("labelSelector"), info.query.text("fieldSelector"))
        if info.target.name:
            found = metrics(self._api, resource, [self._api.get(about, *info.address[1:])], namespace)
            if not found:
                raise not_found(resource, info.target.name)
            return self._send(info, found[0])
        objects = [record.object for record in self._api.records(about, namespace, wanted)]
        head = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": {}}
        return self._send(info, {**head, "items": metrics(self._api, resource, objects, namespace)})

    def _component_statuses(self, info: RequestInfo) -> web.Response:
        wanted, shapes = _selection(info), self._shapes(info)
        statuses = [status for status in component_statuses(schedules=self._schedules) if wanted.matches(status)]
        if info.target.name and not statuses:
            raise not_found(info.resource, info.target.name)
        body = shapes.one(statuses[0]) if info.target.name else shapes.many(statuses, {})
        return self._send(info, body, warnings=("v1 ComponentStatus is deprecated in v1.19+",))

    async def _watch(self, info: RequestInfo) -> web.StreamResponse:
        watcher = Watcher(info.resource, info.target.namespace, _selection(info), self._shapes(info))
        return await self._watches.serve(info.request, watcher, info.query)

    # Writing

    async def _create(self, info: RequestInfo) -> web.Response:
        resource, query = info.resource, info.query
        body = await read_object(info.request, resource, query)
        if resource in REVIEWS:
            return self._send(info, review(resource, body.object, info.user, self._tokens), 201)
        if resource is PODS and info.target.plural == "bindings":
            return self._bind(info, _name_of(body.object), body.object)
        if resource is CERTIFICATE_SIGNING_REQUESTS:
            signed = {"username": info.user.name, "groups": list(info.user.groups)}
            body.object["spec"] = {**(body.object.get("spec") or {}), **signed}

        def write(then: Patches, dry_run: bool) -> Object:
            return self._api.create(
                resource, info.namespace, body.object, manager=info.manager, dry_run=dry_run, then=then
            )

        obj, warnings = await self._admitted(info, "CREATE", write)
        return self._written(info, obj, query.dry_run(), 201, body, warnings)

    async def _create_subresource(self, info: RequestInfo) -> web.Response:
        resource, target, query = info.resource, info.target, info.query
        if resource is PODS and target.subresource == "binding":
            return self._bind(info, target.name, await read_kind(info.request, "Binding", "v1"))
        if resource is PODS and target.subresource == "eviction":
            eviction = await read_kind(info.request, "Eviction", "policy/v1")
            self._api.evict(info.namespace, target.name, eviction, dry_run=query.dry_run())
            return self._send(info, success(), 201)
        if resource is SERVICE_ACCOUNTS and target.subresource == "token":
            wanted = await read_kind(info.request, "TokenRequest", "authentication.k8s.io/v1")
            account = self._api.get(*info.address)
            return self._send(info, self._tokens.issue(account, wanted), 201)
        raise method_not_allowed()

    def _bind(self, info: RequestInfo, name: str, binding: Object) -> web.Response:
        self._api.bind(info.namespace, name, binding, dry_run=info.query.dry_run())
        return self._send(info, _BOUND, 201)

    async def _update(self, info: RequestInfo) -> web.Response:
        resource, target, query = info.resource, info.target, info.query
        dry_run = query.dry_run()
        if target.subresource == "scale":
            scale = await read_kind(info.request, "Scale", "autoscaling/v1")
            new = self._api.update_scale(*info.address, scale, manager=info.manager, dry_run=dry_run)
            return self._send(info, new)
        body = await read_object(info.request, resource, query)

        def write(then: Patches, dry_run: bool) -> Object:
            sub, manager = target.subresource, info.manager
            return self._api.update(
                *info.address, body.object, subresource=sub, manager=manager, dry_run=dry_run, then=then
            )

        obj, warnings = await self._admitted(info, "UPDATE", write)
        return self._written(info, obj, dry_run, 200, body, warnings)

    async def _patch(self, info: RequestInfo) -> web.Response:
        resource, target, query = info.resource, info.target, info.query
        dry_run = query.dry_run()
        kind, body = await read_patch(info.request)
        if target.subresource == "scale":
            scale = self._api.patch_scale(*info.address, body.value, kind=kind, manager=info.manager, dry_run=dry_run)
            return self._send(info, scale)
        existed = self._api.record(*info.address) is not None
        if kind is PatchKind.APPLY:
            check_fields(resource, body, query)

        def write(then: Patches, dry_run: bool) -> Object:
            return self._api.patch(
                *info.address,
                body.value,
                kind=kind,
                subresource=target.subresource,
                manager=query.text("fieldManager") if kind is PatchKind.APPLY else info.manager,
                force=query.flag("force"),
                dry_run=dry_run,
                check=lambda new: check_fields(resource, body._replace(value=new), query),
                then=then,
            )

        obj, warnings = await self._admitted(info, "UPDATE" if existed else "CREATE", write)
        return self._written(info, obj, dry_run, 200 if existed else 201, body, warnings)

    async def _admitted(
        self, info: RequestInfo, operation: str, write: Callable[[Patches, bool], Object]
    ) -> tuple[Object, tuple[str, ...]]:
        """Write once webhooks have had their say, if any is asked. `write` is given patches, and whether to dry-run."""
        about = self._about(info, operation)
        if not self._webhooks.are_asked(about):
            return write((), about.dry_run), ()
        old = None if operation == "CREATE" else self._api.get(*info.address)
        patches, warnings = await self._webhooks.review(about, old, lambda patches: write(patches, True))
        return write(patches, about.dry_run), warnings

    def _about(self, info: RequestInfo, operation: str) -> Write:
        target, dry_run = info.target, info.query.dry_run()
        return Write(operation, info.resource, target.subresource, info.namespace, target.name, info.user, dry_run)

    # Deleting

    async def _delete(self, info: RequestInfo) -> web.Response:
        if info.target.subresource:
            raise method_not_allowed()
        resource, name = info.resource, info.target.name
        options = info.query.delete_options(await read_delete_options(info.request))
        about = self._about(info, "DELETE")
        if self._webhooks.are_asked(about):
            await self._webhooks.review(about, self._api.get(*info.address), lambda _: None)
        obj = self._api.delete(*info.address, **structs.asdict(options))
        record = self._api.record(*info.address)
        is_there = record is not None and record.object["metadata"]["uid"] == obj["metadata"]["uid"]
        if (is_there and not options.dry_run) or is_returned_when_deleted(resource):
            return self._written(info, obj, True, 200, Body(None))
        details = {"name": name, "group": resource.group, "kind": resource.plural, "uid": obj["metadata"]["uid"]}
        return self._send(info, success({key: value for key, value in details.items() if value}))

    async def _delete_collection(self, info: RequestInfo) -> web.Response:
        resource, query = info.resource, info.query
        options = query.delete_options(await read_delete_options(info.request))
        shapes = self._shapes(info)
        listed = self._api.records(resource, info.target.namespace, _selection(info))
        for record in listed:
            metadata = record.object["metadata"]
            try:
                self._api.delete(resource, metadata.get("namespace", ""), metadata["name"], **structs.asdict(options))
            except ApiError as error:
                # Gone with another one that was deleted before it.
                if error.code != 404:
                    raise
        list_meta = {"resourceVersion": str(self._api.store.revision)}
        return self._send(info, shapes.many([record.object for record in listed], list_meta))

    # Answering

    def _written(
        self, info: RequestInfo, obj: Object, dry_run: bool, status: int, body: Body, said: tuple[str, ...] = ()
    ) -> web.Response:
        shapes = self._shapes(info)
        inert = inert_warning(info.resource, obj) if status == 201 else ""
        warnings = (*body.warnings, *said, *((inert,) if inert else ()))
        record = None if dry_run else self._api.record(info.resource, info.namespace, obj["metadata"]["name"])
        if shapes.is_plain and info.accepted.media == JSON and record is not None and record.object is obj:
            return json_answer(record.encoded, status, warnings)
        view = self._api.catalog.view(info.resource)
        shown = shapes.one(obj if view is None else view.stored(obj))
        return self._send(info, shown, status, warnings)

    def _send(
        self, info: RequestInfo, body: bytes | Object, status: int = 200, warnings: tuple[str, ...] = ()
    ) -> web.Response:
        data, content_type = info.formatted(body)
        return json_answer(data, status, warnings, content_type)

    def _shapes(self, info: RequestInfo) -> Shapes:
        return Shapes(self._api, info.resource, info.accepted, info.query.text("includeObject") or "Metadata")

    def _understand_legacy_binding(
        self, request: web.BaseRequest, target: Target, query: Query, user: UserInfo
    ) -> RequestInfo:
        """Pods can be bound by posting to a collection of bindings, too."""
        if (target.group, target.version, target.plural) != ("", "v1", "bindings") or target.name:
            raise no_such_resource()
        if request.method != "POST" or target.namespace is None:
            raise method_not_allowed()
        return RequestInfo(request, PODS, target, "create", query, user)


_BOUND = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}'


def _verb(method: str, resource: Resource, target: Target, query: Query) -> str:
    if target.subresource in _CREATED_SUBRESOURCES and method == "POST":
        return "create"
    verb = (_OBJECT_VERBS if target.name else _COLLECTION_VERBS).get(method)
    if verb in ("get", "list") and (target.watch or query.flag("watch")) and not target.subresource:
        verb = "watch"
    if verb is None or (target.subresource in _CREATED_SUBRESOURCES):
        raise method_not_allowed()
    if verb not in resource.verbs:
        raise method_not_allowed()
    return verb


def _check_format(info: RequestInfo) -> None:
    """Refuse a client whose formats have no answer of this kind, before anything is done."""
    accepted, resource = info.accepted, info.resource
    kind = message_of_kind(resource.api_version, resource.kind)
    if accepted.media == PROTOBUF and accepted.form != "metadata" and not kind:
        raise not_acceptable()


def _selection(info: RequestInfo) -> ListSelector:
    fields = info.query.text("fieldSelector")
    if info.target.name:
        fields = f"metadata.name={info.target.name}" + (f",{fields}" if fields else "")
    return selection(info.resource, info.query.text("labelSelector"), fields)


def _name_of(obj: Object) -> str:
    metadata = obj.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or not name:
        raise bad_request("name is required")
    return name


def fault_subject(info: RequestInfo) -> str:
    """The resource as fault rules name it."""
    target = info.target
    return f"{target.plural}/{target.subresource}" if target.subresource else target.plural
