"""Files of cases: where they lie, and what is wrong with them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from pydantic import ValidationError

from hubbub.app.prompts import libraries
from hubbub.config.cases import Case, CaseFile
from hubbub.config.explain import explain
from hubbub.config.loader import LoadedConfig
from hubbub.config.problems import ConfigProblems, nearest
from hubbub.config.source import Document, Loc, parse
from hubbub.errors import ConfigError, UserError
from hubbub.protocol import thread_ids

__all__ = ["PlacedCase", "find_cases", "load_cases", "without_servers"]

_FOLDER = "cases"
_SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class PlacedCase:
    """A case that holds together, and where it stands."""

    case: Case
    document: Document
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


def load_cases(
    loaded: LoadedConfig, files: Sequence[Path], environ: Mapping[str, str] = os.environ
) -> list[PlacedCase]:
    """The cases of these files. Raises `ConfigProblems` with all that is wrong in them."""
    problems: list[ConfigError] = []
    cases: list[PlacedCase] = []
    for file in files:
        document = parse(file.absolute(), environ)
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


def _cases(document: Document, path: Path) -> list[PlacedCase]:
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
    elif case.agent is not None and file.agents[case.agent].kind in ("python", "acp"):
        yield placed.problem(f"'{name}': the agent '{case.agent}' has no model", "agent")
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
