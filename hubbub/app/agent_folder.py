"""Agents that owners create or change while the network runs: their files and processes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

from hubbub.app.supervisor import Supervisor
from hubbub.app.units import Unit
from hubbub.config.agent_files import (
    agent_text,
    field_at,
    fields_of,
    file_of,
    files_in,
    may_be_changed,
    path_of,
    rest_of,
    with_values,
    with_variables,
)
from hubbub.config.loader import LoadedConfig, load
from hubbub.config.models import NetworkFile
from hubbub.config.problems import ConfigProblems, shown_path
from hubbub.config.source import YamlDocument, parse
from hubbub.errors import ConfigError, UserError
from hubbub.network.services.agent_editor import CheckedConfig
from hubbub.protocol.agents import AgentFields, AgentProblem

__all__ = ["DiskAgentFiles"]


class DiskAgentFiles:
    """The files of the agent folder, the editable agents of the network's own files, and the
    processes of agents that are created."""

    def __init__(
        self, config: LoadedConfig, supervisor: Supervisor, unit: Callable[[str, str], Unit]
    ):
        """`unit` returns the process for an agent and its token."""
        self._config, self._supervisor, self._unit = config, supervisor, unit
        self._own = _own_files(config)

    @property
    def _folder(self) -> Path:
        folder = path_of(self._config.document.data, self._config.path)
        assert folder is not None  # the service requires one
        return folder

    def _path(self, agent: str) -> Path:
        """The agent's file, which may not exist yet."""
        return self._own.get(agent) or file_of(self._folder, agent)

    def file(self, agent: str) -> str:
        return shown_path(self._path(agent))

    def removable(self, agent: str) -> bool:
        return agent not in self._own

    def agents(self) -> Sequence[str]:
        """The agents that can be changed."""
        read: dict[Path, _AgentFile | None] = {}
        names = {*self._own, *(file.stem for file in files_in(self._folder))}
        return sorted(agent for agent in names if self._changeable(agent, read))

    def _changeable(self, agent: str, read: dict[Path, _AgentFile | None]) -> bool:
        path = self._path(agent)
        try:
            if path not in read:
                read[path] = _read(path)
            if (file := read[path]) is not None:
                _checked(agent, file.document, file.real)
            return file is not None
        except UserError:
            return False

    def fields(self, agent: str) -> AgentFields | None:
        """The fields in the agent's file; None if there is no file. Raises `UserError`."""
        before = self._before(agent)
        return None if before is None else _fields(agent, before[1])

    def check(self, agent: str, fields: AgentFields | None) -> CheckedConfig:
        """The config of an agent with these fields (None removes it), or the problems: loads the
        whole network with the change. Raises `UserError` for a file of another form."""
        before, path = self._before(agent), self._path(agent)
        if fields is None and not self.removable(agent):
            text = f"it is defined in {self.file(agent)}: remove it there and restart the network"
            return CheckedConfig(None, [AgentProblem(field="", message=text)])
        if fields is not None and before is not None:
            problems = [*self._with_variables(agent, fields, before)]
            if problems:
                return CheckedConfig(None, problems)
        written = None if fields is None else self._text(agent, fields, before)
        try:
            file = load(self._config.path, texts={path: written}).file
        except ConfigProblems as error:
            return CheckedConfig(None, [_problem(agent, each) for each in error.problems])
        except ConfigError as error:
            return CheckedConfig(None, [_problem(agent, error)])
        if fields is not None and (problems := [*self._only_after_restart(agent, file)]):
            return CheckedConfig(None, problems)
        if written is not None and fields is not None:
            parsed = _parsed(path, written)
            if _checked(agent, parsed.document, parsed.real) != fields:
                problem = AgentProblem(field="", message="it cannot be written as YAML")
                return CheckedConfig(None, [problem])
            if before and rest_of(before[1].data, agent) != rest_of(parsed.document.data, agent):
                shared = f"{self.file(agent)} shares parts of it with other agents: edit that file"
                return CheckedConfig(None, [AgentProblem(field="", message=shared)])
        return CheckedConfig(file.agents.get(agent), [])

    def _only_after_restart(self, agent: str, file: NetworkFile) -> Iterator[AgentProblem]:
        """Problems with an agent in `file`, which can have changed since the network started."""
        name = shown_path(self._config.path)
        if agent not in file.agents:
            text = f"{name} no longer has {self.file(agent)}: restart the network first"
            yield AgentProblem(field="", message=text)
            return
        for channel in file.agents[agent].channels:
            if channel not in self._config.file.channels:
                text = f"{name} has {channel!r} only since the network started: restart it first"
                yield AgentProblem(field="channels", message=text)

    def write(self, agent: str, fields: AgentFields | None) -> Callable[[], None]:
        """Write the agent's file atomically, or remove it; returns a function that restores the old
        one. Raises `OSError`."""
        before, path = self._before(agent), self._path(agent)
        if fields is None:
            path.unlink()
        else:
            _put(path, self._text(agent, fields, before))

        def undo() -> None:
            if before is None:
                path.unlink(missing_ok=True)
            else:
                _put(path, before[0])

        return undo

    def start(self, agent: str, token: str) -> None:
        self._supervisor.add(self._unit(agent, token))

    async def remove(self, agent: str) -> None:
        await self._supervisor.remove(agent)

    def _before(self, agent: str) -> tuple[str, YamlDocument] | None:
        file = _read(self._path(agent))
        if file is None:
            return None
        text, document, real = file
        _checked(agent, document, real)
        return text, document

    def _text(
        self, agent: str, fields: AgentFields, before: tuple[str, YamlDocument] | None
    ) -> str:
        """The agent's file with these fields. Raises `UserError` if `agent_text` cannot change
        it."""
        try:
            return agent_text(agent, fields, before)
        except (ValueError, LookupError, TypeError) as error:
            raise _by_hand(self.file(agent), error) from None

    def _with_variables(
        self, agent: str, fields: AgentFields, before: tuple[str, YamlDocument]
    ) -> Iterator[AgentProblem]:
        """Problems with fields that would change although they use environment variables, which
        writing would replace by text."""
        text, document = before
        path, old = self._path(agent), _fields(agent, document)
        written, real = parse(path, _AS_WRITTEN, text), parse(path, os.environ, text)
        for name in sorted(with_variables(_section(agent, written), _section(agent, real))):
            if getattr(old, name) != getattr(fields, name):
                text = f"it uses an environment variable: change it in {self.file(agent)}"
                yield AgentProblem(field=name, message=text)


class _AsWritten(dict[str, str]):
    """An environment in which each variable expands to itself, so that people see names instead of
    values that may be secret."""

    def get(self, name: str, default: object = None) -> str:
        return f"${{{name}}}"


_AS_WRITTEN = _AsWritten()


def _own_files(config: LoadedConfig) -> Mapping[str, Path]:
    """The editable agents in the network's own files, each with the one file that defines it."""
    document, files = config.document, dict[str, set[Path]]()
    folder = path_of(document.data, config.path)
    for loc, place in document.places.items():
        if loc[:1] == ("agents",) and len(loc) > 1:
            files.setdefault(str(loc[1]), set()).add(place.file)
    agents = document.data.get("agents")
    return {
        agent: file
        for agent, (file, *others) in files.items()
        if not others and file.parent != folder
        if isinstance(agents, dict) and may_be_changed(agents[agent])
    }


class _AgentFile(NamedTuple):
    text: str
    document: YamlDocument
    """Variables as names."""
    real: YamlDocument
    """Variables as values."""


def _read(path: Path) -> _AgentFile | None:
    """A file's current content; None if it does not exist. Raises `UserError`."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {shown_path(path)}: {error}") from None
    return _parsed(path, text)


def _parsed(path: Path, text: str) -> _AgentFile:
    return _AgentFile(text, parse(path, _AS_WRITTEN, text), parse(path, os.environ, text))


def _checked(agent: str, document: YamlDocument, real: YamlDocument) -> AgentFields:
    """The agent's fields. Variables stay names in free text in `document`, and become their values
    in other fields. Raises `UserError` for a file of another form."""
    with_values(_section(agent, document), _section(agent, real))
    return _fields(agent, document)


def _fields(agent: str, document: YamlDocument) -> AgentFields:
    """The agent's fields. Raises `UserError` for a file of another form."""
    name, section = shown_path(document.place(()).file), _section(agent, document)
    try:
        return fields_of(section)
    except ValueError as error:
        raise _by_hand(name, error) from None


def _section(agent: str, document: YamlDocument) -> dict[str, JsonValue]:
    """The agent's section. Raises `UserError` if the file has none."""
    agents = document.data.get("agents")
    section = agents.get(agent) if isinstance(agents, dict) else None
    if not isinstance(section, dict):
        name = shown_path(document.place(()).file)
        raise UserError(f"{name} does not define the agent {agent!r}: it was edited by hand")
    return section


def _by_hand(file: str, error: Exception) -> UserError:
    return UserError(f"{file} was edited by hand and cannot be changed here: {error}")


def _problem(agent: str, error: ConfigError) -> AgentProblem:
    mine = error.loc[:2] == ("agents", agent)
    text = error.message.replace(f"agents.{agent}.", "").replace(f"agents.{agent} ", "it ")
    message = text if mine else str(error)
    field = "" if not mine else field_at(error.loc[2:]) if error.loc[2:] else "agent"
    return AgentProblem(field=field, message=message)


def _put(path: Path, text: str) -> None:
    """Write a file durably and atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.tmp")
    try:
        with open(draft, "w", encoding="utf-8", newline="\n") as file:
            if path.exists():
                os.fchmod(
                    file.fileno(), path.stat().st_mode
                )  # keep it unreadable for others if it was
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
