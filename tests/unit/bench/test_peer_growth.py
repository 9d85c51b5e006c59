"""The plot of how deciding grows with the cluster."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from bench.peer.growth import Point, draw

_LINES = "{http://www.w3.org/2000/svg}polyline"


def test_plot_has_a_panel_for_each_kind_and_a_rising_line_for_what_grows() -> None:
    flat, steep = [Point(100, 50.0), Point(1000, 50.0)], [Point(100, 300.0), Point(1000, 3000.0)]
    panel = {"kubesched": flat, "kube-scheduler": steep, "kube-scheduler, all nodes": steep}
    plot = ET.fromstring(draw({"basic": panel, "spread-hard": panel}, (100, 1000)))
    heights = [[float(at.split(",")[1]) for at in line.get("points", "").split()] for line in plot.iter(_LINES)]
    assert len(heights) == 6
    assert heights[0][0] == heights[0][1]
    assert heights[1][1] < heights[1][0] < heights[0][0]
    assert "spread hard" in [text.text for text in plot.iter("{http://www.w3.org/2000/svg}text")]
