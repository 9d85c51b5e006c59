"""The metrics that a command line asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kubesched.api.yaml import YamlError, documents
from kubesched.daemon.checks import OptionsError
from kubesched.daemon.feature_gates import FeatureGates
from kubesched.daemon.metrics.registry import MetricsRegistry, allow_lists
from kubesched.daemon.options import Options


def registry_of(options: Options, gates: FeatureGates) -> MetricsRegistry:
    """A registry without the metrics that were switched off, and with the label values that are allowed.

    What the command line allows goes before what the manifest allows. OptionsError if that cannot be read.
    """
    mapping = {**_manifest(options.allow_metric_labels_manifest), **options.allow_metric_labels}
    return MetricsRegistry(gates, disabled=options.disabled_metrics, allow_lists=allow_lists(mapping))


def _manifest(file: str) -> dict[str, str]:
    if not file:
        return {}
    flag = "--allow-metric-labels-manifest"
    try:
        document: Any = next(documents(Path(file).read_text()), None)
    except OSError as problem:
        raise OptionsError([f"{flag}: {problem.strerror}: {file}"]) from None
    except (UnicodeDecodeError, YamlError) as problem:
        raise OptionsError([f"{flag}: {file}: {problem}"]) from None
    mapping = document.value.get("allowListMapping") if document and isinstance(document.value, dict) else None
    if not isinstance(mapping, dict) or not all(isinstance(value, str) for value in mapping.values()):
        raise OptionsError([f"{flag}: {file}: expected allowListMapping with texts by metric and label"])
    return mapping
