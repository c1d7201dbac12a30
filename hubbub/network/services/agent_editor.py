"""Agents that owners make, change and remove while the network runs.

The file of an agent is what holds. Every version is remembered at the hub with who made it and
when: that is the audit record, and what a rollback takes up.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, Protocol, TypeVar

from pydantic_core import from_json

from hubbub.config.agents import AgentConfig
from hubbub.config.units import parse_address
from hubbub.errors import ModelError, OperationError, StoreUnavailable, UserError
from hubbub.logs import get_logger
from hubbub.mods.completions import Completions
from hubbub.mods.operation import Commit, conflict, forbidden, not_found, operation
from hubbub.network.admission import Admission
from hubbub.network.auth import new_token
from hubbub.network.caller import Caller
from hubbub.network.kernel import Kernel
from hubbub.network.queries import MemoriesOf
from hubbub.network.records import MemoryWritten, Record
from hubbub.network.service import Registry, Service
from hubbub.network.services.budgets.budgets import BudgetService
from hubbub.network.services.launcher import LauncherService
from hubbub.protocol.agents import (
    AgentChoices,
    AgentDefinition,
    AgentDraft,
    AgentFields,
    AgentProblem,
    AgentProblems,
    AgentSaved,
    AgentVersion,
    CheckAgent,
    DescribeAgent,
    EditAgent,
    NewAgent,
    ReadAgent,
    ReadAgentChoices,
    RemoveAgent,
    RollBackAgent,
    ToolChoice,
)
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.thread_ids import is_id, is_participant_id
from hubbub.wording import shortened

__all__ = ["AgentEditorService", "AgentFiles", "CheckedConfig"]

log = get_logger(__name__)
R = TypeVar("R")

MOST_BYTES = 1 << 20
"""Of one version; a frame is smaller."""
INSTRUCTION = """\
You draft an agent for a messaging network from one sentence of a person. Answer with one JSON \
object and nothing else: {{"name": 1 to 20 lower-case letters or '-', "description": one short \
line for others, "instruction": its system prompt in three to eight sentences, written to it as \
"you"}}. Write in the language of the sentence. Names that are taken: {taken}."""


class CheckedConfig(NamedTuple):
    """An agent's config as it would be, or what is wrong with it."""

    config: AgentConfig | None
    problems: Sequence[AgentProblem]


class AgentFiles(Protocol):
    """Files and processes of the agents that are made here."""

    def file(self, agent: str) -> str: ...

    def removable(self, agent: str) -> bool:
        """Whether it has a file of its own."""

    def agents(self) -> Sequence[str]:
        """Those that can be changed."""

    def fields(self, agent: str) -> AgentFields | None:
        """As its file says now; None: it has none. Raises `UserError`."""

    def check(self, agent: str, fields: AgentFields | None) -> CheckedConfig: ...

    def write(self, agent: str, fields: AgentFields | None) -> Callable[[], None]:
        """Returns what undoes it. Raises `OSError`, and has done nothing then."""

    def start(self, agent: str, token: str) -> None: ...

    async def remove(self, agent: str) -> None: ...


class AgentEditorService(Service):
    """For owners only."""

    def __init__(
        self,
        kernel: Kernel,
        registry: Registry,
        launcher: LauncherService,
        budgets: BudgetService,
        completions: Completions,
    ):
        super().__init__(kernel)
        self._registry, self._launcher, self._budgets = registry, launcher, budgets
        self._completions = completions
        self._changing: set[str] = set()
        """Files with a change on its way."""
        self.files: AgentFiles | None = None
        self.admission: Admission

    # Reading ----------------------------------------------------------------------------------

    @operation(permission="admin", tool=False)
    async def agent_choices(self, call: Caller, args: ReadAgentChoices) -> AgentChoices:
        """List the models, tools and channels among which an agent can be made, and the agents that
        can be changed."""
        file, files, refused = self.kernel.file, self.files, self._refusal()
        agents = await asyncio.to_thread(files.agents) if files and not refused else ()
        everybody = [name for name, channel in file.channels.items() if channel.members == "all"]
        return AgentChoices(
            models=tuple(file.models),
            tools=() if refused else tuple(self._tools()),
            channels=tuple(name for name in file.channels if name not in everybody),
            everybody=tuple(everybody),
            agents=tuple(agent for agent in agents if agent in file.agents),
            refused=refused,
        )

    @operation(permission="admin", tool=False)
    async def read_agent(self, call: Caller, args: ReadAgent) -> AgentDefinition:
        """Read how an agent is defined, and how it was defined before."""
        files = self._files()
        fields = await asyncio.to_thread(_current, files, args.agent)
        versions = await self._versions(args.agent, fields)
        return AgentDefinition(
            agent=args.agent,
            fields=fields,
            version=versions[0].version,
            versions=tuple(versions),
            file=files.file(args.agent),
            removable=files.removable(args.agent),
        )

    @operation(permission="admin", tool=False)
    async def check_agent(self, call: Caller, args: CheckAgent) -> AgentProblems:
        """Say what is wrong with an agent that is not saved yet, field by field."""
        files, fields = self._files(), _fields(args)
        before = None if args.new else await asyncio.to_thread(_current, files, args.agent)
        problems = [*self._problems(args.agent, fields, before)]
        if not problems:
            problems += (await asyncio.to_thread(_checked, files, args.agent, fields)).problems
        return AgentProblems(problems=tuple(problems))

    @operation(permission="admin", tool=False)
    async def draft_agent(self, call: Caller, args: DescribeAgent) -> AgentDraft:
        """Draft an agent from a sentence: by a model of the network, where there is one that
        answers."""
        self._files()
        sentence = " ".join(args.sentence.split())
        fields = AgentFields(description=shortened(sentence, 120), instruction=_as_told(sentence))
        models = self.kernel.file.models
        name = "default" if "default" in models else next(iter(models), None)
        if name is None:
            return AgentDraft(agent=self._free(_noun(sentence)), fields=fields)
        taken = ", ".join(sorted(self.state.participants())[:100])
        asked = [
            {"role": "system", "content": INSTRUCTION.format(taken=taken)},
            {"role": "user", "content": sentence},
        ]
        try:
            answer = (await self._completions.ask(models[name], asked)).text
            found = from_json(answer[answer.index("{") : answer.rindex("}") + 1])
            said = {key: str(found[key]).strip() for key in ("name", "description", "instruction")}
            drafted = AgentFields(
                description=shortened(said["description"], 200) or fields.description,
                instruction=said["instruction"] or fields.instruction,
                model=name,
            )
            return AgentDraft(agent=self._free(said["name"]), fields=drafted)
        except (ModelError, ValueError, LookupError, TypeError) as error:
            why = str(error) if isinstance(error, ModelError) else "its answer is no draft"
            note = f"{name} could not write it ({why}): the sentence is the instruction"
            plain = fields.model_copy(update={"model": name})
            return AgentDraft(agent=self._free(_noun(sentence)), fields=plain, note=note)

    # Changing ---------------------------------------------------------------------------------

    @operation(permission="admin", tool=False, output=AgentSaved)
    async def add_agent(self, call: Caller, args: NewAgent) -> Commit[Record]:
        """Make an agent: its file is written, and it starts at once."""
        return await self._change(call, args.agent, _fields(args), new=True)

    @operation(permission="admin", tool=False, output=AgentSaved)
    async def edit_agent(self, call: Caller, args: EditAgent) -> Commit[Record]:
        """Change an agent; what is left out stays. It starts anew with it, and goes on with the
        turn that it was in."""
        fields = await asyncio.to_thread(_current, self._files(), args.agent)
        given = {name: getattr(args, name) for name in args.model_fields_set}
        changed = fields.model_copy(update={k: v for k, v in given.items() if hasattr(fields, k)})
        return await self._change(call, args.agent, changed, version=args.version)

    @operation(permission="admin", tool=False, output=AgentSaved)
    async def roll_back_agent(self, call: Caller, args: RollBackAgent) -> Commit[Record]:
        """Make an earlier version of an agent hold again."""
        fields = await asyncio.to_thread(_current, self._files(), args.agent)
        versions = await self._versions(args.agent, fields)
        wanted = next((each.fields for each in versions if each.version == args.to), None)
        if wanted is None:
            raise not_found(f"to: {args.agent} has no version {args.to}")
        return await self._change(call, args.agent, wanted)

    @operation(permission="admin", tool=False, output=AgentSaved)
    async def remove_agent(self, call: Caller, args: RemoveAgent) -> Commit[Record]:
        """Remove an agent that has a file of its own, with that file. What it said stays."""
        await asyncio.to_thread(_current, self._files(), args.agent)
        return await self._change(call, args.agent, None)

    async def _change(
        self,
        call: Caller,
        agent: str,
        fields: AgentFields | None,
        *,
        new: bool = False,
        version: int | None = None,
    ) -> Commit[Record]:
        """File, record, process, in this order: a process that dies between leaves the file, and
        with it the agent starts with the network; a record that cannot be written takes the file
        back."""
        files, file = self._files(), ""
        if is_participant_id(agent) and (file := files.file(agent)) in self._changing:
            raise _conflict(f"somebody else is changing {agent} right now")
        self._changing.add(file)
        try:
            before = None if new else await asyncio.to_thread(_current, files, agent)
            if problems := [*self._problems(agent, fields, before)]:
                raise _wrong(problems[0])
            versions = await self._versions(agent, before)
            latest = versions[0].version if versions else 0
            if version is not None and version != latest:
                raise _conflict(f"{agent} was changed meanwhile: it has version {latest} now")
            checked = await asyncio.to_thread(_checked, files, agent, fields)
            if checked.problems:
                raise _wrong(checked.problems[0])
            made = AgentVersion(
                version=latest + 1,
                at=datetime.fromtimestamp(self.kernel.clock.now(), UTC),
                by=call.participant,
                fields=fields,
            )
            by_hand = [each for each in versions[:1] if each.by is None]
            undo = await asyncio.to_thread(_written, files, agent, fields)
        except BaseException:
            self._changing.discard(file)
            raise
        saved = False

        def applied() -> None:
            nonlocal saved
            saved = True
            log.info("an agent is saved", agent=agent, by=call.participant, version=made.version)

        def released() -> None:
            if saved:
                return
            self._changing.discard(file)
            try:
                undo()
            except OSError as error:  # the disk that refused the record is often the same
                text = "an agent's file cannot be taken back: it holds with the next start"
                log.error(text, file=files.file(agent), error=str(error))

        async def answer() -> AgentSaved:
            try:
                await self._take_up(agent, checked.config)
            finally:
                self._changing.discard(file)
            return AgentSaved(agent=agent, version=made.version)

        records = [_record(agent, each) for each in (*by_hand, made)]
        return Commit(records, answer, applied, released)

    async def _take_up(self, agent: str, config: AgentConfig | None) -> None:
        files, known = self._files(), self.kernel.file.agents
        before = known.pop(agent, None)
        if config is None:
            self._launcher.put_down(agent, "does not exist any more")
            await files.remove(agent)
            return
        known[agent] = config
        try:
            await self._budgets.set_daily(agent, config.daily)
            await self.admission.declare_agent(agent, before)
        except StoreUnavailable:
            log.warning("an agent's channels and budget are not stored yet", agent=agent)
        if before is not None:
            await self._launcher.renew(agent)
            return
        self._launcher.put_down(agent, None)
        self.admission.add_token(agent, token := new_token())
        files.start(agent, token)

    # What may be ------------------------------------------------------------------------------

    def _files(self) -> AgentFiles:
        """Raises `OperationError` where no agents can be made."""
        if (why := self._refusal()) is not None or self.files is None:
            raise forbidden(why or "")
        return self.files

    def _refusal(self) -> str | None:
        config = self.kernel.config
        if config.auth == "open" and (config.hosts or not parse_address(config.listen).loopback):
            return "others can reach this open network: agents are made with `auth: tokens`"
        if config.agent_folder is None:
            add = "add `agent_folder: {}` to `network` in the YAML, and start it again"
            return f"no folder for agents: {add}"
        return None if self.files else "this network starts no agents"

    def _tools(self) -> Iterator[ToolChoice]:
        allowed = self.kernel.config.agent_folder and self.kernel.config.agent_folder.tools
        for each in sorted(self._registry.values(), key=lambda op: (op.mod, op.name)):
            usual = each.tool and each.permission != "admin"
            if usual and (allowed is None or each.name in allowed):
                about = each.description.partition(". ")[0].removesuffix(".") + "."
                yield ToolChoice(
                    name=each.name, about=about, permission=each.permission, mod=each.mod
                )

    def _problems(
        self, agent: str, fields: AgentFields | None, before: AgentFields | None
    ) -> Iterator[AgentProblem]:
        """What can be seen without the network's files. `before`: None for a new agent."""
        known, new = self.state.get(agent), before is None
        if not is_participant_id(agent):
            rule = "it is reserved" if is_id(agent) else "1 to 64 letters, digits, '-' or '_'"
            text = f"{agent[:64]!r} cannot be a name: {rule}"
            yield AgentProblem(field="agent", message=text)
        elif new and agent in self.kernel.file.agents:
            yield AgentProblem(field="agent", message=f"there is an agent {agent} already")
        elif new and known is not None and known.kind != "agent":
            yield AgentProblem(field="agent", message=f"{agent} is the name of somebody here")
        if fields is None:
            return
        if not (fields.instruction or "").strip() and (before is None or before.instruction):
            yield AgentProblem(field="instruction", message="say what it is to do")
        if fields.rollout and not (fields.rollout.instruction or fields.rollout.model):
            text = "say which instruction or model those threads get"
            yield AgentProblem(field="rollout", message=text)
        usual, had = [each.name for each in self._tools()], (before and before.tools) or ()
        if had and fields.tools is None and self._confined(agent):
            text = "its file says which tools it has: choose among those that are allowed"
            yield AgentProblem(field="tools", message=text)
        for tool in fields.tools or ():
            if tool not in usual and tool not in had:
                text = f"{tool[:64]!r} is no tool that can be chosen here"
                yield AgentProblem(field="tools", message=text)

    def _confined(self, agent: str) -> bool:
        """Whether it would have more tools than are allowed here if none were chosen: no file of
        the folder says less for it."""
        folder = self.kernel.config.agent_folder
        own = self.files is not None and not self.files.removable(agent)
        return own and folder is not None and folder.tools is not None

    def _free(self, wanted: str) -> str:
        name = re.sub(r"[^a-z0-9]+", "-", wanted.lower()).strip("-")[:32] or "agent"
        names = (name, *(f"{name}-{n}" for n in range(2, 1000)))
        free = (each for each in names if is_participant_id(each) and not self.state.knows(each))
        return next(free, "agent")

    async def _versions(self, agent: str, now: AgentFields | None) -> list[AgentVersion]:
        """The latest first. What was changed by hand since is a version, too."""
        rows = await self.store.read(MemoriesOf(_key(agent), MOST_BYTES))
        found = [AgentVersion.model_validate_json(row.value) for row in rows if row.value]
        latest = found[-1] if found else None
        if now is not None and (latest is None or latest.fields != now):
            found.append(AgentVersion(version=latest.version + 1 if latest else 1, fields=now))
        return found[::-1]


def _fields(args: AgentFields) -> AgentFields:
    return AgentFields(**{name: getattr(args, name) for name in AgentFields.model_fields})


def _current(files: AgentFiles, agent: str) -> AgentFields:
    """Raises `OperationError` for an agent that is not made here."""
    fields = _of_user(lambda: files.fields(agent)) if is_participant_id(agent) else None
    if fields is None:
        raise not_found(f"there is no agent {agent[:64]!r} that can be changed here")
    return fields


def _checked(files: AgentFiles, agent: str, fields: AgentFields | None) -> CheckedConfig:
    return _of_user(lambda: files.check(agent, fields))


def _of_user(ask: Callable[[], R]) -> R:
    try:
        return ask()
    except UserError as error:
        raise conflict(str(error)) from None


def _written(files: AgentFiles, agent: str, fields: AgentFields | None) -> Callable[[], None]:
    try:
        return files.write(agent, fields)
    except OSError as error:
        text = f"{files.file(agent)} cannot be written: {error.strerror or error}"
        raise OperationError(ErrorCode.STORE_UNAVAILABLE, text, temporary=True) from None


def _key(agent: str) -> str:
    """Under which the hub remembers an agent's versions: no participant is called so."""
    return f"agents/{agent}"


def _record(agent: str, version: AgentVersion) -> Record:
    return MemoryWritten(_key(agent), f"{version.version:09}", version.model_dump_json())


def _conflict(text: str) -> OperationError:
    return conflict(f"{text}; read it again")


def _wrong(problem: AgentProblem) -> OperationError:
    field = f"{problem.field}: " if problem.field else ""
    details = {"field": problem.field}
    return OperationError(ErrorCode.BAD_REQUEST, f"{field}{problem.message}", details=details)


def _noun(sentence: str) -> str:
    """What an agent is called that a sentence describes: `reviewer` for "a reviewer who ..."."""
    words = re.findall(r"[a-z0-9]+", sentence.lower())
    little = {"a", "an", "the", "somebody", "someone", "who", "that", "agent", "i", "want", "you"}
    return next((word for word in words if word not in little), "agent")


def _as_told(sentence: str) -> str:
    return f"You are {sentence}" if re.match(r"(?i)an? ", sentence) else sentence
