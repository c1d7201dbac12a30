"""The browser tests' own helpers detect errors."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.browser.support.accessibility import audit
from tests.browser.support.desk import Desks
from tests.browser.support.room import Room

COMPLAINED = {
    "console.error('ouch')": "console error: ouch",
    "setTimeout(() => { throw new Error('nobody catches it'); })": "nobody catches it",
    "fetch('/nothing')": "404 for",
    "document.body.append(Object.assign(document.createElement('img'),"
    " {src: 'http://elsewhere.invalid/x.png'}))": "CSP img-src forbids",
}


async def test_browser_errors_are_detected_and_tests_leave_no_state(
    desks: Desks, room: Room
) -> None:
    desk = await desks.sit(room, "ann")
    for script in COMPLAINED:
        await desk.page.evaluate(f"() => {{ {script} }}")
    async with desk.page.expect_console_message(lambda it: "the last" in it.text):
        await desk.page.evaluate("setTimeout(() => console.error('the last'), 100)")
    unexpected = "\n".join(desk.complaints.unexpected())
    assert [text for text in COMPLAINED.values() if text not in unexpected] == []
    with pytest.raises(AssertionError, match="ouch"):
        desk.complaints.check()
    desk.complaints.expect(".")
    await desk.page.evaluate(
        "() => { sessionStorage.a = 1; localStorage.b = 2; document.cookie = 'c=3';"
        " return new Promise((then) => (indexedDB.open('d').onsuccess = () => then())); }"
    )
    await desks.leave()
    again = await desks.sit(room)
    assert again.page is desk.page
    await expect(again.page.get_by_role("button", name="Join")).to_be_visible()
    storage = "[sessionStorage.length, localStorage.b ?? null, document.cookie]"
    assert await again.page.evaluate(storage) == [0, None, ""]
    assert await again.page.evaluate("indexedDB.databases().then((all) => all.length)") == 0


async def test_an_audit_names_the_element_and_the_reason(desks: Desks) -> None:
    desk = await desks.sit("about:blank", new=True)
    await desk.page.set_content("<title>t</title><main><button id=bad></button></main>")
    with pytest.raises(AssertionError, match=r"(?s)critical: .*button-name.*id=\"bad\""):
        await audit(desk.page)
