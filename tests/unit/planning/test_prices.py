"""Price lists: CSV, YAML, Karpenter's NodePools and NodeOverlays, and mistakes in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.planning.prices import NODE_POOL, PriceError, PriceList, read_prices
from kubesched.simulate.nodes import INSTANCE_TYPE

CSV = """type,cpu,memory,gpus,labels,price,max
c.large,2,4Gi,,disk=ssd;arch=amd64,0.1,
g.large,8,32Gi,1,arch=amd64,1.5,4
"""
POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: batch}
spec:
  template:
    metadata: {labels: {team: ml}}
    spec:
      taints: [{key: batch, effect: NoSchedule}]
      requirements:
        - {key: arch, operator: In, values: [amd64]}
        - {key: topology.kubernetes.io/zone, operator: In, values: [b, a]}
        - {key: disk, operator: DoesNotExist}
"""
OVERLAY = """
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: deal}
spec:
  weight: 10
  requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [g.large]}]
  priceAdjustment: -20%
  capacity: {example.com/fast: 2}
"""


def read(folder: Path, **files: str) -> PriceList:
    names = []
    for name, text in files.items():
        path = folder / name.replace("_", ".")
        path.write_text(text)
        names.append(str(path))
    return read_prices(names)


def test_csv_has_types_with_labels_prices_and_limits(tmp_path: Path) -> None:
    small, large = read(tmp_path, prices_csv=CSV).types
    assert small.labels == {INSTANCE_TYPE: "c.large", "disk": "ssd", "arch": "amd64"}
    assert small.allocatable == {"cpu": "2", "memory": "4Gi", "pods": "110"}
    assert (small.price, small.most) == (0.1, None)
    assert large.allocatable["nvidia.com/gpu"] == "1"
    assert (large.price, large.most) == (1.5, 4)


def test_yaml_says_the_same(tmp_path: Path) -> None:
    text = """
- {type: c.large, cpu: 2, memory: 4Gi, price: 0.1, labels: {disk: ssd, arch: amd64}}
- {type: g.large, cpu: 8, memory: 32Gi, gpus: 1, price: 1.5, max: 4, labels: {arch: amd64}}
"""
    assert read(tmp_path, prices_yaml=text) == read(tmp_path, prices_csv=CSV)
    assert read(tmp_path, nested_yaml="types:\n" + text.replace("\n-", "\n  -")) == read(tmp_path, prices_csv=CSV)


def test_node_pools_say_what_can_be_bought_and_with_what_labels_and_taints(tmp_path: Path) -> None:
    types = read(tmp_path, prices_csv=CSV, pool_yaml=POOL).types
    assert [each.name for each in types] == ["batch/g.large/a", "batch/g.large/b"], "c.large has a disk"
    assert types[0].labels[NODE_POOL] == "batch"
    assert types[0].labels["topology.kubernetes.io/zone"] == "a"
    assert types[0].labels["team"] == "ml"
    assert types[0].taints[0].key == "batch"


def test_node_overlays_change_price_and_capacity(tmp_path: Path) -> None:
    prices = read(tmp_path, prices_csv=CSV, overlay_yaml=OVERLAY)
    assert prices.by_type == {"c.large": 0.1, "g.large": pytest.approx(1.2)}
    assert prices.types[1].allocatable["example.com/fast"] == "2"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("type,cpu,price\n", "line 1: expected the columns type, cpu, memory, price; memory not found"),
        ("type,cpu,memory,price\na,2,4Gi,cheap\n", "line 2: price: expected a number of at least 0, got 'cheap'"),
        ("type,cpu,memory,price\na,two,4Gi,1\n", "line 2: cpu: 'two' is not a quantity"),
        ("type,cpu,memory,price\na,2,4Gi,\n", "line 2: price is missing"),
        ("type,cpu,memory,price\na,2,4Gi,1\na,2,4Gi,1\n", "type 'a' is listed more than once"),
        ("type,cpu,memory,price\n", "the price list has no types"),
        ("type,cpu,memory,price,colour\na,2,4Gi,1,red\n", "line 2: unknown key 'colour'"),
    ],
)
def test_mistakes_are_told_with_their_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(PriceError) as error:
        read(tmp_path, prices_csv=text)
    assert message in str(error.value)


def test_file_that_is_not_there_is_told() -> None:
    with pytest.raises(PriceError, match=r"^nowhere\.csv: No such file or directory$"):
        read_prices(["nowhere.csv"])


def test_yaml_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(PriceError, match="not YAML"):
        read(tmp_path, prices_yaml="a: [")
