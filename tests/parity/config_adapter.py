"""kubesched's reading of a configuration file, in the form the recordings have."""

from __future__ import annotations

from typing import Any

from tests.parity.adapter import features_of

from kubesched import config


def read(text: str, release: str = "1.36") -> dict[str, Any]:
    """What kubesched makes of the text under a release: `defaulted`, `errors` or `decodeError`."""
    try:
        return {"defaulted": config.to_plain(config.load(text, features=features_of(release)))}
    except config.InvalidConfigError as error:
        return {"errors": [str(mistake) for mistake in error.mistakes]}
    except config.UnreadableConfigError as error:
        return {"decodeError": str(error)}
