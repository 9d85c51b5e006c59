from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.running_sandbox import KUBECTL, Sandbox, running_sandbox

from kubesched_sandbox.http import kubeconfig, write_kubeconfig


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    if KUBECTL is None:
        pytest.skip("there is no kubectl on this PATH")
    home = tmp_path_factory.mktemp("kubectl")
    with running_sandbox() as cluster:
        cluster.home, cluster.kubeconfig = home, home / "config"
        write_kubeconfig(cluster.kubeconfig, kubeconfig(cluster.server.url))
        yield cluster
