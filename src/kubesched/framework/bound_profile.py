"""A profile at work on a cluster: its plugins, by what the engine asks of them."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.framework.answers import AnswerCache
from kubesched.framework.cycle import bound_call
from kubesched.framework.equivalence import EquivalenceCache
from kubesched.framework.extender import Extender
from kubesched.framework.filters import FilterRunner
from kubesched.framework.plugin import (
    FilterPlugin,
    PostFilterPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
)
from kubesched.framework.profile import Profile
from kubesched.framework.scores import ScoreRunner
from kubesched.state.cluster import ClusterState


class BoundProfile:
    """A profile at work on a cluster."""

    def __init__(
        self,
        profile: Profile,
        state: ClusterState,
        answers: AnswerCache,
        equivalence: EquivalenceCache,
        extenders: Sequence[Extender],
    ) -> None:
        self.name = profile.name
        self.pre_enqueue = profile.at("pre_enqueue", PreEnqueuePlugin)
        self.post_filters = tuple(
            (plugin.name, bound_call(plugin.name, "PostFilter", plugin.post_filter))
            for plugin in profile.at("post_filter", PostFilterPlugin)
        )
        self.filters = FilterRunner(
            state,
            [plugin for plugin in profile.at("pre_filter", PreFilterPlugin) if not plugin.is_silent],
            profile.at("filter", FilterPlugin),
            answers,
            equivalence,
        )
        self.scores = ScoreRunner(state, profile.at("pre_score", PreScorePlugin), profile.scores, answers, equivalence)
        self.one_is_enough = not profile.scores and not any(
            extender.filters or extender.prioritizes for extender in extenders
        )
        """Whether no score can make one node that fits better than another."""
        self.signature = profile.signature
        self.undeclared = profile.undeclared
        self.repeats_failures = not state.features.pod_groups
        """Whether the version of the state covers all that a decision depends on."""
        self.percentage = profile.percentage_of_nodes_to_score
