"""Pages about the process itself: /configz, /flagz and /statusz, in the shapes of Kubernetes components."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from typing import Any

from kubesched import config
from kubesched.daemon.version import KUBERNETES_MINOR, VersionInfo

COMPONENT = "kube-scheduler"
_WARNING = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is "
    "for debugging purposes only."
)
_API_VERSION = "config.k8s.io/v1beta1"


def configz(configuration: config.SchedulerConfiguration) -> str:
    """The configuration with all defaults, as JSON."""
    shown = config.to_plain(config.without_secrets(configuration))
    return json.dumps({"componentconfig": shown}, ensure_ascii=False, separators=(",", ":"))


def flagz_text(flags: Mapping[str, str]) -> str:
    lines = [f"{name}={flags[name]}" for name in sorted(flags)]
    return "\n".join([f"\n{COMPONENT} flagz", _WARNING, *lines, ""])


def flagz_object(flags: Mapping[str, str]) -> dict[str, Any]:
    return {"kind": "Flagz", "apiVersion": _API_VERSION, "metadata": {"name": COMPONENT}, "flags": dict(flags)}


def statusz_text(started: datetime.datetime, now: datetime.datetime, paths: Sequence[str]) -> str:
    info = VersionInfo()
    return "\n".join(
        [
            f"\n{COMPONENT} statusz",
            _WARNING,
            "",
            f"Started: {started:%a %b %e %H:%M:%S %Z %Y}",
            f"Up: {_uptime(now - started)}",
            f"Go version: {info.go_version}",
            f"Binary version: {info.git_version.removeprefix('v')}",
            f"Emulation version: {_emulated()}",
            f"Paths: {' '.join(paths)}",
            "",
        ]
    )


def statusz_object(started: datetime.datetime, now: datetime.datetime, paths: Sequence[str]) -> dict[str, Any]:
    info = VersionInfo()
    return {
        "kind": "Statusz",
        "apiVersion": _API_VERSION,
        "metadata": {"name": COMPONENT},
        "startTime": f"{started:%Y-%m-%dT%H:%M:%SZ}",
        "uptimeSeconds": int((now - started).total_seconds()),
        "goVersion": info.go_version,
        "binaryVersion": info.git_version.removeprefix("v"),
        "emulationVersion": _emulated(),
        "paths": list(paths),
    }


def _emulated() -> str:
    return f"{KUBERNETES_MINOR[0]}.{KUBERNETES_MINOR[1]}"


def _uptime(up: datetime.timedelta) -> str:
    minutes, seconds = divmod(int(up.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} hr {minutes:02} min {seconds:02} sec"
