"""Plans are beside the scheduler: `kubesched run` loads nothing of them, nor of the solver."""

from __future__ import annotations

import subprocess
import sys

LOADED = """
import importlib, pkgutil, sys
import kubesched.cli.run, kubesched.daemon, kubesched.ui.daemon_page
for package in (kubesched.daemon,):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
print(*sorted(name for name in sys.modules if name.startswith(("kubesched.planning", "highspy"))))
"""


def test_scheduler_loads_nothing_of_planning() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
