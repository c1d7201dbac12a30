"""Routing: from an operation's arguments to a draft with its thread, readers and mentions.

resolve thread -> allowed to post? -> limits -> mentions -> draft
draft -> mods -> trace context -> wakes -> entry for the log
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pydantic import JsonValue
from pydantic_core import to_json

from hubbub.config.models import NetworkConfig
from hubbub.errors import OperationError
from hubbub.ids import parse_message_id
from hubbub.mods.operation import bad_request, forbidden, too_large
from hubbub.network.log import Entry
from hubbub.network.state import NetworkState
from hubbub.network.targets import HUB, check_readers, find_mentions, resolve_target
from hubbub.network.threads import Thread
from hubbub.network.trace_context import Ancestor, TraceContext, descend, opening
from hubbub.network.wakes import (
    Decision,
    Facts,
    Reason,
    decide,
    decide_amendment,
    decide_direct,
    decide_imported,
    decide_result,
    decide_silent,
    decide_timer,
    own_delivery,
)
from hubbub.protocol import thread_ids
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import (
    Amendment,
    Attachment,
    Draft,
    Kind,
    NewAttachment,
    RequestMark,
    SenderKind,
    TimerMark,
    TranscriptMark,
)
from hubbub.protocol.operations import Speech

__all__ = ["Router", "Sender", "cause_position", "own_turn", "unknown_interaction", "unknown_turn"]


class Sender(NamedTuple):
    """The participant that a message is sent as."""

    id: str
    kind: Kind
    sent_by: str | None = None
    """The person speaking for the agent."""


def cause_position(cause: str, speaker: str) -> tuple[int, str | None]:
    """The position of the message that a cause refers to, and the turn if the cause is one.

    A cause is a message id (m42) or a turn of the speaker itself (<speaker>-m42).
    """
    seq = parse_message_id(cause)
    if seq is not None:
        return seq, None
    seq = _turn_position(cause, speaker)
    if seq is None:
        raise bad_request(
            f"cause: {cause[:100]!r} is neither a message (m42) nor one of your turns"
        )
    return seq, cause


def own_turn(turn: str, speaker: str, head: int) -> int:
    """The position of the message that woke one of the speaker's turns.

    Raises `OperationError` unless this hub, whose log ends at `head`, gave the turn to the speaker.
    """
    seq = _turn_position(turn, speaker)
    if seq is None or seq > head:
        raise bad_request(f"{turn[:100]!r} is not one of your turns; use the id from the wake")
    return seq


def _turn_position(turn: str, speaker: str) -> int | None:
    """The position of the message that woke a turn of the speaker; None if it is not one."""
    own, _, last = turn.rpartition("-")
    return parse_message_id(last) if own == speaker else None


def unknown_interaction(interaction: str) -> OperationError:
    """The error for an interaction that does not exist or that the caller must not see."""
    text = f"no interaction {interaction} is visible to you"
    return OperationError(ErrorCode.UNKNOWN_INTERACTION, text)


def unknown_turn(turn: str) -> OperationError:
    """The error for a turn that does not exist or that the caller must not see."""
    return OperationError(ErrorCode.UNKNOWN_TURN, f"no turn {turn[:100]!r} is visible to you")


class Router:
    """Builds drafts and decides which agents they wake. Pure: the caller reads the store first."""

    def __init__(self, state: NetworkState, config: NetworkConfig):
        self._state, self._limits = state, config.limits
        self._wake, self._hops = config.wake, config.budgets.hops
        self._short = config.limits.text // 4
        """Characters that always fit, at four bytes each in UTF-8."""
        self._conversations: dict[tuple[str, str], Thread] = {}
        """Cache by speaker and peer; direct threads never change."""

    def thread(self, to: str | Sequence[str], speaker: str, sent_by: str | None = None) -> Thread:
        """The thread for `to`. Posting creates a direct thread; any other must exist. `sent_by` is
        the person who speaks for the speaker."""
        if isinstance(to, str):
            cached = self._conversations.get((speaker, to))
            if cached is not None:
                return cached
        thread = self._find(to, speaker, sent_by)
        if isinstance(to, str) and thread.scope is None and thread.others[speaker] == (to,):
            self._conversations[speaker, to] = thread
        return thread

    def _find(self, to: str | Sequence[str], speaker: str, sent_by: str | None) -> Thread:
        thread_id = resolve_target(to, speaker, self._state)
        thread = self._state.threads.get(thread_id)
        if thread is None and _is_new_conversation(thread_id, speaker):
            return self._state.threads.ensure(thread_id)
        if thread is None and thread_id.startswith("channel."):
            self._state.channel(thread_ids.root(thread_id).partition(".")[2])
        return self._state.thread_for(thread_id, speaker, sent_by)

    def reply_thread(self, under: Thread, seq: int) -> Thread:
        """The thread of replies to the message at `seq`. Raises `OperationError` if too deep."""
        if thread_ids.depth(under.id) >= self._limits.thread_depth:
            raise OperationError(
                ErrorCode.THREAD_DEPTH,
                f"reply threads nest to {self._limits.thread_depth} levels; "
                f"answer in {thread_ids.relative(under.id, '')} itself",
            )
        return self._state.threads.ensure(thread_ids.reply_thread(under.id, seq))

    def draft(
        self,
        sender: Sender,
        thread: Thread,
        content: JsonValue,
        speech: Speech,
        *,
        text_representation: str | None = None,
        reply_to: str | None = None,
    ) -> Draft:
        """A draft of a message from `sender` in `thread`. Raises `OperationError`."""
        speaker, kind, sent_by = sender
        text = content if isinstance(content, str) else text_representation or ""
        if text is not content or text_representation is not None or len(text) > self._short:
            self.check_content(content, text_representation)
        if thread.type == "mod":
            raise forbidden("only the mod itself posts in its thread")
        if HUB in thread.members:
            check_readers(thread.members, self._state)
        if speech.on_behalf_of is not None or speech.mode is not None:
            _check_person(kind, speech, sent_by)
        mentions: tuple[str, ...] = ()
        unresolved: tuple[str, ...] = ()
        if speech.mentions or "@" in text:
            readers = self._state.readers(thread, speaker)
            mentions, unresolved = find_mentions(text, speech.mentions, readers)
        return Draft(
            speaker,
            kind,
            thread.id,
            thread.type,
            content,
            thread.others[speaker] if thread.scope is None else (),
            text_representation,
            reply_to,
            speech.quote,
            mentions,
            tuple(map(_unstamped, speech.attachments)) if speech.attachments else (),
            speech.cause,
            unresolved,
            sent_by,
            speech.untrusted,
            speech.mode,
            speech.awaits,
            silent=speech.silent,
        )

    def check_content(self, content: JsonValue, text_representation: str | None) -> None:
        """Raises `OperationError` if the text or content is too long, or the content is null, which
        the answers of operations leave out."""
        if content is None:
            raise bad_request("content: null is not accepted as the whole content")
        limit = self._limits.text
        for name, value in (("text", content), ("text_representation", text_representation)):
            size = len(value.encode() if isinstance(value, str) else to_json(value))
            if size > limit:
                raise too_large(f"{name}: at most {limit} bytes, this has {size}")

    def hop_limit(self, opened_by: SenderKind) -> int:
        """The hop limit of an interaction opened by a sender of this kind."""
        return opening(opened_by == "human", self._hops).hop_limit

    def judge(self, entry: Entry, cause: Ancestor | None) -> None:
        """Set the entry's interaction, hop and decisions; its thread must be set. A person always
        opens an interaction. Raises `OperationError`."""
        draft, human = entry.draft, entry.by_person
        if cause is None:
            # A timer's message counts as that of the participant who set it.
            human = human or (
                draft.purpose is not None and self._state.set_by_person(draft.timer_of)
            )
            entry.interaction, entry.hop, entry.hop_limit = opening(human, self._hops)
        else:
            entry.interaction, entry.hop, entry.hop_limit = self._context(entry, cause)
        decisions = entry.decisions = self.decisions(entry)
        entry.wakes = False
        for _, _, reply in decisions:
            if reply is not None:
                entry.wakes = True

    def _context(self, entry: Entry, cause: Ancestor) -> TraceContext:
        draft, amends = entry.draft, entry.draft.amends
        thread = self._state.threads.by_no(cause.thread_no)
        is_readable = draft.sender_kind == "system" or cause.sender == draft.sender_id
        is_readable = is_readable or (amends is not None and amends.message_id == draft.cause_id)
        if not is_readable and not self._state.may_read(thread, draft.sender_id):
            raise OperationError(
                ErrorCode.UNKNOWN_MESSAGE, f"cause: {draft.cause_id} never reached you"
            )
        if amends is not None:  # an amendment belongs to its cause's interaction and adds no hop
            return TraceContext(cause.interaction, cause.hop, cause.hop_limit)
        return opening(True, self._hops) if entry.by_person else descend(cause)

    def decisions(self, entry: Entry) -> list[Decision]:
        """A decision for each participant that the entry addresses by name."""
        draft, thread, state = entry.draft, entry.thread, self._state
        match draft.purpose:
            case None if draft.silent:
                own = [own_delivery(draft.sender_id)] if entry.by_person else []
                named = draft.recipients if thread.scope is None else draft.mentions
                return [*decide_silent(named), *(own if thread.scope is None else [])]
            case None:
                pass
            case TranscriptMark():
                return decide_imported(thread.members)
            case TimerMark():
                return decide_timer(draft.recipients, draft.mentions, state.agents)
            case Amendment():
                # A person's other sockets receive it through this delivery.
                own = [Decision(draft.sender_id, Reason.OWN, None)] if entry.by_person else []
                return [*decide_amendment(draft.recipients), *(own if thread.scope is None else [])]
            case RequestMark(kind="result" | "failed"):
                # A worker addresses only the asker; a notice of the hub mentions the asker.
                to = draft.mentions if draft.sender_kind == "system" else draft.recipients
                asker = next(iter(to), "")
                return decide_result(draft.recipients, asker, draft.sender_kind, state.agents)
        at_limit = entry.hop >= entry.hop_limit
        # A message on behalf of an agent wakes as a person's.
        voice = draft.sender_kind if draft.sent_by is None else "human"
        if thread.scope is None:
            agents = state.agents
            decisions = []
            for p in draft.recipients:  # mostly one, for which a comprehension costs more
                decisions.append(decide_direct(p, voice, p in agents, at_limit))
            if entry.by_person:
                # Delivers it to the person's other sockets, and to an agent what a person sent on
                # its behalf.
                decisions.append(own_delivery(draft.sender_id))
            return decisions
        facts = Facts(
            type=draft.type,
            sender_kind=voice,
            agents=state.agents,
            mentions=draft.mentions,
            audience=state.readers(thread, draft.sender_id),
            in_reply_thread=thread.no != thread.scope,
            last_agent=thread.last_agent,
            at_hop_limit=at_limit,
        )
        return decide(facts, self._wake)


def _unstamped(given: NewAttachment) -> Attachment:
    """An attachment with only the fields that a sender can set."""
    return Attachment(name=given.name, media_type=given.media_type, uri=given.uri, size=given.size)


def _check_person(kind: Kind, speech: Speech, sent_by: str | None) -> None:
    """Raises `OperationError` for options that only people can use."""
    if speech.on_behalf_of is not None and sent_by is None:
        raise bad_request("on_behalf_of: not possible for this message")
    if speech.mode is not None and kind != "human" and sent_by is None:
        raise forbidden("mode: only people decide what happens to a running turn")


def _is_new_conversation(thread_id: str, speaker: str) -> bool:
    return (
        thread_id.startswith("dm.")
        and thread_ids.parent(thread_id) is None
        and speaker in thread_ids.members_of(thread_id)
    )
