"""Recordings: interactions and their turns from the log, for replay.

`Tape` replays the answers of models and tools. `difference` compares two recordings.
"""

from __future__ import annotations

import difflib
import json
import re
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from hubbub.agents.dialects.text_dialect import results_tag
from hubbub.agents.models.base import CallRequest, Completion, CompletionRequest
from hubbub.agents.prompt.escape import unreveal
from hubbub.agents.tools.base import CallSite
from hubbub.agents.turn.chat import result_text
from hubbub.agents.turn.continuation import QUESTION_PROMPT
from hubbub.agents.turn.hooks import TurnInfo
from hubbub.client import Client
from hubbub.config.problems import shown_path
from hubbub.embed.ask import pages_of, turns_of
from hubbub.errors import ModelError, UserError
from hubbub.mods.edits.schemas import MessageVersions
from hubbub.protocol.frames import Event
from hubbub.protocol.messages import Message, amended
from hubbub.protocol.turns import Step, ToolCallRecord, Turn

__all__ = [
    "Cassette",
    "Cassettes",
    "Difference",
    "Recording",
    "Tape",
    "difference",
    "read_recording",
    "record",
]

HISTORY = 20
"""Maximum earlier messages recorded per thread; agents see no more."""


class Recording(BaseModel):
    """Recorded interactions."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    history: tuple[Message, ...] = ()
    """Earlier messages, oldest first."""
    messages: tuple[Message, ...]
    """The messages of the interactions, oldest first."""
    turns: tuple[Turn, ...]
    """In order of their start."""

    @property
    def asked(self) -> list[Message]:
        """The messages of people, which opened the interactions."""
        people = (m for m in self.messages if m.sender_kind == "human" and m.sent_by is None)
        return [message for message in people if message.amends is None]

    def text(self) -> str:
        """The recording as one line of JSON."""
        return self.model_dump_json(exclude_defaults=True)


class Cassette(BaseModel):
    """The recording of one run of a case."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    case: str
    run: int = 0
    """The run's number, which determines its fault."""
    recording: Recording


def read_recording(path: Path) -> Recording:
    """The recording in a file. Raises `UserError`."""
    try:
        return Recording.model_validate_json(path.read_bytes())
    except OSError as exc:
        raise UserError(f"{shown_path(path)} cannot be read: {exc.strerror}") from exc
    except ValidationError as exc:
        where = ".".join(map(str, exc.errors()[0]["loc"]))
        raise UserError(f"{shown_path(path)} is not a recording: {where or 'not JSON'}") from exc


async def record(
    operator: Client, interactions: Sequence[str], history: Sequence[Message] | None = None
) -> Recording:
    """Record interactions (`i42`) of a network, and those that their turns continue. All must have
    ended. Without `history`, the operator must observe the log from a position before them.

    Raises `UserError`, and `OperationError` for an unknown interaction.
    """
    messages, turns = list[Message](), list[Turn]()
    interactions = list(interactions)
    for interaction in interactions:  # grows during the iteration
        ended = await turns_of(operator, interaction)
        if ended is None:
            raise UserError(f"{interaction} is not over yet: a turn of it runs, or a request waits")
        turns += ended
        for name in (turn.start.continues for turn in ended if turn.start.continues is not None):
            woke = await operator.call("read_message", id=name.rpartition("-")[2])
            earlier = Message.model_validate(woke).interaction_id
            interactions += [earlier] if earlier not in interactions else []
        async for page in pages_of(operator, interaction):
            messages += [await _as_sent(operator, message) for message in page.messages]
    messages.sort(key=lambda message: message.seq)
    if history is None:
        history = await _history(operator, messages[0].seq)
        history = await _with_parents(operator, history, messages)
    recording = Recording(
        history=tuple(history),
        messages=tuple(messages),
        turns=tuple(sorted(turns, key=lambda turn: turn.started_at)),
    )
    if len(recording.asked) < len(interactions):
        raise UserError("only what a person has begun can be recorded, not what a timer has")
    return recording


async def _as_sent(operator: Client, message: Message) -> Message:
    """The message before it was edited."""
    if message.amended != "edited":
        return message
    answer = await operator.call(
        "message_history", message_id=message.id, before=message.seq + 1, limit=1
    )
    (first,) = MessageVersions.model_validate(answer).versions
    shown = first.text_representation
    original = {"content": first.content, "text_representation": shown, "amended": None}
    return message.model_copy(update=original)


async def _history(operator: Client, before: int) -> list[Message]:
    """The last messages of people and agents in each thread, and what amended them."""
    threads, amendments = dict[str, deque[Message]](), list[Message]()
    if operator.ready.cursor < before - 1:
        async for item in operator.events():
            if not isinstance(item, Event):
                continue
            if item.seq >= before:
                break
            await operator.ack(item.seq)
            message = item.message
            if message.amends is not None:
                amendments.append(message)
            elif message.sender_kind in ("human", "agent"):
                threads.setdefault(message.thread_id, deque(maxlen=HISTORY)).append(message)
            if item.seq == before - 1:
                break
    last = (message for said in threads.values() for message in said)
    return sorted(_with_amendments(last, amendments), key=lambda message: message.seq)


def _with_amendments(
    messages: Iterable[Message], amendments: Sequence[Message]
) -> Iterator[Message]:
    """The messages and what amended them, without the content of deleted ones."""
    changes: dict[str, list[Message]] = {}
    for each in amendments:
        changes.setdefault(each.amends.message_id if each.amends else "", []).append(each)
    for message in messages:
        mine = changes.get(message.id, [])
        if mine and amended(message, mine).amended == "deleted":
            empty = {"text_representation": None, "quote": None, "attachments": ()}
            message = message.model_copy(update={"content": "(deleted)", **empty})
            mine = mine[-1:]  # nothing follows a deletion
        yield from (message, *mine)


async def _with_parents(
    operator: Client, history: Sequence[Message], messages: Sequence[Message]
) -> list[Message]:
    """The history with the messages that it and `messages` reply to, which can be much older."""
    known = {message.id: message for message in history}
    for message in (*history, *messages):
        under = message.reply_to
        while under is not None and under not in known and under not in {m.id for m in messages}:
            parent = Message.model_validate(await operator.call("read_message", id=under))
            known[under], under = parent, parent.reply_to
    return sorted(known.values(), key=lambda message: message.seq)


class Cassettes:
    """The recordings for a file of cases, in a file next to it: one line of JSON per run."""

    def __init__(self, cases: Path):
        """Raises `UserError` for an invalid file."""
        self.path = cases.with_suffix(".cassettes.jsonl")
        self._lines: dict[str, list[Cassette]] = {}
        try:
            lines = self.path.read_bytes().splitlines() if self.path.exists() else []
            for line in map(Cassette.model_validate_json, lines):
                self._lines.setdefault(line.case, []).append(line)
        except (OSError, ValidationError) as exc:
            raise UserError(f"{shown_path(self.path)} holds no cassettes: record again") from exc

    def of(self, case: str) -> Sequence[Cassette]:
        """The cassettes of a case, ordered by run."""
        return self._lines.get(case, ())

    def put(self, case: str, cassettes: Iterable[Cassette]) -> None:
        """Replace the cassettes of a case. Raises `OSError`."""
        self._lines[case] = sorted(cassettes, key=lambda cassette: cassette.run)
        lines = (each for several in self._lines.values() for each in several)
        text = "".join(f"{line.model_dump_json(exclude_defaults=True)}\n" for line in lines)
        self.path.write_text(text, encoding="utf-8")


# Replay -------------------------------------------------------------------------------------------

_CHANGING = re.compile(
    r'(?:, )?"(?:present|absent|queued)": (?:\[[^\]]*\]|\{[^}]*\}|true|false)'
    r"|\b(?:(?P<id>[mit])\d+|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.]*(?:Z|[+-]\d\d:\d\d)?)\b"
)


_UPLOADED = re.compile(r' <attachment id="[^"]*"[^>]*>[^<]*</attachment>')
"""A file of the recorded network in a prompt."""


def steady(text: str) -> str:
    """Mask the parts of a text that vary between runs: ids of messages, times, uploaded files, and
    who is or was connected."""
    text = _UPLOADED.sub("", text)
    return _CHANGING.sub(lambda found: f"{found['id']}*" if found["id"] else "*", text)


_Cause = tuple[str, tuple[tuple[str, str], ...]]


def _cause(agent: str, messages: Iterable[Message]) -> _Cause:
    """Identifies a turn in any run: its agent, and the messages that it answers."""
    return agent, tuple((message.sender_id, steady(message.text)) for message in messages)


def _causes(recording: Recording) -> list[tuple[_Cause, Turn]]:
    said = {message.id: message for message in (*recording.history, *recording.messages)}
    return [
        (_cause(turn.agent, (said[id] for id in turn.start.messages if id in said)), turn)
        for turn in recording.turns
    ]


class Tape:
    """Replays a recording's answers of models and tools."""

    def __init__(self, recording: Recording):
        self._left = _causes(recording)
        self._calls = [c for turn in recording.turns for step in turn.steps for c in step.calls]
        self._turns: dict[str, Turn] = {}
        self._answered: dict[str, int] = {}
        self.ids: dict[str, str] = {}
        """The ids of messages in this run, by those in the recording."""
        self.dialects = {t.agent: t.start.dialect for t in reversed(recording.turns)}
        """How tools were called at first, by agent."""

    def begin(self, info: TurnInfo) -> None:
        """Begin a turn, or resume it after its process died."""
        self._answered.pop(info.id, None)
        if info.id in self._turns:
            return
        cause = _cause(info.agent, info.messages)
        index = next((n for n, (other, _) in enumerate(self._left) if other == cause), None)
        if index is not None:
            recorded = self._turns[info.id] = self._left.pop(index)[1]
            woken_by = (message.id for message in info.messages)
            self.ids.update(zip(recorded.start.messages, woken_by, strict=False))

    def answer(self, turn: str, question: CompletionRequest) -> Completion | None:
        """The recorded answer to a request; None if the request is not recorded. Raises
        `ModelError` if the recorded request failed."""
        recorded = self._turns.get(turn)
        if recorded is None:
            return None
        steps, at = (
            [s for s in recorded.steps if s.made is None or s.tokens_in],
            self._answered.get(turn),
        )
        # A process that resumes the turn can repeat requests of the previous process.
        places = range(len(steps), -1, -1) if at is None else (at,)
        n = next((n for n in places if _fits(recorded, steps, n, question)), None)
        if n is None:
            return None
        if n < len(steps):
            self._answered[turn] = n + 1
            return _answer(steps[n], self.ids)
        if recorded.end is not None and recorded.end.outcome == "model_error":
            raise ModelError(recorded.end.reason)
        return None

    def call(
        self, name: str, arguments: Mapping[str, JsonValue], site: CallSite
    ) -> ToolCallRecord | None:
        """The recorded call at this position of the turn, or elsewhere with the same arguments;
        None if there is none."""
        recorded = self._turns.get(site.turn)
        steps = recorded.steps if recorded is not None else ()
        calls = next((step.calls for step in steps if step.n == site.step), ())
        places = (*calls[site.index : site.index + 1], *self._calls)
        alike = (c for c in places if c.name == name and _alike(c, arguments))
        return next(alike, None)


def _alike(call: ToolCallRecord, arguments: Mapping[str, JsonValue]) -> bool:
    """Whether a call has these arguments, either as the model wrote them or as the call ran."""
    recorded = [call.arguments, call.ran_with]
    return steady(_dumped(arguments)) in [steady(_dumped(each)) for each in recorded]


def _fits(turn: Turn, steps: Sequence[Step], n: int, question: CompletionRequest) -> bool:
    """Whether the request is that of step `n`, from 0, or the one after the last step. Compares the
    prompts, whether the step before is shown, and with native calls also its results. A role's
    prompts are not recorded."""
    if n < len(steps) and steps[n].role is not None:
        return True
    asked = [steady(message["content"] or "") for message in question.messages]
    is_question = asked[0].endswith(QUESTION_PROMPT)
    if is_question != (n < len(steps) and steps[n].made == "confirm"):
        return False
    if is_question:  # a separate request, whose system message is not recorded
        return asked[1] == steady(turn.prompt or "")
    if asked[:2] != [steady(turn.system_prompt or ""), steady(turn.prompt or "")]:
        return False
    if n == 0:
        return True
    before, shown = steps[n - 1], asked[2:]
    if turn.start.dialect == "native" and before.calls:
        return all(steady(result_text(call)) in shown for call in before.calls)
    return any(results_tag(before) in text for text in shown) if before.calls else bool(shown)


_ID = re.compile(r"\b([mt])(\d+)\b")
_REVEALED = re.compile(r"⟦U\+([0-9A-F]{4})⟧")
"""A character that `reveal` replaced, in JSON."""


def _answer(step: Step, ids: Mapping[str, str]) -> Completion:
    """The model's answer that led to the step. Calls are native in every dialect, and name the
    messages and reply threads of this run."""

    def translated(call: ToolCallRecord) -> str:
        if isinstance(call.arguments, str):
            text = unreveal(call.arguments)
        else:
            text = _REVEALED.sub(r"\\u\1", _json(call))
        return _ID.sub(lambda found: found[1] + ids.get(f"m{found[2]}", found[0])[1:], text)

    calls = (CallRequest(call.id, unreveal(call.name), translated(call)) for call in step.calls)
    return Completion(
        text=step.text and unreveal(step.text),
        calls=tuple(calls),
        tokens_in=step.tokens_in,
        tokens_out=step.tokens_out,
        finish_reason=step.finish_reason,
        cost_usd=step.cost_usd,
        wait=step.wait,
        reasoning=step.reasoning,
        discards=step.discards,
        compresses=step.compresses,
    )


# Differences --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Difference:
    """The first step that differs."""

    where: str
    """`clerk: step 2 of its turn about 'where is my lamp'`"""
    then: tuple[str, ...]
    now: tuple[str, ...]

    def __str__(self) -> str:
        lines = difflib.unified_diff(self.then, self.now, "recorded", "now", lineterm="", n=2)
        return "\n".join((self.where, *lines))


def difference(then: Recording, now: Recording, changed: Collection[str] = ()) -> Difference | None:
    """The first step in which two runs differ, in the order of the first run; None if they are
    equal. Ignores the system prompts of `changed` agents."""
    left, missing = _causes(now), None
    for cause, turn in _causes(then):
        n = next((n for n, (other, _) in enumerate(left) if other == cause), None)
        if n is None:
            missing = missing or Difference(_named(cause), ("it begins",), ())
            continue
        again = left.pop(n)[1]
        differs = _differs(_named(cause), turn, again, changed)
        if differs is not None and (differs.now or not _broken_off(again)):
            return differs
        missing = missing or differs
    if left:
        return Difference(_named(left[0][0]), (), ("it begins",))
    return missing


def _differs(named: str, then: Turn, now: Turn, changed: Collection[str]) -> Difference | None:
    here = _blocks(now)
    for name, lines in _blocks(then):
        _, shown = next(here, (name, ()))
        if shown != lines and not (name == SYSTEM and then.agent in changed):
            return Difference(f"{named}, {name}", lines, shown)
    more = next(here, None)
    return None if more is None else Difference(f"{named}, {more[0]}", (), more[1])


def _broken_off(turn: Turn) -> bool:
    """Whether a turn has no regular end, possibly because another turn differs."""
    return turn.end is None or turn.end.outcome == "model_error"


SYSTEM = "the system prompt"


def _named(cause: _Cause) -> str:
    agent, messages = cause
    sender, text = messages[-1] if messages else ("", "")
    return f"{agent}: its turn about {text[:60]!r} of {sender}"


def _blocks(turn: Turn) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The comparable parts of a turn, by name, as lines."""
    yield SYSTEM, _lines(turn.system_prompt or "")
    yield "the prompt", _lines(turn.prompt or "")
    for step in turn.steps:
        lines = [step.text or ""]
        for call in step.calls:
            lines += [f"{call.name} {_json(call)}", f"-> {call.result or ''}"]
        yield f"step {step.n}", _lines("\n".join(lines))
    if turn.end is not None and not _broken_off(turn):
        yield "its end", _lines(f"{turn.end.outcome}\n{turn.end.reason}")


def _lines(text: str) -> tuple[str, ...]:
    return tuple(steady(text).splitlines())


def _json(call: ToolCallRecord) -> str:
    return _dumped(call.arguments)


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
