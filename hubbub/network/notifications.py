"""The hub's own signals: presence, delivery, activity, channels.

They are ephemeral; a participant that misses one learns the state when it joins. To include agents
that are already working, an agent's activity in a thread is stored until it signals `idle` there or
leaves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue
from pydantic_core import to_json

from hubbub.clock import Clock
from hubbub.mods.operation import bad_request
from hubbub.mods.pipeline import Pipeline
from hubbub.network.fanout import Fanout
from hubbub.network.session import Session
from hubbub.network.state import NetworkState
from hubbub.network.threads import Thread
from hubbub.protocol import thread_ids
from hubbub.protocol.frames import Signal

__all__ = ["HUB_SIGNALS", "Activities", "Activity", "Change", "Notifications"]

HUB_SIGNALS = frozenset(
    {
        "approval",
        "caught_up",
        "channel",
        "delivered",
        "moving",
        "overheard",
        "presence",
        "read",
        "stop_turns",
        "stops",
        "takeovers",
        "try_turn",
        "turn_ended",
    }
)
MOD_SIGNALS = "mod."
"""Signal types that clients trust, and that no participant can send; `MOD_SIGNALS` is the beginning
of those of mods."""
AHEAD_OF_MESSAGES = frozenset({"partial"})
"""Signal types that show the text of a future message, so they are only relayed if no mod can
change or reject messages."""

SIGNAL = 0.2
"""A signal's cost against the rate limit: four streamed texts must leave room for calls."""
CALL_BYTES = 64 * 1024
"""A larger signal costs as much as calls that send as many bytes."""
PRESENCE_AFTER_S, PRESENCE_EACH_S = 0.05, 0.0001
"""Seconds that joins and departures are collected, in total and per session to notify: a thousand
joins cause a handful of signals, and sending them takes a twentieth of a core."""
DELIVERED_AFTER_S = 1.0
"""Seconds between two signals about cursors."""
CHANNEL_AFTER_S = 0.1
"""Seconds that changes of channels are collected."""


class Notifications:
    """Collects events and signals them to connected participants."""

    def __init__(self, state: NetworkState, fanout: Fanout, pipeline: Pipeline, clock: Clock):
        self._state, self._fanout, self._clock = state, fanout, clock
        self._pipeline = pipeline
        self._activities = Activities()
        self._presence_timer: asyncio.TimerHandle | None = None
        self._delivered: dict[str, int] = {}
        self._delivered_timer: asyncio.TimerHandle | None = None
        self._delivered_last = float("-inf")
        self._channels: dict[str, None] = {}
        """Changed channels, in order of change."""
        self._channel_timer: asyncio.TimerHandle | None = None
        self._stopped = False

    def stop(self) -> None:
        """Send no more signals."""
        self._stopped = True
        for timer in (self._presence_timer, self._delivered_timer, self._channel_timer):
            if timer is not None:
                timer.cancel()

    # Presence -----------------------------------------------------------------------------

    def joined(self, session: Session) -> None:
        """Announce a ready session to others, and the working agents to a person."""
        if not session.observe and self._state.knows(session.participant):
            self._state.presence.join(session.participant)
            self._presence_changed()
        if session.is_person:
            self._send_activities(session)

    def left(self, session: Session) -> None:
        """Announce that a ready session ended."""
        participant = session.participant
        if session.observe or not self._state.knows(participant):
            return
        self._state.presence.leave(participant)
        self._presence_changed()
        if participant not in self._state.presence:
            self._send_work_change(participant, self._activities.clear(participant))

    def missed(self, participants: Sequence[str]) -> None:
        """Announce the participants that left while no hub could report it."""
        for participant in filter(self._state.knows, participants):
            self._state.presence.missed(participant)
        self._presence_changed()

    def _presence_changed(self) -> None:
        if self._presence_timer is None and not self._stopped:
            loop = asyncio.get_running_loop()
            after = PRESENCE_AFTER_S + PRESENCE_EACH_S * len(self._fanout)
            self._presence_timer = loop.call_later(after, self._send_presence)

    def _send_presence(self) -> None:
        self._presence_timer = None
        came, went = self._state.presence.changes()
        if came or went:
            people = [self._state.get(name) for name in came]
            data = {
                "online": [self._state.describe(p).model_dump(mode="json") for p in people if p],
                "offline": went,
            }
            self._fanout.send_ephemeral_to_all(
                Signal(type="presence", sender="hub", data=data).encoded()
            )

    def down_changed(self, agents: Sequence[str]) -> None:
        """Announce agents that the launcher gave up on."""
        states = [self._state.get(agent) for agent in agents]
        down: JsonValue = [self._state.describe(p).model_dump(mode="json") for p in states if p]
        data: JsonValue = {"online": [], "offline": [], "down": down}
        self._fanout.send_ephemeral_to_all(
            Signal(type="presence", sender="hub", data=data).encoded()
        )

    # Delivery -----------------------------------------------------------------------------

    def delivered(self, cursors: Mapping[str, int]) -> None:
        """Announce the participants' cursors to people."""
        if not self._fanout.people:
            return
        self._delivered.update(cursors)
        if self._delivered_timer is None and not self._stopped:
            loop = asyncio.get_running_loop()
            at = max(loop.time(), self._delivered_last + DELIVERED_AFTER_S)
            self._delivered_timer = loop.call_at(at, self._send_delivered)

    def _send_delivered(self) -> None:
        self._delivered_timer = None
        self._delivered_last = asyncio.get_running_loop().time()
        moved, self._delivered = self._delivered, {}
        signal = Signal(type="delivered", sender="hub", data=dict(moved))
        self._fanout.send_ephemeral_to_people(signal.encoded())

    # Channels -----------------------------------------------------------------------------

    def channel_changed(self, name: str) -> None:
        """Announce a channel that is new or whose members changed."""
        if not self._fanout.people or self._stopped:
            return
        self._channels[name] = None
        if self._channel_timer is None:
            loop = asyncio.get_running_loop()
            self._channel_timer = loop.call_later(CHANNEL_AFTER_S, self._send_channels)

    def _send_channels(self) -> None:
        self._channel_timer = None
        changed, self._channels = self._channels, {}
        for channel in filter(None, map(self._state.channels.get, changed)):
            described = self._state.describe_channel(channel, "")
            data = described.model_dump(mode="json", exclude={"joined"})
            self._fanout.send_ephemeral_to_people(
                Signal(type="channel", sender="hub", data=data).encoded()
            )

    # Turns --------------------------------------------------------------------------------

    def turn_ended(self, turn: str, agent: str, thread_id: str, outcome: str) -> None:
        """Announce a durable end of a turn to the people who read its thread."""
        thread = self._state.threads.get(thread_id)
        if thread is None or not self._fanout.people or self._stopped:
            return
        data: dict[str, JsonValue] = {"turn": turn, "agent": agent, "outcome": outcome}
        frame = Signal(type="turn_ended", thread_id=thread_id, sender="hub", data=data).encoded()
        for session in self._fanout.sessions_of_people():
            if self._state.may_read(thread, session.participant):
                session.send_ephemeral(frame)

    # Signals of participants --------------------------------------------------------------

    def relay(self, session: Session, signal: Signal) -> None:
        """Forward an ephemeral frame to the readers of its thread, or to everyone."""
        caller, state = session.caller, self._state
        if caller is None or session.observe or self._stopped:
            return
        if caller.bucket.take(self._clock.monotonic(), _cost(signal)):
            return
        if signal.type in HUB_SIGNALS or signal.type.startswith(MOD_SIGNALS):
            text = f"type: only the hub can send {signal.type}"
            session.error(bad_request(text), None)
            return
        ahead = signal.type in AHEAD_OF_MESSAGES
        if ahead and self._pipeline.judges:
            return  # no mod has seen the text yet
        if ahead and self._is_of_an_ended_turn(signal):
            return  # written before the agent knew; it would seem to be of the next turn
        if signal.thread_id is None:
            if not (ahead and state.stops.standing):
                self._relay(session, signal, None)
            return
        canonical = thread_ids.canonical(signal.thread_id, caller.participant)
        thread = state.threads.get(canonical or "")
        if thread is None or (ahead and state.stops.of(caller.participant, thread.id)):
            return  # a stopped agent sends nothing of any kind
        if state.may_read(thread, caller.participant):
            self._relay(session, signal, thread)

    def _is_of_an_ended_turn(self, signal: Signal) -> bool:
        match signal.data:
            case {"turn": str(turn)}:
                return self._state.turns.hub_end(turn) is not None
        return False

    def _relay(self, session: Session, signal: Signal, thread: Thread | None) -> None:
        relayed = signal.model_copy(
            update={
                "sender": session.participant,
                "thread_id": thread.id if thread else None,
                "age_s": None,
            }
        )
        if thread is None:
            self._fanout.send_ephemeral_to_all(relayed.encoded(), without=session.participant)
            return
        readers = self._state.readers(thread, session.participant)
        self._fanout.send_ephemeral_to_readers(readers, relayed.encoded())
        if signal.type == "activity" and session.participant in self._state.agents:
            now = self._clock.monotonic()
            change = self._activities.note(session.participant, thread.id, signal.data, now)
            self._send_work_change(session.participant, change)

    def _send_work_change(self, agent: str, change: Change | None) -> None:
        """Announce that an agent began to work in some thread, or is now idle in all."""
        if change is not None and self._fanout.people and not self._stopped:
            signal = Signal(type="activity", sender=agent, data={"state": change})
            self._fanout.send_ephemeral_to_people(signal.encoded())

    def _send_activities(self, session: Session) -> None:
        """Send the working agents, and their activities in threads that the participant reads."""
        now, me = self._clock.monotonic(), session.participant
        for agent, since in self._activities.working():
            signal = Signal(
                type="activity",
                sender=agent,
                data={"state": "working"},
                age_s=round(now - since, 3),
            )
            session.write(signal.encoded())
        for activity in self._activities:
            thread = self._state.threads.get(activity.thread_id)
            if thread and (session.observe or self._state.may_read(thread, me)):
                signal = Signal(
                    type="activity",
                    thread_id=thread.id,
                    sender=activity.agent,
                    data=activity.data,
                    age_s=round(now - activity.since, 3),
                )
                session.write(signal.encoded())


def _cost(signal: Signal) -> float:
    """The cost of a signal against the rate limit: every receiver gets its data."""
    return max(SIGNAL, len(to_json(signal.data)) / CALL_BYTES)


MAX_THREADS = 64
"""Threads stored per agent; the most recent ones if there are more."""
MAX_BYTES = 1024
"""Bytes of an activity as JSON; of a larger one only the state is stored."""

Change = Literal["working", "idle"]


@dataclass(frozen=True, slots=True)
class Activity:
    """An agent's activity in a thread, signalled at `since` (monotonic seconds)."""

    agent: str
    thread_id: str
    data: JsonValue
    since: float


class Activities:
    """The last `activity` of each agent in each thread that is not `idle`."""

    def __init__(self) -> None:
        self._active: dict[str, dict[str, Activity]] = {}
        self._since: dict[str, float] = {}

    def note(self, agent: str, thread_id: str, data: JsonValue, now: float) -> Change | None:
        """Store an agent's activity in a thread.

        Returns `working` if it worked in no thread before, `idle` if it does not now, otherwise
        None. An agent that waits for approval does not work.
        """
        state = _state(data)
        threads = self._active.setdefault(agent, {})
        threads.pop(thread_id, None)
        if state != "idle":
            small = len(to_json(data)) <= MAX_BYTES
            stored: JsonValue = data if small else {"state": state[:MAX_BYTES]}
            threads[thread_id] = Activity(agent, thread_id, stored, now)
            if len(threads) > MAX_THREADS:
                del threads[next(iter(threads))]
        return self._change(agent, now)

    def clear(self, agent: str) -> Change | None:
        """Remove all activities of an agent that left. Returns as `note`."""
        self._active.pop(agent, None)
        return self._change(agent, 0.0)

    def _change(self, agent: str, now: float) -> Change | None:
        threads = self._active.get(agent)
        if not threads:
            self._active.pop(agent, None)
        elif not all(_is_parked(activity.data) for activity in threads.values()):
            if agent in self._since:
                return None
            self._since[agent] = now
            return "working"
        return "idle" if self._since.pop(agent, None) is not None else None

    def working(self) -> Iterator[tuple[str, float]]:
        """Each working agent, and since when."""
        yield from self._since.items()

    def __iter__(self) -> Iterator[Activity]:
        for threads in self._active.values():
            yield from threads.values()


def _is_parked(data: JsonValue) -> bool:
    """Whether the turn waits for a person's approval."""
    match data:
        case {"state": "waiting", "for": "approval"}:
            return True
    return False


def _state(data: JsonValue) -> str:
    """The state in the data; `idle` if there is none."""
    state = data.get("state") if isinstance(data, dict) else data
    if state is None or state is False or state == "":
        return "idle"
    return state if isinstance(state, str) else "working"
