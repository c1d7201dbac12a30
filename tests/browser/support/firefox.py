"""Debian's Firefox, controlled over WebDriver BiDi: https://www.w3.org/TR/webdriver-bidi/."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from tests.browser.support.desk import PATIENCE_S

__all__ = ["MISSING", "Firefox", "find", "running"]

MISSING = "no Firefox: install it (on Debian `apt-get install firefox-esr`)"
_LISTENS = re.compile(rb"WebDriver BiDi listening on (ws://\S+)")
_KEYS = {"Enter": "\ue006", "Escape": "\ue00c", "Tab": "\ue004", "Control": "\ue009"}
"""From the section "Keyboard actions" of WebDriver."""


def find() -> str | None:
    """Path of the browser, None if there is none."""
    return shutil.which("firefox-esr") or shutil.which("firefox")


class Firefox:
    """One tab."""

    def __init__(self, connection: ClientConnection, errors: list[str]):
        self._connection, self._count, self._tab = connection, 0, ""
        self.errors = errors
        """Exceptions of the page's scripts, and errors on the console."""

    async def begin(self) -> None:
        await self._ask("session.new", capabilities={})
        await self._ask("session.subscribe", events=["log.entryAdded"])
        # The first window never has the focus, so keys press no button there.
        made = await self._ask("browsingContext.create", type="window")
        self._tab = made["context"]
        await self._ask("browsingContext.activate", context=self._tab)

    async def goto(self, url: str) -> None:
        await self._ask("browsingContext.navigate", context=self._tab, url=url, wait="complete")

    async def press(self, *keys: str) -> None:
        """Press keys in order; "Control+k" holds the first one down."""
        actions: list[dict[str, str]] = []
        for key in keys:
            held = [_KEYS.get(part, part) for part in key.split("+")]
            actions += [{"type": "keyDown", "value": each} for each in held]
            actions += [{"type": "keyUp", "value": each} for each in reversed(held)]
        source = {"type": "key", "id": "keyboard", "actions": actions}
        await self._ask("input.performActions", context=self._tab, actions=[source])

    async def write(self, text: str) -> None:
        await self.press(*text)

    press_sequence = write
    """The keys of one action have no pauses."""

    async def reads(self, text: str) -> None:
        """Wait until the page shows the text."""
        await self._becomes(f"document.body.textContent.includes({json.dumps(text)})")

    async def stands_in(self, name: str) -> None:
        """Wait until the element with this name has the focus."""
        focused = "document.activeElement"
        await self._becomes(
            f"({focused}?.ariaLabel ?? {focused}?.innerText) === {json.dumps(name)}"
        )

    async def _becomes(self, condition: str) -> None:
        look = f"({condition}) ? then() : requestAnimationFrame(look)"
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._evaluate(f"new Promise((then) => (function look() {{ {look} }})())")
        except TimeoutError:
            shown = await self._evaluate("document.body.innerText")
            raise AssertionError(f"{condition}:\n{shown['result']['value']}") from None

    async def _evaluate(self, expression: str) -> dict[str, Any]:
        return await self._ask(
            "script.evaluate",
            expression=expression, target={"context": self._tab}, awaitPromise=True,
        )  # fmt: skip

    async def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._count += 1
        await self._connection.send(
            json.dumps({"id": self._count, "method": method, "params": params})
        )
        while True:
            answer = json.loads(await self._connection.recv())
            if answer.get("method") == "log.entryAdded" and answer["params"]["level"] == "error":
                self.errors.append(answer["params"]["text"])
            if answer.get("id") == self._count:
                assert answer["type"] == "success", answer
                return dict(answer["result"])


@asynccontextmanager
async def running(executable: str, profile: Path) -> AsyncIterator[Firefox]:
    """A headless browser with a new profile in the folder. Raises for errors of scripts."""
    process = await asyncio.create_subprocess_exec(
        executable, "--headless", "--no-remote", "--remote-debugging-port", "0",
        "--profile", str(profile), "about:blank", stdout=DEVNULL, stderr=PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not (found := _LISTENS.search(await process.stderr.readline())):
                assert not process.stderr.at_eof()
        url = f"{found[1].decode()}/session"
        async with connect(url, max_size=None, origin=None) as connection:
            firefox = Firefox(connection, [])
            await firefox.begin()
            yield firefox
            assert firefox.errors == []
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()
