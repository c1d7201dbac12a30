"""A running chat: turns typed lines into calls, and events into lines."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, assert_never

from hubbub.client import Client, Disconnected
from hubbub.clock import SystemClock
from hubbub.errors import ConnectionLost, OperationError, UserError
from hubbub.ids import parse_message_id
from hubbub.mods.reactions.schemas import Reactions
from hubbub.people.chat import slash
from hubbub.people.chat.console import Console, Status
from hubbub.people.chat.session import HISTORY, ChatSession
from hubbub.people.client import PersonClient
from hubbub.people.commands import (
    CHAT,
    Command,
    Given,
    all_commands,
    in_commands,
    mod_commands,
    perform,
)
from hubbub.people.names import names_in
from hubbub.people.parameters import described_operations, known_operations
from hubbub.people.shown import Line, NoteLine
from hubbub.people.text import clip, one_line
from hubbub.protocol import thread_ids
from hubbub.protocol.admin import ModStates
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.frames import Event, Ready, Signal
from hubbub.protocol.operations import OperationSchemas, SendResult, ThreadPage
from hubbub.waiting import done_within

__all__ = ["run_chat"]

FINISH_S = 5.0
"""Seconds that leaving waits for the hub to confirm messages."""
BEGINNING = 80
"""Columns shown of a message that was not sent."""
CAUGHT_UP_S = 0.3
"""Seconds without events after which the missed messages have arrived."""
Mode = Literal["queue", "steer", "interrupt"]
_SPACED_NAMES = re.compile(r"^((?:\S+ +,)*\S+) +,(?=\S)")


async def run_chat(client: Client, console: Console, *, opening: str | None = None) -> int:
    """Chat until the person leaves or the hub closes the connection for good. The client must have
    joined.

    `opening` names the first thread, as in /open; None: the broadcast thread. Returns an exit
    code: 0, or 1 if the hub closed the connection or a line of a script (a patient console) was
    refused or not sent.
    """
    chat = LineChat(client, console, opening)
    console.start(chat.status)
    async with asyncio.TaskGroup() as tasks:
        following = tasks.create_task(chat.follow())
        working = tasks.create_task(chat.work())
        typing = tasks.create_task(chat.read())
        if not console.patient:  # load the commands before the first slash
            tasks.create_task(asyncio.to_thread(all_commands))
        await asyncio.wait({following, typing}, return_when=asyncio.FIRST_COMPLETED)
        for task in (following, working, typing):
            task.cancel()
    return 1 if chat.ended or (console.patient and chat.refused) else 0


class LineChat:
    """One person's chat over one client."""

    def __init__(self, client: Client, console: Console, opening: str | None = None):
        self.session = ChatSession(client.participant)
        self.status = Status(self.session)
        self.ended = False
        """Whether the hub closed the connection for good."""
        self.refused = False
        """Whether a typed line failed."""
        self._opening = opening
        self._client, self._console = client, console
        self._jobs: asyncio.Queue[Callable[[], Awaitable[None]]] = asyncio.Queue()
        self._connected = asyncio.Event()
        self._answered = asyncio.Event()  # another participant posted in the current thread
        self._summary: asyncio.TimerHandle | None = None
        self._marked: dict[str, int] = {}  # the hub's read marks
        self._person = PersonClient(client, self.session, CHAT, here=True, progress=self._carrying)

    # Events -----------------------------------------------------------------------------------

    async def follow(self) -> None:
        """Show events until the hub closes the connection for good."""
        try:
            async for item in self._client.events():
                self._take(item)
                if isinstance(item, Event):
                    await self._client.ack(item.seq)
        except ConnectionLost as lost:
            self.ended = True
            self.show([NoteLine(f"the hub closed the connection: {lost.reason or lost}", "error")])

    def _take(self, item: Ready | Event | Signal | Disconnected) -> None:
        match item:
            case Event():
                self.show(self.session.take(item))
                self._mark_read(item.message.thread_id)
                self._summarise_soon()
                here = item.message.thread_id == self.session.current
                is_new = item.message.amends is None
                if here and is_new and item.message.sender_id != self.session.me:
                    self._answered.set()
            case Signal():
                self.session.hear(item, SystemClock.monotonic())
                self.show(self.session.signalled(item))
                if item.thread_id is not None:
                    self._mark_read(item.thread_id)
            case Disconnected():
                if self.status.lost is None:
                    why = item.reason or f"closed with {item.code}"
                    self.show([NoteLine(f"connection lost ({why}); reconnecting", "error")])
                self.status.disconnected(item)
            case Ready():
                self._ready(item)
            case _:
                assert_never(item)
        self._console.refresh()

    def _ready(self, ready: Ready) -> None:
        self.status.network = self._client.network
        self.status.connected()
        self.show(self.session.begin(ready))
        if not ready.resumed:
            self._marked = {id: thread.read for id, thread in self.session.threads.items()}
        if not self._connected.is_set():
            self._connected.set()
            self._begin_in(self._opening)
            self.do(lambda: self._open(self.session.current, first=True))
            if self.session.offers - known_operations().keys():
                self.do(self._describe)
        if ready.threads and not ready.resumed:
            self.do(lambda: self._read_threads(ready.threads[-1].last_seq))

    def _begin_in(self, name: str | None) -> None:
        try:
            if name is not None:
                self.session.switch(self.session.find(name))
        except UserError as exc:
            self._refuse(str(exc))

    async def _read_threads(self, before: int) -> None:
        """Read the threads that `ready` left out: those whose last message is before a position."""
        for summary in await self._person.threads_before(before):
            self.session.summarised(summary)
            self._marked[summary.id] = summary.read
        self._console.refresh()

    async def _describe(self) -> None:
        """Load the commands of third-party mods."""
        known = known_operations().keys()
        mods = await self._person.ask(ModStates, "list_mods")
        commands: list[Command] = []
        for mod in mods.mods:
            if names := [name for name in mod.operations if name not in known]:
                answer = await self._person.ask(
                    OperationSchemas, "describe_operations", names=[*names]
                )
                operations = described_operations(answer.operations, mod.name)
                commands += mod_commands(mod.name, operations)
        self.status.others = commands

    def _summarise_soon(self) -> None:
        """Show the line about missed messages once no more have arrived for a moment."""
        if self._summary is not None:
            self._summary.cancel()
        loop = asyncio.get_running_loop()
        self._summary = loop.call_later(CAUGHT_UP_S, lambda: self.show(self.session.missed()))

    # Typing -----------------------------------------------------------------------------------

    async def read(self) -> None:
        """Process typed lines until the person leaves; then wait for pending work."""
        await self._connected.wait()
        if self._console.patient:
            await self._jobs.join()
        while (line := await self._console.read()) is not None:
            try:
                if not self._process(line.strip()):
                    break
            except UserError as exc:
                self._refuse(str(exc))
            if self._console.patient:
                await self._jobs.join()
        await self._finish()

    def _process(self, line: str) -> bool:
        """Process a line; returns False if the person leaves. Raises `UserError`."""
        if not line.startswith("/") or line.startswith("//"):
            if line:
                self.say(line.removeprefix("/"))
            return True
        word, _, rest = line[1:].partition(" ")
        if word.lower() == "quit":
            return False
        local = slash.LOCAL.get(word.lower())
        if local is not None and not self._is_more(word, rest):
            try:
                self._do_local(word.lower(), rest.strip())
            except UserError as exc:
                raise UserError(f"/{word}: {exc} ({local.usage})") from None
            return True
        command, rest = slash.find(line[1:], self.session.offers, self.status.others, slash.LOCAL)
        given = slash.read(command, rest)
        self.ask(lambda: self.perform(command, given))
        return True

    def _is_more(self, word: str, rest: str) -> bool:
        """Whether one of the chat's own words starts a longer command: `/threads mute`."""
        both = f"{word} {rest.partition(' ')[0]}".lower()
        return any(c.path == both and c.where != "shell" for c in all_commands())

    async def _finish(self) -> None:
        """Wait for pending messages, unless there is no connection."""
        within = FINISH_S if self.status.lost is None else 0
        if not await done_within(self._jobs.join(), within) and self.status.sending:
            self._refuse(f"{self.status.sending} not sent")

    async def work(self) -> None:
        """Run the jobs one after the other."""
        while True:
            job = await self._jobs.get()
            try:
                await job()
            except (OperationError, UserError) as exc:
                self._refuse(_why(exc))
            except ConnectionLost:
                return  # `follow` shows it
            finally:
                self._jobs.task_done()

    def do(self, job: Callable[[], Awaitable[None]]) -> None:
        self._jobs.put_nowait(job)

    def ask(self, job: Callable[[], Awaitable[None]]) -> None:
        """Queue a job that shows nothing until the hub answers."""
        if self.status.lost is not None:
            self.show([NoteLine("not connected; will run after reconnecting")])
        self.do(job)

    async def perform(self, command: Command, given: Given) -> None:
        answer = await perform(command, self._person, given)
        if answer.sent is not None:
            self.show(self.session.sent(answer.sent))
            self._mark_read(answer.sent.thread_id)
        self.show(answer.notes)

    def _carrying(self, so_far: str) -> None:
        self.status.carrying = so_far
        self._console.refresh()

    # The chat's own commands ------------------------------------------------------------------

    def _do_local(self, word: str, rest: str) -> None:
        """Run a command of `slash.LOCAL`. Raises `UserError`."""
        match word:
            case "threads":
                _check_empty(rest.removeprefix("list"))
                self.show(self.session.lists())
            case "who":
                _check_empty(rest)
                command, _ = slash.find("agents list", self.session.offers, (), ())
                self.ask(lambda: self.perform(command, {}))
            case "open":
                if not rest:
                    raise UserError("takes a number from /threads or a thread's name")
                self.switch(self.session.find(rest))
            case "dm":
                self._direct(rest)
            case "reply":
                message_id, _, text = rest.partition(" ")
                if parse_message_id(message_id) is None or not text.strip():
                    raise UserError("takes a message's id and a text")
                self.send(text.strip(), "reply", message_id=message_id)
            case "more":
                _check_empty(rest)
                self.ask(self.more)
            case "join":
                name = _one_word(rest).lstrip("#")
                self.ask(lambda: self.enter("join_channel", name, "channel"))
            case "create":
                name = _one_word(rest).lstrip("#")
                self.ask(lambda: self.enter("create_channel", name, "name"))
            case "leave":
                self._leave(rest)
            case "queue" | "steer" | "interrupt":
                self.say(rest, word)
            case "wait":
                seconds = _seconds(rest)
                self.do(lambda: self.wait(seconds))
            case _:
                everything = (*all_commands(), *self.status.others)
                available = list(slash.offered(everything, self.session.offers))
                self.show(slash.help_lines(rest, available))

    def _direct(self, rest: str) -> None:
        # Completion puts a space after each name: `bob ,carol hi`.
        names, _, text = _SPACED_NAMES.sub(lambda m: re.sub(r" +,", ",", m[0]), rest).partition(" ")
        participants = names_in(names)
        if not participants:
            raise UserError("takes a name, or several separated by commas")
        self.switch(self.session.direct(participants))
        if text.strip():
            self.say(text.strip())

    def _leave(self, rest: str) -> None:
        if len(rest.split()) > 1:
            raise UserError("takes one channel, or nothing for the current one")
        channel, root = rest.lstrip("#"), thread_ids.root(self.session.current)
        if not channel and not root.startswith("channel."):
            raise UserError("this is not a channel; name one")
        self.ask(lambda: self.leave(channel or root.partition(".")[2]))

    async def enter(self, operation: str, channel: str, argument: str) -> None:
        """Join or create a channel, and open it."""
        await self._client.call(operation, **{argument: channel})
        self.session.joined(channel)
        self.session.switch(thread_ids.channel(channel))
        await self._open(self.session.current)

    async def leave(self, channel: str) -> None:
        await self._client.call("leave_channel", channel=channel)
        self.show(self.session.left(channel))

    # Sending ----------------------------------------------------------------------------------

    def say(self, text: str, mode: Mode | None = None) -> None:
        """Post in the open thread."""
        if not text:
            raise UserError("takes a text")
        current = self.session.current
        if thread_ids.kind_of(current) == "mod":
            raise UserError("only the network itself can post here; /open another thread")
        operation, where = self.session.way_to(current)
        self.send(text, operation, mode, **where)

    def send(self, text: str, operation: str, mode: Mode | None = None, **args: str) -> None:
        self.status.sending += 1
        if self.status.lost is not None:
            self.show([NoteLine(f"not connected; will send later: {_beginning(text)}")])
        self.do(lambda: self._deliver(text, operation, args, mode))
        self._console.refresh()

    def _on_behalf_hint(self, exc: OperationError, args: dict[str, str]) -> str:
        """How to post in a thread of an agent that this person speaks for."""
        thread = thread_ids.root(args.get("to", ""))
        if exc.code != ErrorCode.UNKNOWN_THREAD or not thread.startswith("dm."):
            return ""
        members = thread_ids.members_of(thread)
        agents = [agent for agent in self.session.oversight.controlled_agents if agent in members]
        return f"; post there with /as {agents[0]} <text>" if agents else ""

    async def _deliver(
        self, text: str, operation: str, args: dict[str, str], mode: Mode | None
    ) -> None:
        self._answered.clear()
        options = {} if mode is None else {"mode": mode}
        try:
            result = await self._person.ask(SendResult, operation, text=text, **args, **options)
            self.show(self.session.sent(result))
            self._mark_read(result.thread_id)
        except OperationError as exc:
            why = _why(exc) + self._on_behalf_hint(exc, args)
            self._refuse(f"✗ not sent: {why}: {_beginning(text)}")
        finally:
            self.status.sending -= 1
            self._console.refresh()

    # Threads ----------------------------------------------------------------------------------

    def switch(self, thread_id: str) -> None:
        """Send further lines to this thread, and show its history once it arrives."""
        self.session.switch(thread_id)
        self._answered.clear()
        if self.status.lost is None:
            self.do(lambda: self._open(thread_id))
        else:
            self.show(self.session.open(thread_id))
            self._mark_read(thread_id)
        self._console.refresh()

    async def _open(self, thread_id: str, *, first: bool = False) -> None:
        await self._read(thread_id, None)
        if thread_id != self.session.current:
            return  # the person has switched again
        self.show(self.session.open(thread_id))
        self._mark_read(thread_id)
        if first and (hint := self.session.hint()) is not None:
            self.show([hint])
        self._console.refresh()

    def _mark_read(self, thread_id: str) -> None:
        """Send the read mark of a thread to the hub, and so to this person's other windows."""
        thread = self.session.thread(thread_id)
        if thread.read > self._marked.get(thread_id, 0):
            self._marked[thread_id] = thread.read
            answered = self.session.marking(thread_id, thread.read)
            pending = self._client.post("mark_read", thread=thread_id, upto=thread.read)
            pending.add_done_callback(answered)

    async def more(self) -> None:
        thread = self.session.thread(self.session.current)
        before: int | None = None
        # A page can consist of edits only.
        while thread.more and thread.shown_from <= thread.first and thread.oldest != before:
            before = thread.oldest
            await self._read(thread.id, before or None)
        self.show(self.session.older())

    async def _read(self, thread_id: str, before: int | None) -> None:
        """Read a page of a thread. An empty thread does not exist yet."""
        try:
            page = await self._person.ask(
                ThreadPage, "read_thread", thread=thread_id, before=before, limit=HISTORY
            )
        except OperationError as exc:
            if exc.code != ErrorCode.UNKNOWN_THREAD:
                raise
        else:
            self.session.learn(page)
            await self._read_reactions(page)

    async def _read_reactions(self, page: ThreadPage) -> None:
        """Read the reactions to the messages of a page, if the network has them."""
        if page.messages and "list_reactions" in self.session.offers:
            first, last = page.messages[0].tseq, page.messages[-1].tseq
            answer = await self._person.ask(
                Reactions, "list_reactions", thread=page.thread_id, first=first, last=last
            )
            for under in answer.messages:
                counts = [(each.emoji, each.count) for each in under.reactions]
                self.session.known_ids.react(under.message_id, counts)

    async def wait(self, seconds: float) -> None:
        """Wait for an answer to this person's last message here."""
        try:
            async with asyncio.timeout(seconds):
                await self._answered.wait()
        except TimeoutError:
            pass  # no answer in time is a valid outcome
        self._answered.clear()

    def _refuse(self, why: str) -> None:
        self.refused = True
        self.show([NoteLine(why, "error")])

    def show(self, lines: Sequence[Line]) -> None:
        if lines:
            self._console.show(lines)


def _check_empty(rest: str) -> None:
    if rest:
        raise UserError("takes no arguments")


def _one_word(rest: str) -> str:
    words = rest.split()
    if len(words) != 1:
        raise UserError("takes one name")
    return words[0]


def _seconds(rest: str) -> float:
    try:
        seconds = float(rest) if rest else 10.0
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 3600:
        raise UserError("takes a number of seconds, at most 3600")
    return seconds


def _beginning(text: str) -> str:
    return clip(one_line(text), BEGINNING)


def _why(error: OperationError | UserError) -> str:
    """The error message, with the chat's commands in place of the hub's operations."""
    if isinstance(error, OperationError):
        return in_commands(error.message, CHAT, chat=True)
    return str(error)
