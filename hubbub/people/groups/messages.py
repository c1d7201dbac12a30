"""Messages: edited, deleted, reacted to, searched, and what became of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hubbub.errors import OperationError, UserError
from hubbub.ids import parse_message_id
from hubbub.mods.digest.schemas import Digest, ThreadDigest, Visit
from hubbub.mods.edits.schemas import MessageVersion, MessageVersions
from hubbub.mods.reactions.schemas import MessageReactions
from hubbub.mods.search.schemas import FoundItem, SearchHits
from hubbub.people.client import PersonClient
from hubbub.people.commands import Command, remember
from hubbub.people.figures import delivery_notes, moment, outcome_words
from hubbub.people.messages import amendment_words, marks, speaker, where
from hubbub.people.parameters import Parameter
from hubbub.people.shown import CommandResult, NoteLine, done, notes, text_notes
from hubbub.people.text import clip, counted, one_line
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import Receipt, Receipts, SendResult, WakeExplanation

__all__ = ["COMMANDS", "story"]

MOST = 200
"""Columns of the message itself."""
_ANSWERS = {
    "answered": "it answered",
    "declined": "it said that it would not answer",
    "silent": "it ended without a word",
}


def receipt_words(receipt: Receipt, *, why: bool = True) -> str:
    """`delivered; woken (mention): it mentions the agent; turn editor-m4 runs; it answered`.

    Without `why`: what stands beside it says whether it was woken, and by which turn.
    """
    there = receipt.delivered or receipt.step is not None
    got = "read" if receipt.read else "delivered" if there else "not there yet"
    away = "" if receipt.present or there else " (away)"
    parts = [got + away]
    if receipt.kind == "agent" and why:
        verb = "woken" if receipt.woken else "not woken"
        parts.append(f"{verb} ({receipt.reason}): {receipt.explanation}")
    if receipt.turn is not None and why:
        how = f": {outcome_words(receipt.outcome)}" if receipt.outcome else ""
        state = {"pending": "is to begin", "running": "runs"}.get(receipt.state or "", "ended")
        parts.append(f"turn {receipt.turn} {state}{how}")
    if receipt.step is not None:
        parts.append(f"in its prompt at step {receipt.step}")
    elif receipt.turn is not None:
        parts.append("in no prompt yet")
    if receipt.answer is not None:
        parts.append(_ANSWERS[receipt.answer])
    return one_line("; ".join(parts))


def story(message: Message | None, receipts: Receipts) -> Sequence[str]:
    """What the message is, and what has become of it with each of its readers."""
    lines = [] if message is None else _head(message)
    width = max((len(each.participant) for each in receipts.receipts), default=0)
    lines += [f"  {r.participant:<{width}}  {receipt_words(r)}" for r in receipts.receipts]
    if not receipts.receipts:
        lines.append("  this thread has no other readers")
    if receipts.more:
        lines.append("  and others")
    return lines


def _head(message: Message) -> list[str]:
    sent = message.sent_at.astimezone()
    head = f"{message.id}  {speaker(message)} {where(message)}"
    because = f", because of {message.cause_id}" if message.cause_id else ""
    return [
        " ".join(part for part in (head, marks(message)) if part),
        f"  {clip(one_line(message.text), MOST)}",
        f"  stored {sent:%Y-%m-%d %H:%M:%S}, no. {message.tseq} of its thread; "
        f"interaction {message.interaction_id}, hop {message.hop}{because}",
    ]


BEGINNING = 80
"""Columns of a message that is to be deleted."""


# Edits and reactions ------------------------------------------------------------------------------


def amended(found: SendResult, person: PersonClient) -> list[NoteLine]:
    """What one has done oneself does not come back but in the answer."""
    person.state.note(found.message)
    return notes([amendment_words(found.message), *delivery_notes(found, person.typed)])


async def delete(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    """Delete a message, after a look at it."""
    id = given["message_id"]
    if given.get("sure") != "yes":
        message = await person.ask(Message, "read_message", id=id)
        said = clip(one_line(message.text), BEGINNING)
        way = person.typed(f"messages delete {message.id} yes")
        return CommandResult(None, notes([f"{message.id} {message.sender_id}: {said}",
                                  f"{way} deletes it for everybody"]))  # fmt: skip
    value = await person.call("delete_message", message_id=id)
    return CommandResult(value, amended(SendResult.model_validate(value), person))


def versions(found: MessageVersions, person: PersonClient) -> list[NoteLine]:
    """What a message said from when to when, oldest first."""
    earlier = f"there are earlier versions: --before {found.versions[0].seq}" if found.more else ""
    lines = [NoteLine(earlier)] if earlier else []
    for each in found.versions:
        lines += [NoteLine(_version(each))]
        if each.kind != "deleted":
            lines += text_notes(each.text)
    return lines


def _version(version: MessageVersion) -> str:
    by = version.by if version.spoken_by is None else f"{version.spoken_by} as {version.by}"
    return f"{version.kind} by {one_line(by)}, {moment(version.at)}"


def reacted(found: MessageReactions, person: PersonClient) -> list[NoteLine]:
    """What stands below a message now."""
    counts = [(each.emoji, each.count) for each in found.reactions]
    words = person.state.seen.react(found.message_id, counts)
    return [NoteLine(f"{found.message_id}: {words or 'no reactions'}")]


# Search and digest --------------------------------------------------------------------------------


async def search(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    """Search; in a chat, without words, what comes next."""
    if not given.get("query"):
        if person.next_search is None:
            raise UserError("takes words to search for")
        query, cursor = person.next_search
        given = {"query": query, "cursor": cursor}
    value = await person.call("search", **given)
    hits = SearchHits.model_validate(value)
    person.next_search = (given["query"], hits.cursor) if hits.more else None
    remember(person, value)
    return CommandResult(value, _hits(hits, person))


def _hits(found: SearchHits, person: PersonClient) -> list[NoteLine]:
    """Two lines a hit: where it stands, and how it reads there."""
    lines: list[NoteLine] = []
    for hit in found.hits:
        lines += [NoteLine(_hit(hit, person)), NoteLine(f"    {one_line(hit.snippet)}", "plain")]
    if not found.hits:
        lines.append(NoteLine("nothing found"))
    if found.indexing:
        lines.append(NoteLine("earlier messages are still being indexed: some may be missing"))
    if found.note:
        lines.append(NoteLine(found.note))
    if found.more:
        way = f"{person.typed('search')} shows" if person.here else f"--cursor {found.cursor} shows"
        lines.append(NoteLine(f"{way} what comes next"))
    return lines


def _hit(hit: FoundItem, person: PersonClient) -> str:
    outside = "[outside]" if hit.outside else ""
    place = person.shown(hit.thread_id)
    parts = (hit.id, one_line(hit.title), hit.by, place, moment(hit.at), outside)
    return "  ".join(part for part in parts if part)


async def digest(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    """What is new; with `mark`, the next digest begins behind this one."""
    mark = given.pop("mark", False)
    if given.get("since") == "mark":  # in a chat: behind the one that was shown last
        if person.digested is None:
            raise UserError(f"look at it first: {person.typed('messages digest')}")
        visit = await person.call("mark_visit", upto=person.digested)
        return CommandResult(visit, done("the next digest begins here"))
    value = await person.call("digest", **given)
    found = Digest.model_validate(value)
    person.digested = found.upto
    if mark:
        await person.ask(Visit, "mark_visit", upto=found.upto)
    return CommandResult(value, _digest(found, person, marked=mark))


def _digest(found: Digest, person: PersonClient, *, marked: bool) -> list[NoteLine]:
    """What waits, what was decided, then each thread."""
    lines = []
    for waits in found.waiting:
        by = f" from {waits.by}" if waits.by else ""
        lines.append(NoteLine(one_line(f"! {waits.kind} {waits.id}{by}: {waits.text}"), "plain"))
    lines += [NoteLine(one_line(f"* {decided}"), "plain") for decided in found.decided]
    for thread in found.threads:
        lines += _of_thread(thread, person)
    if not (found.threads or found.waiting or found.decided):
        lines.append(NoteLine("nothing new"))
    if found.more:
        lines.append(NoteLine("there is something new in other threads, too"))
    if found.note:
        lines.append(NoteLine(found.note))
    if found.threads and not marked:
        way = "messages digest mark" if person.here else "messages digest --mark"
        lines.append(NoteLine(f"{person.typed(way)}: the next one begins behind this"))
    return lines


def _of_thread(thread: ThreadDigest, person: PersonClient) -> list[NoteLine]:
    count = counted(thread.count, "message", "messages")
    more = "" if thread.counted else "more than "
    mentions = f", {counted(thread.mentions, 'mention', 'mentions')}" if thread.mentions else ""
    who = ", ".join(f"{each.id} {each.count}" for each in thread.speakers)
    head = NoteLine(f"{person.shown(thread.thread_id)}: {more}{count}{mentions} ({who})")
    if thread.summary:
        return [head, NoteLine(f"    {one_line(thread.summary)}", "plain")]
    ends = [thread.first, thread.last] if thread.count > 1 else [thread.first]
    return [head, *notes((f"    {e.id} {e.by}: {one_line(e.text)}" for e in ends), "plain")]


# What became of a message -------------------------------------------------------------------------


async def why(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    """The story of a message; of one agent's part also why it woke or did not."""
    words = [given["id"], *([given["agent"]] if given.get("agent") else [])]
    ids = [word for word in words if parse_message_id(word) is not None]
    if len(ids) != 1:
        raise UserError(f"{words[0]!r} is not the id of a message, such as m42")
    others = [word for word in words if word != ids[0]]
    if others:
        return await _explained(person, ids[0], person.agent(others[0]))
    message = await _readable(person, ids[0])
    value = await person.call("read_receipts", id=ids[0])
    return CommandResult(value, notes(story(message, Receipts.model_validate(value)), "plain"))


async def _readable(person: PersonClient, id: str) -> Message | None:
    """A message, where this person may read it; what has become of it may be asked anyway."""
    try:
        return await person.ask(Message, "read_message", id=id)
    except OperationError as exc:
        if exc.code != ErrorCode.UNKNOWN_MESSAGE:
            raise
        return None


async def _explained(person: PersonClient, id: str, agent: str) -> CommandResult:
    value = await person.call("explain_wake", agent=agent, message_id=id)
    found = WakeExplanation.model_validate(value)
    verdict = "woke" if found.woken else "did not wake"
    lines = [f"{found.message_id} {verdict} {found.agent} ({found.reason}): {found.explanation}"]
    if found.wake is not None:
        lines.append(f"turn {found.wake.turn}: {found.state}, reply {found.wake.reply}")
    try:
        receipts = (await person.ask(Receipts, "read_receipts", id=id)).receipts
    except OperationError as exc:  # why it woke is for owners, the rest is not
        if exc.code not in (ErrorCode.UNKNOWN_MESSAGE, ErrorCode.FORBIDDEN):
            raise
        receipts = ()
    lines += [receipt_words(each, why=False) for each in receipts if each.participant == agent]
    return CommandResult(value, notes(map(one_line, lines), "plain"))


COMMANDS = (
    Command("messages search", "search", do=search, order=("query?",)),
    Command("messages digest", "digest", do=digest, order=("since?",), more=(
        Parameter("mark", "The next digest begins after this one.", "flag"),)),
    Command("messages why", "read_receipts", do=why, operator=True, order=("id", "agent?"),
            about="Tell what became of a message: whom it reached and woke, why, what they did.",
            more=(Parameter("agent", "Only this agent's part, and why it woke or did not."),)),
    Command("messages react", "toggle_reaction", reacted,
            about="React with an emoji, or take your reaction back."),
    Command("messages edit", "edit_message", amended, order=("message_id", "text"),
            without=("content", "text_representation")),
    Command("messages delete", "delete_message", amended, where="shell"),
    Command("messages delete", "delete_message", do=delete, where="chat",
            order=("message_id", "sure?"), more=(Parameter("sure", "yes: do not ask first."),)),
    Command("messages history", "message_history", versions),
)  # fmt: skip
