"""Files of cases: loads and validates them, adds cases, and builds the fixture of a dry run."""

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
    "case_fixture",
    "case_text",
    "find_cases",
    "load_cases",
    "missing_servers",
]

_FOLDER = "cases"
_SUFFIXES = (".yaml", ".yml")

_WITHOUT_MODEL = ("python", "a2a", "acp", "program")
"""Kinds of agents that cannot be tested with cases."""


@dataclass(frozen=True, slots=True)
class PlacedCase:
    """A valid case and its location."""

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
        """An error in a part of the case, with file and line."""
        return self.document.problem((*self.loc, *key), message)


def find_cases(loaded: LoadedConfig) -> list[Path]:
    """The files in the `cases` folders of a config's prompts, by name."""
    folders = [path / _FOLDER for library in libraries(loaded) for path in library.glob("*")]
    return sorted({f for folder in folders for f in folder.glob("*") if f.suffix in _SUFFIXES})


def load_cases(loaded: LoadedConfig, files: Sequence[Path]) -> list[PlacedCase]:
    """The cases of these files. Raises `ConfigProblems` with all their errors."""
    problems: list[ConfigError] = []
    cases: list[PlacedCase] = []
    for file in files:
        document = parse(file.absolute(), os.environ)
        cases += _cases(document, file)
        problems += document.problems
    for placed in cases:
        problems += _problems(placed, loaded)
    if problems:
        raise ConfigProblems(problems)
    if not cases:
        raise UserError("there are no cases: name a file, or add some to prompts/NAME/cases")
    return cases


def missing_servers(loaded: LoadedConfig, cases: Sequence[PlacedCase]) -> list[str]:
    """A line for each agent of these cases that has MCP servers, which do not run in a case."""
    tested = {p.case.agent for p in cases if p.case.incoming is not None}
    return [
        f"agents.{name}: MCP servers do not run in prompt tests, so the tools of "
        f"{', '.join(agent.mcp)} are missing"
        for name, agent in loaded.file.agents.items()
        if name in tested and agent.mcp
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
        # The folder names the prompt of a message only: a conversation can test another prompt.
        own = settings if case.message is not None else file
        placed.append(PlacedCase(case.under(own), document, ("cases", n)))
        if case.name in {earlier.name for earlier in file.cases[:n]}:
            problem = placed[-1].problem(f"an earlier case has the name '{case.name}', too", "name")
            document.problems.append(problem)
    return placed


def _problems(placed: PlacedCase, loaded: LoadedConfig) -> Iterator[ConfigError]:
    case, file = placed.case, loaded.file
    name = case.name
    if case.agent is not None and case.agent not in file.agents:
        hint = nearest(case.agent, file.agents)
        yield placed.problem(f"'{name}' names the unknown agent '{case.agent}'{hint}", "agent")
    elif case.agent is not None and file.agents[case.agent].kind in _WITHOUT_MODEL:
        yield placed.problem(f"'{name}': the agent '{case.agent}' has no model", "agent")
    elif case.says is not None:
        for said in case.says:
            targets = [f"#{name}" for name in file.channels] + list(file.agents)
            if said.to.removeprefix("@") not in targets:
                hint = nearest(said.to, targets)
                yield placed.problem(f"'{name}' is sent to the unknown '{said.to}'{hint}", "says")
    elif case.incoming is not None:
        yield from _conversation_problems(placed, loaded)
    elif case.prompt is None:
        yield placed.problem(f"'{name}' has a message, but no prompt to send it to")
    if case.model is not None and case.model not in file.models:
        hint = nearest(case.model, file.models)
        yield placed.problem(f"'{name}' names the unknown model '{case.model}'{hint}", "model")
    for n, expectation in enumerate(case.expect):
        if expectation.schema_ is not None:
            try:
                Draft202012Validator.check_schema(expectation.schema_)
            except SchemaError as exc:
                at = ("expect", n, "schema")
                yield placed.problem(f"'{name}': invalid JSON Schema: {exc.message}", *at)


def _conversation_problems(placed: PlacedCase, loaded: LoadedConfig) -> Iterator[ConfigError]:
    case = placed.case
    if case.agent is None:
        yield placed.problem(f"'{case.name}' has an incoming message, but no agent")
        return
    agent = loaded.file.agents[case.agent]
    for thread in [*case.threads, *([case.thread] if case.thread else [])]:
        if thread_ids.canonical(thread, case.agent) is None:
            problem = f"'{thread}' is not a thread: use direct_NAME, channel_NAME or broadcast"
            yield placed.problem(problem, "threads", thread)
    for message in case.incoming or ():
        if message.sender in agent.ignore_senders:
            problem = f"'{case.agent}' ignores messages from '{message.sender}'"
            yield placed.problem(problem, "incoming")
        if message.sender == case.agent:
            yield placed.problem("an agent is not woken by its own message", "incoming")
    used = agent.prompt.name if agent.prompt else None
    if case.prompt is not None and case.prompt.partition("@")[0] != used:
        problem = f"'{case.agent}' does not use the prompt '{case.prompt}'"
        hint = f"; it uses '{used}'" if used else ""
        yield placed.problem(problem + hint, "prompt")
    if case.variables and used is None:
        yield placed.problem(f"the prompt of '{case.agent}' has no variables", "variables")


def add_case(file: Path, recording: Recording) -> None:
    """Append a recording to a file of cases, and write its cassette next to the file. The case
    expects the same agents to answer, with the same tool calls.

    Raises `UserError` for a recording that a case cannot express or a file that is not a file of
    cases or has the case already; `OSError`.
    """
    name = str(_case_of(recording)["name"])
    text, lines = file.read_text("utf-8") if file.exists() else "cases:\n", case_text(recording)
    text = f"{text.rstrip()}\n{lines}"
    try:
        cases = CaseFile.model_validate(yaml.safe_load(text)).cases
    except (ValidationError, yaml.YAMLError) as exc:
        raise UserError(
            f"{shown_path(file)}: the case cannot be appended; add it yourself:\n{lines}"
        ) from exc
    if name in {case.name for case in cases[:-1]}:
        raise UserError(f"{shown_path(file)} already has the case '{name}': remove it first")
    cassettes = Cassettes(file)
    file.write_text(text, encoding="utf-8")
    cassettes.put(name, [Cassette(case=name, recording=recording)])


def case_text(recording: Recording) -> str:
    """The recording as an item of `cases`. Raises `UserError`."""
    lines = yaml.safe_dump([_case_of(recording)], sort_keys=False, allow_unicode=True, width=100)
    return textwrap.indent(lines, "  ")


def _case_of(recording: Recording) -> dict[str, JsonValue]:
    says: list[JsonValue] = []
    answering: dict[str, None] = {}
    for asked in recording.asked:
        thread, others = asked.thread_id, asked.recipients
        channel = thread_ids.kind_of(thread) == "channel"
        if thread_ids.root(thread) != thread or not (channel or len(others) == 1):
            raise UserError(f"{asked.id} cannot be a case: it has several recipients or is a reply")
        to = f"#{thread.partition('.')[2]}" if channel else others[0]
        says.append({"from": asked.sender_id, "to": to, "text": asked.text})
        answers = (m for m in recording.messages if m.sender_kind == "agent")
        answering |= {m.sender_id: None for m in answers if thread_ids.within(m.thread_id, thread)}
    calls = {c.name: None for turn in recording.turns for s in turn.steps for c in s.calls}
    expect: list[JsonValue] = [{"answered_by": name} for name in answering if len(answering) == 1]
    expect += [{"tool_called": name} for name in calls if name != "finish"]
    expect += [{"max_turns": 2 * max(1, len(recording.turns))}, "never_silent", "no_loop"]
    beginning = textwrap.shorten(recording.asked[0].text, 60, placeholder="…")
    name = f"{beginning} ({recording.asked[0].id})"
    return {"name": name, "says": says, "expect": expect}


# Fixtures -----------------------------------------------------------------------------------------


_START = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
"""Fixed, so that a case always gives the same prompt: a Monday morning."""


def case_fixture(case: Case, me: str, file: NetworkFile, ready: Ready) -> DryRunFixture:
    """The network's state for the agent `me`: `ready` with the case's threads, and the incoming
    messages as the wakes of one turn.

    Threads are ordered as in the case; the messages of the last one are the newest.
    """
    incoming = case.incoming or []
    writer = _CaseWriter(me, file)
    thread = writer.thread(case.thread, incoming)
    earlier = {thread_ids.canonical(id, me) or id: items for id, items in case.threads.items()}
    threads = {id: [writer.message(id, item) for item in items] for id, items in earlier.items()}
    waking = [writer.message(thread, item) for item in incoming]
    threads[thread] = [*threads.get(thread, []), *waking]
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
    """Writes messages and numbers them."""

    def __init__(self, me: str, file: NetworkFile):
        self.seq = 0
        self._me, self._file = me, file
        self._default_sender = next(iter(file.humans), "ann")
        self._tseqs: dict[str, int] = {}
        self._senders: dict[str, None] = {}

    def thread(self, id: str | None, incoming: Sequence[CaseMessage]) -> str:
        """The canonical id of the incoming messages' thread."""
        if id is not None:
            return thread_ids.canonical(id, self._me) or id
        return thread_ids.direct({self._me, incoming[0].sender or self._default_sender})

    def message(self, thread: str, item: CaseMessage) -> Message:
        sender = item.sender or self._default_sender
        members = thread_ids.members_of(thread)
        self.seq += 1
        self._tseqs[thread] = self._tseqs.get(thread, 0) + 1
        self._senders[sender] = None
        return Message(
            id=f"m{self.seq}",
            seq=self.seq,
            thread_id=thread,
            tseq=self._tseqs[thread],
            sender_id=sender,
            sender_kind=self._kind(sender),
            type=thread_ids.kind_of(thread),
            recipients=tuple(m for m in members if m != sender),
            content=item.text,
            interaction_id=f"i{self.seq}",
            hop=0,
            sent_at=_START + timedelta(minutes=self.seq),
        )

    def _kind(self, sender: str) -> SenderKind:
        return "agent" if sender == self._me or sender in self._file.agents else "human"

    def strangers(self, ready: Ready) -> Iterator[Participant]:
        """Senders that are not in the config."""
        registered = {participant.id for participant in ready.participants}
        for name in self._senders:
            if name not in registered:
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
