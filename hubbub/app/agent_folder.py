"""Agents that owners make or change while the network runs: their files, and their processes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

from hubbub.app.supervisor import Supervisor, Unit
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
from hubbub.config.problems import ConfigProblems, shown_path
from hubbub.config.source import YamlDocument, parse
from hubbub.errors import ConfigError, UserError
from hubbub.network.services.agent_editor import CheckedConfig
from hubbub.protocol.agents import AgentFields, AgentProblem

__all__ = ["DiskAgentFiles"]


class DiskAgentFiles:
    """The files of a network's agent folder and the agents of its own files, and the processes of
    those that are made."""

    def __init__(
        self, config: LoadedConfig, supervisor: Supervisor, unit: Callable[[str, str], Unit]
    ):
        """`unit` is the process of an agent with a token."""
        self._config, self._supervisor, self._unit = config, supervisor, unit
        self._own = _own_files(config)

    @property
    def _folder(self) -> Path:
        folder = path_of(self._config.document.data, self._config.path)
        assert folder is not None  # else the service does not ask
        return folder

    def _path(self, agent: str) -> Path:
        """The file that it stands in, or would."""
        return self._own.get(agent) or file_of(self._folder, agent)

    def file(self, agent: str) -> str:
        return shown_path(self._path(agent))

    def removable(self, agent: str) -> bool:
        return agent not in self._own

    def agents(self) -> Sequence[str]:
        """Those that can be changed."""
        read: dict[Path, _AgentFile | None] = {}
        known = {*self._own, *(file.stem for file in files_in(self._folder))}
        return sorted(agent for agent in known if self._changeable(agent, read))

    def _changeable(self, agent: str, read: dict[Path, _AgentFile | None]) -> bool:
        path = self._path(agent)
        try:
            if path not in read:
                read[path] = _read(path)
            if (found := read[path]) is not None:
                _checked(agent, found.document, found.real)
            return found is not None
        except UserError:
            return False

    def fields(self, agent: str) -> AgentFields | None:
        """As its file says now; None: it has none. Raises `UserError`."""
        before = self._before(agent)
        return None if before is None else _fields(agent, before[1])

    def check(self, agent: str, fields: AgentFields | None) -> CheckedConfig:
        """What is wrong with an agent of these fields (None: with removing it), and its config:
        the whole network is read as it would be. Raises `UserError` for a file of another form."""
        before, path = self._before(agent), self._path(agent)
        if fields is None and not self.removable(agent):
            text = f"it stands in {self.file(agent)}: remove it there, and start the network anew"
            return CheckedConfig(None, [AgentProblem(field="", message=text)])
        if fields is not None and before is not None:
            problems = [*self._with_variables(agent, fields, before)]
            if problems:
                return CheckedConfig(None, problems)
        written = None if fields is None else self._text(agent, fields, before)
        try:
            known = load(self._config.path, texts={path: written}).file.agents
        except ConfigProblems as error:
            return CheckedConfig(None, [_problem(agent, each) for each in error.problems])
        except ConfigError as error:
            return CheckedConfig(None, [_problem(agent, error)])
        if written is not None and fields is not None:
            made = _parsed(path, written)
            if _checked(agent, made.document, made.real) != fields:
                problem = AgentProblem(field="", message="it cannot be written as YAML")
                return CheckedConfig(None, [problem])
            if before and rest_of(before[1].data, agent) != rest_of(made.document.data, agent):
                shared = f"{self.file(agent)} has parts of it in other places, too: change it there"
                return CheckedConfig(None, [AgentProblem(field="", message=shared)])
        return CheckedConfig(known.get(agent), [])

    def write(self, agent: str, fields: AgentFields | None) -> Callable[[], None]:
        """Put its file in place, whole or not at all, or take it away; returns what puts back the
        one before. Raises `OSError`."""
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
        found = _read(self._path(agent))
        if found is None:
            return None
        text, document, real = found
        _checked(agent, document, real)
        return text, document

    def _text(
        self, agent: str, fields: AgentFields, before: tuple[str, YamlDocument] | None
    ) -> str:
        """Raises `UserError` for a file that holds what `agent_text` cannot change."""
        try:
            return agent_text(agent, fields, before)
        except (ValueError, LookupError, TypeError) as error:
            raise _by_hand(self.file(agent), error) from None

    def _with_variables(
        self, agent: str, fields: AgentFields, before: tuple[str, YamlDocument]
    ) -> Iterator[AgentProblem]:
        """Fields that would change, and have variables of the environment: what is written here is
        text, and would end that."""
        text, document = before
        path, old = self._path(agent), _fields(agent, document)
        written, real = parse(path, _AS_WRITTEN, text), parse(path, os.environ, text)
        for name in sorted(with_variables(_section(agent, written), _section(agent, real))):
            if getattr(old, name) != getattr(fields, name):
                text = f"it has a variable of the environment: change it in {self.file(agent)}"
                yield AgentProblem(field=name, message=text)


class _AsWritten(dict[str, str]):
    """An environment in which each variable stands for itself: what is shown to people has names
    in place of what may be secret."""

    def get(self, name: str, default: object = None) -> str:
        return f"${{{name}}}"


_AS_WRITTEN = _AsWritten()


def _own_files(config: LoadedConfig) -> Mapping[str, Path]:
    """The agents of the network's own files that can be changed, each with the file in which all of
    it stands."""
    document, found = config.document, dict[str, set[Path]]()
    folder = path_of(document.data, config.path)
    for loc, place in document.places.items():
        if loc[:1] == ("agents",) and len(loc) > 1:
            found.setdefault(str(loc[1]), set()).add(place.file)
    agents = document.data.get("agents")
    return {
        agent: file
        for agent, (file, *others) in found.items()
        if not others and file.parent != folder
        if isinstance(agents, dict) and may_be_changed(agents[agent])
    }


class _AgentFile(NamedTuple):
    text: str
    document: YamlDocument
    """With the names of variables."""
    real: YamlDocument
    """With their values."""


def _read(path: Path) -> _AgentFile | None:
    """The file as it stands; None: there is none. Raises `UserError`."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{shown_path(path)} cannot be read: {error}") from None
    return _parsed(path, text)


def _parsed(path: Path, text: str) -> _AgentFile:
    return _AgentFile(text, parse(path, _AS_WRITTEN, text), parse(path, os.environ, text))


def _checked(agent: str, document: YamlDocument, real: YamlDocument) -> AgentFields:
    """The agent's fields. Variables in what is free text are left as their names in `document`, and
    become their values in the rest. Raises `UserError` for a file of another form."""
    with_values(_section(agent, document), _section(agent, real))
    return _fields(agent, document)


def _fields(agent: str, document: YamlDocument) -> AgentFields:
    """Raises `UserError` where the file has not the form of such a file."""
    name, section = shown_path(document.place(()).file), _section(agent, document)
    try:
        return fields_of(section)
    except ValueError as error:
        raise _by_hand(name, error) from None


def _section(agent: str, document: YamlDocument) -> dict[str, JsonValue]:
    """Raises `UserError` where the file has none of this agent."""
    agents = document.data.get("agents")
    section = agents.get(agent) if isinstance(agents, dict) else None
    if not isinstance(section, dict):
        name = shown_path(document.place(()).file)
        raise UserError(f"{name} does not have the agent {agent!r}: it was changed by hand")
    return section


def _by_hand(file: str, error: Exception) -> UserError:
    return UserError(f"{file} was changed by hand and cannot be changed here: {error}")


def _problem(agent: str, error: ConfigError) -> AgentProblem:
    mine = error.loc[:2] == ("agents", agent)
    text = error.message.replace(f"agents.{agent}.", "").replace(f"agents.{agent} ", "it ")
    message = text if mine else str(error)
    field = "" if not mine else field_at(error.loc[2:]) if error.loc[2:] else "agent"
    return AgentProblem(field=field, message=message)


def _put(path: Path, text: str) -> None:
    """The file is there with this text, durably, or stays as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.tmp")
    try:
        with open(draft, "w", encoding="utf-8", newline="\n") as file:
            if path.exists():
                os.fchmod(
                    file.fileno(), path.stat().st_mode
                )  # it may hold what others must not read
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
