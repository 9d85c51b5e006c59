from __future__ import annotations

import pytest

from kubesched.config.args import (
    NodeResourcesFitArgs,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from kubesched.config.args_validation import validate_node_resources_fit

RATIO = "RequestedToCapacityRatio"


def shape(*points: tuple[int, int]) -> RequestedToCapacityRatioParam:
    return RequestedToCapacityRatioParam(shape=tuple(UtilizationShapePoint(utilization=u, score=s) for u, s in points))


def found(args: NodeResourcesFitArgs) -> list[str]:
    return [mistake.path for mistake in validate_node_resources_fit("args", args)]


def test_the_defaults_are_fine() -> None:
    assert found(NodeResourcesFitArgs()) == []


def test_ignored_resources_are_names_and_groups_have_no_slash() -> None:
    args = NodeResourcesFitArgs(ignored_resources=("a.b/c", "-"), ignored_resource_groups=("a.b", "a.b/c"))
    assert found(args) == ["args.ignoredResources[1]", "args.ignoredResourceGroups[1]"]


@pytest.mark.parametrize("weight", [0, 101])
def test_resources_weigh_from_1_to_100(weight: int) -> None:
    strategy = ScoringStrategy(type="MostAllocated", resources=(ResourceSpec(name="cpu", weight=weight),))
    assert found(NodeResourcesFitArgs(scoring_strategy=strategy)) == ["args.scoringStrategy.resources[0].weight"]


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (ScoringStrategy(), ["type"]),
        (ScoringStrategy(type=RATIO), ["requestedToCapacityRatio"]),
        (
            ScoringStrategy(type="LeastAllocated", requested_to_capacity_ratio=shape((0, 0))),
            ["requestedToCapacityRatio"],
        ),
        (ScoringStrategy(type=RATIO, requested_to_capacity_ratio=shape()), ["requestedToCapacityRatio.shape"]),
        (ScoringStrategy(type=RATIO, requested_to_capacity_ratio=shape((0, 0), (100, 10))), []),
        (
            ScoringStrategy(type=RATIO, requested_to_capacity_ratio=shape((50, 0), (50, 11), (101, 0))),
            [f"requestedToCapacityRatio.shape[{where}" for where in ("1].utilization", "1].score", "2].utilization")],
        ),
    ],
)
def test_scoring_strategies(strategy: ScoringStrategy, expected: list[str]) -> None:
    assert found(NodeResourcesFitArgs(scoring_strategy=strategy)) == [
        f"args.scoringStrategy.{each}" for each in expected
    ]
