"""Which images lie on which nodes."""

from __future__ import annotations

from kubesched.api.node import ContainerImage


class Image:
    """An image under one name: its size as first reported, and the rows that have it."""

    __slots__ = ("rows", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.rows: set[int] = set()


class ImageIndex:
    """All images on all nodes. `version` changes with every change."""

    def __init__(self) -> None:
        self.version = 0
        self._images: dict[str, Image] = {}

    def get(self, name: str) -> Image | None:
        return self._images.get(name)

    def replace(self, row: int, old: tuple[ContainerImage, ...], new: tuple[ContainerImage, ...]) -> None:
        """The images on a row changed."""
        if old == new:
            return
        self.version += 1
        for name in _names(old):
            image = self._images[name]
            image.rows.discard(row)
            if not image.rows:
                del self._images[name]
        for entry in new:
            for name in entry.names:
                image = self._images.get(name) or self._images.setdefault(name, Image(entry.size_bytes))
                image.rows.add(row)


def _names(images: tuple[ContainerImage, ...]) -> set[str]:
    return {name for image in images for name in image.names}
