"""Runs each case against its model several times, and counts the results.

    report = await run_cases(loaded, load_cases(loaded, files), runs=5, bar=0.9)
    report.passed

Only models are reached, unless cassettes replace them: see `hubbub.lab.dry_run` for one agent,
`hubbub.lab.networks` for a whole network.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from hubbub.agents.models.base import CompletionRequest
from hubbub.agents.models.providers import open_model
from hubbub.agents.prompt.context import PromptContext
from hubbub.agents.prompt.system import template_variables
from hubbub.agents.prompt.versions import PromptLibrary, PromptTemplate
from hubbub.app.preflight import without_key
from hubbub.app.prompts import AgentPrompt, libraries, library_with
from hubbub.config.loader import LoadedConfig
from hubbub.config.models import AgentConfig, PromptConfig
from hubbub.config.problems import nearest
from hubbub.config.prompting import LATEST
from hubbub.errors import ConfigError, ModelError, UserError
from hubbub.lab.branches import with_model
from hubbub.lab.cases import PlacedCase, case_fixture
from hubbub.lab.dry_run import dry_run
from hubbub.lab.expectations import CaseRun, ConfidenceInterval, failures, wilson
from hubbub.lab.messages import RunMessage
from hubbub.lab.networks import MOST_S, FaultInjector, NetworkRun
from hubbub.lab.recordings import Cassette, Cassettes, Recording, Tape
from hubbub.lab.reports import PreviousResults
from hubbub.protocol import thread_ids
from hubbub.protocol.turns import Step

__all__ = ["CaseReport", "CasesReport", "Run", "run_cases"]

Status = Literal["passed", "failed", "error"]


@dataclass(frozen=True, slots=True)
class Run:
    """One run of one case."""

    failures: tuple[str, ...] = ()
    """The expectations that did not hold."""
    error: str | None = None
    """Why there was no answer to judge: the model's endpoint or the agent failed."""
    seconds: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0

    @property
    def status(self) -> Status:
        if self.error is not None:
            return "error"
        return "failed" if self.failures else "passed"


@dataclass(frozen=True, slots=True)
class CaseReport:
    """The result of one case."""

    placed: PlacedCase
    runs: tuple[Run, ...]
    bar: float
    before: tuple[int, int] | None = None
    """Of the previous report: runs that passed, and runs with an answer."""

    def count(self, status: Status) -> int:
        return sum(run.status == status for run in self.runs)

    @property
    def answered(self) -> int:
        """Runs with an answer to judge."""
        return len(self.runs) - self.count("error")

    @property
    def rate(self) -> float | None:
        """The share of answered runs that passed; None without answered runs."""
        return self.count("passed") / self.answered if self.answered else None

    @property
    def interval(self) -> ConfidenceInterval:
        return wilson(self.count("passed"), self.answered)

    @property
    def trend(self) -> Literal["better", "worse", "changed"] | None:
        """Compared with the previous report: `better` or `worse` if the intervals do not overlap,
        `changed` if the difference can be chance. None: the same rate, or no previous report."""
        if self.before is None or self.rate is None or self.before[0] / self.before[1] == self.rate:
            return None
        then, now = wilson(*self.before), self.interval
        if now.low > then.high:
            return "better"
        return "worse" if now.high < then.low else "changed"

    @property
    def status(self) -> Status:
        """error: some run had no answer, and the others are above the bar."""
        if self.rate is not None and self.rate < self.bar:
            return "failed"
        return "error" if self.count("error") else "passed"


@dataclass(frozen=True, slots=True)
class CasesReport:
    """The results of all cases, in their order."""

    cases: tuple[CaseReport, ...]
    seconds: float

    @property
    def passed(self) -> bool:
        return all(case.status == "passed" for case in self.cases)


async def run_cases(
    loaded: LoadedConfig,
    cases: Sequence[PlacedCase],
    *,
    runs: int = 5,
    bar: float = 0.9,
    concurrency: int = 4,
    model: str | None = None,
    on_run: Callable[[PlacedCase, Run], None] = lambda placed, run: None,
    record: bool = False,
) -> CasesReport:
    """Run each case `runs` times, at most `concurrency` runs at once. `model` replaces the model of
    the case or its agent. `on_run` is called with each completed run. Cases of whole networks are
    answered from the cassettes next to their file, if there are any; with `record`, their models
    are asked and the cassettes are rewritten.

    Raises `UserError` for cases that cannot run, before any request to a model, and for an agent
    that cannot start.
    """
    players = [_player(loaded, placed, model, record=record) for placed in cases]
    slots = asyncio.Semaphore(concurrency)
    started = time.monotonic()

    async def one(placed: PlacedCase, player: _Player) -> Run:
        async with slots:
            run = await _run(placed, player)
        on_run(placed, run)
        return run

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [
                [group.create_task(one(p, _at(player, n))) for n in range(p.case.runs or runs)]
                for p, player in zip(cases, players, strict=True)
            ]
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None  # an error in an agent's config affects all runs
    for player in players:
        if isinstance(player, _NetworkPlayer) and player.recorded:
            Cassettes(player.placed.path).put(player.placed.case.name, player.recorded)
    previous = PreviousResults(loaded.path.parent)
    reports = [
        CaseReport(
            p,
            tuple(t.result() for t in each),
            bar if p.case.bar is None else p.case.bar,
            previous.counts.get(_key(p)),
        )
        for p, each in zip(cases, tasks, strict=True)
    ]
    previous.put({_key(r.placed): (r.count("passed"), r.answered) for r in reports if r.answered})
    return CasesReport(tuple(reports), time.monotonic() - started)


def _key(placed: PlacedCase) -> str:
    return f"{placed.path.name}: {placed.case.name}"


async def _run(placed: PlacedCase, player: _Player) -> Run:
    started = time.monotonic()
    try:
        run = await player.play()
    except ModelError as exc:
        return Run(error=str(exc), seconds=time.monotonic() - started)
    error = run.reason if run.outcome in ("model_error", "handler_error") else None
    return Run(
        failures=tuple(failures(placed.case.expect, run)) if error is None else (),
        error=error,
        seconds=time.monotonic() - started,
        tokens_in=run.tokens_in,
        tokens_out=run.tokens_out,
    )


# Players ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _AgentPlayer:
    """Plays a conversation to an agent."""

    placed: PlacedCase
    prompt: AgentPrompt

    async def play(self) -> CaseRun:
        prompt, case = self.prompt, self.placed.case
        file = prompt.loaded.file
        run = await dry_run(
            prompt.config,
            prompt.name,
            case_fixture(case, prompt.name, file, prompt.ready),
            prompt.loaded.path.parent,
            file.models,
            case.results,
            mods=prompt.mods,
        )
        tools = (entry.tool.spec for entry in prompt.toolbox.registry.entries)
        return replace(run, schemas={tool.name: tool.parameters for tool in tools})


@dataclass(frozen=True, slots=True)
class _PromptPlayer:
    """Sends a message to a prompt."""

    placed: PlacedCase
    loaded: LoadedConfig
    model: str
    system: str

    async def play(self) -> CaseRun:
        message = self.placed.case.message or ""
        model = open_model(self.loaded.file.models[self.model], self.model)
        try:
            answer = await model.answer(
                CompletionRequest(
                    [
                        {"role": "system", "content": self.system},
                        {"role": "user", "content": message},
                    ]
                )
            )
        finally:
            await model.close()
        text = answer.text or ""
        step = Step(n=1, text=text, tokens_in=answer.tokens_in, tokens_out=answer.tokens_out)
        return CaseRun((step,), (text,) if text else ())


@dataclass(frozen=True, slots=True)
class _NetworkPlayer:
    """Sends messages to a whole network."""

    placed: PlacedCase
    loaded: LoadedConfig
    cassettes: Cassettes
    record: bool
    recorded: list[Cassette] = field(default_factory=list)
    number: int = 0

    async def play(self) -> CaseRun:
        case, cassettes = self.placed.case, self.cassettes.of(self.placed.case.name)
        cassette = cassettes[self.number % len(cassettes)] if cassettes else None
        tape = Tape(cassette.recording) if cassette is not None and not self.record else None
        number = self.number if tape is None or cassette is None else cassette.run
        run = NetworkRun(
            self.loaded,
            case.results,
            tape,
            faults=FaultInjector(case.faults, f"{case.name} {number}"),
        )
        history = cassette.recording.history if cassette is not None else ()
        try:
            recording = await run.run([RunMessage.of(m) for m in history], self._messages())
        except TimeoutError as exc:
            raise ModelError(f"it did not end within {MOST_S:g} s") from exc
        if run.end is not None and run.end.lacking is None:
            raise ModelError(f"{run.end.text}: record again with --record")
        if self.record:
            self.recorded.append(Cassette(case=case.name, run=self.number, recording=recording))
        return _case_run(recording, run)

    def _messages(self) -> list[RunMessage]:
        """The messages that the case sends."""
        file = self.loaded.file
        person, messages = next(iter(file.humans), "ann"), list[RunMessage]()
        for said in self.placed.case.says or ():
            sender, to = said.sender or person, said.to.removeprefix("@")
            name = to.removeprefix("#")
            direct = to == name
            thread = thread_ids.direct([sender, to]) if direct else thread_ids.channel(name)
            messages.append(RunMessage(sender, "human", thread, said.text))
        return messages


def _case_run(recording: Recording, run: NetworkRun) -> CaseRun:
    """Raises `ModelError` for a model that failed without an injected fault."""
    unfinished = [t.end for t in recording.turns if t.end and t.end.outcome != "finished"]
    end = next(iter(unfinished), None)
    failed = end is not None and end.outcome in ("model_error", "handler_error")
    if failed and end is not None and run.end is None and run.faults.fault != "rate_limit":
        raise ModelError(end.reason)
    threads = {message.thread_id for message in recording.asked}
    by_agents = (m for m in recording.messages if m.sender_kind == "agent")
    sent = [m for m in by_agents if any(thread_ids.within(m.thread_id, one) for one in threads)]
    return CaseRun(
        steps=tuple(step for turn in recording.turns for step in turn.steps),
        sent=tuple(message.text for message in sent),
        outcome="finished" if end is None else None if failed else end.outcome,
        reason=end.reason if end is not None else "",
        lacking=run.end.lacking if run.end is not None else None,
        turns=recording.turns,
        senders=tuple(message.sender_id for message in sent),
        notices=run.notices,
    )


_Player = _AgentPlayer | _PromptPlayer | _NetworkPlayer


def _at(player: _Player, number: int) -> _Player:
    return replace(player, number=number) if isinstance(player, _NetworkPlayer) else player


def _player(
    loaded: LoadedConfig, placed: PlacedCase, model: str | None, *, record: bool
) -> _Player:
    """Raises `UserError` when the case cannot be run."""
    chosen = model or placed.case.model
    if chosen is not None and chosen not in loaded.file.models:
        raise UserError(f"there is no model '{chosen}'{nearest(chosen, loaded.file.models)}")
    if placed.case.says is not None:
        return _network_player(loaded, placed, chosen, record=record)
    if placed.case.incoming is not None:
        return _agent_player(loaded, placed, chosen)
    return _prompt_player(loaded, placed, chosen)


def _network_player(
    loaded: LoadedConfig, placed: PlacedCase, model: str | None, *, record: bool
) -> _NetworkPlayer:
    if model is not None:
        loaded = with_model(loaded, model)
    player = _NetworkPlayer(placed, loaded, Cassettes(placed.path), record)
    if record or not player.cassettes.of(placed.case.name):
        used = {m for name in loaded.file.agents for m in loaded.file.agent(name).used_models}
        for each in sorted(used):
            _check_key(loaded, each)
    return player


def _agent_player(loaded: LoadedConfig, placed: PlacedCase, model: str | None) -> _AgentPlayer:
    case = placed.case
    assert case.agent is not None, "checked when it was loaded"
    config = loaded.file.agent(case.agent)
    update: dict[str, object] = {"prompt": _pinned(config.prompt, placed)} if config.prompt else {}
    if model is not None:
        update |= {"model": model, "models": {}}
    config = config.model_copy(update=update)
    for used in config.used_models:
        _check_key(loaded, used)
    prompt = AgentPrompt.of(loaded, case.agent, config)
    _check_tools(placed, prompt)
    return _AgentPlayer(placed, prompt)


def _pinned(settings: PromptConfig, placed: PlacedCase) -> PromptConfig:
    """The agent's prompt with the variables of the case, and its version for all threads."""
    case = placed.case
    update: dict[str, object] = {"variables": {**settings.variables, **case.variables}}
    if case.prompt is not None:
        version = case.prompt.partition("@")[2] or LATEST
        update |= {"version": version, "rollout": None}
    return settings.model_copy(update=update)


def _check_tools(placed: PlacedCase, prompt: AgentPrompt) -> None:
    """Raises `ConfigError` for a tool that the agent does not have in a case."""
    if prompt.config.kind != "llm":
        return  # roles have tools of their own
    names = prompt.toolbox.names
    for tool in placed.case.results:
        _check_server(placed, prompt, tool, "results", tool)
        if tool not in names:
            problem = f"'{prompt.name}' has no tool '{tool}'{nearest(tool, names)}"
            raise placed.problem(problem, "results", tool)
    for n, expected in enumerate(placed.case.expect):
        tools = (expected.tool_called, expected.tool_not_called, expected.arguments_match)
        for tool in filter(None, tools):
            _check_server(placed, prompt, tool, "expect", n)


def _check_server(placed: PlacedCase, prompt: AgentPrompt, tool: str, *key: str | int) -> None:
    """Raises `ConfigError` for a tool of an MCP server: without the server it is never called, so
    the case proves nothing."""
    servers = (server for server in prompt.config.mcp if tool.startswith(f"{server}_"))
    server = next(servers, None)
    if server is not None and tool not in prompt.toolbox.names:
        raise placed.problem(
            f"'{tool}' is a tool of the MCP server {server}, which does not run in prompt tests",
            *key,
        )


def _prompt_player(loaded: LoadedConfig, placed: PlacedCase, model: str | None) -> _PromptPlayer:
    case = placed.case
    name, _, version = (case.prompt or "").partition("@")
    agent = case.agent or _agent_with(loaded, name)
    config = loaded.file.agent(agent) if agent is not None else AgentConfig()
    settings = config.prompt if config.prompt and config.prompt.name == name else None
    wanted = version or (settings.version if settings else LATEST)
    template = _template(loaded, name, settings, wanted)
    used = model or config.model
    if used not in loaded.file.models:
        hint = nearest(used, loaded.file.models)
        raise placed.problem(f"'{case.name}' needs a model, and there is no '{used}'{hint}")
    _check_key(loaded, used)
    context = _context(loaded, agent, config)
    settings = (settings or PromptConfig(name=name)).model_copy(
        update={"variables": {**(settings.variables if settings else {}), **case.variables}}
    )
    try:
        system = template.render(template_variables(context, settings))
    except ConfigError as exc:
        raise placed.problem(f"'{case.name}': {exc.message}", "variables") from exc
    return _PromptPlayer(placed, loaded, used, system)


def _context(loaded: LoadedConfig, agent: str | None, config: AgentConfig) -> PromptContext:
    if agent is None:
        return PromptContext(agent="agent", network=loaded.file.network.name)
    prompt = AgentPrompt.of(loaded, agent, config)
    return prompt.context(prompt.thread())


def _template(
    loaded: LoadedConfig, name: str, settings: PromptConfig | None, version: str
) -> PromptTemplate:
    if settings is not None:
        return PromptLibrary(loaded.path.parent / settings.folder).load(name, version)
    return library_with(libraries(loaded).values(), name).load(name, version)


def _agent_with(loaded: LoadedConfig, prompt: str) -> str | None:
    """An agent that uses the prompt."""
    agents = loaded.file.agents.items()
    return next((n for n, a in agents if a.prompt is not None and a.prompt.name == prompt), None)


def _check_key(loaded: LoadedConfig, model: str) -> None:
    if model in loaded.file.models and loaded.file.models[model].lacks_key:
        raise UserError(without_key(model))
