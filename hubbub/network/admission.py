"""Admission: from an `identify` frame to `ready`. First join and resume are one path.

version -> token -> known, or new -> cursor -> snapshot at the cursor -> ready -> stream
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable

from pydantic import JsonValue

from hubbub.config.models import AgentConfig, HumanConfig
from hubbub.errors import OperationError, StoreUnavailable
from hubbub.logs import get_logger
from hubbub.network.auth import LONGEST_S, WrongTokens, new_token, proves, token_hash
from hubbub.network.caller import OPERATOR, Caller
from hubbub.network.kernel import Kernel
from hubbub.network.limits import TokenBucket
from hubbub.network.mods.runtime import Mods
from hubbub.network.queries import TokenHashes, TokenOwner
from hubbub.network.records import CursorMoved, MemberLeft, ParticipantSeen, Record, ThreadCreated
from hubbub.network.services.threads import said_before
from hubbub.network.session import Session
from hubbub.network.snapshot import Snapshots
from hubbub.network.state import ChannelState, ParticipantState
from hubbub.network.stored import StoredChannel, StoredMember
from hubbub.protocol import thread_ids
from hubbub.protocol.codes import CloseCode, ErrorCode
from hubbub.protocol.frames import VERSION, Identify
from hubbub.protocol.messages import Card, Kind
from hubbub.protocol.wire import SessionState

__all__ = ["Admission", "AdmissionRefused"]

log = get_logger(__name__)

CARD_BYTES = 8 * 1024
"""Of a card as JSON: everybody is told everybody's."""
AT_ONCE = 256
"""Of those who come in the same moment so many are let in at a time, the first ones first. Else all
would wait for as long as the last one does, and of many at once most give up and come again. Fewer
would share fewer commits: sixteen take half as much CPU again for each that is new."""
KINDS = {"agent": "an agent", "human": "a person", "service": "a service"}


Welcome = Callable[[Session, Caller, int, bytes, bool], None]
"""Starts the stream of a session that has joined, after this position: with the `ready` frame, and
whether anything was missed."""


class AdmissionRefused(OperationError):
    """Admission failed: after the error the socket is closed with `close`."""

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        close: CloseCode,
        *,
        temporary: bool = False,
        retry_after_s: float | None = None,
    ):
        super().__init__(code, message, temporary=temporary, retry_after_s=retry_after_s)
        self.close = close


class _WrongToken(AdmissionRefused):
    """The answer waits, if there were many from the same address."""

    def __init__(self, message: str):
        super().__init__(ErrorCode.AUTH_FAILED, message, CloseCode.AUTH)


class Admission:
    """Lets participants in."""

    def __init__(self, kernel: Kernel, mods: Mods, snapshots: Snapshots, welcome: Welcome):
        """`welcome` is called with who has joined, and the `ready` frame."""
        self._kernel, self._state, self._store = kernel, kernel.state, kernel.store
        self._config, self._file = kernel.config, kernel.file
        self._mods, self._snapshots, self._welcome = mods, snapshots, welcome
        self._launched: dict[str, list[str]] = {}
        self._lent: dict[str, list[str]] = {}
        self._buckets: dict[str, TokenBucket] = {}
        self._registering: dict[str, asyncio.Event] = {}
        """Participants whose first or changed entry is on its way to the store."""
        self._said_shorter = False
        self._wrong_tokens = WrongTokens()
        self._doors = asyncio.Semaphore(AT_ONCE)

    # What the YAML says exists ------------------------------------------------------------

    async def declare(self) -> None:
        """Make sure that the participants and channels of the config exist. At start only."""
        state = self._state
        cards: dict[str, tuple[Kind, Card]] = {
            **{name: ("agent", agent.card) for name, agent in self._file.agents.items()},
            **{name: ("human", human.card) for name, human in self._file.humans.items()},
            **{name: ("service", Card()) for name in self._file.bridges},
        }
        records: list[Record] = []
        for thread in (state.broadcast, *self._mods.threads()):
            if not thread.stored:
                records.append(ThreadCreated(thread.no, thread.id))
                thread.stored = True
        new = self._file.channels.keys() - state.channels.keys()
        for name in sorted(new):
            records += self._new_channel(name, self._file.channels[name].description)
        for name, (kind, card) in cards.items():
            records += self._new_participant(name, kind, card)
        records += self._named_members(new)
        for thread in self._mods.threads():
            for name in list(state.participants()):
                records += self._enter(name, thread.no)
        if records:
            await self._kernel.log.write(*records)

    async def declare_agent(self, name: str, before: AgentConfig | None) -> None:
        """An agent was added to the config, or is another one than `before`: card and channels."""
        state, agent = self._state, self._file.agents[name]
        new = state.get(name) is None
        records = [*self._new_participant(name, "agent", agent.card), *self._own_channels(name)]
        for channel in set(before.channels if before else ()) - set(agent.channels):
            if self._file.channels[channel].members == "all":
                continue
            scope = state.channels[channel].scope
            records.append(MemberLeft(name, scope, self._kernel.log.head))
            state.members.leave(name, scope)
            self._kernel.notifications.channel_changed(channel)
        if records:
            await self._kernel.log.write(*records)
        if new:
            self._tell_channels(name)

    def _new_channel(self, name: str, description: str) -> Iterable[Record]:
        state = self._state
        thread = state.threads.ensure(thread_ids.channel(name))
        state.channels[name] = ChannelState(name, description, thread.no)
        if not thread.stored:
            thread.stored = True
            yield ThreadCreated(thread.no, thread.id)
        yield StoredChannel(name, description)

    def _named_members(self, new: Collection[str]) -> Iterable[Record]:
        """Memberships that the config asks for. `all` means whoever joins the network, and all who
        are there when a channel is `new`: who has left such a channel since is not dragged back."""
        state = self._state
        for name, channel in self._file.channels.items():
            scope = state.channels[name].scope
            if channel.members == "all" and name not in new:
                continue
            members = state.participants() if channel.members == "all" else channel.members
            for member in list(members):
                yield from self._enter(member, scope)
        for agent in self._file.agents:
            yield from self._own_channels(agent)

    def _own_channels(self, agent: str) -> Iterable[Record]:
        for channel in self._file.agents[agent].channels:
            yield from self._enter(agent, self._state.channels[channel].scope)

    def _new_participant(self, name: str, kind: Kind, card: Card) -> Iterable[Record]:
        """Records and takes over a participant that is new or has changed."""
        state, head = self._state, self._kernel.log.head
        known = state.get(name)
        text = card.model_dump_json()
        if known is not None and (known.kind, known.card) == (kind, text):
            return
        yield ParticipantSeen(name, kind, text)
        state.add(ParticipantState(name, kind, text, known.cursor if known else head))
        if known is not None:
            return
        yield CursorMoved(name, head)
        scopes = [state.broadcast.no, *(thread.no for thread in self._mods.threads())] + [
            state.channels[channel].scope
            for channel, config in self._file.channels.items()
            if config.members == "all"
        ]
        for scope in scopes:
            yield from self._enter(name, scope)

    def _enter(self, name: str, scope: int) -> Iterable[Record]:
        """Let a participant into a scope that it is not in. What was said there before counts as
        read."""
        state, head = self._state, self._kernel.log.head
        if state.members.since(name, scope) is not None:
            return
        state.members.join(name, scope, head)
        yield StoredMember(name, scope, head)
        known = state.get(name)
        if known is not None and known.kind == "human":
            for mark in said_before(self._kernel, name, scope):
                state.marks.put(name, mark.thread_no, mark.tseq)
                yield mark

    # Tokens -------------------------------------------------------------------------------

    def add_token(self, participant: str, token: str) -> None:
        """Let `token` prove the participant until the hub stops; nothing is stored."""
        self._launched.setdefault(participant, []).append(token_hash(token))

    def lend(self, participant: str) -> str:
        """A token for a part of the hub itself that speaks for the participant, until the hub stops
        or the participant's tokens are revoked. It does not make others need one."""
        token = new_token()
        self._lent.setdefault(participant, []).append(token_hash(token))
        return token

    async def owner_of(self, token: str) -> tuple[str, Kind] | None:
        """Whom `token` proves, and what they are; None: nobody. Raises `StoreUnavailable`."""
        mine = token_hash(token)
        launched = (name for name, hashes in self._launched.items() if mine in hashes)
        name = next(launched, None) or await self._store.read(TokenOwner(mine))
        if name is None:
            return None
        known = self._state.get(name)
        if name == OPERATOR:
            return name, "service"
        return name, known.kind if known is not None else "human"

    async def _authenticate(self, frame: Identify) -> bool:
        """Check who it is; returns whether it is an owner. Raises `AdmissionRefused`."""
        name, kind = frame.participant, frame.kind
        known = self._state.get(name)
        # A bridge proves itself, and the people of the other chat that it speaks for.
        bridge = self._file.bridge_of(name)
        proven = bridge or name
        hashes = self._launched.get(proven, []) + list(await self._store.read(TokenHashes(proven)))
        open_to_all = self._config.auth == "open" and bridge is None
        lent = self._lent.get(name, []) if not self._state.revocations[name] else []
        if (hashes or not open_to_all) and not proves(frame.token, [*hashes, *lent]):
            remedy = await self._way_in(name, frame.token)
            raise _WrongToken(f"the token does not prove {name!r}; {remedy}")
        if name == OPERATOR and kind == "service":
            return True
        if not thread_ids.is_participant_id(name):
            text = f"participant: {name!r} is a reserved name"
            raise AdmissionRefused(ErrorCode.AUTH_FAILED, text, CloseCode.AUTH)
        if known is not None and known.kind != kind:
            text = f"{name!r} is the name of {KINDS[known.kind]} here; choose another name"
            raise AdmissionRefused(ErrorCode.AUTH_FAILED, text, CloseCode.AUTH)
        human = self._file.humans.get(name, HumanConfig())
        return kind != "agent" and (open_to_all or "owner" in human.roles)

    async def _way_in(self, name: str, token: str | None) -> str:
        """What somebody may do whose token does not prove this name."""
        if name == OPERATOR:
            return "only commands of the user who runs the network have its token"
        owner = await self.owner_of(token) if token else None
        if owner is not None:
            return f"it is {owner[0]}'s: join as {owner[0]}"
        return f"ask the person who runs the network for one (`hubbub tokens add {name}`)"

    # The path -----------------------------------------------------------------------------

    async def join(self, session: Session, frame: Identify) -> None:
        """Answer `identify` with `ready` and start the stream, or refuse and close."""
        async with self._doors:
            if session.state is not SessionState.CLOSED:  # else it has not waited so long
                await self._answer(session, frame)

    async def _answer(self, session: Session, frame: Identify) -> None:
        try:
            await self._join(session, frame)
        except _WrongToken as error:
            self._turn_away_slowly(session, error)
        except AdmissionRefused as error:
            _turn_away(session, error)
        except StoreUnavailable as error:
            session.failed("", error)
            session.close(CloseCode.INTERNAL, "the store is not available; come back")

    def _turn_away_slowly(self, session: Session, error: AdmissionRefused) -> None:
        wait = 0.0
        if session.address:
            wait = self._wrong_tokens.wait(session.address, self._kernel.clock.monotonic())
        if wait > LONGEST_S:
            text = "too many wrong tokens from your address: come back later, with the right one"
            code, close = ErrorCode.RATE_LIMITED, CloseCode.RATE
            error = AdmissionRefused(code, text, close, temporary=True, retry_after_s=wait)
            wait = 0.0
        # A timer, no task: the hub's end waits for none.
        asyncio.get_running_loop().call_later(wait, _turn_away, session, error)

    async def _join(self, session: Session, frame: Identify) -> None:
        if frame.version != VERSION:
            text = f"version: this hub speaks {VERSION}, not {frame.version[:40]!r}"
            raise AdmissionRefused(ErrorCode.UNSUPPORTED_VERSION, text, CloseCode.VERSION)
        if self._kernel.draining.is_set():
            text = "the hub is stopping; come back"
            raise AdmissionRefused(ErrorCode.DRAINING, text, CloseCode.DRAIN, temporary=True)
        revoked = self._state.revocations[frame.participant]
        owner = await self._authenticate(frame)
        _check_card(frame)
        if frame.observe and not owner:
            text = "observe: only an owner of the network may watch everything"
            raise AdmissionRefused(ErrorCode.FORBIDDEN, text, CloseCode.AUTH)
        bucket = self._bucket(frame.participant)
        caller = Caller(self._state, frame.participant, frame.kind, bucket, owner)
        if frame.participant != OPERATOR and not frame.observe:
            await self._register(frame)
        cursor, resumed = self._position(frame)
        session.turns, session.observe = frame.turns, frame.observe
        if resumed and frame.cursor is not None:
            session.received = frame.cursor.received or 0
        head = self._kernel.log.head
        ready = b""
        if not session.resumes:
            ready = await self._snapshots.ready(caller, frame, cursor, head, resumed)
        if self._state.revocations[frame.participant] != revoked:
            raise AdmissionRefused(
                ErrorCode.AUTH_FAILED, "the token was revoked", CloseCode.REVOKED
            )
        self._welcome(session, caller, cursor, ready, cursor < head)

    def _bucket(self, participant: str) -> TokenBucket:
        """What the participant may ask, on all its sockets together."""
        found = self._buckets.get(participant)
        if found is None:
            limits, now = self._config.limits, self._kernel.clock.monotonic()
            found = TokenBucket(limits.calls_per_second, limits.burst, now)
            self._buckets[participant] = found
        return found

    async def _register(self, frame: Identify) -> None:
        name, state = frame.participant, self._state
        while (under_way := self._registering.get(name)) is not None:
            await under_way.wait()  # another socket of it came first; that may still fail
        known = state.get(name)
        card = frame.card
        if card is None:
            card = Card.model_validate_json(known.card) if known else Card()
        records = list(self._new_participant(name, frame.kind, card))
        if not records:
            return
        done = self._registering[name] = asyncio.Event()
        try:
            await self._kernel.log.write(*records)
        except StoreUnavailable:
            if known is None:
                state.forget(name)
            else:
                state.add(known)
            raise
        finally:
            del self._registering[name]
            done.set()
        if known is None:
            self._tell_channels(name)

    def _tell_channels(self, newcomer: str) -> None:
        """Who is new in the network is in its open channels from the start."""
        scopes = self._state.members.scopes(newcomer)
        for channel in self._state.channels.values():
            if channel.scope in scopes:
                self._kernel.notifications.channel_changed(channel.name)

    def _position(self, frame: Identify) -> tuple[int, bool]:
        """Where the stream starts, and whether that is where the client asked for."""
        head = self._kernel.log.head
        wanted = frame.cursor
        if wanted is not None and wanted.epoch == self._state.epoch:
            seen = max(wanted.seq, wanted.received or 0)
            end = self._state.end_of(wanted.run, head)
            if seen <= end:
                return wanted.seq, True
            if wanted.run not in (None, self._state.run):
                self._say_shorter(frame.participant, seen, end)
        known = self._state.get(frame.participant)
        if frame.observe or frame.latest or known is None:
            return head, False
        return min(known.cursor, head), False

    def _say_shorter(self, participant: str, seen: int, end: int) -> None:
        """A client knows more of an earlier run than the log has; said once in a run."""
        if self._said_shorter:
            return
        self._said_shorter = True
        log.warning(
            "the log is shorter than what a client has seen", who=participant, seen=seen, end=end
        )
        text = (
            f"{participant} has seen more of the log than there is: if an older copy of it was put "
            "back, messages are missing. Clients that have seen them start afresh."
        )
        details: dict[str, JsonValue] = {"code": "log_shorter", "seen": seen, "end": end}
        once = f"log_shorter:{self._state.run}"
        self._kernel.writes.notice(
            self._state.broadcast.id, text, details, once, to=self._file.owners
        )


def _turn_away(session: Session, error: AdmissionRefused) -> None:
    session.error(error, None)
    session.close(error.close, error.message[:100])


def _check_card(frame: Identify) -> None:
    size = len(frame.card.model_dump_json().encode()) if frame.card else 0
    if size > CARD_BYTES:
        text = f"card: at most {CARD_BYTES} bytes, this has {size}"
        raise AdmissionRefused(ErrorCode.TOO_LARGE, text, CloseCode.BAD_FRAME)
