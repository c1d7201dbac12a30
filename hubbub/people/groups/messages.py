"""Messages: edits, deletions, reactions, search, digests and receipts."""

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
from hubbub.people.figures import delivery_notes, moment, outcome_text
from hubbub.people.messages import amendment_text, marks, speaker, where
from hubbub.people.parameters import Parameter
from hubbub.people.shown import CommandResult, NoteLine, done, notes, text_notes
from hubbub.people.text import clip, counted, one_line
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import Receipt, Receipts, SendResult, WakeExplanation

__all__ = ["COMMANDS", "story"]

MOST = 200
"""Columns of a message's text."""
_ANSWERS = {
    "answered": "it answered",
    "elsewhere": "it wrote only to others",
    "declined": "it declined to answer",
    "silent": "it ended without an answer",
}


def receipt_text(receipt: Receipt, *, why: bool = True) -> str:
    """`delivered; woken (mention): it mentions the agent; turn editor-m4 is running; it answered`.

    Without `why`, the wake and the turn are left out.
    """
    there = receipt.delivered or receipt.step is not None
    got = "read" if receipt.read else "delivered" if there else "not delivered yet"
    away = "" if receipt.present or there else " (away)"
    parts = [got + away]
    if receipt.kind == "agent" and why:
        verb = "woken" if receipt.woken else "not woken"
        parts.append(f"{verb} ({receipt.reason}): {receipt.explanation}")
    if receipt.turn is not None and why:
        how = f": {outcome_text(receipt.outcome)}" if receipt.outcome else ""
        states = {"pending": "is waiting to start", "running": "is running"}
        state = states.get(receipt.state or "", "ended")
        parts.append(f"turn {receipt.turn} {state}{how}")
    if receipt.step is not None:
        parts.append(f"in its prompt at step {receipt.step}")
    elif receipt.turn is not None:
        parts.append("not in a prompt yet")
    if receipt.answer is not None:
        parts.append(_ANSWERS[receipt.answer])
    return one_line("; ".join(parts))


def story(message: Message | None, receipts: Receipts) -> Sequence[str]:
    """A message and its receipt for each reader."""
    lines = [] if message is None else _head(message)
    width = max((len(each.participant) for each in receipts.receipts), default=0)
    lines += [f"  {r.participant:<{width}}  {receipt_text(r)}" for r in receipts.receipts]
    if not receipts.receipts:
        lines.append("  this thread has no other readers")
    if receipts.more:
        lines.append("  and others")
    return lines


def _head(message: Message) -> list[str]:
    sent = message.sent_at.astimezone()
    head = f"{message.id}  {speaker(message)} {where(message)}"
    because = f", caused by {message.cause_id}" if message.cause_id else ""
    return [
        " ".join(part for part in (head, marks(message)) if part),
        f"  {clip(one_line(message.text), MOST)}",
        f"  stored {sent:%Y-%m-%d %H:%M:%S}, no. {message.tseq} in its thread; "
        f"interaction {message.interaction_id}, hop {message.hop}{because}",
    ]


BEGINNING = 80
"""Columns shown of a message before it is deleted."""


# Edits and reactions ------------------------------------------------------------------------------


def amended(answer: SendResult, person: PersonClient) -> list[NoteLine]:
    """Note the person's own amendment, which arrives only in the result of the call."""
    person.state.note(answer.message)
    return notes([amendment_text(answer.message), *delivery_notes(answer, person.typed)])


async def delete(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    """Delete a message, after asking for confirmation."""
    id = given["message_id"]
    if given.get("sure") != "yes":
        message = await person.ask(Message, "read_message", id=id)
        text = clip(one_line(message.text), BEGINNING)
        way = person.typed(f"messages delete {message.id} yes")
        return CommandResult(None, notes([f"{message.id} {message.sender_id}: {text}",
                                  f"`{way}` deletes it for everyone"]))  # fmt: skip
    value = await person.call("delete_message", message_id=id)
    return CommandResult(value, amended(SendResult.model_validate(value), person))


def versions(answer: MessageVersions, person: PersonClient) -> list[NoteLine]:
    """The versions of a message, oldest first."""
    lines: list[NoteLine] = []
    if answer.more:
        lines.append(NoteLine(f"there are earlier versions: --before {answer.versions[0].seq}"))
    for each in answer.versions:
        lines += [NoteLine(_version(each))]
        if each.kind != "deleted":
            lines += text_notes(each.text)
    return lines


def _version(version: MessageVersion) -> str:
    by = version.by if version.sent_by is None else f"{version.sent_by} as {version.by}"
    return f"{version.kind} by {one_line(by)}, {moment(version.at)}"


def reacted(answer: MessageReactions, person: PersonClient) -> list[NoteLine]:
    """The reactions to a message now."""
    counts = [(each.emoji, each.count) for each in answer.reactions]
    reactions = person.state.known_ids.react(answer.message_id, counts)
    return [NoteLine(f"{answer.message_id}: {reactions or 'no reactions'}")]


# Search and digest --------------------------------------------------------------------------------


async def search(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    """Search; in a chat, without a query, the next page of the last search."""
    if not given.get("query"):
        if person.next_search is None:
            raise UserError("takes the text to search for")
        query, cursor = person.next_search
        given = {"query": query, "cursor": cursor}
    value = await person.call("search", **given)
    hits = SearchHits.model_validate(value)
    person.next_search = (given["query"], hits.cursor) if hits.more else None
    remember(person, value)
    return CommandResult(value, _hits(hits, person))


def _hits(answer: SearchHits, person: PersonClient) -> list[NoteLine]:
    """Two lines per hit: its place, then a snippet."""
    lines: list[NoteLine] = []
    for hit in answer.hits:
        lines += [NoteLine(_hit(hit, person)), NoteLine(f"    {one_line(hit.snippet)}", "plain")]
    if not answer.hits:
        lines.append(NoteLine("no matches"))
    if answer.indexing:
        lines.append(NoteLine("older messages are still being indexed, so some may be missing"))
    if answer.note:
        lines.append(NoteLine(answer.note))
    if answer.more:
        way = person.typed("search") if person.here else f"--cursor {answer.cursor}"
        lines.append(NoteLine(f"`{way}` shows more"))
    return lines


def _hit(hit: FoundItem, person: PersonClient) -> str:
    untrusted = "[untrusted]" if hit.untrusted else ""
    place = person.shown(hit.thread_id)
    parts = (hit.id, one_line(hit.title), hit.by, place, moment(hit.at), untrusted)
    return "  ".join(part for part in parts if part)


async def digest(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    """New activity; with `mark`, the next digest starts after this one."""
    mark = given.pop("mark", False)
    if given.get("since") == "mark":  # in a chat: after the last digest shown
        if person.digested is None:
            raise UserError(f"read the digest first: `{person.typed('messages digest')}`")
        visit = await person.call("mark_visit", upto=person.digested)
        return CommandResult(visit, done("the next digest starts here"))
    value = await person.call("digest", **given)
    answer = Digest.model_validate(value)
    person.digested = answer.upto
    if mark:
        await person.ask(Visit, "mark_visit", upto=answer.upto)
    return CommandResult(value, _digest(answer, person, marked=mark))


def _digest(answer: Digest, person: PersonClient, *, marked: bool) -> list[NoteLine]:
    """Waiting items, decisions, then each thread."""
    lines = []
    for waits in answer.waiting:
        by = f" from {waits.by}" if waits.by else ""
        lines.append(NoteLine(one_line(f"! {waits.kind} {waits.id}{by}: {waits.text}"), "plain"))
    lines += [NoteLine(one_line(f"* {decided}"), "plain") for decided in answer.decided]
    for thread in answer.threads:
        lines += _of_thread(thread, person)
    if not (answer.threads or answer.waiting or answer.decided):
        lines.append(NoteLine("nothing new"))
    if answer.more:
        lines.append(NoteLine("there is more in other threads"))
    if answer.note:
        lines.append(NoteLine(answer.note))
    if answer.threads and not marked:
        way = "messages digest mark" if person.here else "messages digest --mark"
        lines.append(NoteLine(f"`{person.typed(way)}` starts the next digest after this one"))
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


# Receipts -----------------------------------------------------------------------------------------


async def why(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    """The receipts of a message; for one agent also why it did or did not wake."""
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
    """A message, or None if this person may not read it; its receipts may be readable anyway."""
    try:
        return await person.ask(Message, "read_message", id=id)
    except OperationError as exc:
        if exc.code != ErrorCode.UNKNOWN_MESSAGE:
            raise
        return None


async def _explained(person: PersonClient, id: str, agent: str) -> CommandResult:
    value = await person.call("explain_wake", agent=agent, message_id=id)
    answer = WakeExplanation.model_validate(value)
    verdict = "woke" if answer.woken else "did not wake"
    lines = [
        f"{answer.message_id} {verdict} {answer.agent} ({answer.reason}): {answer.explanation}"
    ]
    if answer.wake is not None:
        lines.append(f"turn {answer.wake.turn}: {answer.state}, reply {answer.wake.reply}")
    try:
        receipts = (await person.ask(Receipts, "read_receipts", id=id)).receipts
    except OperationError as exc:  # owners see all wakes, but not all receipts
        if exc.code not in (ErrorCode.UNKNOWN_MESSAGE, ErrorCode.FORBIDDEN):
            raise
        receipts = ()
    lines += [receipt_text(each, why=False) for each in receipts if each.participant == agent]
    return CommandResult(value, notes(map(one_line, lines), "plain"))


COMMANDS = (
    Command("messages search", "search", do=search, order=("query?",)),
    Command("messages digest", "digest", do=digest, order=("since?",), more=(
        Parameter("mark", "Start the next digest after this one.", "flag"),)),
    Command("messages why", "read_receipts", do=why, operator=True, order=("id", "agent?"),
            about="Show what a message led to: deliveries, wakes with reasons, turns and answers.",
            more=(Parameter("agent", "Only this agent, and why it did or did not wake."),)),
    Command("messages react", "toggle_reaction", reacted,
            about="React with an emoji, or remove your reaction."),
    Command("messages edit", "edit_message", amended, order=("message_id", "text"),
            without=("content", "text_representation")),
    Command("messages delete", "delete_message", amended, where="shell"),
    Command("messages delete", "delete_message", do=delete, where="chat",
            order=("message_id", "sure?"), more=(Parameter("sure", "yes: skip confirmation."),)),
    Command("messages history", "message_history", versions),
)  # fmt: skip
