"""The page in a browser, in the words of somebody who looks at it."""

from __future__ import annotations

from typing import Any

from tests.chromium import WebDriver, until

from kubesched.ui.server import PageServer

_READY = "document.documentElement.dataset.ready === 'true'"


class Page:
    """The page, in the words of somebody who looks at it."""

    def __init__(self, driver: WebDriver, server: PageServer | str) -> None:
        """`server` may be an address, too: then it may be asked for a token first."""
        self.driver = driver
        driver.get(server if isinstance(server, str) else server.url)
        self.wait(f"{_READY} || document.querySelector('#token') !== null")
        if isinstance(server, PageServer):
            self.ready()

    def ready(self) -> None:
        self.wait(_READY)

    def js(self, expression: str, *arguments: Any) -> Any:
        return self.driver.execute_script(f"return {expression}", *arguments)

    def wait(self, expression: str, *arguments: Any) -> Any:
        return until(lambda: self.js(expression, *arguments), what=expression)

    def go(self, address: str) -> None:
        """To a view, by its address."""
        self.driver.execute_script("location.hash = arguments[0]", address)
        view = address.removeprefix("#/").partition("/")[0].partition("?")[0]
        self.wait("document.querySelector('.view[data-view=\"' + arguments[0] + '\"] h1, .map canvas') !== null", view)

    def text(self, selector: str = "main") -> str:
        return str(self.js("document.querySelector(arguments[0])?.innerText ?? ''", selector))

    def shows(self, text: str, selector: str = "main") -> None:
        """Wait until a part has the text."""
        until(lambda: text in self.text(selector), what=f"{text!r} in {selector}")

    def press(self, key: str, selector: str = "body") -> None:
        code = (
            "document.querySelector(arguments[1]).dispatchEvent("
            "new KeyboardEvent('keydown', {key: arguments[0], bubbles: true, cancelable: true}))"
        )
        self.driver.execute_script(code, key, selector)

    def type_into(self, selector: str, text: str) -> None:
        code = (
            "const e = document.querySelector(arguments[0]); e.focus(); e.value = arguments[1];"
            "e.dispatchEvent(new Event('input', {bubbles: true}))"
        )
        self.driver.execute_script(code, selector, text)

    def click(self, selector: str) -> None:
        self.driver.execute_script("document.querySelector(arguments[0]).click()", selector)

    def pointer(self, kind: str, x: int, y: int) -> None:
        """A real movement or click of the mouse, x and y from the corner of the map."""
        left, top = self.js("(b => [b.left, b.top])(document.querySelector('.map canvas').getBoundingClientRect())")
        event = {"type": kind, "x": left + x, "y": top + y, "button": "left", "clickCount": 1}
        if kind == "mouseMoved":
            event |= {"button": "none"}
        self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", event)

    def colours(self) -> int:
        """How many colours the map has at this moment."""
        return int(
            self.js(
                "(c => new Set(new Uint32Array("
                "c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size)"
                "(document.querySelector('.map canvas'))"
            )
        )

    def has_colour(self, colour: str) -> bool:
        """Whether some pixel of the map has exactly this colour, `#rrggbb`."""
        return bool(
            self.js(
                "((c, want) => { const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
                "for (let i = 0; i < d.length; i += 4)"
                " if ((d[i] << 16 | d[i + 1] << 8 | d[i + 2]) === want) return true;"
                "return false })(document.querySelector('.map canvas'), arguments[0])",
                int(colour[1:], 16),
            )
        )

    def overflow(self) -> int:
        """How far the page is wider than the window."""
        return int(self.js("document.documentElement.scrollWidth - document.documentElement.clientWidth"))
