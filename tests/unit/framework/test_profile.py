from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kubesched.config import PluginEntry as Entry
from kubesched.config import Plugins, PluginSet, ProfileConfig
from kubesched.config.features import Features
from kubesched.framework.plugin import (
    BindPlugin,
    FilterPlugin,
    Plugin,
    PluginContext,
    PreFilterPlugin,
    QueueSortPlugin,
    ScorePlugin,
)
from kubesched.framework.profile import Profile, ProfileError
from kubesched.framework.registry import Registry


class Sort(QueueSortPlugin):
    name = "Sort"


class OtherSort(QueueSortPlugin):
    name = "OtherSort"


class Bind(BindPlugin):
    name = "Bind"


class One(PreFilterPlugin, FilterPlugin):
    name = "One"


class Two(FilterPlugin, ScorePlugin):
    name = "Two"


class Three(FilterPlugin, ScorePlugin):
    name = "Three"


REGISTRY = Registry((Sort, OtherSort, Bind, One, Two, Three))


def listed(*names: str, off: tuple[str, ...] = (), weights: Mapping[str, int] | None = None) -> PluginSet:
    weighted = weights or {}
    return PluginSet(
        enabled=tuple(Entry(name=name, weight=weighted.get(name, 0)) for name in names),
        disabled=tuple(Entry(name=name) for name in off),
    )


def make_profile(multi_point: PluginSet | None = None, **points: PluginSet) -> Profile:
    """A profile with all plugins of this file at multiPoint, unless said otherwise."""
    multi_point = multi_point or listed("Sort", "Bind", "One", "Two", "Three")
    config = ProfileConfig(scheduler_name="mine", plugins=Plugins(multi_point=multi_point, **points))
    return Profile(config, REGISTRY, PluginContext())


def filters(profile: Profile) -> list[str]:
    return [plugin.name for plugin in profile.at("filter", FilterPlugin)]


def weights(profile: Profile) -> dict[str, int]:
    return {plugin.name: weight for plugin, weight in profile.scores}


def test_multi_point_enables_a_plugin_wherever_it_has_a_part() -> None:
    profile = make_profile()
    assert filters(profile) == ["One", "Two", "Three"]
    assert [plugin.name for plugin in profile.at("pre_filter", PreFilterPlugin)] == ["One"]
    assert weights(profile) == {"Two": 1, "Three": 1}


def test_a_plugin_is_one_object_at_all_its_points() -> None:
    profile = make_profile()
    objects: set[Plugin] = {profile.at("filter", FilterPlugin)[1], profile.scores[0][0], profile.plugins["Two"]}
    assert len(objects) == 1


def test_a_point_may_leave_out_what_multi_point_enables() -> None:
    profile = make_profile(filter=listed(off=("Two",)))
    assert filters(profile) == ["One", "Three"]
    assert weights(profile) == {"Two": 1, "Three": 1}


def test_a_star_leaves_only_what_the_point_itself_enables() -> None:
    assert filters(make_profile(filter=listed("Three", off=("*",)))) == ["Three"]
    assert filters(make_profile(filter=listed(off=("*",)))) == []


def test_plugins_named_by_the_point_and_by_multi_point_go_first_in_the_order_of_the_point() -> None:
    assert filters(make_profile(filter=listed("Three", "One"))) == ["Three", "One", "Two"]


def test_plugins_named_by_the_point_alone_go_last() -> None:
    multi_point = listed("Sort", "Bind", "Two", "Three")
    assert filters(make_profile(multi_point, filter=listed("One", "Three"))) == ["Three", "Two", "One"]


def test_the_weight_given_at_score_counts_more_than_that_of_multi_point() -> None:
    multi_point = listed("Sort", "Bind", "Two", "Three", weights={"Two": 5, "Three": 7})
    profile = make_profile(multi_point, score=listed("Two", weights={"Two": 50}))
    assert weights(profile) == {"Two": 50, "Three": 7}


def test_plugins_get_their_arguments_and_the_feature_gates() -> None:
    plugins = Plugins(multi_point=listed("Sort", "Bind", "One"))
    config = ProfileConfig(scheduler_name="mine", plugins=plugins, plugin_config={"One": {"depth": 3}})
    profile = Profile(config, REGISTRY, PluginContext(Features(taint_comparisons=True)))
    assert profile.plugins["One"].args == {"depth": 3}
    assert profile.plugins["One"].context.features.taint_comparisons


def test_plugins_that_nobody_enables_are_not_made() -> None:
    assert set(make_profile(listed("Sort", "Bind", "One")).plugins) == {"Sort", "Bind", "One"}


@pytest.mark.parametrize(
    ("profile", "complaint"),
    [
        (
            {"multi_point": listed("Sort", "Bind", "Four")},
            r"there is no plugin named 'Four' \(enabled for multiPoint\)",
        ),
        ({"filter": listed("Four")}, r"there is no plugin named 'Four' \(enabled for filter\)"),
        ({"score": listed("One")}, "plugin 'One' has no part in score"),
        ({"pre_filter": listed("Two")}, "plugin 'Two' has no part in preFilter"),
        ({"filter": listed("One", "One")}, "plugin 'One' is enabled twice in filter"),
        ({"multi_point": listed("Sort", "Bind", "One", "One")}, "plugin 'One' is enabled twice in multiPoint"),
        ({"multi_point": listed("Bind", "One")}, "exactly one queue sort plugin is needed, but there are 0"),
        ({"multi_point": listed("Sort", "OtherSort", "Bind")}, "one queue sort plugin is needed, but there are 2"),
        ({"multi_point": listed("Sort", "One")}, "at least one bind plugin is needed"),
    ],
)
def test_mistakes_are_named_with_the_profile(profile: dict[str, PluginSet], complaint: str) -> None:
    with pytest.raises(ProfileError, match=f"profile 'mine': .*{complaint}"):
        make_profile(**profile)


def test_plugin_that_does_not_take_its_args_is_named_with_the_place() -> None:
    class Deep(FilterPlugin):
        name = "Deep"

        def __init__(self, args: Any = None, context: PluginContext | None = None) -> None:
            super().__init__(args, context)
            self.depth = int(args["depth"])

    config = ProfileConfig(
        scheduler_name="mine",
        plugins=Plugins(multi_point=listed("Sort", "Bind", "Deep")),
        plugin_config={"Deep": {"depth": "very"}},
    )
    words = r"plugin 'Deep' cannot be made with the args {'depth': 'very'}: .*test_profile.py:\d+: ValueError: invalid"
    with pytest.raises(ProfileError, match=words):
        Profile(config, Registry((Sort, Bind, Deep)), PluginContext())


def test_weights_so_large_that_a_total_might_overflow_are_refused() -> None:
    class Heavy(ScorePlugin):
        name = "Heavy"

    names = [f"Heavy{i}" for i in range(3)]
    crowd: list[type[Plugin]] = [type(name, (Heavy,), {"name": name}) for name in names]
    plugins = Plugins(multi_point=listed("Sort", "Bind", *names, weights=dict.fromkeys(names, 2**55)))
    with pytest.raises(ProfileError, match="too large together"):
        Profile(ProfileConfig(scheduler_name="mine", plugins=plugins), Registry((Sort, Bind, *crowd)), PluginContext())
