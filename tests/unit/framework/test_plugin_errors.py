"""An exception of a plugin comes with the name of the plugin, whatever it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kubesched import config
from kubesched.framework.errors import PluginError, describe
from kubesched.framework.plugin import FilterPlugin, Plugin, PreFilterPlugin, ScorePlugin
from kubesched.framework.registry import Registry
from kubesched.plugins.registry import IN_TREE
from kubesched.simulate.cluster import ClusterModel
from kubesched.testing import make_node, make_pod

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: Mine}]}}
"""


def complaint_about(point: type[Plugin], method: str, answer: Any) -> str:
    def answering(*asked: Any) -> Any:
        return answer(*asked) if callable(answer) else answer

    mine = type("Mine", (point,), {"name": "Mine", method: answering})
    nodes = [make_node(name).capacity(cpu="4", memory="8Gi", pods=10).build() for name in ("n1", "n2")]
    cluster = ClusterModel(nodes, config.load(CONFIG), plugins=Registry((*IN_TREE, mine)))
    with pytest.raises(PluginError) as raised:
        cluster.engine.decide(make_pod("p").build())
    assert raised.value.plugin == "Mine"
    return str(raised.value)


def broken(*asked: Any) -> Any:
    raise KeyError("zone")


@pytest.mark.parametrize(
    ("point", "method", "answer", "words"),
    [
        (FilterPlugin, "filter_node", broken, "KeyError: 'zone'"),
        (FilterPlugin, "filter_node", False, "TypeError: a filter must answer None or a Status, not False"),
        (FilterPlugin, "filter_node", lambda self: None, "TypeError: "),
        (FilterPlugin, "filter_nodes", None, "NotImplementedError: it has neither filter nor filter_node"),
        (FilterPlugin, "filter", np.array([True]), "TypeError: a filter must answer with an id for each of 2 nodes"),
        (ScorePlugin, "score_node", None, "TypeError: a score must be a whole number, not None"),
        (ScorePlugin, "score_node", 0.9, "TypeError: a score must be a whole number, not 0.9"),
        (ScorePlugin, "score_node", "100", "TypeError: a score must be a whole number, not '100'"),
        (ScorePlugin, "score", None, "TypeError: "),
        (PreFilterPlugin, "pre_filter", True, "TypeError: pre_filter must answer None, a Status or a set of node name"),
    ],
)
def test_plugin_that_breaks_or_answers_nonsense_is_named(
    point: type[Plugin], method: str, answer: Any, words: str
) -> None:
    assert complaint_about(point, method, answer).startswith(f'plugin "Mine" broke: {words}')


def test_exception_that_comes_from_no_plugin_is_described_without_one() -> None:
    assert describe(KeyError("zone")) == "KeyError: 'zone'"
