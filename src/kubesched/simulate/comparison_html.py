"""A comparison of policies as one page of HTML that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.simulate.comparison import Comparison, figures_in_words, short_names
from kubesched.simulate.plots import Bad, bars, cards, legend, paragraphs, section, table, whole_page
from kubesched.simulate.report import title_of

_STYLES = "abcdef"
"""The classes of the page's stylesheet that colour bars."""


def page(found: Comparison, *, seed: int, made: str) -> str:
    """The whole page; `made` says when it was made."""
    names = short_names(found.policies)
    sections = [
        cards({"pods": str(found.pods), "end up elsewhere": str(len(found.differences))}),
        section("Side by side", table(("", *names), ((title, *values) for title, values in figures_in_words(found)))),
        *_shares(found, names),
        _differences(found, names),
    ]
    remark = f"The same cluster, simulated in virtual time once per configuration, seed {seed}, on {made}."
    return whole_page(f"Compared: {', '.join(names)}", remark, sections)


def _shares(found: Comparison, names: Sequence[str]) -> list[str]:
    """How much is requested under each policy, and how evenly. More policies than colours are in the table only."""
    styles = list(zip(names, _STYLES))
    if len(styles) < len(names):
        return []
    sections = []
    for title, shares in (
        ("Requested, mean", [figures.mean for figures in found.figures]),
        ("Deviation between nodes", [figures.spread for figures in found.figures]),
    ):
        rows = [
            (
                title_of(name),
                [(style, each.get(name, 0.0), f"{each.get(name, 0.0):.0%}") for each, style in zip(shares, _STYLES)],
            )
            for name in shares[0]
            if any(each.get(name) for each in shares)
        ]
        if rows:
            sections.append(section(title, bars(rows) + legend(styles)))
    return sections


def _differences(found: Comparison, names: Sequence[str]) -> str:
    if not found.differences:
        return section("Pods that end up elsewhere", paragraphs(f"None: all {found.pods} are treated alike."))
    rows = ((each.pod, *(node or Bad("pending") for node in each.nodes)) for each in found.differences)
    return section("Pods that end up elsewhere", table(("Pod", *names), rows))
