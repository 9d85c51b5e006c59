"""What is in a release, as SPDX 2.3 and CycloneDX 1.6, from the locked requirements: `python -m tools.sbom dist`.

The same list and SOURCE_DATE_EPOCH give the same bytes.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tools.locked import Locked, read

from kubesched import __version__

REPOSITORY = "https://github.com/kubesched/kubesched"
NAME = f"kubesched-{__version__}"


def spdx(packages: list[Locked], made: datetime) -> dict[str, Any]:
    """The SPDX document."""
    ids = {package.purl: f"SPDXRef-{package.name}-{package.version}" for package in packages}
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": NAME,
        "documentNamespace": f"{REPOSITORY}/spdx/{_identity(packages)}",
        "creationInfo": {"created": _stamp(made), "creators": ["Organization: The kubesched maintainers"]},
        "packages": [
            {
                **_spdx_package("SPDXRef-kubesched", "kubesched", __version__, f"pkg:pypi/kubesched@{__version__}"),
                "licenseDeclared": "Apache-2.0",
            },
            *(_spdx_package(ids[each.purl], each.name, each.version, each.purl) for each in packages),
        ],
        "relationships": [
            _relation("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-kubesched"),
            *(
                _relation(needing, "DEPENDS_ON", needed)
                for needing, needed in _edges(packages, ids, "SPDXRef-kubesched")
            ),
        ],
    }


def _spdx_package(identity: str, name: str, version: str, purl: str) -> dict[str, Any]:
    locator = {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}
    return {
        "SPDXID": identity,
        "name": name,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": "NOASSERTION",
        "copyrightText": "NOASSERTION",
        "externalRefs": [locator],
    }


def _relation(subject: str, kind: str, related: str) -> dict[str, str]:
    return {"spdxElementId": subject, "relationshipType": kind, "relatedSpdxElement": related}


def cyclonedx(packages: list[Locked], made: datetime) -> dict[str, Any]:
    """The CycloneDX document."""
    root = f"pkg:pypi/kubesched@{__version__}"
    needs: dict[str, list[str]] = {ref: [] for ref in (root, *(package.purl for package in packages))}
    for needing, needed in _edges(packages, {package.purl: package.purl for package in packages}, root):
        needs[needing].append(needed)
    subject = {"type": "application", "bom-ref": root, "name": "kubesched", "version": __version__, "purl": root}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{_identity(packages)}",
        "version": 1,
        "metadata": {"timestamp": _stamp(made), "component": {**subject, "licenses": [{"expression": "Apache-2.0"}]}},
        "components": [_component(package) for package in packages],
        "dependencies": [{"ref": needing, "dependsOn": needed} for needing, needed in needs.items()],
    }


def _component(package: Locked) -> dict[str, Any]:
    """The list knows a hash for each file of a package, not which is installed: they are those of its distributions."""
    files = [{"alg": "SHA-256", "content": digest} for digest in package.hashes]
    address = f"https://pypi.org/project/{package.name}/{package.version}/"
    return {
        "type": "library",
        "bom-ref": package.purl,
        "name": package.name,
        "version": package.version,
        "purl": package.purl,
        "externalReferences": [{"type": "distribution", "url": address, "hashes": files}],
    }


def _edges(packages: list[Locked], ids: dict[str, str], root: str) -> list[tuple[str, str]]:
    """Who needs whom; a name that is locked twice, for different Pythons, is needed in both versions."""
    by_name: dict[str, list[str]] = {"kubesched": [root]}
    for package in packages:
        by_name.setdefault(package.name, []).append(ids[package.purl])
    return [
        (needing, ids[package.purl]) for package in packages for name in package.needed_by for needing in by_name[name]
    ]


def _identity(packages: list[Locked]) -> uuid.UUID:
    listed = " ".join([NAME, *(package.purl for package in packages)])
    return uuid.uuid5(uuid.NAMESPACE_URL, f"{REPOSITORY}#{listed}")


def _stamp(made: datetime) -> str:
    return made.strftime("%Y-%m-%dT%H:%M:%SZ")


def write(out: Path, epoch: int) -> None:
    made, packages = datetime.fromtimestamp(epoch, UTC), read()
    for end, document in (("spdx", spdx(packages, made)), ("cdx", cyclonedx(packages, made))):
        (out / f"kubesched.{end}.json").write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]), int(os.environ["SOURCE_DATE_EPOCH"]))
