"""The legacy Policy as written, and the plugins that replace its predicates and priorities."""

from __future__ import annotations

from importlib.resources import files
from typing import Any, get_args

import msgspec

from kubesched.api.duration import Duration
from kubesched.api.meta import Int32, Record
from kubesched.api.schema import Mistake, convert
from kubesched.api.yaml import YamlError, documents
from kubesched.config.args import ResourceSpec, UtilizationShapePoint
from kubesched.config.configuration import ExtenderConfig
from kubesched.config.mistakes import UnreadableConfigError


class PolicyTable(msgspec.Struct, frozen=True):
    """The tables of policy.toml, from names of the Policy to names of plugins and their strategies."""

    predicates: dict[str, tuple[str, ...]]
    mandatory_predicates: tuple[str, ...]
    default_predicates: tuple[str, ...]
    """Without those that are mandatory."""
    priorities: dict[str, str]
    neutral_priority: str
    default_priorities: dict[str, int]
    strategies: dict[str, str]
    aliases: dict[str, str]
    removed: dict[str, str]
    removed_arguments: dict[str, str]
    filter_points: dict[str, tuple[str, ...]]
    score_points: dict[str, tuple[str, ...]]
    always_enabled: tuple[str, ...]


TABLE = msgspec.toml.decode(files(__package__).joinpath("policy.toml").read_bytes(), type=PolicyTable)


class ServiceAffinity(Record, frozen=True):
    """Pods of a service stay on nodes that agree in these labels."""

    labels: tuple[str, ...] = ()


class LabelsPresence(Record, frozen=True):
    """Nodes have all of these labels, or none, whatever the values."""

    labels: tuple[str, ...] = ()
    presence: bool = False


class PredicateArgument(Record, frozen=True):
    """The check of a custom predicate: exactly one of these."""

    service_affinity: ServiceAffinity | None = None
    labels_presence: LabelsPresence | None = None


class PredicatePolicy(Record, frozen=True):
    """A predicate by name."""

    name: str = ""
    argument: PredicateArgument | None = None


class ServiceAntiAffinity(Record, frozen=True):
    """Pods of a service spread over the values of a label."""

    label: str = ""


class LabelPreference(Record, frozen=True):
    """Nodes with the label are better, or those without."""

    label: str = ""
    presence: bool = False


class RequestedToCapacityRatioArguments(Record, frozen=True):
    """Nodes are scored by utilization along a broken line."""

    shape: tuple[UtilizationShapePoint, ...] = ()
    resources: tuple[ResourceSpec, ...] = ()


class PriorityArgument(Record, frozen=True):
    """The preference of a custom priority: exactly one of these."""

    service_anti_affinity: ServiceAntiAffinity | None = None
    label_preference: LabelPreference | None = None
    requested_to_capacity_ratio_arguments: RequestedToCapacityRatioArguments | None = None


class PriorityPolicy(Record, frozen=True):
    """A priority by name, and its weight."""

    name: str = ""
    weight: int = 0
    argument: PriorityArgument | None = None


class Policy(Record, frozen=True):
    """The file. Absent predicates or priorities are the default ones; an empty list is none."""

    predicates: tuple[PredicatePolicy, ...] | None = None
    priorities: tuple[PriorityPolicy, ...] | None = None
    extenders: tuple[ExtenderConfig, ...] = ()
    hard_pod_affinity_symmetric_weight: Int32 = 0
    always_check_all_predicates: bool = False


def read_policy(text: str, *, source: str) -> Policy:
    """The Policy in a YAML or JSON text, or an error with all that is wrong."""
    try:
        document = next(documents(text), None)
    except YamlError as error:
        raise UnreadableConfigError([Mistake("", str(error))], source) from error
    value = document.value if document else None
    if not isinstance(value, dict):
        raise UnreadableConfigError([Mistake("", "expected a Policy, got no mapping")], source)
    mistakes = [
        Mistake(field, f'expected "{expected}", got {msgspec.json.encode(value.get(field)).decode()}')
        for field, expected in (("apiVersion", "v1"), ("kind", "Policy"))
        if value.get(field) != expected
    ]
    fields = {name: content for name, content in value.items() if name not in ("apiVersion", "kind")}
    if isinstance(fields.get("extenders"), list):
        fields["extenders"] = [_respell(extender, ExtenderConfig) for extender in fields["extenders"]]
    policy, faults = convert(fields, Policy, unknown="error", hooks={Duration: _nanoseconds})
    if policy is None or mistakes or faults:
        raise UnreadableConfigError(mistakes + faults, source)
    return policy


def _respell(value: Any, type_: Any) -> Any:
    """The known fields of an extender, spelled as in the record: here the Policy ignored case and unknown fields."""
    if isinstance(value, list):
        return [_respell(item, get_args(type_)[0]) for item in value]
    records = [option for option in (type_, *get_args(type_)) if hasattr(option, "__struct_fields__")]
    if not records or not isinstance(value, dict):
        return value
    fields = {field.encode_name.lower(): field for field in msgspec.structs.fields(records[0])}
    contents = [(fields[name.lower()], content) for name, content in value.items() if name.lower() in fields]
    return {field.encode_name: _respell(content, field.type) for field, content in contents}


def _nanoseconds(value: Any) -> Duration:
    if value is not None and type(value) is not int:
        raise ValueError(f"expected a whole number of nanoseconds, got {msgspec.json.encode(value).decode()}")
    return Duration((value or 0) / 10**9)
