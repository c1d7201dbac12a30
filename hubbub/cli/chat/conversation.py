"""A chat at work: what was typed becomes calls, what arrives becomes lines."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TYPE_CHECKING, Protocol, assert_never

from hubbub.cli.chat import commands
from hubbub.cli.chat.lines import Line, Note, Tone
from hubbub.cli.chat.refusals import told
from hubbub.cli.chat.session import HISTORY, Session
from hubbub.cli.chat.text import clip, one_line
from hubbub.cli.control.control import Control
from hubbub.cli.control.deeds import Deed
from hubbub.cli.control.words import CHAT
from hubbub.cli.workplace.reacted import BelowMessages
from hubbub.cli.workplace.works import Work
from hubbub.client import Client, Disconnected
from hubbub.clock import Clock, SystemClock
from hubbub.errors import ConnectionLost, OperationError, UserError
from hubbub.protocol import thread_ids
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.frames import Event, Ready, Signal
from hubbub.protocol.operations import Participants, SendResult, ThreadPage
from hubbub.waiting import done_within

if TYPE_CHECKING:
    from hubbub.cli.workplace.workplace import Workplace

__all__ = ["Console", "Conversation", "Status", "run_chat"]

FINISH_S = 5.0
"""Seconds that leaving waits for answers to what was said."""
BEGINNING = 80
"""Columns of a message that is told of again, because it was not sent."""
_ASKING = (
    commands.Who | commands.Join | commands.Create | commands.Leave | commands.More | Deed | Work
)  # commands that show nothing before the hub has answered
CAUGHT_UP_S = 0.3
"""Silence after which what was missed while away has arrived."""


class Status:
    """What stands beside the messages at a moment: for a prompt and a status line."""

    def __init__(self, session: Session, clock: Clock):
        self.session = session
        self.network = ""
        self.sending = 0
        """Messages whose answer has not come yet."""
        self.carrying = ""
        """How far a file is on its way: `photo.png 40 %`."""
        self.lost: str | None = None
        """Why there is no connection."""
        self._retry_at = 0.0
        self._clock = clock

    def disconnected(self, item: Disconnected) -> None:
        self.lost = item.reason or f"closed with {item.code}"
        self._retry_at = self._clock.monotonic() + item.retry_in_s

    def connected(self) -> None:
        self.lost = None

    @property
    def prompt(self) -> str:
        return f"{self.session.shown(self.session.current)}> "

    def notices(self) -> list[tuple[str, str]]:
        """Parts of the status line: a kind (lost, unread, quiet) and a text."""
        parts: list[tuple[str, str]] = []
        if self.lost is not None:
            left = max(0.0, self._retry_at - self._clock.monotonic())
            when = f"trying again in {left:.0f} s" if left >= 1 else "trying again"
            waiting = f", {self.sending} to send" if self.sending else ""
            parts.append(("lost", f"not connected ({self.lost}), {when}{waiting}"))
        elif self.sending:
            parts.append(("quiet", "sending…"))
        if self.carrying:
            parts.append(("quiet", self.carrying))
        parts += self.session.charge.status()
        if unread := self.session.unread:
            parts.append(("unread", "unread: " + ", ".join(unread)))
        doing = self.session.activities.now(self._clock.monotonic())
        if doing:
            parts.append(("quiet", ", ".join(doing)))
        return parts


class Console(Protocol):
    """Where a person reads and types."""

    def start(self, status: Status) -> None:
        """Called once, before anything is shown."""
        ...

    async def read(self) -> str | None:
        """The next line; None when there are no more."""
        ...

    def show(self, lines: Sequence[Line]) -> None: ...

    def refresh(self) -> None:
        """The status has changed."""
        ...

    @property
    def patient(self) -> bool:
        """Whether each line shall be done with before the next one is read (a script's input)."""
        ...


async def run_chat(
    client: Client, console: Console, clock: Clock | None = None, *, opening: str | None = None
) -> int:
    """Chat until the person leaves or the hub closes for good. The client has joined already.

    `opening` names the thread to begin in, as /open does; None: where everybody is. Returns an exit
    code: 0; or 1 when the hub ended it, or when a line of a script (a patient console) was refused
    or not sent.
    """
    chat = Conversation(client, console, clock or SystemClock(), opening)
    console.start(chat.status)
    async with asyncio.TaskGroup() as tasks:
        following = tasks.create_task(chat.follow())
        working = tasks.create_task(chat.work())
        typing = tasks.create_task(chat.read())
        await asyncio.wait({following, typing}, return_when=asyncio.FIRST_COMPLETED)
        for task in (following, working, typing):
            task.cancel()
    return 1 if chat.ended or (console.patient and chat.refused) else 0


class Conversation:
    """One person's chat over one client."""

    def __init__(self, client: Client, console: Console, clock: Clock, opening: str | None = None):
        self.session = Session(client.participant)
        self.status = Status(self.session, clock)
        self.ended = False
        """Whether the hub closed for good."""
        self.refused = False
        """Whether something that was typed could not be done."""
        self._opening = opening
        self._client, self._console, self._clock = client, console, clock
        self._jobs: asyncio.Queue[Callable[[], Awaitable[None]]] = asyncio.Queue()
        self._began = asyncio.Event()
        self._heard = asyncio.Event()  # somebody else spoke in the current thread
        self._summary: asyncio.TimerHandle | None = None
        self._told_read: dict[str, int] = {}
        self._control = Control(client, self.session, CHAT, here=True)
        self._workplace: Workplace | None = None

    # Arriving ---------------------------------------------------------------------------------

    async def follow(self) -> None:
        """Show what arrives, until the hub closes for good."""
        try:
            async for item in self._client.events():
                self._take(item)
                if isinstance(item, Event):
                    await self._client.ack(item.seq)
        except ConnectionLost as lost:
            self.ended = True
            self._show([Note(f"the hub closed the connection: {lost.reason or lost}", "error")])

    def _take(self, item: Ready | Event | Signal | Disconnected) -> None:
        match item:
            case Event():
                self._show(self.session.take(item))
                self._tell_read(item.message.thread_id)
                self._summarise_soon()
                here = item.message.thread_id == self.session.current
                spoken = item.message.amends is None
                if here and spoken and item.message.sender_id != self.session.me:
                    self._heard.set()
            case Signal():
                self.session.hear(item, self._clock.monotonic())
                self._show(self.session.told(item))
                if item.thread_id is not None:
                    self._tell_read(item.thread_id)
            case Disconnected():
                if self.status.lost is None:
                    why = item.reason or f"closed with {item.code}"
                    self._show([Note(f"connection lost ({why}); trying again", "error")])
                self.status.disconnected(item)
            case Ready():
                self._ready(item)
            case _:
                assert_never(item)
        self._console.refresh()

    def _ready(self, ready: Ready) -> None:
        self.status.network = self._client.network
        self.status.connected()
        self._show(self.session.begin(ready))
        if not ready.resumed:
            self._told_read = {id: thread.read for id, thread in self.session.threads.items()}
        if not self._began.is_set():
            self._began.set()
            self._begin_in(self._opening)
            self._do(lambda: self._open(self.session.current, first=True))

    def _begin_in(self, name: str | None) -> None:
        try:
            if name is not None:
                self.session.switch(self.session.find(name))
        except UserError as exc:
            self._refuse(str(exc))

    def _summarise_soon(self) -> None:
        """Say what was missed once nothing more of it comes for a moment."""
        if self._summary is not None:
            self._summary.cancel()
        loop = asyncio.get_running_loop()
        self._summary = loop.call_later(CAUGHT_UP_S, lambda: self._show(self.session.missed()))

    # Typing -----------------------------------------------------------------------------------

    async def read(self) -> None:
        """Obey what is typed, until the person leaves; then wait for what is under way."""
        await self._began.wait()
        if self._console.patient:
            await self._jobs.join()
        while (line := await self._console.read()) is not None:
            try:
                command = commands.parse(line, self.session.offers)
                if isinstance(command, commands.Quit):
                    break
                if command is not None:
                    self._obey(command)
            except UserError as exc:
                self._refuse(str(exc))
            if self._console.patient:
                await self._jobs.join()
        await self._finish()

    async def _finish(self) -> None:
        """Wait for answers to what was said, unless there is no connection to hear them from."""
        within = FINISH_S if self.status.lost is None else 0
        if not await done_within(self._jobs.join(), within) and self.status.sending:
            self._refuse(f"{self.status.sending} not sent")

    async def work(self) -> None:
        """Do what the commands ask of the hub, one after the other."""
        while True:
            job = await self._jobs.get()
            try:
                await job()
            except (OperationError, UserError) as exc:
                self._refuse(told(exc))
            except ConnectionLost:
                return  # `follow` says so
            finally:
                self._jobs.task_done()

    def _do(self, job: Callable[[], Awaitable[None]]) -> None:
        self._jobs.put_nowait(job)

    def _obey(self, command: commands.Command) -> None:
        if self.status.lost is not None and isinstance(command, _ASKING):
            self._show([Note("not connected; the answer comes later")])
        match command:
            case commands.Say(text, mode):
                self._say(text, mode)
            case commands.ReplyTo(message_id, text):
                self._send(text, "reply", message_id=message_id)
            case commands.Threads():
                self._show(self.session.lists())
            case commands.Open(target):
                self._switch(self.session.find(target))
            case commands.Direct(names, text):
                self._switch(self.session.direct(names))
                if text:
                    self._say(text)
            case commands.ToChannel(name):
                self._switch(self.session.channel(name))
            case commands.More():
                self._do(self._more)
            case commands.Help():
                self._show(_help(self.session.offers))
            case commands.Wait(seconds):
                self._do(lambda: self._wait(seconds))
            case commands.Quit():
                pass  # `read` has seen it
            case commands.Who() | commands.Join() | commands.Create() | commands.Leave():
                self._do(lambda: self._manage(command))
            case _ if isinstance(command, Work):
                self._do(lambda: self._work_it(command))
            case _:
                self._do(lambda: self._control_it(command))

    async def _manage(
        self, command: commands.Who | commands.Join | commands.Create | commands.Leave
    ) -> None:
        """Commands about people and channels."""
        match command:
            case commands.Who():
                await self._people()
                self._show(self.session.people())
            case commands.Join(name):
                await self._client.call("join_channel", channel=name)
                await self._enter(name)
            case commands.Create(name):
                await self._client.call("create_channel", name=name)
                await self._enter(name)
            case commands.Leave(name):
                channel = name or self._current_channel()
                await self._client.call("leave_channel", channel=channel)
                self._show(self.session.left(channel))

    async def _control_it(self, deed: Deed) -> None:
        """What a person in charge asks for."""
        answer = await self._control.do(deed)
        tone: Tone = "good" if answer.good else "info"
        self._show([Note(line, tone, cut=answer.rows) for line in answer.lines])

    async def _work_it(self, work: Work) -> None:
        """What a person asks of mods."""
        if self._workplace is None:
            from hubbub.cli.workplace.workplace import Workplace  # half of all models of mods

            self._workplace = Workplace(self._client, self.session, self._carrying)
        answer = await self._workplace.do(work)
        if answer.spoken is not None:
            self._show(self.session.sent(answer.spoken))
            self._tell_read(answer.spoken.thread_id)
        self._show(answer.notes)

    def _carrying(self, so_far: str) -> None:
        self.status.carrying = so_far
        self._console.refresh()

    async def _enter(self, channel: str) -> None:
        self.session.joined(channel)
        self.session.switch(thread_ids.channel(channel))
        await self._open(self.session.current)

    def _current_channel(self) -> str:
        root = thread_ids.root(self.session.current)
        if not root.startswith("channel."):
            raise UserError("this is no channel; /leave <name> leaves one")
        return root.partition(".")[2]

    # Speaking ---------------------------------------------------------------------------------

    def _say(self, text: str, mode: commands.Mode | None = None) -> None:
        current = self.session.current
        if thread_ids.kind_of(current) == "mod":
            raise UserError("only the network itself speaks here; /open another thread")
        operation, where = self.session.way_to(current)
        self._send(text, operation, mode, **where)

    def _send(
        self, text: str, operation: str, mode: commands.Mode | None = None, **args: str
    ) -> None:
        self.status.sending += 1
        if self.status.lost is not None:
            self._show([Note(f"not connected; will be sent later: {_beginning(text)}")])
        self._do(lambda: self._deliver(text, operation, args, mode))
        self._console.refresh()

    def _other_way(self, exc: OperationError, args: dict[str, str]) -> str:
        """How to speak in a thread that only an agent is in, for whom this person speaks."""
        thread = thread_ids.root(args.get("to", ""))
        if exc.code != ErrorCode.UNKNOWN_THREAD or not thread.startswith("dm."):
            return ""
        members = thread_ids.members_of(thread)
        agents = [agent for agent in self.session.charge.spoken_for if agent in members]
        return f"; you speak there by /as {agents[0]} <text>" if agents else ""

    async def _deliver(
        self, text: str, operation: str, args: dict[str, str], mode: commands.Mode | None
    ) -> None:
        self._heard.clear()
        wish = {} if mode is None else {"mode": mode}
        try:
            value = await self._client.call(operation, text=text, **args, **wish)
            result = SendResult.model_validate(value)
            self._show(self.session.sent(result))
            self._tell_read(result.thread_id)
        except OperationError as exc:
            why = told(exc) + self._other_way(exc, args)
            self._refuse(f"✗ not sent: {why}: {_beginning(text)}")
        finally:
            self.status.sending -= 1
            self._console.refresh()

    # Threads ----------------------------------------------------------------------------------

    def _switch(self, thread_id: str) -> None:
        """What is typed from now on goes to this thread; its history is shown when it is here."""
        self.session.switch(thread_id)
        self._heard.clear()
        if self.status.lost is None:
            self._do(lambda: self._open(thread_id))
        else:
            self._show(self.session.open(thread_id))
            self._tell_read(thread_id)
        self._console.refresh()

    async def _open(self, thread_id: str, *, first: bool = False) -> None:
        await self._read(thread_id, None)
        if thread_id != self.session.current:
            return  # the person has gone on already
        self._show(self.session.open(thread_id))
        self._tell_read(thread_id)
        if first and (hint := self.session.hint()) is not None:
            self._show([hint])
        self._console.refresh()

    def _tell_read(self, thread_id: str) -> None:
        """Tell the hub, and so this person's other windows, what has been shown here."""
        thread = self.session.thread(thread_id)
        if thread.read > self._told_read.get(thread_id, 0):
            self._told_read[thread_id] = thread.read
            answered = self.session.marking(thread_id, thread.read)
            asked = self._client.post("mark_read", thread=thread_id, upto=thread.read)
            asked.add_done_callback(answered)

    async def _more(self) -> None:
        thread = self.session.thread(self.session.current)
        asked: int | None = None
        # A page may have nothing but edits.
        while thread.more and thread.shown_from <= thread.first and thread.oldest != asked:
            asked = thread.oldest
            await self._read(thread.id, asked or None)
        self._show(self.session.older())

    async def _read(self, thread_id: str, before: int | None) -> None:
        """Ask for a page of a thread. One that nobody has written to does not exist yet."""
        try:
            page = await self._client.call(
                "read_thread", thread=thread_id, before=before, limit=HISTORY
            )
        except OperationError as exc:
            if exc.code != ErrorCode.UNKNOWN_THREAD:
                raise
        else:
            found = ThreadPage.model_validate(page)
            self.session.learn(found)
            await self._read_reactions(found)

    async def _read_reactions(self, page: ThreadPage) -> None:
        """What stands below the messages of a page, if the network has reactions."""
        if page.messages and "list_reactions" in self.session.offers:
            first, last = page.messages[0].tseq, page.messages[-1].tseq
            answer = await self._client.call(
                "list_reactions", thread=page.thread_id, first=first, last=last
            )
            self.session.reacted.learn(BelowMessages.model_validate(answer).messages)

    async def _people(self) -> None:
        value = await self._client.call("list_participants")
        found = Participants.model_validate(value).participants
        self.session.participants = {person.id: person for person in found}

    async def _wait(self, seconds: float) -> None:
        """Until somebody else has spoken here since this person did."""
        try:
            async with asyncio.timeout(seconds):
                await self._heard.wait()
        except TimeoutError:
            pass  # nobody said anything, which is an answer too
        self._heard.clear()

    def _refuse(self, why: str) -> None:
        self.refused = True
        self._show([Note(why, "error")])

    def _show(self, lines: Sequence[Line]) -> None:
        if lines:
            self._console.show(lines)


def _beginning(text: str) -> str:
    return clip(one_line(text), BEGINNING)


def _help(offers: Collection[str]) -> list[Line]:
    there = [spec for spec in commands.COMMANDS.values() if spec.is_among(offers)]
    width = max(len(spec.usage) for spec in there)
    lines = [f"{spec.usage:<{width}}  {spec.help}" for spec in there]
    return [
        *map(Note, lines),
        Note("anything else is said in the current thread; @name mentions somebody"),
        Note("//text says /text"),
    ]
