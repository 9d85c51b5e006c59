"""Which version this is, in the shape in which Kubernetes components say it."""

from __future__ import annotations

import platform

import msgspec

from kubesched import __version__

KUBERNETES_MINOR = (1, 36)
"""The release of Kubernetes whose behaviour this is."""
COMPATIBLE_VERSIONS = ("1.36.4", "1.36", "1.35")
"""The version of the binary, the one that it emulates, and the oldest that it gets on with."""
_GO_NAMES = {"x86_64": "amd64", "aarch64": "arm64"}


class VersionInfo(msgspec.Struct, frozen=True, rename="camel"):
    """What `--version=raw` and the build info metric say."""

    major: str = str(KUBERNETES_MINOR[0])
    minor: str = str(KUBERNETES_MINOR[1])
    git_version: str = f"v{COMPATIBLE_VERSIONS[0]}+kubesched.{__version__}"
    git_commit: str = ""
    git_tree_state: str = ""
    build_date: str = ""
    go_version: str = f"python{platform.python_version()}"
    """The name is Kubernetes'; the language is not."""
    compiler: str = platform.python_implementation()
    platform: str = f"{platform.system().lower()}/{_GO_NAMES.get(platform.machine(), platform.machine())}"


def version_text(wanted: str) -> str | None:
    """What `--version` prints for a value of the flag; None if there is nothing to print."""
    if wanted == "false":
        return None
    if wanted == "raw":
        return msgspec.json.encode(VersionInfo()).decode()
    return f"Kubernetes {wanted if wanted.startswith('v') else VersionInfo().git_version}"
