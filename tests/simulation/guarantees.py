"""The guarantees of the README, checked against the final state of a world."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from hubbub.network.queries import AccountOf
from hubbub.protocol.codes import ErrorCode
from tests.simulation.backups import backed_up
from tests.simulation.endpoint import MOST_TOKENS
from tests.simulation.witness import Moment
from tests.simulation.world import AGENTS, BUDGET, FILE, LONG, PEOPLE, World

__all__ = ["Broken", "check"]

Message = dict[str, Any]
DESK = {*FILE.channels["desk"].members}


class Broken(AssertionError):
    """A guarantee does not hold."""


async def check(world: World) -> None:
    """Raises `Broken`."""
    entries = await world.hub.store.log(0, world.head(), 10_000)
    log = [json.loads(entry.body) for entry in entries]
    faults = [
        *world.failures,
        *order(log),
        *confirmed(world, log),
        *streams(world, log),
        *acknowledged(world, log),
        *once(world, log),
        *answered(world, log),
        *private(world),
        *silent(world, log),
        *taken_over(world, log),
        *drafts(world, log),
        *patient(world),
        *approved(world),
        *[fault async for fault in amended(world, log)],
        *[fault async for fault in budgets(world, log)],
        *[fault async for fault in backed_up(world, [bytes(entry.body) for entry in entries])],
    ]
    if faults:
        raise Broken("; ".join(faults))


def order(log: list[Message]) -> Iterator[str]:
    """The log and each thread have one order without gaps."""
    last = Counter[str]()
    for n, message in enumerate(log, 1):
        thread = message["thread_id"]
        last[thread] += 1
        if (message["seq"], message["tseq"]) != (n, last[thread]):
            yield f"{message['id']} of {thread} is at {n}, {last[thread]}"


def confirmed(world: World, log: list[Message]) -> Iterator[str]:
    """Confirmed messages are in the log, refused ones are not, and repeated answers are equal."""
    by_people = (m for m in log if m["sender_id"] in PEOPLE or "sent_by" in m)
    by_text = {message["content"]: message for message in by_people}
    for asked in world.asked:
        text = asked.args.get("text")
        stored = by_text.get(text) if isinstance(text, str) else None
        for answer in asked.answers:
            if text is not None and (stored is None or answer["seq"] != stored["seq"]):
                position = stored and stored["seq"]
                yield f"{text!r} was confirmed at {answer['seq']}, but is at {position}"
        # The message that a reply names can exist by the time a repeated frame arrives.
        for_now = ErrorCode.UNKNOWN_MESSAGE
        refused = [e for e in asked.refusals if not (e.temporary or e.code == for_now)]
        if stored is not None and len(refused) == len(asked.tries):
            yield f"{text!r} was refused ({asked.refusals[-1]}), but is in the log"
        repeats = text is None and asked.name not in ("stop", "resume", "take_over", "hand_back")
        same = [answer.get("seq", answer) for answer in asked.answers]  # presence varies
        if repeats and any(each != same[0] for each in same):
            yield f"{asked.name} got different answers: {asked.answers}"


def readers(thread: str) -> set[str]:
    kind, *names = thread.split(".t")[0].split(".")
    if kind == "channel":
        return DESK
    return set(names) if kind == "dm" else {*PEOPLE, *AGENTS}


def streams(world: World, log: list[Message]) -> Iterator[str]:
    """Each person has received exactly the messages to them, in the order of the log."""
    for who, reader in world.readers.items():
        for life in reader.lives:
            if life != sorted(set(life)):
                yield f"{who} received {life}"
        for message in log[reader.began or 0 :]:
            expected = who in readers(message["thread_id"])
            seen = message["seq"] in reader.seen
            if seen and not expected and message["sender_id"] != who:
                yield f"{who} received {message['id']} of {message['thread_id']}"
            if expected and not seen and message["sender_id"] != who:
                yield f"{who} did not receive {message['id']} of {message['thread_id']}"
        for seq, body in reader.seen.items():
            shown = json.loads(body)
            same = seq <= len(log) and (shown["id"], shown["content"]) == (
                log[seq - 1]["id"],
                log[seq - 1]["content"],
            )
            if not same:
                yield f"{who} received {shown['content']!r} at {seq}"


def acknowledged(world: World, log: list[Message]) -> Iterator[str]:
    """An idle agent has acknowledged all messages to it."""
    for agent, client in world.agents.items():
        stream = (m for m in log if agent in readers(m["thread_id"]) and m["sender_id"] != agent)
        last = max((m["seq"] for m in stream), default=0)
        if client.cursor is not None and client.cursor.seq < last:
            yield f"{agent} has acknowledged {client.cursor.seq} of {last}"


def once(world: World, log: list[Message]) -> Iterator[str]:
    """Each message and notice is in the log once, however often it was sent."""
    texts = (m for m in log if m["content"] and isinstance(m["content"], str))
    sent = Counter((m["sender_id"], m["content"]) for m in texts)
    for (who, text), times in sent.items():
        if times > 1:
            yield f"{who} sent {text!r} {times} times"
    notices = Counter(
        (m["thread_id"], json.dumps(m["content"], sort_keys=True))
        for m in log
        if m["sender_kind"] == "system"
    )
    for (thread, notice), times in notices.items():
        # Loops are tracked in the hub's memory only, so each start can announce one.
        if times > (world.hubs if '"loop_limit"' in notice else 1):
            yield f"in {thread} the hub posted {times} times: {notice}"


def answered(world: World, log: list[Message]) -> Iterator[str]:
    """Each message to an agent gets an answer or a notice."""
    for n, message in enumerate(log):
        who, agents = message["sender_id"], set(message.get("recipients", ())) & {*AGENTS}
        if who not in PEOPLE or message["type"] != "direct" or "amends" in message:
            continue
        for agent in agents:
            if may_be_taken_over(world, agent, n):
                continue  # whether there is an answer is up to a person
            later = (m for m in log[n + 1 :] if m["thread_id"] == message["thread_id"])
            if not any(m["sender_id"] in (agent, "hub") for m in later):
                yield f"{who} got no answer to {message['id']}, {message['content']!r}"


def may_be_taken_over(world: World, agent: str, head: int, step: int = sys.maxsize) -> bool:
    """Whether the agent may have been taken over when the log ended at `head`, or at `step`,
    whichever was earlier."""
    begun, ended = (
        [
            each
            for asked in world.asked
            if (asked.name, asked.args.get("agent")) == (name, agent)
            for each in asked.tries
        ]
        for name in ("take_over", "hand_back")
    )
    return any(
        each.sent.head <= head
        and not any(
            each.done is not None
            and each.done.step < end.sent.step
            and end.done is not None
            and end.done.head <= head
            and end.done.step < step
            for end in ended
        )
        for each in begun
    )


def sent_at(world: World, message: str) -> int:
    """The step at which the message was first sent; 0 if unknown."""
    return min(
        (
            each.sent.step
            for asked in world.asked
            if any(answer.get("id") == message for answer in asked.answers)
            for each in asked.tries
        ),
        default=0,
    )


def private(world: World) -> Iterator[str]:
    """People read only their own threads and those among agents."""
    for who, thread in world.peeked:
        if who not in readers(thread) and readers(thread) & {*PEOPLE}:
            yield f"{who} read {thread}"


class Hold(NamedTuple):
    """A time in which an agent must be silent."""

    agent: str
    why: str
    since: Moment
    until: Moment


ENDS = {"stop": ("target", ("resume",)), "take_over": ("agent", ("hand_back", "take_over"))}
"""The calls that silence an agent: the argument that names it, and the calls that can end that. A
repeated takeover can be shorter."""


def holds(world: World) -> Iterator[Hold]:
    """From the confirmation of each stop or takeover to the first call that can end it."""
    for asked in world.asked:
        key, names = ENDS.get(asked.name, ("", ()))
        if not names or asked.args.get("minutes", LONG) != LONG:
            continue
        ends = [
            other
            for other in world.asked
            if other.name in names and other.args[key] == asked.args[key] and other is not asked
        ]
        for begun in asked.tries:
            until = [
                each.sent
                for other in ends
                for each in other.tries
                if each.done is None or each.done > begun.sent
            ]
            if begun.done is None or any(sent < begun.done for sent in until):
                continue  # their order is unknown
            if asked.name == "take_over":
                until += [jump for jump in world.jumps if jump > begun.sent]
            why, until = f"{asked.who}'s {asked.name}", [*until, world.end]
            yield Hold(str(asked.args[key]), why, begun.done, min(until))


def silent(world: World, log: list[Message]) -> Iterator[str]:
    """An agent that is stopped or taken over sends nothing of its own, and shows no drafts."""
    for agent, why, since, until in holds(world):
        for message in log[since.head : until.head]:
            if message["sender_id"] == agent and "sent_by" not in message:
                yield f"{agent} sent {message['id']} despite {why}"
        for signal in world.wire.signals:
            if signal.sender == agent and since.step < signal.at.step < until.step:
                yield f"{agent} showed {signal.data} despite {why}"


def taken_over(world: World, log: list[Message]) -> Iterator[str]:
    """Only the person who took over an agent sends in its name and observes its messages."""

    def began(who: str, agent: str, by: Moment) -> bool:
        return any(
            each.sent <= by
            for asked in world.asked
            if (asked.who, asked.name, asked.args.get("agent")) == (who, "take_over", agent)
            for each in asked.tries
        )

    for message in log:
        notice = message["content"] if message["sender_kind"] == "system" else None
        if notice is not None and notice["notice"] == "taken_over" and "message" in notice:
            position = int(notice["message"][1:])
            step = sent_at(world, notice["message"])  # the decision may have been made then
            if not any(
                may_be_taken_over(world, agent, head, step)
                for agent in notice["agents"]
                for head in range(position - 1, message["seq"])
            ):
                yield f"{message['id']} reports wrongly that {notice['agents']} are taken over"
        who, agent = message.get("sent_by"), message["sender_id"]
        if who is not None and not began(who, agent, Moment(sys.maxsize, 0)):
            yield f"{who} sent as {agent} without a takeover"
    for signal in world.wire.signals:
        if signal.type == "overheard" and not began(signal.to, signal.data["agent"], signal.at):
            yield f"{signal.to} observed {signal.data}"


def drafts(world: World, log: list[Message]) -> Iterator[str]:
    """Drafts reach the readers of their thread only, have the model's text, and disappear once sent
    or dropped. Agents send exactly what their model wrote."""
    for signal in world.wire.signals:
        if signal.type == "partial":
            if signal.to not in readers(signal.thread_id or ""):
                yield f"{signal.to} saw a draft of {signal.sender} in {signal.thread_id}"
            if not any(
                agent == signal.sender and text.startswith(signal.data["text"])
                for agent, text in world.endpoint.texts
            ):
                yield f"{signal.sender} shows a draft not of its model: {signal.data['text']!r}"
    for who, reader in world.readers.items():
        for turn in reader.drafts:
            yield f"{who} still sees a draft of {turn}"
    for message in log:
        own = message["sender_id"] in AGENTS and "sent_by" not in message
        agent, text = message["sender_id"], message["content"]
        if own and text and (agent, text) not in world.endpoint.texts:
            yield f"{agent} sent {text!r}, which its model did not write"


def patient(world: World) -> Iterator[str]:
    """A temporary failure of a model is retried, but not too soon, and only ends a turn if it
    persists."""
    failed = Counter(
        str(agent)
        for agent, end in world.disk.sql('SELECT agent, "end" FROM turn WHERE "end" IS NOT NULL')
        if json.loads(str(end))["outcome"] == "model_error"
    )
    for agent, times in (failed - world.endpoint.failed).items():
        yield f"{times} turns of {agent} failed without a failure of its model"
    for agent in world.endpoint.hasty:
        yield f"{agent} repeated a request before the model's Retry-After"


def approved(world: World) -> Iterator[str]:
    """Each payment was approved and happens once; each approval is decided once."""
    for (agent, what), times in Counter(world.paid).items():
        if times > 1:
            yield f"{agent} paid {times} times for {what}"
    for (id, how), times in Counter(world.decided).items():
        if times > 1:
            yield f"{id} was decided ({how}) {times} times"
    for id, times in Counter(id for id, _ in set(world.decided)).items():
        if times > 1:
            yield f"{id} was decided in {times} ways"
    for agent, what in {*world.changed} & {*world.paid}:
        yield f"{agent} paid for {what}, but only half of it was approved"


async def amended(world: World, log: list[Message]) -> Any:
    """A thread has each message as last edited, or deleted."""
    newest = {m["amends"]["message_id"]: m for m in log if "amends" in m}
    for id, change in newest.items():
        # A takeover allows edits of the agent's messages, also in threads among agents.
        own = sorted(readers(change["thread_id"]) & world.readers.keys())
        client = world.readers[own[0] if own else change["sender_id"]].client
        if client is None:
            continue
        page: Any = await client.call("read_thread", thread=change["thread_id"], limit=100)
        for shown in page["messages"]:
            deleted = change["amends"]["kind"] == "deleted"
            if shown["id"] != id:
                continue
            if deleted != (shown.get("amended") == "deleted") or (
                not deleted and shown["content"] != change["content"]
            ):
                yield f"{id} reads {shown['content']!r} after {change['amends']}"


async def budgets(world: World, log: list[Message]) -> Any:
    """No interaction cost more than its budget and one estimate; no reservation is left."""
    client = world.readers["ann"].client
    for message in log:
        if message["interaction_id"] != f"i{message['seq']}" or message["sender_id"] not in PEOPLE:
            continue
        ledger = await world.hub.store.read(AccountOf(message["seq"]))
        used = ledger.tokens_in + ledger.tokens_out if ledger else 0
        if used > BUDGET + MOST_TOKENS:
            yield f"{message['interaction_id']} cost {used} of {BUDGET}"
        if client is not None and ledger is not None and "ann" in readers(message["thread_id"]):
            id = message["interaction_id"]
            budget: Any = await client.call("read_budget", interaction=id)
            if budget["used"]["tokens"] != used:
                yield f"{id} has used {budget['used']}, but its records have {used}"
