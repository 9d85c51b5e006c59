"""A hook of mkdocs: links of pages to files outside of docs/ lead to the repository."""

from __future__ import annotations

import posixpath
import re
from typing import Any

REPOSITORY = "https://github.com/kubesched/kubesched"
_LINK = re.compile(r"(\]\()([^)\s:#]+)(#[^)\s]*)?(\))")


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Called by mkdocs with each page."""
    return outward(markdown, page.file.src_uri)


def outward(markdown: str, page: str) -> str:
    """The text of `docs/PAGE`, with links that leave docs/ as addresses of the repository."""

    def rewritten(found: re.Match[str]) -> str:
        begin, path, anchor, end = found[1], found[2], found[3] or "", found[4]
        target = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), path))
        if target.startswith("docs/") or target == "docs":
            return found[0]
        kind = "blob" if "." in posixpath.basename(target) else "tree"
        return f"{begin}{REPOSITORY}/{kind}/main/{target}{anchor}{end}"

    return _LINK.sub(rewritten, markdown)
