"""A morning in the newsroom, and every view of the page on it: for audits and screenshots."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from playwright.async_api import expect

from hubbub.ids import new_ulid
from hubbub.protocol.operations import SendResult, Turns
from hubbub.testing.model_server import ModelServer
from tests.browser.support.desk import Desk
from tests.browser.support.network import Network
from tests.browser.support.worker import Worker
from tests.unit.configs.people import Person

__all__ = ["VIEWS", "Morning", "View", "a_morning"]


@dataclass(frozen=True)
class Morning:
    """What was said; ids of messages."""

    story: str
    """bob's, in the channel `general`, with replies under it."""
    figures: str
    """bob's, with a table and code."""
    question: str
    """ann's to the editor, who asks the researcher."""
    turns: tuple[str, str]
    """The editor's first two."""
    model: ModelServer
    network: Network
    ann: Person
    bob: Person

    async def agent_at_work(self) -> None:
        """From now on the editor thinks, until the model's hold `thinking` is released."""
        await self.ann.tells("editor", "Now think slowly: which headline?")
        await self.model.held("thinking")


async def _say(person: Person, operation: str, **args: str) -> str:
    said = await person.client.call(operation, cid=new_ulid(), **args)
    return SendResult.model_validate(said).id


async def a_morning(network: Network, model: ModelServer) -> Morning:
    """Let people and agents talk; returns when all turns have ended."""
    ann, bob = await network.join("ann"), await network.join("bob")

    async def post(person: Person, text: str) -> str:
        return await _say(person, "post_to_channel", channel="general", text=text)

    await post(bob, "Good morning! What do we have for today?")
    story = await post(bob, "Shall we do a story on **Jupiter**? It is bright this month. 🪐")
    await _say(ann, "reply", message_id=story, text="Yes, and a long one.")
    await _say(bob, "reply", message_id=story, text="Then I need figures. @ann can you ask?")
    figures = await post(bob, _FIGURES)
    await post(ann, "@editor are you there?")
    await ann.hears("editor")
    question = await _say(ann, "send_text_message", to="editor", text="How large is Jupiter?")
    await ann.hears("editor", lambda message: "139,822" in message.text)
    await bob.tells("ann", "Lunch at noon?")
    await post(bob, "@ann the headline is yours: *The largest of all*.")
    turns = await _turns_ended(ann)
    return Morning(story, figures, question, turns, model, network, ann, bob)


_FIGURES = """What I have so far:

| planet | diameter |
|---|---:|
| Jupiter | 139,822 km |
| Saturn | 116,464 km |

```python
def ratio(a: float, b: float) -> float:
    return a / b  # 1.2
```
"""


async def _turns_ended(ann: Person) -> tuple[str, str]:
    """The editor's first two turns, once nobody is at work any more."""
    while True:
        found = Turns.model_validate(await ann.client.call("list_turns", limit=50)).turns
        if all(turn.outcome is not None for turn in found):
            editors = sorted(
                (turn for turn in found if turn.agent == "editor"), key=lambda turn: turn.started_at
            )
            return editors[0].id, editors[1].id


@dataclass(frozen=True)
class View:
    """One thing that people look at."""

    name: str
    """Of the file of its screenshot."""
    arrange: Callable[[Desk, Morning], Awaitable[None]]
    """Brings a desk of ann's to it, from wherever it is."""
    shot: bool = True
    """Whether a screenshot of it is kept."""


async def _join(desk: Desk, morning: Morning) -> None:
    await expect(desk.page.get_by_role("button", name="Join")).to_be_visible()


async def _home(desk: Desk, morning: Morning) -> None:
    if await desk.page.get_by_role("button", name="Join", exact=True).is_visible():
        await desk.join_as("ann")
    await desk.visit("")
    # A narrow page has the left column alone here.
    await expect(desk.main.or_(desk.threads).first).to_be_visible()


async def _conversation(desk: Desk, morning: Morning) -> None:
    await desk.visit("thread", "channel.general")
    await desk.sees("the headline is yours")


async def _replies(desk: Desk, morning: Morning) -> None:
    await desk.visit("thread", f"channel.general.t{morning.story[1:]}")
    await desk.sees("Then I need figures")


async def _message(desk: Desk, morning: Morning) -> None:
    await desk.visit("thread", "dm.ann.editor", opened=("message", morning.question))
    await expect(desk.details).to_contain_text("Who was woken")


async def _participant(desk: Desk, morning: Morning) -> None:
    await desk.visit("thread", "dm.ann.editor", opened=("participant", "editor"))
    await expect(desk.details).to_contain_text("Leads the newsroom")


async def _thread_panel(desk: Desk, morning: Morning) -> None:
    await desk.visit("thread", "channel.general", opened=("thread", "channel.general"))
    await expect(desk.details).to_contain_text("members")


async def _turn(desk: Desk, morning: Morning) -> None:
    await desk.visit("thread", "dm.ann.editor", opened=("turn", morning.turns[1]))
    await expect(desk.details).to_contain_text("Where the time went")


async def _turn_view(desk: Desk, morning: Morning) -> None:
    await desk.visit("turn", morning.turns[1])
    await expect(desk.main).to_contain_text("Where the time went")


async def _turns(desk: Desk, morning: Morning) -> None:
    await desk.visit("turns")
    await expect(desk.main).to_contain_text(morning.turns[0])


async def _comparison(desk: Desk, morning: Morning) -> None:
    await desk.visit("turns", *morning.turns)
    await expect(desk.main.get_by_role("img", name="Differs").first).to_be_visible()


async def _interaction(desk: Desk, morning: Morning) -> None:
    await desk.visit("interaction", f"i{morning.question[1:]}")
    await expect(desk.main.get_by_role("group", name="Sequence diagram")).to_be_visible()


async def _sequence(desk: Desk, morning: Morning) -> None:
    await desk.visit("sequence", "channel.general")
    await expect(desk.main.get_by_role("group", name="Sequence diagram")).to_be_visible()


async def _network(desk: Desk, morning: Morning) -> None:
    await desk.visit("network")
    await expect(desk.main).to_contain_text("researcher")


async def _inbox(desk: Desk, morning: Morning) -> None:
    await desk.visit("inbox")
    await expect(desk.main).to_contain_text("the headline is yours")


async def _palette(desk: Desk, morning: Morning) -> None:
    await desk.visit("thread", "channel.general")
    await desk.page.keyboard.press("Control+k")
    await desk.page.get_by_role("combobox").fill("ed")
    await expect(desk.page.get_by_role("dialog")).to_contain_text("editor")


async def _completion(desk: Desk, morning: Morning) -> None:
    await desk.visit("thread", "channel.general")
    await desk.composer.press_sequentially("@e")
    await expect(desk.page.get_by_role("option", name="editor")).to_be_visible()


async def _keys(desk: Desk, morning: Morning) -> None:
    await desk.visit("")
    await desk.page.keyboard.press("?")
    await expect(desk.page.get_by_role("dialog")).to_be_visible()


async def _settings(desk: Desk, morning: Morning) -> None:
    await desk.visit("")
    await desk.page.keyboard.press("Control+,")
    await expect(desk.page.get_by_role("dialog")).to_contain_text("Theme")


async def _channels(desk: Desk, morning: Morning) -> None:
    await desk.visit("")
    await desk.threads.get_by_role("button", name="Browse channels").click()
    await expect(desk.page.get_by_role("dialog")).to_contain_text("Stories on their way")


async def _new_channel(desk: Desk, morning: Morning) -> None:
    await desk.visit("")
    await desk.threads.get_by_role("button", name="Create a channel").click()
    await expect(desk.page.get_by_role("dialog")).to_be_visible()


async def _working(desk: Desk, morning: Morning) -> None:
    await morning.agent_at_work()
    await desk.visit("thread", "dm.ann.editor")
    await expect(desk.main).to_contain_text("thinking")


async def _approvals(desk: Desk, morning: Morning) -> None:
    archivist = Worker(await morning.network.enters("archivist"))
    await morning.ann.tells("archivist", "Please tidy up the archive.")
    await archivist.begins()
    await archivist.asks()
    await desk.visit("inbox", "approvals")
    await expect(desk.main).to_contain_text("delete_file")


async def _approval(desk: Desk, morning: Morning) -> None:
    await desk.visit("thread", "dm.ann.archivist")
    await desk.banner("delete_file").get_by_role("button", name="Look at it").click()
    await expect(desk.details).to_contain_text("/srv/old.md")
    await desk.details.get_by_role("button", name="Edit…").click()
    await expect(desk.details.get_by_label("Arguments as JSON")).to_be_focused()


async def _stop(desk: Desk, morning: Morning) -> None:
    await desk.visit("thread", "dm.ann.archivist")
    await desk.sees("Please tidy up")
    await desk.page.keyboard.press("Control+.")
    await expect(desk.page.get_by_role("dialog")).to_contain_text("What archivist does now")


async def _takeover(desk: Desk, morning: Morning) -> None:
    await morning.ann.client.call("take_over", agent="archivist")
    await morning.bob.tells("archivist", "Do we have anything on Saturn's rings?")
    await desk.visit("thread", "dm.archivist.bob")
    await desk.sees("Saturn's rings")
    await desk.says("Two boxes of it, on the third floor.")
    await expect(desk.message("Two boxes")).to_contain_text("spoken by ann")


async def _in_charge(desk: Desk, morning: Morning) -> None:
    stop = {"scope": "thread", "target": "channel.desk", "reason": "We decide about this at noon."}
    await morning.bob.client.call("stop", **stop)
    await desk.visit("control")
    await expect(desk.main).to_contain_text("at noon")


VIEWS = (
    View("join", _join),
    View("home", _home),
    View("conversation", _conversation),
    View("replies", _replies),
    View("message", _message),
    View("participant", _participant),
    View("thread", _thread_panel, shot=False),
    View("turn", _turn),
    View("turn-page", _turn_view, shot=False),
    View("turns", _turns),
    View("comparison", _comparison),
    View("interaction", _interaction),
    View("sequence", _sequence, shot=False),
    View("network", _network),
    View("inbox", _inbox),
    View("palette", _palette),
    View("completion", _completion, shot=False),
    View("keys", _keys),
    View("settings", _settings),
    View("channels", _channels, shot=False),
    View("new-channel", _new_channel, shot=False),
    View("working", _working),
    View("approvals", _approvals),
    View("approval", _approval),
    View("stop", _stop),
    View("takeover", _takeover),
    View("in-charge", _in_charge),
)
"""In an order in which each can follow the one before it; the first finds a new browser."""
