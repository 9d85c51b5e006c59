"""kubesched's reading of a configuration file, in the form the recordings have."""

from __future__ import annotations

from typing import Any

from kubesched import config


def read(text: str) -> dict[str, Any]:
    """What kubesched makes of the text: `defaulted`, `errors` or `decodeError`."""
    try:
        return {"defaulted": config.to_plain(config.load(text))}
    except config.InvalidConfigError as error:
        return {"errors": [str(mistake) for mistake in error.mistakes]}
    except config.UnreadableConfigError as error:
        return {"decodeError": str(error)}
