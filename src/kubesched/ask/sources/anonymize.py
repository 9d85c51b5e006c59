"""Anonymizes a cluster: names are replaced, and every decision about it stays the same.

Which field holds what is a table by the names of fields. A field that could hold text and is not in it is an error, so
a new one cannot slip through.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Literal, TypeVar, get_args, get_origin

import msgspec

from kubesched import config
from kubesched.api.custom import CustomObject
from kubesched.api.devices import DeviceAttribute
from kubesched.api.meta import KubeObject, Record
from kubesched.api.pod import Pod
from kubesched.api.release import NEWEST, release_of
from kubesched.api.storage import CSIDriver
from kubesched.api.well_known import EVICTION_ANNOTATIONS, SELECTED_NODE, STORAGE_CLASS
from kubesched.ask.sources.pseudonyms import Pseudonyms
from kubesched.ask.sources.reading import ClusterReading, FoundConfiguration
from kubesched.config.configuration import ProfileConfig
from kubesched.controllers.jobs import INDEX
from kubesched.scheduler.recording import READ_BY_SCHEDULING
from kubesched.simulate.kinds import StatefulSet
from kubesched.simulate.workloads import ARRIVAL, DURATION

R = TypeVar("R", bound=msgspec.Struct)
Rule = Callable[[Pseudonyms, Any, Any], Any]
"""Takes the pseudonyms, what is in a field, and the record that has the field."""

KEPT_ANNOTATIONS = READ_BY_SCHEDULING | EVICTION_ANNOTATIONS | {ARRIVAL, DURATION, INDEX}
"""All others are left out: nothing in a decision or a plan depends on them."""
_NAMING_ANNOTATIONS = (SELECTED_NODE, STORAGE_CLASS)
_ANY_ADDRESS = ("0.0.0.0", "::")
_GREATER_OR_LESS = ("Gt", "Lt")
_SELECTING = ("expression", "match_attribute", "distinct_attribute")
"""Fields that name attributes of devices."""


def _kept(pseudonyms: Pseudonyms, value: Any, record: Any) -> Any:
    return value


def _one_or_several(pseudonym: Callable[[Pseudonyms, str], str]) -> Rule:
    """For fields with a text, or with several."""

    def rule(pseudonyms: Pseudonyms, value: Any, record: Any) -> Any:
        if isinstance(value, str):
            return pseudonym(pseudonyms, value)
        return tuple(pseudonym(pseudonyms, text) for text in value)

    return rule


_name, _key = _one_or_several(Pseudonyms.name), _one_or_several(Pseudonyms.key)
_request, _resource = _one_or_several(Pseudonyms.request), _one_or_several(Pseudonyms.resource)


def _resources(pseudonyms: Pseudonyms, value: Any, record: Any) -> Any:
    if isinstance(value, dict):
        return {pseudonyms.resource(name): amount for name, amount in value.items()}
    return _resource(pseudonyms, value, record)


def _labels(pseudonyms: Pseudonyms, value: Any, record: Any) -> Any:
    return pseudonyms.labels(value)


def _value(pseudonyms: Pseudonyms, value: Any, record: Any) -> Any:
    return pseudonyms.value(record.key, value)


def _values(pseudonyms: Pseudonyms, value: Any, record: Any) -> Any:
    return pseudonyms.values(record.key, value)


def _image(pseudonyms: Pseudonyms, value: Any, record: Any) -> Any:
    return pseudonyms.image(value)


def _images_of_node(pseudonyms: Pseudonyms, value: Any, record: Any) -> Any:
    return tuple(pseudonyms.image_of_node(image) for image in value)


def _host_address(pseudonyms: Pseudonyms, value: Any, record: Any) -> Any:
    return value if value in _ANY_ADDRESS else pseudonyms.name(value)


def _volume_id(pseudonyms: Pseudonyms, value: Any, record: Any) -> Any:
    return pseudonyms.disk(value)


def _annotations(pseudonyms: Pseudonyms, value: Any, record: Any) -> Any:
    return {
        key: pseudonyms.name(text) if key in _NAMING_ANNOTATIONS else text
        for key, text in value.items()
        if key in KEPT_ANNOTATIONS
    }


def _attributes(pseudonyms: Pseudonyms, value: Any, record: Any) -> Any:
    """An attribute that nothing selects by may be the serial number of a device: its text is numbered."""
    return {
        name: attribute if pseudonyms.is_selected_by(name) else _numbered(pseudonyms, attribute)
        for name, attribute in value.items()
    }


def _numbered(pseudonyms: Pseudonyms, attribute: DeviceAttribute) -> DeviceAttribute:
    text, texts = attribute.string_value, attribute.string_values
    return msgspec.structs.replace(
        attribute,
        string_value=None if text is None else pseudonyms.name(text),
        string_values=None if texts is None else tuple(map(pseudonyms.name, texts)),
    )


def _named_pods(pseudonyms: Pseudonyms, value: Any, record: Any) -> Any:
    return {pseudonyms.name(name): content for name, content in value.items()}


def _without_text(pseudonyms: Pseudonyms, value: Any, record: Any) -> Any:
    return ""


def _without(pseudonyms: Pseudonyms, value: Any, record: Any) -> Any:
    return None


_RULES: dict[Rule, str] = {
    _kept: """
        access_modes action allocation_mode allocation_timestamp api_group api_version attacher
        completed_indexes consumed_capacity counters creation_timestamp declared_features defaulting_type
        deletion_timestamp derived_attributes disruption_mode distinct_attribute driver effect expression
        extended_resource_name ignored_resource_groups kind last_transition_time match_attribute
        maximum_volume_size medium operator phase preemption_policy provisioner reason resource resource_version
        restart_policy scheduler_name source start_time status type volume_mode""",
    _name: """
        claim_name compatibility_groups container_name counter_set device device_class_name disk_name disk_uri
        generate_name iqn monitors name namespace namespaces node_id node_name nominated_node_name pd_name
        persistent_volume_name pod_group_name pod_group_template_name pool priority_class_name provider_id
        resource_claim_name resource_claim_template_name share_id share_name storage_class_name target_portal
        template_name uid volume_attributes_class_name volume_handle volume_name volume_path workload_name""",
    _key: """
        binding_conditions binding_failure_conditions finalizers key match_label_keys mismatch_label_keys topology_key
        topology_keys""",
    _resources: "allocatable allocated_resources capacity ignored_resources limits overhead requests resource_name",
    _request: "request request_name",
    _labels: "labels match_labels node_selector selector",
    _value: "value",
    _values: "values",
    _image: "image reference",
    _images_of_node: "names",
    _host_address: "host_ip",
    _volume_id: "volume_id",
    _annotations: "annotations",
    _attributes: "attributes",
    _named_pods: "disrupted_pods",
    _without_text: "message",
    _without: "data network_data opaque",
}
_BY_FIELD = {field: rule for rule, fields in _RULES.items() for field in fields.split()}
_ELSEWHERE: dict[tuple[str, str], Rule] = {
    ("BudgetSpec", "max_unavailable"): _kept,
    ("BudgetSpec", "min_available"): _kept,
    ("CSINodeDriver", "name"): _kept,  # the driver
    ("DeviceCondition", "type"): _key,
    ("DeviceConstraint", "requests"): _request,
    ("DeviceClaimConfiguration", "requests"): _request,
    ("AllocationConfiguration", "requests"): _request,
    ("DiskSource", "image"): _name,
    ("ResourceSpec", "name"): _resources,
    ("SchedulingGate", "name"): _key,
}
"""Where a field of that name means something else."""


class UnknownFieldError(TypeError):
    """A field that may hold text, and for which the table of rules has no entry."""


@cache
def rules_of(record: type[msgspec.Struct]) -> tuple[tuple[str, Rule | None], ...]:
    """The fields of a record that text may be in, with their rules; None for records inside. UnknownFieldError."""
    rules: list[tuple[str, Rule | None]] = []
    for field in msgspec.structs.fields(record):
        inside = set(_types_in(field.type))
        if str in inside or Any in inside:
            rule = _ELSEWHERE.get((record.__name__, field.name)) or _BY_FIELD.get(field.name)
            if rule is None:
                raise UnknownFieldError(f"{record.__name__}.{field.name}: may it be shown?")
            if rule is not _kept:
                rules.append((field.name, rule))
        elif any(issubclass(type_, msgspec.Struct) for type_ in inside):
            rules.append((field.name, None))
    return tuple(rules)


def _types_in(hint: Any) -> Iterator[Any]:
    if get_origin(hint) is Literal:
        return
    arguments = get_args(hint)
    if not arguments and (isinstance(hint, type) or hint is Any):
        yield hint
    for argument in arguments:
        if argument is not Ellipsis:
            yield from _types_in(argument)


class Anonymizer:
    """Goes over records: a first time to see all names, then to replace them."""

    def __init__(self) -> None:
        self._pseudonyms = Pseudonyms()

    def note(self, obj: KubeObject) -> None:
        """See the names in an object, and which of them are made of others."""
        pseudonyms = self._pseudonyms
        match obj:
            case Pod():
                for volume in obj.spec.volumes:
                    if volume.ephemeral is not None:
                        pseudonyms.made_of((obj.name, volume.name))
            case StatefulSet():
                pseudonyms.numbered((obj.name,))
                for template in obj.spec.volume_claim_templates:
                    pseudonyms.numbered((template.name, obj.name))
        self.anonymized(obj)

    def settle(self) -> None:
        self._pseudonyms.settle()

    def anonymized(self, record: R) -> R:
        """The record under pseudonyms; before `settle`, as it is: its names are noted."""
        if getattr(record, "operator", "") in _GREATER_OR_LESS:
            self._pseudonyms.compared(record.key)  # type: ignore[attr-defined]
        for field in _SELECTING:
            self._pseudonyms.selects(getattr(record, field, None) or "")
        changed: dict[str, Any] = {}
        for field, rule in rules_of(type(record)):
            value = getattr(record, field)
            if value:
                new = self._inside(value) if rule is None else rule(self._pseudonyms, value, record)
                if new is not value and new != value:
                    changed[field] = new
        return msgspec.structs.replace(record, **changed) if changed else record

    def anonymized_object(self, obj: KubeObject) -> KubeObject:
        """The same for an object with a name. That of a CSIDriver stays: all volumes of the driver have it."""
        record = self.anonymized(obj)
        if isinstance(obj, CSIDriver):
            metadata = msgspec.structs.replace(record.metadata, name=obj.name)
            return msgspec.structs.replace(record, metadata=metadata)
        return record

    def original(self, word: str) -> str:
        """What a pseudonym stands for; itself if it stands for nothing."""
        return self._pseudonyms.original(word)

    def word(self, original: str) -> str:
        """What stands for a name."""
        return self._pseudonyms.name(original)

    def knows(self, original: str) -> bool:
        """Whether the cluster has this name."""
        return self._pseudonyms.knows(original)

    def _inside(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(self.anonymized(record) for record in value)
        return self.anonymized(value) if isinstance(value, Record) else value


def anonymize_cluster(reading: ClusterReading, anonymizer: Anonymizer | None = None) -> ClusterReading:
    """The same cluster under other names. Custom resources are left out: what is in them, only their plugins know."""
    anonymizer = anonymizer or Anonymizer()
    settings = _settings(reading.configuration, reading.server_version)
    for obj in reading.records():
        if not isinstance(obj, CustomObject):
            anonymizer.note(obj)
    for profile in settings.profiles if settings else ():
        _anonymized_profile(profile, anonymizer)
    anonymizer.settle()
    objects = {
        kind: tuple(map(anonymizer.anonymized_object, records))
        for kind, records in reading.objects.items()
        if not records or not isinstance(records[0], CustomObject)
    }
    was_found = bool(reading.configuration.text)
    configuration = FoundConfiguration("", "what was found could not be anonymized" if was_found else "none was found")
    if settings is not None:
        profiles = tuple(_anonymized_profile(profile, anonymizer) for profile in settings.profiles)
        plain = config.to_plain(msgspec.structs.replace(settings, profiles=profiles, extenders=()))
        kept = {key: plain[key] for key in _KEPT_SETTINGS if key in plain}
        configuration = FoundConfiguration(msgspec.json.encode(kept).decode(), "the scheduler's /configz")
    return dataclasses.replace(reading, objects=objects, configuration=configuration)


_KEPT_SETTINGS = ("apiVersion", "kind", "parallelism", "percentageOfNodesToScore", "profiles")
"""The rest is how the scheduler reaches its API server and its extenders, which are not asked offline."""


def _settings(configuration: FoundConfiguration, version: str) -> config.SchedulerConfiguration | None:
    features = config.Features.of({}, release_of(version) or NEWEST)
    try:
        return config.load(configuration.text, features=features) if configuration.text else None
    except config.ConfigError:
        return None


def _anonymized_profile(profile: ProfileConfig, anonymizer: Anonymizer) -> ProfileConfig:
    """Arguments of plugins that are not kube-scheduler's are left out: only their authors know what is in them."""
    arguments = {
        name: anonymizer.anonymized(args) for name, args in profile.plugin_config.items() if isinstance(args, Record)
    }
    return msgspec.structs.replace(profile, plugin_config=arguments)
