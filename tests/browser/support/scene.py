"""A morning in the newsroom, and every view of the page on it: for audits and screenshots."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from playwright.async_api import expect

from hubbub.protocol.operations import Turns
from hubbub.testing.model_server import ModelServer
from tests.browser.support.desk import Desk
from tests.browser.support.room import Room, call, posted
from tests.browser.support.worker import Worker
from tests.unit.configs.people import Person

__all__ = ["VIEWS", "Scene", "View", "clicks", "set_up_newsroom"]


@dataclass(frozen=True)
class Scene:
    """The state of the network."""

    ids: Mapping[str, str]
    """Ids of messages and other objects, by the names that views use."""
    people: Mapping[str, Person] = field(default_factory=dict)
    room: Room | None = None
    model: ModelServer | None = None


@dataclass(frozen=True)
class View:
    """A view of the page."""

    name: str
    """The file name of its screenshot."""
    address: tuple[str, ...] | None = None
    """As in `Desk.visit`, with {ids} of the scene; None stays on the current view."""
    shows: str = ""
    """A text that it contains, in the element with the role `where`."""
    opened: tuple[str, str] | None = None
    then: Callable[[Desk, Scene], Awaitable[None]] | None = None
    """Opens it, once the address has been visited."""
    where: str = ""
    """Left out: the details if `opened`, otherwise the middle."""
    shot: bool = True
    """Whether it gets a screenshot."""

    async def arrange(self, desk: Desk, scene: Scene) -> None:
        """Open the view at a desk of ann's."""
        if self.address is not None:
            opened = self.opened and (self.opened[0], self.opened[1].format(**scene.ids))
            await desk.visit(*(part.format(**scene.ids) for part in self.address), opened=opened)
        if self.then is not None:
            await self.then(desk, scene)
        where = self.where or ("complementary" if self.opened else "main")
        if self.shows:
            place = desk.page.get_by_role(where)  # type: ignore[arg-type]  # a role
            await expect(place).to_contain_text(self.shows)


def presses(*keys: str) -> Callable[[Desk, Scene], Awaitable[None]]:
    async def then(desk: Desk, scene: Scene) -> None:
        for key in keys:
            await desk.page.keyboard.press(key)

    return then


def clicks(name: str) -> Callable[[Desk, Scene], Awaitable[None]]:
    async def then(desk: Desk, scene: Scene) -> None:
        await desk.page.get_by_role("button", name=name).first.click()

    return then


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


async def set_up_newsroom(room: Room, model: ModelServer) -> Scene:
    """Exchange messages between people and agents; returns when all turns have ended."""
    ann, bob = await room.join("ann"), await room.join("bob")
    await posted(bob, "Good morning! What do we have for today?")
    story = await posted(bob, "Shall we do a story on **Jupiter**? It is bright this month. 🪐")
    await ann.client.call("reply", message_id=story, text="Yes, and a long one.")
    figures = "Then I need figures. @ann can you ask?"
    await bob.client.call("reply", message_id=story, text=figures)
    await posted(bob, _FIGURES)
    await posted(ann, "@editor are you there?")
    await ann.hears("editor")
    asked = {"to": "editor", "text": "How large is Jupiter?"}
    question = str((await call(ann.client, "send_text_message", **asked))["id"])
    await ann.hears("editor", lambda message: "139,822" in message.text)
    await bob.tells("ann", "Lunch at noon?")
    await posted(bob, "@ann the headline is yours: *The largest of all*.")
    while True:
        turns = Turns.model_validate(await ann.client.call("list_turns", limit=50)).turns
        if all(turn.outcome is not None for turn in turns):
            break
    of_editor = sorted((t for t in turns if t.agent == "editor"), key=lambda t: t.started_at)
    ids = {
        "story": story, "replies": f"channel.general.t{story[1:]}", "question": question,
        "interaction": f"i{question[1:]}", "turn": of_editor[0].id, "other": of_editor[1].id,
    }  # fmt: skip
    return Scene(ids, {"ann": ann, "bob": bob}, room, model)


async def _joins(desk: Desk, scene: Scene) -> None:
    if await desk.page.get_by_role("button", name="Join", exact=True).is_visible():
        await desk.join_as("ann")


async def _completes(desk: Desk, scene: Scene) -> None:
    await desk.composer.press_sequentially("@e")
    await expect(desk.page.get_by_role("option", name="editor")).to_be_visible()


async def _searches(desk: Desk, scene: Scene) -> None:
    await desk.page.keyboard.press("Control+k")
    await desk.page.get_by_role("combobox").fill("ed")


async def _has_editor_at_work(desk: Desk, scene: Scene) -> None:
    """The editor thinks until the model's gate `thinking` is released."""
    assert scene.model is not None
    await scene.people["ann"].tells("editor", "Now think slowly: which headline?")
    await scene.model.held("thinking")


async def _is_asked(desk: Desk, scene: Scene) -> None:
    assert scene.room is not None
    archivist = Worker(await scene.room.enters("archivist"))
    await scene.people["ann"].tells("archivist", "Please tidy up the archive.")
    await archivist.begins()
    await archivist.asks()


async def _edits_arguments(desk: Desk, scene: Scene) -> None:
    await expect(desk.main).to_contain_text("/srv/old.md")
    await desk.main.get_by_role("button", name="Edit…").click()
    await expect(desk.main.get_by_label("path")).to_be_focused()


async def _speaks_for_archivist(desk: Desk, scene: Scene) -> None:
    await scene.people["ann"].client.call("take_over", agent="archivist")
    await scene.people["bob"].tells("archivist", "Do we have anything on Saturn's rings?")
    await desk.visit("thread", "dm.archivist.bob")
    await desk.sees("Saturn's rings")
    await desk.says("Two boxes of it, on the third floor.")


async def _stops_the_desk(desk: Desk, scene: Scene) -> None:
    stop = {"scope": "thread", "target": "channel.desk", "reason": "We decide about this at noon."}
    await scene.people["bob"].client.call("stop", **stop)


_GENERAL, _EDITOR = ("thread", "channel.general"), ("thread", "dm.ann.editor")
_ARCHIVIST = ("thread", "dm.ann.archivist")

VIEWS = (
    View("join", None, "Join"),
    View("home", None, "newsroom", then=_joins),
    View("conversation", _GENERAL, "the headline is yours"),
    View("replies", ("thread", "{replies}"), "Then I need figures"),
    View("message", _EDITOR, "Who was woken", opened=("message", "{question}")),
    View("participant", _EDITOR, "Leads the newsroom", opened=("participant", "editor")),
    View("thread", _GENERAL, "members", opened=("thread", "channel.general"), shot=False),
    View("turn", _EDITOR, "Where the time went", opened=("turn", "{other}")),
    View("turn-page", ("turn", "{other}"), "Where the time went", shot=False),
    View("turns", ("turns",), "researcher"),
    View("comparison", ("turns", "{turn}", "{other}"), "The same in both"),
    View("interaction", ("interaction", "{interaction}"), "How large is Jupiter?"),
    View("sequence", ("sequence", "channel.general"), "the headline is yours", shot=False),
    View("network", ("network",), "researcher"),
    View("agents", ("agents",), "Leads the newsroom"),
    View("costs", ("costs",), "researcher"),
    View("inbox", ("inbox",), "the headline is yours"),
    View("palette", _GENERAL, "editor", then=_searches, where="dialog"),
    View("completion", _GENERAL, then=_completes, shot=False),
    View("keys", ("",), "Next unread thread", then=presses("Escape", "?"), where="dialog"),
    View("settings", ("",), "Theme", then=presses("Control+,"), where="dialog"),
    View(
        "channels", ("",), "Stories on their way", then=clicks("Browse channels"),
        where="dialog", shot=False,
    ),
    View("new-channel", ("",), "Name", then=clicks("Create a channel"), where="dialog", shot=False),
    View("new-talk", ("",), "bob", then=clicks("Start a conver"), where="dialog", shot=False),
    View("working", _EDITOR, "thinking", then=_has_editor_at_work),
    View("approvals", ("inbox", "approvals"), "delete_file", then=_is_asked),
    View("approval", _ARCHIVIST, "delete_file", then=_edits_arguments),
    View("stop", _ARCHIVIST, "archivist's current turn", then=presses("Control+."), where="dialog"),
    View("takeover", None, "sent by ann", then=_speaks_for_archivist),
    View("in-charge", ("control",), "at noon", then=_stops_the_desk),
)  # fmt: skip
"""Each view can follow the previous one; the first needs a new browser."""
