"""What README promises, held against what a world has come to. Each check names what it found."""

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
    """One order of all, and one without gaps in each thread."""
    last = Counter[str]()
    for n, message in enumerate(log, 1):
        thread = message["thread_id"]
        last[thread] += 1
        if (message["seq"], message["tseq"]) != (n, last[thread]):
            yield f"{message['id']} of {thread} stands at {n}, {last[thread]}"


def confirmed(world: World, log: list[Message]) -> Iterator[str]:
    """What was confirmed is there; what was refused for good is not; all answers are the same."""
    by_people = (m for m in log if m["sender_id"] in PEOPLE or "sent_by" in m)
    by_text = {message["content"]: message for message in by_people}
    for asked in world.asked:
        text = asked.args.get("text")
        found = by_text.get(text) if isinstance(text, str) else None
        for answer in asked.answers:
            if text is not None and (found is None or answer["seq"] != found["seq"]):
                yield f"{text!r} was confirmed at {answer['seq']}, and is {found and found['seq']}"
        # What a reply names may be there by the time the second of two frames comes.
        for_now = ErrorCode.UNKNOWN_MESSAGE
        refused = [e for e in asked.refusals if not (e.temporary or e.code == for_now)]
        if found is not None and len(refused) == len(asked.tries):
            yield f"{text!r} was refused ({asked.refusals[-1]}), and is in the log"
        kept = text is None and asked.name not in ("stop", "resume", "take_over", "hand_back")
        same = [answer.get("seq", answer) for answer in asked.answers]  # who is present varies
        if kept and any(each != same[0] for each in same):
            yield f"{asked.name} was answered {asked.answers}"


def readers(thread: str) -> set[str]:
    kind, *names = thread.split(".t")[0].split(".")
    if kind == "channel":
        return DESK
    return set(names) if kind == "dm" else {*PEOPLE, *AGENTS}


def streams(world: World, log: list[Message]) -> Iterator[str]:
    """Everybody has seen what is theirs, and nothing else; in the order of the log."""
    for who, reader in world.readers.items():
        for life in reader.lives:
            if life != sorted(set(life)):
                yield f"{who} was handed {life}"
        for message in log[reader.began or 0 :]:
            theirs = who in readers(message["thread_id"])
            seen = message["seq"] in reader.seen
            if seen and not theirs and message["sender_id"] != who:
                yield f"{who} has seen {message['id']} of {message['thread_id']}"
            if theirs and not seen and message["sender_id"] != who:
                yield f"{who} has not seen {message['id']} of {message['thread_id']}"
        for seq, body in reader.seen.items():
            shown = json.loads(body)
            same = seq <= len(log) and (shown["id"], shown["content"]) == (
                log[seq - 1]["id"],
                log[seq - 1]["content"],
            )
            if not same:
                yield f"{who} was shown {shown['content']!r} at {seq}"


def acknowledged(world: World, log: list[Message]) -> Iterator[str]:
    """An agent that has nothing left to do holds no place in the stream open."""
    for agent, client in world.agents.items():
        theirs = (m for m in log if agent in readers(m["thread_id"]) and m["sender_id"] != agent)
        last = max((m["seq"] for m in theirs), default=0)
        if client.cursor is not None and client.cursor.seq < last:
            yield f"{agent} has acknowledged {client.cursor.seq} of {last}"


def once(world: World, log: list[Message]) -> Iterator[str]:
    """Each call has had its effect once, however often it was sent; each reaction counts once."""
    texts = (m for m in log if m["content"] and isinstance(m["content"], str))
    said = Counter((m["sender_id"], m["content"]) for m in texts)
    for (who, text), times in said.items():
        if times > 1:
            yield f"{who} has said {text!r} {times} times"
    notices = Counter(
        (m["thread_id"], json.dumps(m["content"], sort_keys=True))
        for m in log
        if m["sender_kind"] == "system"
    )
    for (thread, notice), times in notices.items():
        # Who loops is known to the hub's memory alone.
        if times > (world.hubs if '"loop_limit"' in notice else 1):
            yield f"in {thread} the hub has said {times} times: {notice}"


def answered(world: World, log: list[Message]) -> Iterator[str]:
    """Who writes to an agent gets an answer, or hears why there is none."""
    for n, message in enumerate(log):
        who, agents = message["sender_id"], set(message.get("recipients", ())) & {*AGENTS}
        if who not in PEOPLE or message["type"] != "direct" or "amends" in message:
            continue
        for agent in agents:
            if may_be_taken_over(world, agent, n):
                continue  # a person answers, or does not
            later = (m for m in log[n + 1 :] if m["thread_id"] == message["thread_id"])
            if not any(m["sender_id"] in (agent, "hub") for m in later):
                yield f"{who} has no answer to {message['id']}, {message['content']!r}"


def may_be_taken_over(world: World, agent: str, head: int, step: int = sys.maxsize) -> bool:
    """Whether a person may have spoken for the agent when the log had this end, or at this step,
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
    """The step at which the message was sent first; 0 if nobody knows."""
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
    """Nobody reads what others say among themselves; only what agents do may people look into."""
    for who, thread in world.peeked:
        if who not in readers(thread) and readers(thread) & {*PEOPLE}:
            yield f"{who} has read {thread}"


class Hold(NamedTuple):
    """A time in which an agent is surely silent."""

    agent: str
    why: str
    since: Moment
    until: Moment


ENDS = {"stop": ("target", ("resume",)), "take_over": ("agent", ("hand_back", "take_over"))}
"""What holds an agent: the argument that names it, and what may end that. Who takes over once more
may do so for less long."""


def holds(world: World) -> Iterator[Hold]:
    """From when a stop or takeover is confirmed until somebody asks for its end."""
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
                continue  # nobody knows which came last
            if asked.name == "take_over":
                until += [jump for jump in world.jumps if jump > begun.sent]
            why, until = f"{asked.who}'s {asked.name}", [*until, world.end]
            yield Hold(str(asked.args[key]), why, begun.done, min(until))


def silent(world: World, log: list[Message]) -> Iterator[str]:
    """Who is stopped or taken over says nothing of its own, and nobody sees what it would say."""
    for agent, why, since, until in holds(world):
        for message in log[since.head : until.head]:
            if message["sender_id"] == agent and "sent_by" not in message:
                yield f"{agent} has said {message['id']} in spite of {why}"
        for signal in world.wire.signals:
            if signal.sender == agent and since.step < signal.at.step < until.step:
                yield f"{agent} has shown {signal.data} in spite of {why}"


def taken_over(world: World, log: list[Message]) -> Iterator[str]:
    """Only who speaks for an agent has words in its name, and hears what reaches it."""

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
            asked = int(notice["message"][1:])
            step = sent_at(world, notice["message"])  # it may have been judged at once
            if not any(
                may_be_taken_over(world, agent, head, step)
                for agent in notice["agents"]
                for head in range(asked - 1, message["seq"])
            ):
                yield f"{message['id']} says that {notice['agents']} are taken over"
        who, agent = message.get("sent_by"), message["sender_id"]
        if who is not None and not began(who, agent, Moment(sys.maxsize, 0)):
            yield f"{who} has spoken for {agent} without leave"
    for signal in world.wire.signals:
        if signal.type == "overheard" and not began(signal.to, signal.data["agent"], signal.at):
            yield f"{signal.to} has overheard {signal.data}"


def drafts(world: World, log: list[Message]) -> Iterator[str]:
    """What agents are about to say is shown to those who will read it, as the model writes it, and
    to nobody any more when it is said or will not be said. What they say is what it has written."""
    for signal in world.wire.signals:
        if signal.type == "partial":
            if signal.to not in readers(signal.thread_id or ""):
                yield f"{signal.to} was shown what {signal.sender} writes in {signal.thread_id}"
            if not any(
                agent == signal.sender and text.startswith(signal.data["text"])
                for agent, text in world.endpoint.texts
            ):
                yield f"{signal.sender} is shown to write {signal.data['text']!r}"
    for who, reader in world.readers.items():
        for turn in reader.drafts:
            yield f"{who} is shown that {turn} writes, which it does not"
    for message in log:
        own = message["sender_id"] in AGENTS and "sent_by" not in message
        said = message["sender_id"], message["content"]
        if own and said[1] and said not in world.endpoint.texts:
            yield f"{said[0]} has said {said[1]!r}, and its model has not"


def patient(world: World) -> Iterator[str]:
    """A model that refuses for now is asked again, and not too soon: only one that goes on to
    refuse ends a turn."""
    failed = Counter(
        str(agent)
        for agent, end in world.disk.sql('SELECT agent, "end" FROM turn WHERE "end" IS NOT NULL')
        if json.loads(str(end))["outcome"] == "model_error"
    )
    for agent, times in (failed - world.endpoint.failed).items():
        yield f"{times} turns more of {agent} have failed than its model has"
    for agent in world.endpoint.hasty:
        yield f"{agent} has asked its model again sooner than that had said"


def approved(world: World) -> Iterator[str]:
    """What is paid was approved, and is paid once; an approval is decided once."""
    for (agent, what), times in Counter(world.paid).items():
        if times > 1:
            yield f"{agent} has paid {times} times for {what}"
    for (id, how), times in Counter(world.decided).items():
        if times > 1:
            yield f"{id} was decided ({how}) {times} times"
    for id, times in Counter(id for id, _ in set(world.decided)).items():
        if times > 1:
            yield f"{id} was decided in {times} ways"
    for agent, what in {*world.changed} & {*world.paid}:
        yield f"{agent} has paid for {what}, and was allowed half of it"


async def amended(world: World, log: list[Message]) -> Any:
    """Who reads a thread finds each message as it was last edited, or nothing of it."""
    newest = {m["amends"]["message_id"]: m for m in log if "amends" in m}
    for id, change in newest.items():
        # Who speaks for an agent may amend what it has said in threads that are not their own.
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
                yield f"{id} is shown as {shown['content']!r}, and was {change['amends']} last"


async def budgets(world: World, log: list[Message]) -> Any:
    """No interaction has cost more than its budget and one estimate; nothing is reserved now."""
    client = world.readers["ann"].client
    for message in log:
        if message["interaction_id"] != f"i{message['seq']}" or message["sender_id"] not in PEOPLE:
            continue
        ledger = await world.hub.store.read(AccountOf(message["seq"]))
        used = ledger.tokens_in + ledger.tokens_out if ledger else 0
        if used > BUDGET + MOST_TOKENS:
            yield f"{message['interaction_id']} has cost {used} of {BUDGET}"
        if client is not None and ledger is not None and "ann" in readers(message["thread_id"]):
            told: Any = await client.call("read_budget", interaction=message["interaction_id"])
            if told["used"]["tokens"] != used:
                yield f"{message['interaction_id']} has used {told['used']}, its records say {used}"
