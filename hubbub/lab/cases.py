"""Files of cases: where they lie, and what is wrong with them."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from pydantic import JsonValue, ValidationError

from hubbub.app.prompts import libraries
from hubbub.config.cases import Case, CaseFile, CaseMessage
from hubbub.config.explain import explain
from hubbub.config.loader import LoadedConfig
from hubbub.config.models import NetworkFile
from hubbub.config.problems import ConfigProblems, nearest, shown_path
from hubbub.config.source import Loc, YamlDocument, parse
from hubbub.errors import ConfigError, UserError
from hubbub.lab.dry_run import DryRunFixture
from hubbub.lab.recordings import Cassette, Cassettes, Recording
from hubbub.protocol import thread_ids
from hubbub.protocol.frames import Ready
from hubbub.protocol.messages import (
    Message,
    Participant,
    PendingWake,
    ReplyNeed,
    SenderKind,
    ThreadSummary,
    Wake,
)

__all__ = [
    "PlacedCase",
    "add_case",
    "case_text",
    "find_cases",
    "load_cases",
    "scene",
    "without_servers",
]

_FOLDER = "cases"
_SUFFIXES = (".yaml", ".yml")

_WITHOUT_MODEL = ("python", "a2a", "acp", "program")
"""Kinds of agents that no case of a prompt can be about."""


@dataclass(frozen=True, slots=True)
class PlacedCase:
    """A case that holds together, and where it stands."""

    case: Case
    document: YamlDocument
    loc: Loc

    @property
    def path(self) -> Path:
        return self.document.place(self.loc).file

    @property
    def line(self) -> int:
        return self.document.place(self.loc).line

    def problem(self, message: str, *key: str | int) -> ConfigError:
        """An error about a part of the case, with file and line."""
        return self.document.problem((*self.loc, *key), message)


def find_cases(loaded: LoadedConfig) -> list[Path]:
    """The files in the `cases` folders of the prompts that a config speaks of, by name."""
    folders = [path / _FOLDER for library in libraries(loaded) for path in library.glob("*")]
    found = {file for folder in folders for file in folder.glob("*") if file.suffix in _SUFFIXES}
    return sorted(found)


def load_cases(loaded: LoadedConfig, files: Sequence[Path]) -> list[PlacedCase]:
    """The cases of these files. Raises `ConfigProblems` with all that is wrong in them."""
    problems: list[ConfigError] = []
    cases: list[PlacedCase] = []
    for file in files:
        document = parse(file.absolute(), os.environ)
        found = _cases(document, file)
        problems += document.problems
        cases += found
    for placed in cases:
        problems += _wrong(placed, loaded)
    if problems:
        raise ConfigProblems(problems)
    if not cases:
        raise UserError("there are no cases: name a file, or put some into prompts/NAME/cases")
    return cases


def without_servers(loaded: LoadedConfig, cases: Sequence[PlacedCase]) -> list[str]:
    """A line for each agent of these cases that has MCP servers: they do not run in a case."""
    talked_to = {p.case.agent for p in cases if p.case.incoming is not None}
    return [
        f"agents.{name}: no MCP server runs in prompt tests, so the tools of "
        f"{', '.join(agent.mcp)} are not there"
        for name, agent in loaded.file.agents.items()
        if name in talked_to and agent.mcp
    ]


def _cases(document: YamlDocument, path: Path) -> list[PlacedCase]:
    try:
        file = CaseFile.model_validate(document.data)
    except ValidationError as error:
        document.problems += explain(error, CaseFile, document)
        return []
    settings: CaseFile = file
    if file.prompt is None and path.absolute().parent.name == _FOLDER:
        settings = file.model_copy(update={"prompt": path.absolute().parent.parent.name})
    placed = []
    for n, case in enumerate(file.cases):
        # A folder's prompt is for its prompt alone: a conversation may be about another one.
        own = settings if case.message is not None else file
        placed.append(PlacedCase(case.under(own), document, ("cases", n)))
    return placed


def _wrong(placed: PlacedCase, loaded: LoadedConfig) -> Iterator[ConfigError]:
    case, file = placed.case, loaded.file
    name = case.name
    if case.agent is not None and case.agent not in file.agents:
        hint = nearest(case.agent, file.agents)
        yield placed.problem(f"'{name}' is about the unknown agent '{case.agent}'{hint}", "agent")
    elif case.agent is not None and file.agents[case.agent].kind in _WITHOUT_MODEL:
        yield placed.problem(f"'{name}': the agent '{case.agent}' has no model", "agent")
    elif case.says is not None:
        for said in case.says:
            known = [f"#{name}" for name in file.channels] + list(file.agents)
            if said.to.removeprefix("@") not in known:
                hint = nearest(said.to, known)
                words = f"'{name}' is said to the unknown '{said.to}'{hint}"
                yield placed.problem(words, "says")
    elif case.incoming is not None:
        yield from _wrong_conversation(placed, loaded)
    elif case.prompt is None:
        yield placed.problem(f"'{name}' has a message, but names no prompt to send it to")
    if case.model is not None and case.model not in file.models:
        hint = nearest(case.model, file.models)
        yield placed.problem(f"'{name}' names the unknown model '{case.model}'{hint}", "model")
    for n, expectation in enumerate(case.expect):
        if expectation.schema_ is not None:
            try:
                Draft202012Validator.check_schema(expectation.schema_)
            except SchemaError as exc:
                at = ("expect", n, "schema")
                yield placed.problem(f"'{name}': no JSON Schema: {exc.message}", *at)


def _wrong_conversation(placed: PlacedCase, loaded: LoadedConfig) -> Iterator[ConfigError]:
    case = placed.case
    if case.agent is None:
        yield placed.problem(f"'{case.name}' has an incoming message, but names no agent")
        return
    agent = loaded.file.agents[case.agent]
    for thread in [*case.threads, *([case.thread] if case.thread else [])]:
        if thread_ids.canonical(thread, case.agent) is None:
            words = f"'{thread}' is no thread: direct_NAME, channel_NAME or broadcast"
            yield placed.problem(words, "threads", thread)
    for said in case.incoming or ():
        if said.sender in agent.ignore_senders:
            yield placed.problem(f"'{case.agent}' ignores what '{said.sender}' says", "incoming")
        if said.sender == case.agent:
            yield placed.problem("no agent is woken by a message of its own", "incoming")
    used = agent.prompt.name if agent.prompt else None
    if case.prompt is not None and case.prompt.partition("@")[0] != used:
        words = f"'{case.agent}' does not use the prompt '{case.prompt}'"
        hint = f"; it uses '{used}'" if used else ""
        yield placed.problem(words + hint, "prompt")
    if case.variables and used is None:
        yield placed.problem(f"the prompt of '{case.agent}' has no variables", "variables")


def add_case(file: Path, recording: Recording) -> None:
    """Write a case of what came of a message into a file of cases, and its cassette beside that:
    the agents that answered do so again, with the tools that they called.

    Raises `UserError` for what no case can say, and a file that is none of cases; `OSError`.
    """
    text, lines = file.read_text("utf-8") if file.exists() else "cases:\n", case_text(recording)
    text = f"{text.rstrip()}\n{lines}"
    try:
        CaseFile.model_validate(yaml.safe_load(text))
    except (ValidationError, yaml.YAMLError) as exc:
        words = f"{shown_path(file)}: the case does not fit at its end; add it yourself:\n{lines}"
        raise UserError(words) from exc
    cassettes = Cassettes(file)
    file.write_text(text, encoding="utf-8")
    name = str(_case_of(recording)["name"])
    cassettes.put(name, [Cassette(case=name, recording=recording)])


def case_text(recording: Recording) -> str:
    """A case of what came of a message, as an item of `cases`. Raises `UserError`."""
    lines = yaml.safe_dump([_case_of(recording)], sort_keys=False, allow_unicode=True, width=100)
    return textwrap.indent(lines, "  ")


def _case_of(recording: Recording) -> dict[str, JsonValue]:
    says: list[JsonValue] = []
    answering: dict[str, None] = {}
    for asked in recording.asked:
        thread, others = asked.thread_id, asked.recipients
        channel = thread_ids.kind_of(thread) == "channel"
        if thread_ids.root(thread) != thread or not (channel or len(others) == 1):
            raise UserError(f"no case can say {asked.id}: it is to several, or under another one")
        to = f"#{thread.partition('.')[2]}" if channel else others[0]
        says.append({"from": asked.sender_id, "to": to, "text": asked.text})
        answers = (m for m in recording.messages if m.sender_kind == "agent")
        answering |= {m.sender_id: None for m in answers if thread_ids.within(m.thread_id, thread)}
    calls = {c.name: None for turn in recording.turns for s in turn.steps for c in s.calls}
    expect: list[JsonValue] = [{"answered_by": name} for name in answering if len(answering) == 1]
    expect += [{"tool_called": name} for name in calls if name != "finish"]
    expect += [{"max_turns": 2 * max(1, len(recording.turns))}, "never_silent", "no_loop"]
    said = textwrap.shorten(recording.asked[0].text, 60, placeholder="…")
    name = f"{said} ({recording.asked[0].id})"
    return {"name": name, "says": says, "expect": expect}


# What a case is asked with ------------------------------------------------------------------------


_BEGINS = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
"""The same always, so that the same case gives the same prompt: a Monday morning."""


def scene(case: Case, me: str, file: NetworkFile, ready: Ready) -> DryRunFixture:
    """What the agent `me` finds: `ready` with the case's threads, and the incoming messages as the
    wakes of one turn.

    Threads are as old as they stand in the case: what was said in the last one came last.
    """
    incoming = case.incoming or []
    writer = _CaseWriter(me, file)
    where = writer.thread(case.thread, incoming)
    earlier = {
        thread_ids.canonical(thread, me) or thread: said for thread, said in case.threads.items()
    }
    threads = {
        thread: [writer.message(thread, said) for said in saids]
        for thread, saids in earlier.items()
    }
    waking = [writer.message(where, said) for said in incoming]
    threads[where] = [*threads.get(where, []), *waking]
    turn = f"{me}-{waking[0].id}"
    return DryRunFixture(
        network=file.network.name,
        ready=ready.model_copy(
            update={
                "head": writer.seq,
                "cursor": writer.seq,
                "threads": tuple(_summary(id, messages) for id, messages in threads.items()),
                "pending": tuple(PendingWake(message=m, wake=_wake(m, turn)) for m in waking),
                "participants": (*ready.participants, *writer.strangers(ready)),
            }
        ),
    )


class _CaseWriter:
    """Numbers messages in the order in which they are written."""

    def __init__(self, me: str, file: NetworkFile):
        self.seq = 0
        self._me, self._file = me, file
        self._somebody = next(iter(file.humans), "ann")
        self._tseqs: dict[str, int] = {}
        self._seen: dict[str, None] = {}

    def thread(self, named: str | None, incoming: Sequence[CaseMessage]) -> str:
        """Where the incoming messages stand; canonical."""
        if named is not None:
            return thread_ids.canonical(named, self._me) or named
        return thread_ids.direct({self._me, incoming[0].sender or self._somebody})

    def message(self, thread: str, said: CaseMessage) -> Message:
        sender = said.sender or self._somebody
        members = thread_ids.members_of(thread)
        self.seq += 1
        self._tseqs[thread] = self._tseqs.get(thread, 0) + 1
        self._seen[sender] = None
        return Message(
            id=f"m{self.seq}",
            seq=self.seq,
            thread_id=thread,
            tseq=self._tseqs[thread],
            sender_id=sender,
            sender_kind=self._kind(sender),
            type=thread_ids.kind_of(thread),
            recipients=tuple(m for m in members if m != sender),
            content=said.text,
            interaction_id=f"i{self.seq}",
            hop=0,
            sent_at=_BEGINS + timedelta(minutes=self.seq),
        )

    def _kind(self, sender: str) -> SenderKind:
        return "agent" if sender == self._me or sender in self._file.agents else "human"

    def strangers(self, ready: Ready) -> Iterator[Participant]:
        """Those of the case whom the config does not name."""
        known = {participant.id for participant in ready.participants}
        for name in self._seen:
            if name not in known:
                yield Participant(id=name, kind="human", present=True)


def _summary(thread: str, messages: Sequence[Message]) -> ThreadSummary:
    return ThreadSummary(
        id=thread,
        type=thread_ids.kind_of(thread),
        head=len(messages),
        last_seq=messages[-1].seq if messages else 0,
        messages=tuple(messages),
    )


def _wake(message: Message, turn: str) -> Wake:
    reasons = {"direct": "direct", "broadcast": "broadcast"}
    reply: ReplyNeed = "required" if message.sender_kind == "human" else "optional"
    return Wake(reason=reasons.get(message.type, "mention"), reply=reply, turn=turn)
