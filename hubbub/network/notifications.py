"""What the hub itself tells of what goes on: who came and went, what arrived, who is at work, which
channels there are.

All of it is ephemeral: who misses it learns the state when it joins. So that nobody who joins sees
an agent at rest that has been at work for a minute, what an agent says of its activity in a thread
is kept until it says `idle` there, or goes.
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
"""Types of signals that readers believe, and that no participant may send."""
AHEAD_OF_MESSAGES = frozenset({"partial"})
"""Types of signals that show what a message is going to say: they are passed on only where no mod
may change or reject messages."""

SIGNAL = 0.2
"""What a signal costs of the rate limit: four streamed texts shall leave room for calls."""
PRESENCE_AFTER_S, PRESENCE_EACH_S = 0.05, 0.0001
"""Comings and goings gather this long, and so much longer for each session that is told of them:
that a thousand joins are a handful of signals, and telling takes a twentieth of a processor."""
DELIVERED_AFTER_S = 1.0
"""Seconds between two signals about cursors."""
CHANNEL_AFTER_S = 0.1
"""What changes about a channel gathers this long."""


class Notifications:
    """Gathers what happens and tells it to those who are connected."""

    def __init__(self, state: NetworkState, fanout: Fanout, pipeline: Pipeline, clock: Clock):
        self._state, self._fanout, self._clock = state, fanout, clock
        self._pipeline = pipeline
        self._activities = Activities()
        self._presence_timer: asyncio.TimerHandle | None = None
        self._delivered: dict[str, int] = {}
        self._delivered_timer: asyncio.TimerHandle | None = None
        self._delivered_last = float("-inf")
        self._channels: dict[str, None] = {}
        """Those that have changed, in the order in which they did."""
        self._channel_timer: asyncio.TimerHandle | None = None
        self._stopped = False

    def stop(self) -> None:
        """Tell nothing more."""
        self._stopped = True
        for timer in (self._presence_timer, self._delivered_timer, self._channel_timer):
            if timer is not None:
                timer.cancel()

    # Presence -----------------------------------------------------------------------------

    def joined(self, session: Session) -> None:
        """A session is ready: others are told, and a person is told who is at work."""
        if not session.observe and self._state.knows(session.participant):
            self._state.presence.join(session.participant)
            self._presence_changed()
        if session.is_person:
            self._tell_activities(session)

    def left(self, session: Session) -> None:
        """A session that was ready is gone."""
        participant = session.participant
        if session.observe or not self._state.knows(participant):
            return
        self._state.presence.leave(participant)
        self._presence_changed()
        if participant not in self._state.presence:
            self._tell_work(participant, self._activities.clear(participant))

    def missed(self, participants: Sequence[str]) -> None:
        """Those of these who are not here have left while no hub could tell of it."""
        for participant in filter(self._state.knows, participants):
            self._state.presence.missed(participant)
        self._presence_changed()

    def _presence_changed(self) -> None:
        if self._presence_timer is None and not self._stopped:
            loop = asyncio.get_running_loop()
            after = PRESENCE_AFTER_S + PRESENCE_EACH_S * len(self._fanout)
            self._presence_timer = loop.call_later(after, self._tell_presence)

    def _tell_presence(self) -> None:
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
        """These agents were given up."""
        known = [self._state.get(agent) for agent in agents]
        told: JsonValue = [self._state.describe(p).model_dump(mode="json") for p in known if p]
        data: JsonValue = {"online": [], "offline": [], "down": told}
        self._fanout.send_ephemeral_to_all(
            Signal(type="presence", sender="hub", data=data).encoded()
        )

    # Delivery -----------------------------------------------------------------------------

    def delivered(self, cursors: Mapping[str, int]) -> None:
        """These participants have everything up to these positions."""
        if not self._fanout.people:
            return
        self._delivered.update(cursors)
        if self._delivered_timer is None and not self._stopped:
            loop = asyncio.get_running_loop()
            at = max(loop.time(), self._delivered_last + DELIVERED_AFTER_S)
            self._delivered_timer = loop.call_at(at, self._tell_delivered)

    def _tell_delivered(self) -> None:
        self._delivered_timer = None
        self._delivered_last = asyncio.get_running_loop().time()
        moved, self._delivered = self._delivered, {}
        signal = Signal(type="delivered", sender="hub", data=dict(moved))
        self._fanout.send_ephemeral_to_people(signal.encoded())

    # Channels -----------------------------------------------------------------------------

    def channel_changed(self, name: str) -> None:
        """A channel is new, or has other members, and the store has it."""
        if not self._fanout.people or self._stopped:
            return
        self._channels[name] = None
        if self._channel_timer is None:
            loop = asyncio.get_running_loop()
            self._channel_timer = loop.call_later(CHANNEL_AFTER_S, self._tell_channels)

    def _tell_channels(self) -> None:
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
        """A turn is over, and the store has it: people who read its thread may wait for that."""
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
        """Pass an ephemeral frame on to those who read its thread, or to everybody."""
        caller, state = session.caller, self._state
        if caller is None or session.observe or self._stopped:
            return
        if caller.bucket.take(self._clock.monotonic(), SIGNAL):
            return
        if signal.type in HUB_SIGNALS:
            text = f"type: {signal.type} is for the hub to say"
            session.error(bad_request(text), None)
            return
        ahead = signal.type in AHEAD_OF_MESSAGES
        if ahead and self._pipeline.judges:
            return  # no mod has seen the words yet
        if signal.thread_id is None:
            if not (ahead and state.stops.standing):
                self._relay(session, signal, None)
            return
        canonical = thread_ids.canonical(signal.thread_id, caller.participant)
        thread = state.threads.get(canonical or "")
        if thread is None or (ahead and state.stops.of(caller.participant, thread.id)):
            return  # who is stopped says nothing, in whatever way
        if state.may_read(thread, caller.participant):
            self._relay(session, signal, thread)

    def _relay(self, session: Session, signal: Signal, thread: Thread | None) -> None:
        told = signal.model_copy(
            update={
                "sender": session.participant,
                "thread_id": thread.id if thread else None,
                "age_s": None,
            }
        )
        if thread is None:
            self._fanout.send_ephemeral_to_all(told.encoded(), without=session.participant)
            return
        readers = self._state.readers(thread, session.participant)
        self._fanout.send_ephemeral_to_readers(readers, told.encoded())
        if signal.type == "activity" and session.participant in self._state.agents:
            now = self._clock.monotonic()
            change = self._activities.note(session.participant, thread.id, signal.data, now)
            self._tell_work(session.participant, change)

    def _tell_work(self, agent: str, change: Change | None) -> None:
        """An agent has begun to work somewhere, or works nowhere any more."""
        if change is not None and self._fanout.people and not self._stopped:
            signal = Signal(type="activity", sender=agent, data={"state": change})
            self._fanout.send_ephemeral_to_people(signal.encoded())

    def _tell_activities(self, session: Session) -> None:
        """Who is at work, and at what in the threads that the session's participant reads."""
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


MOST_THREADS = 64
"""Threads of one agent that are remembered; of more, those that it spoke of last."""
MOST_BYTES = 1024
"""Of what an agent says of one activity, as JSON; of more, only the state is remembered."""

Change = Literal["working", "idle"]


@dataclass(frozen=True, slots=True)
class Activity:
    """What an agent does in a thread, as it said it at `since` (monotonic seconds)."""

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
        """An agent says what it does in a thread.

        Returns whether it has begun to work, or has come to rest altogether; None if neither.
        """
        state = _state(data)
        threads = self._active.setdefault(agent, {})
        threads.pop(thread_id, None)
        if state != "idle":
            small = len(to_json(data)) <= MOST_BYTES
            told: JsonValue = data if small else {"state": state[:MOST_BYTES]}
            threads[thread_id] = Activity(agent, thread_id, told, now)
            if len(threads) > MOST_THREADS:
                del threads[next(iter(threads))]
        return self._change(agent, now)

    def clear(self, agent: str) -> Change | None:
        """The agent is gone, and whatever it did with it. Returns what `note` would."""
        self._active.pop(agent, None)
        return self._change(agent, 0.0)

    def _change(self, agent: str, now: float) -> Change | None:
        if self._active.get(agent):
            if agent in self._since:
                return None
            self._since[agent] = now
            return "working"
        self._active.pop(agent, None)
        return "idle" if self._since.pop(agent, None) is not None else None

    def working(self) -> Iterator[tuple[str, float]]:
        """Each agent that works somewhere, and since when."""
        yield from self._since.items()

    def __iter__(self) -> Iterator[Activity]:
        for threads in self._active.values():
            yield from threads.values()


def _state(data: JsonValue) -> str:
    """What the data says that the agent is at; an agent that says nothing is idle."""
    state = data.get("state") if isinstance(data, dict) else data
    if state is None or state is False or state == "":
        return "idle"
    return state if isinstance(state, str) else "working"
