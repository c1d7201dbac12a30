"""What README promises, held against what a world has come to. Each check names what it found."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from hubbub.network.queries import LedgerOf
from hubbub.protocol.codes import ErrorCode
from tests.simulation.model import MOST_TOKENS
from tests.simulation.world import AGENTS, BUDGET, FILE, PEOPLE, World

__all__ = ["Broken", "check"]

Message = dict[str, Any]
DESK = {*FILE.channels["desk"].members}


class Broken(AssertionError):
    """A guarantee does not hold."""


async def check(world: World) -> None:
    """Raises `Broken`."""
    log = [json.loads(entry.body) for entry in await world.hub.store.log(0, world.head(), 10_000)]
    faults = [
        *world.failures,
        *order(log),
        *confirmed(world, log),
        *streams(world, log),
        *acknowledged(world, log),
        *once(world, log),
        *answered(world, log),
        *private(world),
        *stopped(world, log),
        *approved(world),
        *[fault async for fault in amended(world, log)],
        *[fault async for fault in budgets(world, log)],
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
    by_text = {message["content"]: message for message in log if message["sender_id"] in PEOPLE}
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
        kept = text is None and asked.name not in ("stop", "resume")
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
        if times > 1:
            yield f"in {thread} the hub has said {times} times: {notice}"


def answered(world: World, log: list[Message]) -> Iterator[str]:
    """Who writes to an agent gets an answer, or hears why there is none."""
    for n, message in enumerate(log):
        who, agents = message["sender_id"], set(message.get("recipients", ())) & {*AGENTS}
        if who not in PEOPLE or message["type"] != "direct" or "amends" in message:
            continue
        for agent in agents:
            later = (m for m in log[n + 1 :] if m["thread_id"] == message["thread_id"])
            if not any(m["sender_id"] in (agent, "hub") for m in later):
                yield f"{who} has no answer to {message['id']}, {message['content']!r}"


def private(world: World) -> Iterator[str]:
    """Nobody reads what others say among themselves; only what agents do may people look into."""
    for who, thread in world.peeked:
        if who not in readers(thread) and readers(thread) & {*PEOPLE}:
            yield f"{who} has read {thread}"


def stopped(world: World, log: list[Message]) -> Iterator[str]:
    """From when a stop is confirmed until somebody asks for its end, the agent is silent."""
    for asked in world.asked:
        for stop in asked.tries if asked.name == "stop" else ():
            agent = asked.args["target"]
            resumes = [
                resume
                for other in world.asked
                if other.name == "resume" and other.args["target"] == agent
                for resume in other.tries
                if resume.done is None or resume.done > stop.sent
            ]
            if stop.done is None or any(resume.sent < stop.done for resume in resumes):
                continue  # nobody knows which came last
            until = min((resume.sent.head for resume in resumes), default=len(log))
            for message in log[stop.done.head : until]:
                if message["sender_id"] == agent:
                    yield f"{agent} has said {message['id']} although {asked.who} had stopped it"


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
        client = world.readers[change["sender_id"]].client
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
        ledger = await world.hub.store.read(LedgerOf(message["seq"]))
        used = ledger.tokens_in + ledger.tokens_out if ledger else 0
        if used > BUDGET + MOST_TOKENS:
            yield f"{message['interaction_id']} has cost {used} of {BUDGET}"
        if client is not None and ledger is not None and "ann" in readers(message["thread_id"]):
            told: Any = await client.call("read_budget", interaction=message["interaction_id"])
            if told["used"]["tokens"] != used:
                yield f"{message['interaction_id']} has used {told['used']}, its records say {used}"
