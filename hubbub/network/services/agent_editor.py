"""Agents that owners create, change and remove while the network runs.

An agent's file is authoritative. The hub stores every version with its author and time, as the
audit record and for rollbacks.
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
from hubbub.protocol.thread_ids import ID_RULE, is_id, is_participant_id
from hubbub.wording import shortened

__all__ = ["AgentEditorService", "AgentFiles", "CheckedConfig"]

log = get_logger(__name__)
R = TypeVar("R")

MAX_BYTES = 1 << 20
"""Bytes of one version; a frame is smaller."""
INSTRUCTION = """\
You draft an agent for a messaging network from one sentence of a person. Answer with one JSON \
object and nothing else: {{"name": 1 to 20 lower-case letters or '-', "description": one short \
line for others, "instruction": its system prompt in three to eight sentences, written to it as \
"you"}}. Write in the language of the sentence. Names that are taken: {taken}."""


class CheckedConfig(NamedTuple):
    """An agent's resulting config, or the problems with it."""

    config: AgentConfig | None
    problems: Sequence[AgentProblem]


class AgentFiles(Protocol):
    """Files and processes of the agents created through the hub."""

    def file(self, agent: str) -> str: ...

    def removable(self, agent: str) -> bool:
        """Whether it has a file of its own."""

    def agents(self) -> Sequence[str]:
        """The agents that can be changed."""

    def fields(self, agent: str) -> AgentFields | None:
        """The current content of its file; None if it has none. Raises `UserError`."""

    def check(self, agent: str, fields: AgentFields | None) -> CheckedConfig: ...

    def write(self, agent: str, fields: AgentFields | None) -> Callable[[], None]:
        """Returns a function that undoes it. On `OSError` nothing was written."""

    def start(self, agent: str, token: str) -> None: ...

    async def remove(self, agent: str) -> None: ...


class AgentEditorService(Service):
    """Edits agents, for owners only."""

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
        """Files with a change in progress."""
        self.files: AgentFiles | None = None
        self.admission: Admission

    # Reading ----------------------------------------------------------------------------------

    @operation(permission="admin", tool=False)
    async def agent_choices(self, call: Caller, args: ReadAgentChoices) -> AgentChoices:
        """List the models, tools and channels available to a new agent, and the agents that can be
        changed."""
        file, files, refused = self.kernel.file, self.files, self._refusal()
        agents = await asyncio.to_thread(files.agents) if files and not refused else ()
        open_channels = [name for name, each in file.channels.items() if each.members == "all"]
        return AgentChoices(
            models=tuple(file.models),
            tools=() if refused else tuple(self._tools()),
            channels=tuple(name for name in file.channels if name not in open_channels),
            everybody=tuple(open_channels),
            agents=tuple(agent for agent in agents if agent in file.agents),
            refused=refused,
        )

    @operation(permission="admin", tool=False)
    async def read_agent(self, call: Caller, args: ReadAgent) -> AgentDefinition:
        """Read an agent's definition, and its earlier versions."""
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
        """Check an agent that is not saved yet, and list the problems by field."""
        files, fields = self._files(), _fields(args)
        before = None if args.new else await asyncio.to_thread(_current, files, args.agent)
        problems = [*self._problems(args.agent, fields, before)]
        if not problems:
            problems += (await asyncio.to_thread(_checked, files, args.agent, fields)).problems
        return AgentProblems(problems=tuple(problems))

    @operation(permission="admin", tool=False)
    async def draft_agent(self, call: Caller, args: DescribeAgent) -> AgentDraft:
        """Draft an agent from a sentence, with a model of the network if one answers."""
        self._files()
        sentence = " ".join(args.sentence.split())
        fields = AgentFields(
            description=shortened(sentence, 120), instruction=_instruction(sentence)
        )
        models = self.kernel.file.models
        name = "default" if "default" in models else next(iter(models), None)
        if name is None:
            return AgentDraft(agent=self._free(_noun(sentence)), fields=fields)
        taken = ", ".join(sorted(self.state.participants())[:100])
        prompt = [
            {"role": "system", "content": INSTRUCTION.format(taken=taken)},
            {"role": "user", "content": sentence},
        ]
        try:
            answer = (await self._completions.ask(models[name], prompt)).text
            draft = from_json(answer[answer.index("{") : answer.rindex("}") + 1])
            texts = {key: str(draft[key]).strip() for key in ("name", "description", "instruction")}
            drafted = AgentFields(
                description=shortened(texts["description"], 200) or fields.description,
                instruction=texts["instruction"] or fields.instruction,
                model=name,
            )
            return AgentDraft(agent=self._free(texts["name"]), fields=drafted)
        except (ModelError, ValueError, LookupError, TypeError) as error:
            why = str(error) if isinstance(error, ModelError) else "its answer is not a draft"
            note = f"{name} could not write a draft ({why}), so your sentence is the instruction"
            plain = fields.model_copy(update={"model": name})
            return AgentDraft(agent=self._free(_noun(sentence)), fields=plain, note=note)

    # Changing ---------------------------------------------------------------------------------

    @operation(permission="admin", tool=False, output=AgentSaved)
    async def add_agent(self, call: Caller, args: NewAgent) -> Commit[Record]:
        """Create an agent: its file is written, and it starts at once."""
        return await self._change(call, args.agent, _fields(args), new=True)

    @operation(permission="admin", tool=False, output=AgentSaved)
    async def edit_agent(self, call: Caller, args: EditAgent) -> Commit[Record]:
        """Change an agent; omitted fields stay. It restarts with the change and resumes its
        turn."""
        fields = await asyncio.to_thread(_current, self._files(), args.agent)
        given = {name: getattr(args, name) for name in args.model_fields_set}
        changed = fields.model_copy(update={k: v for k, v in given.items() if hasattr(fields, k)})
        return await self._change(call, args.agent, changed, version=args.version)

    @operation(permission="admin", tool=False, output=AgentSaved)
    async def roll_back_agent(self, call: Caller, args: RollBackAgent) -> Commit[Record]:
        """Restore an earlier version of an agent."""
        fields = await asyncio.to_thread(_current, self._files(), args.agent)
        versions = await self._versions(args.agent, fields)
        wanted = next((each.fields for each in versions if each.version == args.to), None)
        if wanted is None:
            raise not_found(f"to: {args.agent} has no version {args.to}")
        return await self._change(call, args.agent, wanted)

    @operation(permission="admin", tool=False, output=AgentSaved)
    async def remove_agent(self, call: Caller, args: RemoveAgent) -> Commit[Record]:
        """Remove an agent that has a file of its own, with that file. Its messages stay."""
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
        """Write the file, then the record, then start the process. After a crash in between, the
        file is there and the agent starts with the network. If the record cannot be written, the
        file is restored."""
        files, file = self._files(), ""
        if is_participant_id(agent) and (file := files.file(agent)) in self._changing:
            raise _conflicting(f"another owner is changing {agent} right now")
        self._changing.add(file)
        try:
            before = None if new else await asyncio.to_thread(_current, files, agent)
            if problems := [*self._problems(agent, fields, before)]:
                raise _invalid(problems[0])
            versions = await self._versions(agent, before)
            latest = versions[0].version if versions else 0
            if version is not None and version != latest:
                raise _conflicting(f"{agent} was changed meanwhile: it is at version {latest} now")
            checked = await asyncio.to_thread(_checked, files, agent, fields)
            if checked.problems:
                raise _invalid(checked.problems[0])
            saved_version = AgentVersion(
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
            log.info(
                "saved an agent", agent=agent, by=call.participant, version=saved_version.version
            )

        def released() -> None:
            if saved:
                return
            self._changing.discard(file)
            try:
                undo()
            except OSError as error:  # often the same disk that refused the record
                text = "an agent's file cannot be restored: the change applies at the next start"
                log.error(text, file=files.file(agent), error=str(error))

        async def answer() -> AgentSaved:
            try:
                await self._take_up(agent, checked.config)
            finally:
                self._changing.discard(file)
            return AgentSaved(agent=agent, version=saved_version.version)

        records = [_record(agent, each) for each in (*by_hand, saved_version)]
        return Commit(records, answer, applied, released)

    async def _take_up(self, agent: str, config: AgentConfig | None) -> None:
        files, agents = self._files(), self.kernel.file.agents
        before = agents.pop(agent, None)
        if config is None:
            await files.remove(agent)
            await self._launcher.removed(agent)
            return
        agents[agent] = config
        try:
            await self._budgets.set_daily(agent, config.daily)
            await self.admission.declare_agent(agent, before)
        except StoreUnavailable:
            log.warning("an agent's channels and budget are not stored yet", agent=agent)
        if before is not None:
            await self._launcher.renew(agent)
            return
        self._launcher.added(agent)
        self.admission.add_token(agent, token := new_token())
        files.start(agent, token)

    # Validation -------------------------------------------------------------------------------

    def _files(self) -> AgentFiles:
        """Raises `OperationError` where no agents can be created."""
        if (why := self._refusal()) is not None or self.files is None:
            raise forbidden(why or "")
        return self.files

    def _refusal(self) -> str | None:
        config = self.kernel.config
        if config.auth == "open" and (config.hosts or not parse_address(config.listen).loopback):
            return "others can reach this open network: creating agents needs `auth: tokens`"
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
        """Problems that show without the network's files. `before` is None for a new agent."""
        existing, new = self.state.get(agent), before is None
        if not is_participant_id(agent):
            rule = "it is reserved" if is_id(agent) else ID_RULE
            text = f"{agent[:64]!r} cannot be a name: {rule}"
            yield AgentProblem(field="agent", message=text)
        elif new and agent in self.kernel.file.agents:
            yield AgentProblem(field="agent", message=f"an agent named {agent} already exists")
        elif new and existing is not None and existing.kind != "agent":
            yield AgentProblem(field="agent", message=f"another participant is named {agent}")
        if fields is None:
            return
        if not (fields.instruction or "").strip() and (before is None or before.instruction):
            yield AgentProblem(field="instruction", message="describe what it should do")
        if fields.rollout and not (fields.rollout.instruction or fields.rollout.model):
            text = "set the instruction or the model for those threads"
            yield AgentProblem(field="rollout", message=text)
        usual, had = [each.name for each in self._tools()], (before and before.tools) or ()
        if had and fields.tools is None and self._confined(agent):
            text = "its file lists its tools: choose from those that are allowed"
            yield AgentProblem(field="tools", message=text)
        for tool in fields.tools or ():
            if tool not in usual and tool not in had:
                text = f"{tool[:64]!r} is not one of the available tools"
                yield AgentProblem(field="tools", message=text)

    def _confined(self, agent: str) -> bool:
        """Whether choosing no tools would give it more than are allowed: its file is outside the
        folder, so nothing else limits it."""
        folder = self.kernel.config.agent_folder
        own = self.files is not None and not self.files.removable(agent)
        return own and folder is not None and folder.tools is not None

    def _free(self, wanted: str) -> str:
        name = re.sub(r"[^a-z0-9]+", "-", wanted.lower()).strip("-")[:32] or "agent"
        names = (name, *(f"{name}-{n}" for n in range(2, 1000)))
        free = (each for each in names if is_participant_id(each) and not self.state.knows(each))
        return next(free, "agent")

    async def _versions(self, agent: str, now: AgentFields | None) -> list[AgentVersion]:
        """The versions, latest first; an edit of the file by hand counts as one."""
        rows = await self.store.read(MemoriesOf(_key(agent), MAX_BYTES))
        versions = [AgentVersion.model_validate_json(row.value) for row in rows if row.value]
        latest = versions[-1] if versions else None
        if now is not None and (latest is None or latest.fields != now):
            versions.append(AgentVersion(version=latest.version + 1 if latest else 1, fields=now))
        return versions[::-1]


def _fields(args: AgentFields) -> AgentFields:
    return AgentFields(**{name: getattr(args, name) for name in AgentFields.model_fields})


def _current(files: AgentFiles, agent: str) -> AgentFields:
    """Raises `OperationError` for an agent that cannot be changed."""
    fields = _of_user(lambda: files.fields(agent)) if is_participant_id(agent) else None
    if fields is None:
        raise not_found(f"no agent named {agent[:64]!r} can be changed")
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
    """The owner of an agent's versions in the store, which cannot be a participant's name."""
    return f"agents/{agent}"


def _record(agent: str, version: AgentVersion) -> Record:
    return MemoryWritten(_key(agent), f"{version.version:09}", version.model_dump_json())


def _conflicting(text: str) -> OperationError:
    return conflict(f"{text}; read it again")


def _invalid(problem: AgentProblem) -> OperationError:
    field = f"{problem.field}: " if problem.field else ""
    details = {"field": problem.field}
    return OperationError(ErrorCode.BAD_REQUEST, f"{field}{problem.message}", details=details)


def _noun(sentence: str) -> str:
    """A name for the agent that a sentence describes: `reviewer` for "a reviewer who ..."."""
    words = re.findall(r"[a-z0-9]+", sentence.lower())
    little = {"a", "an", "the", "somebody", "someone", "who", "that", "agent", "i", "want", "you"}
    return next((word for word in words if word not in little), "agent")


def _instruction(sentence: str) -> str:
    return f"You are {sentence}" if re.match(r"(?i)an? ", sentence) else sentence
