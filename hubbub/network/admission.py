"""Admission: from an `identify` frame to `ready`. First join and resume are one path.

version -> token -> registered, or new -> cursor -> snapshot at the cursor -> ready -> stream
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable

from pydantic import JsonValue

from hubbub.config.models import AgentConfig
from hubbub.errors import OperationError, StoreUnavailable
from hubbub.logs import get_logger
from hubbub.network.auth import LONGEST_S, WrongTokens, new_token, proves, token_hash
from hubbub.network.caller import OPERATOR, Caller
from hubbub.network.kernel import Kernel
from hubbub.network.limits import TokenBucket
from hubbub.network.mods.runtime import Mods
from hubbub.network.queries import TokenHashes, TokenOwner
from hubbub.network.records import CursorMoved, MemberLeft, ParticipantSeen, Record, ThreadCreated
from hubbub.network.services.threads import markers_at_end
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
"""Limit of a card as JSON: every participant receives every card."""
AT_ONCE = 256
"""Participants admitted concurrently, in order of arrival. With no limit all of a crowd would wait
as long as the last one, and most would give up and retry. A lower limit shares fewer commits: 16
costs half as much CPU again per new participant."""
KINDS = {"agent": "an agent", "human": "a person", "service": "a service"}


Welcome = Callable[[Session, Caller, int, bytes, bool], None]
"""Starts the stream of an admitted session after a position, with the `ready` frame and whether the
participant missed anything."""


_UNLIMITED = 1e9, 1_000_000_000
"""Calls per second, and at once."""


class AdmissionRefused(OperationError):
    """Admission failed: the socket is closed with code `close` after the error."""

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
    """Its answer is delayed after many wrong tokens from the same address."""

    def __init__(self, message: str):
        super().__init__(ErrorCode.AUTH_FAILED, message, CloseCode.AUTH)


class Admission:
    """Admits participants."""

    def __init__(self, kernel: Kernel, mods: Mods, snapshots: Snapshots, welcome: Welcome):
        self._kernel, self._state, self._store = kernel, kernel.state, kernel.store
        self._config, self._file = kernel.config, kernel.file
        self._mods, self._snapshots, self._welcome = mods, snapshots, welcome
        self._launched: dict[str, list[str]] = {}
        self._lent: dict[str, list[str]] = {}
        self._buckets: dict[str, TokenBucket] = {}
        self._registering: dict[str, asyncio.Event] = {}
        """Participants whose new or changed record is being stored."""
        self._reported_shorter = False
        self._wrong_tokens = WrongTokens()
        self._slots = asyncio.Semaphore(AT_ONCE)

    # Participants and channels of the config ----------------------------------------------

    async def declare(self) -> None:
        """Create missing participants and channels of the config, and apply its changes. At start
        only."""
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
        records += self._new_descriptions()
        for name, (kind, card) in cards.items():
            records += self._new_participant(name, kind, card)
        records += self._removed_members()
        records += self._named_members(new)
        for thread in self._mods.threads():
            for name in list(state.participants()):
                records += self._add_member(name, thread.no)
        if records:
            await self._kernel.log.write(*records)

    async def declare_agent(self, name: str, before: AgentConfig | None) -> None:
        """Apply the card and channels of an agent that is new in the config or differs from
        `before`."""
        state, agent = self._state, self._file.agents[name]
        new = state.get(name) is None
        records = [*self._new_participant(name, "agent", agent.card), *self._own_channels(name)]
        for channel in set(before.channels if before else ()) - set(agent.channels):
            if self._file.may_join(name, channel):
                continue
            scope = state.channels[channel].scope
            records.append(MemberLeft(name, scope, self._kernel.log.head))
            state.members.leave(name, scope)
            self._kernel.notifications.channel_changed(channel)
        if records:
            await self._kernel.log.write(*records)
        if new:
            self._announce_channels(name)

    def _new_channel(self, name: str, description: str) -> Iterable[Record]:
        state = self._state
        thread = state.threads.ensure(thread_ids.channel(name))
        state.channels[name] = ChannelState(name, description, thread.no)
        if not thread.stored:
            thread.stored = True
            yield ThreadCreated(thread.no, thread.id)
        yield StoredChannel(name, description)

    def _new_descriptions(self) -> Iterable[Record]:
        for name, config in self._file.channels.items():
            channel = self._state.channels[name]
            given = "description" in config.model_fields_set
            if given and channel.description != config.description:
                channel.description = config.description
                yield StoredChannel(name, config.description)

    def _removed_members(self) -> Iterable[Record]:
        """The end of memberships that the config does not allow any more."""
        state, head = self._state, self._kernel.log.head
        for name, channel in state.channels.items():
            for member in list(state.members.of(channel.scope)):
                if not self._file.may_join(member, name):
                    state.members.leave(member, channel.scope)
                    yield MemberLeft(member, channel.scope, head)

    def _named_members(self, new: Collection[str]) -> Iterable[Record]:
        """Memberships that the config requires. `all` means everyone who joins the network, plus
        everyone present when the channel is `new`; a member who left later is not added again."""
        state = self._state
        for name, channel in self._file.channels.items():
            scope = state.channels[name].scope
            if channel.members == "all" and name not in new:
                continue
            members = state.participants() if channel.members == "all" else channel.members
            for member in list(members):
                yield from self._add_member(member, scope)
        for agent in self._file.agents:
            yield from self._own_channels(agent)

    def _own_channels(self, agent: str) -> Iterable[Record]:
        for channel in self._file.agents[agent].channels:
            yield from self._add_member(agent, self._state.channels[channel].scope)

    def _new_participant(self, name: str, kind: Kind, card: Card) -> Iterable[Record]:
        """Add a new or changed participant to the state, and yield its records."""
        state, head = self._state, self._kernel.log.head
        existing = state.get(name)
        text = card.model_dump_json()
        if existing is not None and (existing.kind, existing.card) == (kind, text):
            return
        yield ParticipantSeen(name, kind, text)
        state.add(ParticipantState(name, kind, text, existing.cursor if existing else head))
        if existing is not None:
            return
        yield CursorMoved(name, head)
        scopes = [state.broadcast.no, *(thread.no for thread in self._mods.threads())] + [
            state.channels[channel].scope
            for channel, config in self._file.channels.items()
            if config.members == "all"
        ]
        for scope in scopes:
            yield from self._add_member(name, scope)

    def _add_member(self, name: str, scope: int) -> Iterable[Record]:
        """Add a participant to a scope unless it is a member. Earlier messages count as read."""
        state, head = self._state, self._kernel.log.head
        if state.members.since(name, scope) is not None:
            return
        state.members.join(name, scope, head)
        yield StoredMember(name, scope, head)
        existing = state.get(name)
        if existing is not None and existing.kind == "human":
            for mark in markers_at_end(self._kernel, name, scope):
                state.marks.put(name, mark.thread_no, mark.tseq)
                yield mark

    # Tokens -------------------------------------------------------------------------------

    def add_token(self, participant: str, token: str) -> None:
        """Accept `token` for the participant until the hub stops; nothing is stored."""
        self._launched.setdefault(participant, []).append(token_hash(token))

    def lend(self, participant: str) -> str:
        """A token for a part of the hub that acts as the participant, valid until the hub stops or
        the participant's tokens are revoked. It does not make a token mandatory for others."""
        token = new_token()
        self._lent.setdefault(participant, []).append(token_hash(token))
        return token

    def _of_this_run(self, name: str) -> list[str]:
        """Hashes of the tokens that nothing stores. Those of a person end with a revocation; the
        agents that the launcher started keep theirs."""
        revoked = name in self._file.humans and self._state.revocations[name]
        return [] if revoked else self._launched.get(name, [])

    async def owner_of(self, token: str) -> tuple[str, Kind] | None:
        """The participant that `token` proves, and its kind; None if there is none. Raises
        `StoreUnavailable`."""
        mine = token_hash(token)
        launched = (name for name in self._launched if mine in self._of_this_run(name))
        name = next(launched, None) or await self._store.read(TokenOwner(mine))
        if name is None:
            return None
        existing = self._state.get(name)
        if name == OPERATOR:
            return name, "service"
        return name, existing.kind if existing is not None else "human"

    async def _authenticate(self, frame: Identify) -> bool:
        """Check the identity; returns whether it is an owner. Raises `AdmissionRefused`."""
        name, kind = frame.participant, frame.kind
        existing = self._state.get(name)
        # A bridge's token also proves the people of the other chat that it speaks for.
        bridge = self._file.bridge_of(name)
        proven = bridge or name
        hashes = self._of_this_run(proven) + list(await self._store.read(TokenHashes(proven)))
        open_to_all = self._config.auth == "open" and bridge is None
        lent = self._lent.get(name, []) if not self._state.revocations[name] else []
        if (hashes or not open_to_all) and not proves(frame.token, [*hashes, *lent]):
            remedy = await self._remedy(name, frame.token)
            problem = f"the token does not prove {name!r}"
            if not frame.token:
                problem = f"{name!r} needs a token"
            raise _WrongToken(f"{problem}; {remedy}")
        if name == OPERATOR and kind == "service":
            return True
        if not thread_ids.is_participant_id(name):
            text = f"participant: {name!r} is a reserved name"
            raise AdmissionRefused(ErrorCode.AUTH_FAILED, text, CloseCode.AUTH)
        if existing is not None and existing.kind != kind:
            text = f"{name!r} is already {KINDS[existing.kind]}; choose another name"
            raise AdmissionRefused(ErrorCode.AUTH_FAILED, text, CloseCode.AUTH)
        return kind != "agent" and self._file.is_owner(name)

    async def _remedy(self, name: str, token: str | None) -> str:
        """What a caller can do whose token does not prove this name."""
        if name == OPERATOR:
            return "only commands run by the network's own user have its token"
        owner = await self.owner_of(token) if token else None
        if owner is not None:
            return f"it is {owner[0]}'s: join as {owner[0]}"
        whom = f"ask the person who runs the network for one (`hubbub tokens add {name}`)"
        return f"{whom}; commands take it as --token"

    # Joining ------------------------------------------------------------------------------

    async def join(self, session: Session, frame: Identify) -> None:
        """Answer `identify` with `ready` and start the stream, or refuse and close."""
        async with self._slots:
            if session.state is not SessionState.CLOSED:  # else it gave up waiting
                await self._answer(session, frame)

    async def _answer(self, session: Session, frame: Identify) -> None:
        try:
            await self._join(session, frame)
        except _WrongToken as error:
            self._refuse_slowly(session, error)
        except AdmissionRefused as error:
            _refuse(session, error)
        except StoreUnavailable as error:
            session.failed("", error)
            session.close(CloseCode.INTERNAL, "the store is not available; reconnect")

    def _refuse_slowly(self, session: Session, error: AdmissionRefused) -> None:
        wait = 0.0
        if session.address:
            wait = self._wrong_tokens.wait(session.address, self._kernel.clock.monotonic())
        if wait > LONGEST_S:
            text = "too many wrong tokens from your address: try again later with the right one"
            code, close = ErrorCode.RATE_LIMITED, CloseCode.RATE
            error = AdmissionRefused(code, text, close, temporary=True, retry_after_s=wait)
            wait = 0.0
        # A timer rather than a task, so that a stopping hub does not wait for it.
        asyncio.get_running_loop().call_later(wait, _refuse, session, error)

    async def _join(self, session: Session, frame: Identify) -> None:
        if frame.version != VERSION:
            text = f"version: this hub speaks {VERSION}, not {frame.version[:40]!r}"
            raise AdmissionRefused(ErrorCode.UNSUPPORTED_VERSION, text, CloseCode.VERSION)
        if self._kernel.draining.is_set():
            text = "the hub is stopping; reconnect"
            raise AdmissionRefused(ErrorCode.DRAINING, text, CloseCode.DRAIN, temporary=True)
        revoked = self._state.revocations[frame.participant]
        owner = await self._authenticate(frame)
        _check_card(frame)
        if frame.observe and not owner:
            text = "observe: only an owner of the network can watch everything"
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
        """The participant's rate limit, shared by all its sockets. The operator has none: a program
        follows all its questions at once as the operator."""
        bucket = self._buckets.get(participant)
        if bucket is None:
            limits, now = self._config.limits, self._kernel.clock.monotonic()
            rate = limits.calls_per_second, limits.burst
            bucket = TokenBucket(*(_UNLIMITED if participant == OPERATOR else rate), now)
            self._buckets[participant] = bucket
        return bucket

    async def _register(self, frame: Identify) -> None:
        name, state = frame.participant, self._state
        while (under_way := self._registering.get(name)) is not None:
            await under_way.wait()  # another of its sockets came first, which can still fail
        existing = state.get(name)
        card = frame.card
        if card is None:
            card = Card.model_validate_json(existing.card) if existing else Card()
        records = list(self._new_participant(name, frame.kind, card))
        if not records:
            return
        done = self._registering[name] = asyncio.Event()
        try:
            await self._kernel.log.write(*records)
        except StoreUnavailable:
            if existing is None:
                state.forget(name)
            else:
                state.add(existing)
            raise
        finally:
            del self._registering[name]
            done.set()
        if existing is None:
            self._announce_channels(name)

    def _announce_channels(self, newcomer: str) -> None:
        """Announce the open channels that a new participant is in from the start."""
        scopes = self._state.members.scopes(newcomer)
        for channel in self._state.channels.values():
            if channel.scope in scopes:
                self._kernel.notifications.channel_changed(channel.name)

    def _position(self, frame: Identify) -> tuple[int, bool]:
        """Where the stream starts, and whether the client's cursor was honoured."""
        head = self._kernel.log.head
        wanted = frame.cursor
        if wanted is not None and wanted.epoch == self._state.epoch:
            seen = max(wanted.seq, wanted.received or 0)
            end = self._state.end_of(wanted.run, head)
            if seen <= end:
                return wanted.seq, True
            if wanted.run not in (None, self._state.run):
                self._report_shorter_log(frame.participant, seen, end)
        existing = self._state.get(frame.participant)
        if frame.observe or frame.latest or existing is None:
            return head, False
        return min(existing.cursor, head), False

    def _report_shorter_log(self, participant: str, seen: int, end: int) -> None:
        """Report once per run that a client has seen more of an earlier run than the log holds."""
        if self._reported_shorter:
            return
        self._reported_shorter, end = True, max(end, 0)
        log.warning(
            "the log is shorter than what a client has seen", who=participant, seen=seen, end=end
        )
        text = (
            f"{participant} has seen more of the log than it now holds. If an older copy was "
            "restored, messages are missing. Clients that saw them start over."
        )
        details: dict[str, JsonValue] = {"code": "log_shorter", "seen": seen, "end": end}
        once = f"log_shorter:{self._state.run}"
        self._kernel.writes.notice(
            self._state.broadcast.id, text, details, once, to=self._file.owners
        )


def _refuse(session: Session, error: AdmissionRefused) -> None:
    session.error(error, None)
    session.close(error.close, error.message[:100])


def _check_card(frame: Identify) -> None:
    size = len(frame.card.model_dump_json().encode()) if frame.card else 0
    if size > CARD_BYTES:
        text = f"card: at most {CARD_BYTES} bytes, this has {size}"
        raise AdmissionRefused(ErrorCode.TOO_LARGE, text, CloseCode.BAD_FRAME)
