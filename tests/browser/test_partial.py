"""Partial answers of agents."""

from __future__ import annotations

import pytest
from playwright.async_api import Locator, expect
from pydantic import JsonValue

from hubbub.testing.model_server import (
    ModelServer,
    Script,
    ScriptedAnswer,
    ScriptedCall,
    ScriptRule,
    When,
)
from tests.browser.support.accessibility import audit
from tests.browser.support.desk import Desk, Desks, becomes
from tests.browser.support.room import Plan, Room

pytestmark = pytest.mark.behaviour("U-6")

STORY = "Once upon a time there was a hub that never slept."
PLAN: Plan = {
    "models": {"default": {"model": "scripted", "stream": True, "retries": 0}},
    "agents": {"poet": {"kind": "llm", "instruction": "You tell stories."}},
    "humans": {"ann": {"roles": ["owner"]}},
}
TELLS = ScriptedCall(tool="send_text_message", arguments={"to": "ann", "text": STORY})
DONE = ScriptedAnswer(calls=[ScriptedCall(tool="finish", arguments={"reason": "told"})])
SCRIPT = Script(
    rules=[
        ScriptRule(
            when=When(step=1, incoming="break"),
            answer=ScriptedAnswer(calls=[TELLS], hold="broken", hold_after=8, cut_after=9),
        ),
        ScriptRule(
            when=When(step=1), answer=ScriptedAnswer(calls=[TELLS], hold="half", hold_after=8)
        ),
        ScriptRule(answer=DONE),
    ]
)
"""The model is held in the middle of a story: at `half`, or `broken` if it breaks off."""

_IS_BELOW = """(it) => {
    const [said] = document.querySelectorAll("[data-message]");
    return it.getBoundingClientRect().top >= said.getBoundingClientRect().bottom;
}"""


def ghost(desk: Desk) -> Locator:
    return desk.conversation.get_by_role("article", name="poet is writing")


async def test_a_partial_answer_is_shown_separately_until_it_is_sent_or_dropped(
    desks: Desks,
) -> None:
    async with ModelServer(SCRIPT) as model, Room.open(plan=PLAN, model=model) as room:
        desk = await desks.sit(room, "ann")
        await desk.talk_to("poet")
        await desk.says("Tell me a story")
        await model.held("half")
        await expect(ghost(desk)).to_contain_text("Once upon")
        await expect(ghost(desk)).not_to_contain_text("slept")
        await expect(desk.conversation.locator("[data-message]")).to_have_count(1)  # hers
        await becomes(ghost(desk), _IS_BELOW)
        await audit(desk.page)
        await desk.open_thread("broadcast")
        await expect(ghost(desk)).to_have_count(0)
        await expect(desk.thread("dm.ann.poet")).not_to_contain_text("Once upon")
        await desk.open_thread("dm.ann.poet")
        await expect(ghost(desk)).to_contain_text("Once upon")
        model.release("half")
        await desk.sees(STORY)
        await expect(ghost(desk)).to_have_count(0)
        await expect(desk.conversation.locator("[data-message]")).to_have_count(2)
        # An answer that is not sent disappears.
        await desk.says("Tell me a story, and break off")
        await model.held("broken")
        await expect(ghost(desk)).to_contain_text("Once upon")
        model.release("broken")
        await desk.sees("poet got no answer from its model")
        await expect(ghost(desk)).to_have_count(0)
        await desks.leave()


_AT_THE_END = "(log) => log.scrollHeight - log.scrollTop - log.clientHeight < 1.5"


async def test_a_partial_answer_keeps_a_reader_at_the_end_and_does_not_move_others(
    desks: Desks, room: Room
) -> None:
    poet, _ = await room.enters("poet"), await room.join("ann")
    for n in range(30):
        await poet.call("send_text_message", to="ann", text=f"number {n}")
    desk = await desks.sit(room, "ann", "dm.ann.poet")
    await desk.to_the_end()
    await desk.sees("number 29")

    async def writes(lines: int) -> None:
        text = "\n".join(f"line {n}" for n in range(1, lines + 1))
        told: dict[str, JsonValue] = {"turn": "poet-m1", "step": 1, "text": text}
        await poet.signal("partial", "dm.ann.poet", told)
        await expect(ghost(desk)).to_contain_text(f"line {lines}")
        await desk.is_drawn()

    for lines in (1, 20):
        await writes(lines)
        await becomes(desk.conversation, _AT_THE_END)
    end = await desk.conversation.evaluate("(log) => log.scrollTop")
    await desk.conversation.hover()
    await desk.page.mouse.wheel(0, -300)
    await becomes(desk.conversation, f"(log) => log.scrollTop < {end - 200}")
    await desk.is_drawn()
    before = await desk.conversation.evaluate("(log) => log.scrollTop")
    await writes(25)
    assert await desk.conversation.evaluate("(log) => log.scrollTop") == before
