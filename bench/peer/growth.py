"""How deciding grows with the cluster, both schedulers in process, as a plot for docs/performance.md.

python -m bench.peer.growth --source ~/kubernetes/source --out docs/images/growth.svg
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.peer import algorithm

SIZES = (100, 1_000, 5_000, 15_000, 50_000, 130_000)
_LEAST, _MOST = 10.0, 1e6
"""CPU microseconds per decision, the ends of the vertical axes."""
_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 320, 220, 62, 34, 22, 34
_COLUMNS = 3
_LEGEND_HEIGHT = 34
_COLORS = {"kubesched": "#1f6feb", "kube-scheduler": "#8a8f98", "kube-scheduler, all nodes": "#d1601f"}
_STYLE = "font-family='system-ui, sans-serif' font-size='11'"


class Point(NamedTuple):
    """CPU microseconds per decision on so many nodes."""

    nodes: int
    spent: float


Panel = dict[str, list[Point]]
"""By scheduler."""


def measure(binary: Path, kind: str, sizes: Sequence[int], rounds: int) -> Panel:
    """Medians. kube-scheduler samples nodes by default; kubesched always looks at all of them."""
    panel: Panel = {scheduler: [] for scheduler in _COLORS}
    for nodes in sizes:
        taken = {
            "kubesched": (algorithm.ours(kind, nodes) for _ in range(rounds)),
            "kube-scheduler": (algorithm.theirs(binary, kind, nodes, 0) for _ in range(rounds)),
            "kube-scheduler, all nodes": (
                algorithm.theirs(binary, kind, nodes, algorithm.EVERY_NODE) for _ in range(rounds)
            ),
        }
        for scheduler, values in taken.items():
            panel[scheduler].append(Point(nodes, statistics.median(values)))
        spent = ", ".join(f"{scheduler} {points[-1].spent:,.0f} us" for scheduler, points in panel.items())
        print(f"{kind}, {nodes:,} nodes: {spent}", flush=True)
    return panel


def draw(panels: dict[str, Panel], sizes: Sequence[int]) -> str:
    """An SVG: a panel for each kind of pod, both axes logarithmic."""
    rows = math.ceil(len(panels) / _COLUMNS)
    width, height = _COLUMNS * _WIDTH, rows * _HEIGHT + _LEGEND_HEIGHT
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' {_STYLE} fill='#24292f'>",
        f"<rect width='{width}' height='{height}' fill='white'/>",
        *_legend(),
    ]
    for index, (kind, panel) in enumerate(panels.items()):
        x, y = index % _COLUMNS * _WIDTH, index // _COLUMNS * _HEIGHT + _LEGEND_HEIGHT
        parts += [f"<g transform='translate({x} {y})'>", *_panel(kind, panel, sizes), "</g>"]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _legend() -> Iterator[str]:
    yield f"<text x='{_LEFT}' y='20' font-weight='600'>CPU per decision by nodes, logarithmic</text>"
    for index, (scheduler, color) in enumerate(_COLORS.items()):
        x = _WIDTH + 20 + index * 190
        yield f"<line x1='{x}' x2='{x + 22}' y1='16' y2='16' stroke='{color}' stroke-width='2.5'/>"
        yield f"<text x='{x + 28}' y='20'>{scheduler}</text>"


def _panel(kind: str, panel: Panel, sizes: Sequence[int]) -> Iterator[str]:
    yield f"<text x='{_LEFT}' y='{_TOP - 10}' font-weight='600'>{kind.replace('-', ' ')}</text>"
    for spent, name in ((10, "10 us"), (100, "0.1 ms"), (1e3, "1 ms"), (1e4, "10 ms"), (1e5, "0.1 s"), (1e6, "1 s")):
        y = _y(spent)
        yield f"<line x1='{_LEFT}' x2='{_WIDTH - _RIGHT}' y1='{y:.1f}' y2='{y:.1f}' stroke='#d8dee4'/>"
        yield f"<text x='{_LEFT - 6}' y='{y + 4:.1f}' text-anchor='end'>{name}</text>"
    for nodes in sizes:
        name = f"{nodes // 1000}k" if nodes >= 1000 else str(nodes)
        yield f"<text x='{_x(nodes, sizes):.1f}' y='{_HEIGHT - _BOTTOM + 16}' text-anchor='middle'>{name}</text>"
    for scheduler, points in panel.items():
        line = " ".join(f"{_x(point.nodes, sizes):.1f},{_y(point.spent):.1f}" for point in points)
        yield f"<polyline points='{line}' fill='none' stroke='{_COLORS[scheduler]}' stroke-width='2.5'/>"


def _x(nodes: int, sizes: Sequence[int]) -> float:
    share = math.log(nodes / sizes[0]) / math.log(sizes[-1] / sizes[0])
    return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)


def _y(spent: float) -> float:
    share = math.log(spent / _LEAST) / math.log(_MOST / _LEAST)
    return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)


def main(source: Path, out: Path, rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(folder) / "algorithm"
        algorithm.build(source, binary)
        panels = {kind: measure(binary, kind, SIZES, rounds) for kind in algorithm.KINDS}
    out.write_text(draw(panels, SIZES))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.peer.growth", description=__doc__)
    parser.add_argument("--source", type=Path, required=True, help="a Kubernetes source tree")
    parser.add_argument("--out", type=Path, required=True, help="the SVG file to write")
    parser.add_argument("--rounds", type=int, default=1)
    given = parser.parse_args()
    try:
        main(given.source, given.out, given.rounds)
    except algorithm.BuildError as error:
        sys.exit(f"bench.peer.growth: {error}")
