"""Makes the screenshots of docs/web-page.md, or with --all every view in three sizes, dark and light.

    python tools/screenshots.py
    python tools/screenshots.py --all /tmp/screenshots

It needs Chromium with its driver, and selenium, as the browser tests do.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.background_loop import in_background  # noqa: E402
from tests.browser.page import Page  # noqa: E402
from tests.chromium import MISSING, WebDriver, browser, look, until  # noqa: E402
from tests.platform_cluster import node_name, platform  # noqa: E402
from tests.shown_page import large_cluster, page_of, page_of_sandbox, page_of_shadow  # noqa: E402

from kubesched.api.meta import KubeObject  # noqa: E402
from kubesched.api.pod import Pod  # noqa: E402
from kubesched.testing import NodeBuilder, PodBuilder, make_node, make_pod  # noqa: E402

SIZES = {"2560": (2560, 1440), "1440": (1440, 900), "390": (390, 844)}
CLUSTERS = (2, 9, 30, 2_000, 15_000)
SETTLED = 1.2
"""Seconds after which a view has drawn all that it asks for."""
DRAWN = 0.4
"""Seconds for what came late."""
STORY = 11.0
"""Seconds into the story about batch work: pods wait, and others were preempted."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", type=Path, metavar="DIRECTORY", help="every view, three sizes, dark and light")
    parser.add_argument("--nodes", type=int, action="append", help="only clusters of this size; can be repeated")
    asked = parser.parse_args()
    directory: Path | None = asked.all
    if MISSING:
        sys.exit(MISSING)
    with browser() as driver:
        if directory is None:
            for_docs(driver, ROOT / "docs" / "images")
        else:
            directory.mkdir(parents=True, exist_ok=True)
            all_views(driver, directory, asked.nodes or CLUSTERS)
            if not asked.nodes:
                living(driver, directory)


def for_docs(driver: WebDriver, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    look(driver, 1280, 760, "dark")
    with in_background(page_of(varied())) as (server, _):
        page = Page(driver, server)
        shoot(page, "#/overview", folder / "overview.png")
        shoot(page, "#/pods/default/app7-7", folder / "pod.png")
    with in_background(page_of_shadow()) as (server, _):
        shoot(Page(driver, server), "#/shadow", folder / "shadow.png")


def all_views(driver: WebDriver, folder: Path, sizes: Iterable[int]) -> None:
    """Every view of clusters of these sizes."""
    for nodes in sizes:
        objects = platform(nodes)
        named = pods_named(objects)
        with in_background(page_of(objects)) as (server, _):
            for look_of in looks(driver):
                page = Page(driver, server)
                for name, view in views(nodes, named).items():
                    shoot(page, f"#/{view}", folder / f"{nodes:05}-{name}-{look_of}.png")
                asked_for(page, named, folder, f"{nodes:05}-{{}}-{look_of}.png")


def living(driver: WebDriver, folder: Path) -> None:
    """A story in a sandbox, and a shadow."""
    with in_background(page_of_sandbox("batch", gpus=4)) as ((server, _), _):
        time.sleep(STORY)
        for look_of in looks(driver):
            page = Page(driver, server)
            for view in ("overview", "pending", "queue", "nodes/node-a1"):
                shoot(page, f"#/{view}", folder / f"batch-{view.replace('/', '-')}-{look_of}.png")
    with in_background(page_of_shadow()) as (server, _):
        for look_of in looks(driver):
            page = Page(driver, server)
            for view in ("shadow", "overview", "queue"):
                shoot(page, f"#/{view}", folder / f"shadow-{view}-{look_of}.png")


def looks(driver: WebDriver) -> Iterator[str]:
    """Each size, dark and light, one after another."""
    for width, size in SIZES.items():
        for theme in ("dark", "light"):
            look(driver, *size, theme)
            yield f"{width}-{theme}"


def pods_named(objects: Iterable[KubeObject]) -> dict[str, str]:
    """A pod that runs and one that waits."""
    pods = [obj for obj in objects if isinstance(obj, Pod)]
    frontend = [pod for pod in pods if pod.name.startswith("frontend-")]
    waiting = [pod for pod in pods if not pod.spec.node_name]
    return {"placed": frontend[0].key, "waiting": waiting[0].key}


def views(nodes: int, named: dict[str, str]) -> dict[str, str]:
    """Addresses by what is seen there."""
    return {
        "overview": "overview",
        "pending": "pending",
        "nodes": "nodes",
        "pods": "pods",
        "workloads": "workloads",
        "node": f"nodes/{node_name(nodes // 2)}",
        "pod": f"pods/{named['placed']}",
        "pod-waiting": f"pods/{named['waiting']}",
        "workload": "workloads/store/Deployment/frontend",
        "workload-waiting": "workloads/ml/Job/train",
        "what-if": "what-if",
        "upgrade": "upgrade",
        "what-if-drain": f"what-if?drain={node_name(0)}",
        "what-if-lose": "what-if?lose=topology.kubernetes.io/zone%3Deu-west-1a",
    }


def asked_for(page: Page, named: dict[str, str], folder: Path, name: str) -> None:
    """What is seen after somebody typed or clicked: a search, a plan, and what would help."""
    page.go("#/overview")
    page.press("/")
    page.type_into(".search input", "front")
    time.sleep(SETTLED)
    save(page, folder / name.format("search"))
    page.go("#/what-if")
    page.wait("document.querySelector('.plan')")
    page.js("(document.querySelector('.plan').open = true)")
    page.click(".plan button")
    settled(page)
    page.js("document.querySelector('.plan').scrollIntoView()")
    save(page, folder / name.format("plan"))
    page.go(f"#/pods/{named['waiting']}")
    page.wait("document.querySelector('.help button')")
    page.click(".help button")
    settled(page)
    page.js("document.querySelector('.help').scrollIntoView()")
    save(page, folder / name.format("help"))


def shoot(page: Page, address: str, file: Path) -> None:
    page.go(address)
    settled(page)
    save(page, file)


def settled(page: Page) -> None:
    """Wait until nothing on the page says that it is being worked out."""
    time.sleep(SETTLED)
    busy = (
        "[...document.querySelectorAll('main .empty')].some((e) => /being|looked for|worked out/.test(e.textContent))"
    )
    until(lambda: not page.js(busy), seconds=120, what="an answer")
    time.sleep(DRAWN)


def save(page: Page, file: Path) -> None:
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
