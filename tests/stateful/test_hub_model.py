"""The hub answers, stores, delivers and wakes as its model does after any sequence of calls."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.interaction.peers import Frame, Network, Networks, Peer, config, eventually
from tests.stateful.hub_model import Data, HubModel

KINDS = {
    "ann": "human", "bob": "human", "bot": "agent", "calc": "agent", "feed": "service",
    "eve": "human",
}  # fmt: skip
FIRST = ("ann", "bob", "bot", "calc", "feed")
"""The participants that join first; eve joins at some point, and zoe never."""
RECORDS_TURNS = "bot"
"""Its wakes wait for turns, which it never begins; calc ends its wakes by acknowledging them."""
STAMPED = ("message", "id", "seq", "tseq", "thread_id")
"""The fields that a repeated result has, too."""
WINDOW, HOPS, DEPTH = 6, 3, 2
NEVER = 9999
"""A position that no log reaches."""
FILE = config(
    network={
        "limits": {
            "unacknowledged": WINDOW, "thread_depth": DEPTH,
            "burst": 100_000, "calls_per_second": 1_000_000,
        },
        "budgets": {
            "hops": HOPS, "wakes": None, "fan_out": None, "agents": None, "wall_clock": None,
        },
        "wake": {"loop_limit": {"enabled": False}},
    },
)  # fmt: skip


class Ago(NamedTuple):
    """The message that many before the last one."""

    before: int


class Call(NamedTuple):
    who: str
    name: str
    args: Data
    """`Ago` stands for a message, and in `to` and `thread` for its thread."""
    cid: str | None = None


class Again(NamedTuple):
    """A repetition of an earlier call with a cid."""

    before: int


class Burst(NamedTuple):
    """Calls sent before any answer is read. None has a cause, which could cause a notice of the hub
    in between."""

    calls: Sequence[Call | Again]


class Disconnect(NamedTuple):
    who: str


class Connect(NamedTuple):
    """Connects, from its own cursor or from the hub's."""

    who: str
    own: bool


class Read(NamedTuple):
    """Reads events and acknowledges all but the last `but`."""

    who: str
    but: int


WHO = st.sampled_from([*FIRST, *FIRST, "eve"])
AGO = st.builds(Ago, st.integers(0, 6))
CHANNELS = st.sampled_from(["desk", "desk", "attic", "cellar"])
TARGETS = st.sampled_from(
    [
        "ann", "bob", "bot", "calc", "bot", "feed", "eve", "zoe", "direct_bob", "dm.bot.ann",
        "dm.calc.bot", "direct_calc+bob", "channel_desk", "channel.attic", "channel_cellar",
        "broadcast", "dm.ann.bot.t1", ["bot", "bob"], ["ann", "calc", "bot"], ["bot", "zoe"],
    ]
)  # fmt: skip
TEXTS = st.sampled_from(
    ["hi", "hi", "@bot look", "@calc @bob see", "`@bot` is code", "@zoe who", "@bot @bot @eve!"]
)
SAID = {
    "text": TEXTS,
    "mentions": st.sampled_from([*[[]] * 12, ["bot"], ["bob", "calc"], ["zoe"]]),
    "cause": st.sampled_from(
        [*[None] * 12, *map(Ago, range(6)), *map(Ago, range(6)), f"m{NEVER}", "nonsense"]
    ),
}
CID = st.sampled_from([None, None, None, "c1", "c2"])
CAUSED, UNCAUSED = (
    st.one_of(
        [
            st.builds(Call, WHO, st.just(name), st.fixed_dictionaries({**where, **said}), CID)
            for name, where in (
                ("send_text_message", {"to": TARGETS | AGO}),
                ("post_to_channel", {"channel": CHANNELS | st.just("#desk")}),
                ("broadcast_text_message", {}),
                (
                    "reply",
                    {
                        "message_id": st.sampled_from(
                            [*map(Ago, range(12)), f"m{NEVER}", "nonsense"]
                        )
                    },
                ),
            )
        ]
    )
    for said in (SAID, {**SAID, "cause": st.none()})
)
MEMBERS = st.sampled_from([[], ["bot"], ["bob", "calc", "feed"], ["zoe"]])
AGAIN = st.builds(Again, st.integers(0, 3))
READS = st.builds(Read, WHO, st.integers(0, 2))
STEPS = st.one_of(
    CAUSED,
    CAUSED,
    CAUSED,
    READS,
    READS,
    st.builds(Burst, st.lists(UNCAUSED | AGAIN, min_size=2, max_size=6)),
    AGAIN,
    st.builds(
        Call, WHO, st.just("create_channel"),
        st.fixed_dictionaries({"name": CHANNELS, "members": MEMBERS}), CID,
    ),
    st.builds(
        Call, WHO, st.sampled_from(["join_channel", "leave_channel"]),
        st.fixed_dictionaries({"channel": CHANNELS}), st.none(),
    ),
    st.builds(
        Call, WHO, st.just("read_thread"),
        st.fixed_dictionaries(
            {"thread": TARGETS.filter(lambda to: isinstance(to, str)) | AGO},
            optional={"limit": st.integers(1, 3), "before": st.integers(1, 4)},
        ),
        st.none(),
    ),
    st.builds(Disconnect, WHO),
    st.builds(Connect, WHO, st.booleans()),
)  # fmt: skip
LIVES = st.lists(st.lists(STEPS, min_size=25, max_size=50), min_size=1, max_size=2)
"""The steps of each life of the hub, from one start to the next."""


class Stream:
    """The events that one connection received, compared with the model's."""

    def __init__(self, peer: Peer, cursor: int):
        self.peer, self.cursor = peer, cursor
        self.sent = set[int]()
        """Positions of messages sent on it, which it does not receive."""
        self.received: list[int] = []

    def due(self, model: HubModel, who: str) -> list[int]:
        """The positions it must receive, from its beginning."""
        stream = model.stream(who)
        return [seq for seq in stream if seq > self.cursor and seq not in self.sent]

    def receive(self, model: HubModel, who: str, events: Sequence[Frame]) -> None:
        for event in events:
            self.received.append(event["seq"])
            message = model.log[event["seq"] - 1]
            expected = {
                "op": "event", "seq": message["seq"], "tseq": message["tseq"], "message": message,
                "prev": self.received[-2] if self.received[1:] else self.cursor,
                **woken(model, who, event["seq"]),
            }  # fmt: skip
            assert {**event, "message": timeless(event["message"])} == expected
        assert self.received == self.due(model, who)[: len(self.received)], "wrong or out of order"


class Play:
    """A hub and its model side by side."""

    def __init__(self) -> None:
        self.model = HubModel(HOPS, DEPTH)
        self.streams: dict[str, Stream] = {}
        self.acked: dict[str, int] = {}
        self.sent: list[Call] = []
        """The calls with a cid."""

    async def live(self, network: Network, steps: Sequence[Any]) -> None:
        """One life of the hub, with these steps."""
        self.network, self.refused = network, False
        for agent, waiting in self.model.waiting.items():
            depth = network.hub.kernel.queues.depth
            await eventually(lambda: depth(agent) == len(waiting))  # noqa: B023
        for who in FIRST:
            if who not in self.streams:
                await self.connect(Connect(who, own=True))
        if not self.model.channels:
            desk = {"name": "desk", "members": ["ann", "bot", "feed"]}
            await self.burst([Call("bob", "create_channel", desk)])
        for step in steps:
            await self.take(step)
        await self.compare()

    async def take(self, step: Any) -> None:
        match step:
            case Call() | Again():
                await self.burst([step])
            case Burst(calls):
                await self.burst(calls)
            case Connect(who) if who not in self.streams:
                await self.connect(step)
            case Disconnect(who) if who in self.streams:
                await self.streams.pop(who).peer.close()
                await self.network.gone(who)
                self.model.present.discard(who)
            case Read(who, but) if who in self.streams:
                await self.read(who, but)

    async def connect(self, step: Connect) -> None:
        who, kind = step.who, KINDS[step.who]
        hub, model = self.network.hub, self.model
        more: Data = {"turns": True} if who == RECORDS_TURNS else {}
        if step.own and who in self.acked:
            more["cursor"] = {"epoch": hub.kernel.state.epoch, "seq": self.acked[who]}
        peer = await self.network.join(who, kind, **more)
        cursor = self.acked.setdefault(who, len(model.log))
        ready = peer.ready
        assert (ready["resumed"], ready["cursor"]) == ("cursor" in more, cursor)
        model.join(who, kind)
        self.streams[who] = Stream(peer, cursor)
        pending = [seq for seq in model.waiting[who] if seq <= cursor] if "turns" in more else []
        assert [(p["message"]["seq"], {"wake": p["wake"]}) for p in ready["pending"]] == [
            (seq, woken(model, who, seq)) for seq in pending
        ]

    async def read(self, who: str, but: int) -> None:
        """Receives events and acknowledges all but the last `but`."""
        stream = self.streams[who]
        stream.receive(self.model, who, await stream.peer.sync())
        seqs = stream.received[: len(stream.received) - but]
        if seqs and seqs[-1] > self.acked[who]:
            await stream.peer.ack(seqs[-1])
            self.acked[who] = seqs[-1]
            if who != RECORDS_TURNS:
                self.model.has_read(who, seqs[-1])
            self.network.hub.gateway.cursors.flush()
            await self.network.quiet()

    # Calls ------------------------------------------------------------------------------------

    def resolve(self, call: Call) -> Call:
        """The call with its `Ago`s replaced by ids."""
        log, args = self.model.log, dict(call.args)
        for key, value in args.items():
            if isinstance(value, Ago):
                seq = max(1, len(log) - value.before) if log else NEVER
                where = log[seq - 1]["thread_id"] if log else "broadcast"
                args[key] = where if key in ("to", "thread") else f"m{seq}"
        return call._replace(args={key: value for key, value in args.items() if value is not None})

    def predictable(self, calls: Sequence[Call | Again]) -> list[Call]:
        """The calls with predictable answers.

        In a burst these exclude a person's reply together with an agent's (which decides the last
        speaker), two different calls with the same cid, and a channel created and used. After a
        refused call, an empty thread may or may not exist.
        """
        chosen: list[Call] = []
        repliers = set[bool]()
        for each in calls:
            if isinstance(each, Call):
                call = self.resolve(each)
            elif self.sent:
                call = self.sent[-1 - each.before % len(self.sent)]
            else:
                continue
            replies, person = is_reply(call), KINDS[call.who] == "human"
            uncertain = (replies and (not person) in repliers) or any(
                (call.who, call.cid) == (other.who, other.cid) and call != other
                for other in chosen
                if other.cid
            )
            where = call.args.get("thread") or call.args.get("to")
            opens = "to" in call.args and not replies and "channel" not in str(where)
            if self.refused and isinstance(where, str) and not opens:
                uncertain = uncertain or not self.model.has_thread(call.who, where)
            if len(calls) > 1 and call.name == "create_channel":
                uncertain = True
            if call.who in self.streams and not uncertain:
                repliers |= {person} if replies else set()
                chosen.append(call)
        repeatable = [call for call in chosen if call.cid and "cause" not in call.args]
        self.sent += [call for call in repeatable if call not in self.sent]
        return chosen

    async def burst(self, calls: Sequence[Call | Again]) -> None:
        """Sends all calls, then compares the answers with the model's, in the order of the log."""
        posted = []
        for call in self.predictable(calls):
            peer = self.streams[call.who].peer
            posted.append((call, peer, await peer.post(call.name, cid=call.cid, **call.args)))
        answers = [(call, await peer.answer(ref)) for call, peer, ref in posted]
        if any(is_reply(call) for call, _ in answers):
            answers = in_log_order(answers)  # replies read the store first and can be overtaken
        for call, answer in answers:
            expected = self.model.call(*call)
            self.refused = self.refused or bool(expected.error)
            assert answer.get("code", "") == expected.error, (call, answer)
            assert answer.get("duplicate", False) == expected.duplicate, (call, answer)
            value = answer.get("value", {})
            if "message" in value:
                value = {**value, "message": timeless(value["message"])}
                if not expected.duplicate:
                    self.streams[call.who].sent.add(value["seq"])
                for key in expected.value.keys() - value.keys():
                    value[key] = type(expected.value[key])()
                for key in ("present", "absent"):
                    value[key] = sorted(value[key])
                if expected.duplicate:  # without presence and queues
                    value = {**expected.value, **{key: value[key] for key in STAMPED}}
            elif "messages" in value:
                value = {**value, "messages": [timeless(m) for m in value["messages"]]}
            assert value == expected.value, (call, value, expected.value)
        await self.network.quiet()

    # At the end of a life ---------------------------------------------------------------------

    async def compare(self) -> None:
        """The log, all streams and threads, and every wake are those of the model."""
        hub, model = self.network.hub, self.model
        await self.network.quiet()
        log = await hub.store.log(0, hub.kernel.log.head, 10_000)
        assert [timeless(json.loads(entry.body)) for entry in log] == model.log
        for who, stream in self.streams.items():
            await self.read(who, 0)
            while len(stream.received) < len(stream.due(model, who)):
                await stream.peer.until(lambda: bool(stream.peer.events))  # noqa: B023
                await self.read(who, 0)
            assert await stream.peer.sync() == []
            threads = (await stream.peer.call("list_threads"))["threads"]
            last = model.list_threads(who)
            assert [timeless(t["messages"][-1]) for t in threads] == last
            assert [(t["id"], t["head"], t["last_seq"]) for t in threads] == [
                (m["thread_id"], m["tseq"], m["seq"]) for m in last
            ]
        await self.explain()
        self.streams.clear()
        model.present.clear()

    async def explain(self) -> None:
        """Each wake is explained to an owner as by the model."""
        asker = next((s.peer for who, s in self.streams.items() if KINDS[who] == "human"), None)
        if asker is None:
            return
        for seq in range(1, len(self.model.log) + 1):
            for agent in ("bot", "calc"):
                wake = await asker.call("explain_wake", agent=agent, message_id=f"m{seq}")
                assert (wake["woken"], wake["reason"]) == self.model.explain_wake(agent, seq)


def woken(model: HubModel, who: str, seq: int) -> Data:
    """The wake of an event."""
    wake = model.wakes.get((who, seq))
    return {"wake": {**wake._asdict(), "turn": f"{who}-m{seq}"}} if wake else {}


VARIABLE = ("sent_at", "text_representation")


def is_reply(call: Call) -> bool:
    """Whether it writes to a reply thread."""
    return call.name == "reply" or ".t" in str(call.args.get("to"))


def timeless(message: Data) -> Data:
    """A message without its time and the text of notices, and without empty fields."""
    stable = {key: value for key, value in message.items() if key not in VARIABLE}
    return {key: value for key, value in stable.items() if value != [] and value is not False}


def in_log_order(answers: Sequence[tuple[Call, Frame]]) -> list[tuple[Call, Frame]]:
    """Each sender's answers in the order of its calls, merged in the order of the log."""
    left = {who: [pair for pair in answers if pair[0].who == who] for who in KINDS}
    ordered: list[tuple[Call, Frame]] = []

    def position(queue: list[tuple[Call, Frame]]) -> int:
        answer = queue[0][1]
        new = "value" in answer and not answer.get("duplicate")
        return answer["value"]["seq"] if new else 0

    while queues := [queue for queue in left.values() if queue]:
        ordered.append(min(queues, key=position).pop(0))
    return ordered


async def play(lives: Sequence[Sequence[Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        both, networks = Play(), Networks(sockets=False)
        for steps in lives:
            async with networks.start(FILE, store=f"sqlite:{folder}/hub.db") as network:
                await both.live(network, steps)


@pytest.mark.behaviour("S-1", "S-3", "S-4", "P-12", "P-13", "P-14", "P-16", "P-18", "P-22", "P-28")
@settings(
    max_examples=examples(25),
    # Failures are not shrunk, which would take minutes in which the test seems to hang.
    phases=[Phase.reuse, Phase.generate],
)
@given(LIVES)
def test_the_hub_behaves_as_its_model(lives: Sequence[Sequence[Any]]) -> None:
    asyncio.run(play(lives))
