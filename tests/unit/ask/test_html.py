"""Pages of HTML: whatever comes from a cluster is text, and a name that a template misspells is an error."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

import pytest
from jinja2 import UndefinedError
from tests.applied_remedies import as_json, cluster_of

from kubesched import config
from kubesched.ask import html
from kubesched.ask.edits import RemoveNodes
from kubesched.ask.explain import explain
from kubesched.ask.pending import pending_pods
from kubesched.ask.what_if.what_if import what_if
from kubesched.simulate.report import (
    Comparison,
    PlacementDifference,
    PodStory,
    SimulationReport,
    Utilisation,
    figures_of,
)
from kubesched.testing import make_node, make_pod

HOSTILE = "<img src=x onerror='alert(\"1\")'>&amp;"
NODE = make_node("n").zone(HOSTILE).capacity(cpu="4", memory="8Gi").build()
POD = make_pod(HOSTILE).label(app=HOSTILE).requests(cpu="9").build()


def report() -> SimulationReport:
    waiting = PodStory(HOSTILE, 0, 0.0, message=f"because of {HOSTILE}")
    placed = PodStory(HOSTILE, 0, 0.0, node=HOSTILE, placed=0.0, replaces=HOSTILE)
    nodes = Utilisation(HOSTILE, HOSTILE, 1, {}, 1)
    return SimulationReport(0, 1, 0.0, 1, 0, (waiting, placed), (), nodes, (nodes, nodes), (nodes,), ())


def comparison() -> Comparison:
    figures = figures_of(report())
    return Comparison((HOSTILE, "other"), (figures, figures), (PlacementDifference(HOSTILE, (HOSTILE, "")),), 1)


def what_if_hostile_nodes_were_lost() -> str:
    found = what_if([NODE, make_pod("p").requests(cpu="1").on("n").build()], config.default(), [RemoveNodes(("n",))])
    return html.what_if_page(dataclasses.replace(found.difference, changes=(f"lose {HOSTILE}",)))


PAGES: dict[str, Callable[[], str]] = {
    "simulation": lambda: html.simulation_page(report(), configuration=HOSTILE),
    "comparison": lambda: html.comparison_page(comparison(), seed=0),
    "explanation": lambda: html.explanation_page([explain(cluster_of(as_json([NODE])), POD, with_remedies=False)]),
    "pending": lambda: html.pending_page(pending_pods(cluster_of(as_json([NODE, POD])))),
    "what if": what_if_hostile_nodes_were_lost,
}


@pytest.mark.parametrize("page", PAGES)
def test_names_from_the_cluster_are_text_and_never_markup(page: str) -> None:
    text = PAGES[page]()
    assert "&lt;img src=x onerror=&#39;alert(&#34;1&#34;)&#39;&gt;&amp;amp;" in text
    assert "<img" not in text
    assert set(re.findall(r"<(\w+)[^>]*alert", text)) == set()


def test_a_name_that_a_template_misspells_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="placde"):
        html._environment().from_string("{{ report.placde }}").render(report=report())
