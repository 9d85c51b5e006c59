"""Makes the screenshots of docs/web-page.md, or with --all every view in three sizes, dark and light.

    python tools/screenshots.py
    python tools/screenshots.py --all /tmp/screenshots

It needs Chromium with its driver, and selenium, as the browser tests do.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.background_loop import in_background  # noqa: E402
from tests.browser.page import Page  # noqa: E402
from tests.chromium import MISSING, WebDriver, browser, look  # noqa: E402
from tests.shown_page import large_cluster, page_of, page_of_sandbox, page_of_shadow  # noqa: E402

from kubesched.api.meta import KubeObject  # noqa: E402
from kubesched.testing import NodeBuilder, PodBuilder, make_node, make_pod  # noqa: E402

SIZES = {"wide": (1440, 900), "tablet": (820, 1100), "phone": (390, 844)}
SETTLED = 1.2
"""Seconds after which a view has drawn all that it asks for."""
STORY = 11.0
"""Seconds into the story about batch work: pods wait, and others were preempted."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", type=Path, metavar="DIRECTORY", help="every view, three sizes, dark and light")
    directory: Path | None = parser.parse_args().all
    if MISSING:
        sys.exit(MISSING)
    with browser() as driver:
        if directory is None:
            for_docs(driver, ROOT / "docs" / "images")
        else:
            directory.mkdir(parents=True, exist_ok=True)
            for theme in ("dark", "light"):
                all_views(driver, directory, theme)


def for_docs(driver: WebDriver, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    look(driver, 1280, 760, "dark")
    with in_background(page_of(varied())) as (server, _):
        page = Page(driver, server)
        shoot(page, "#/overview", folder / "overview.png")
        shoot(page, "#/pods/default/app7-7", folder / "pod.png")
    with in_background(page_of_shadow()) as (server, _):
        shoot(Page(driver, server), "#/shadow", folder / "shadow.png")


def all_views(driver: WebDriver, folder: Path, theme: str) -> None:
    with in_background(page_of(varied())) as (server, _):
        for name, size in SIZES.items():
            look(driver, *size, theme)
            page = Page(driver, server)
            for view in (
                "overview",
                "pending",
                "pods/default/wants-much-1",
                "pods/default/app7-7",
                "nodes/node-04200",
            ):
                shoot(page, f"#/{view}", folder / f"large-{view.replace('/', '-')}-{name}-{theme}.png")
    with in_background(page_of_sandbox("batch", gpus=4)) as ((server, _), _):
        page = Page(driver, server)
        time.sleep(STORY)
        for name, size in SIZES.items():
            look(driver, *size, theme)
            for view in ("overview", "pending", "queue", "what-if?drain=node-a1", "upgrade", "nodes/node-a1"):
                shown = view.partition("?")[0].replace("/", "-")
                shoot(page, f"#/{view}", folder / f"batch-{shown}-{name}-{theme}.png")

    with in_background(page_of_shadow()) as (server, _):
        page = Page(driver, server)
        for name, size in SIZES.items():
            look(driver, *size, theme)
            for view in ("shadow", "overview", "queue"):
                shoot(page, f"#/{view}", folder / f"shadow-{view}-{name}-{theme}.png")


def shoot(page: Page, address: str, file: Path) -> None:
    page.go(address)
    time.sleep(SETTLED)
    page.driver.save_screenshot(str(file))
    print(file)


def varied() -> Iterable[KubeObject]:
    """5,000 nodes of which some are cordoned, tainted or not ready, and pods that wait for several reasons."""
    unready = "node.kubernetes.io/not-ready"
    nodes = [make_node(f"gpu-{i:03}").zone("zone-0").capacity({"nvidia.com/gpu": 8}, cpu="64") for i in range(40)]
    special: list[NodeBuilder | PodBuilder] = [
        *(node.taint("nvidia.com/gpu", "present") for node in nodes),
        *(make_node(f"old-{i:02}").zone("zone-3").cordoned() for i in range(24)),
        *(make_node(f"lost-{i:02}").zone("zone-7").taint(unready, effect="NoExecute") for i in range(16)),
        *(make_pod(f"train-{i}").requests({"nvidia.com/gpu": 1}, cpu="4") for i in range(62)),
        *(make_pod(f"archive-{i}").node_selector(disk="tape") for i in range(17)),
    ]
    return [*large_cluster(4_920, 50_000), *(each.build() for each in special)]


if __name__ == "__main__":
    main()
