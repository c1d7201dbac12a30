"""Completions for a line: commands, names, threads, messages, files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hubbub.errors import UserError
from hubbub.people.commands import GROUPS, Command, find_command
from hubbub.people.messages import file_id
from hubbub.people.text import clip, one_line

if TYPE_CHECKING:
    from hubbub.people.parameters import Parameter
    from hubbub.people.state import ClientState
    from hubbub.protocol.messages import Message

__all__ = ["Candidate", "Choice", "candidates", "choices", "paths"]

Choice = tuple[str, str]
"""A word and its description."""
_MENTION = re.compile(r"(?:^|(?<=[^A-Za-z0-9_@]))@([A-Za-z0-9_-]*)\Z")
EMOJI = (
    ("👍", "thumbs up"), ("👎", "thumbs down"), ("❤️", "heart"), ("🎉", "hooray"), ("👀", "looking"),
    ("✅", "done"), ("🙏", "thanks"), ("😄", "smile"), ("🚀", "rocket"), ("❓", "question"),
)  # fmt: skip
MOST = 100
"""Files offered of a folder."""
PEOPLE = frozenset({"owner", "to", "by", "participant", "who", "wakes", "members"})
_SCOPES = {
    "turn": "the turn running here",
    "thread": "this thread, until it is resumed",
    "agent": "an agent, until it is resumed",
    "all": "everything, until it is resumed",
}


@dataclass(frozen=True)
class Candidate:
    """A completion."""

    text: str
    replaces: int
    """How many characters before the cursor it replaces."""
    about: str = ""
    last: bool = True
    """Whether the word is complete; False: it can continue, as the path of a folder."""


def candidates(
    before: str, state: ClientState, commands: Iterable[Command], local: Mapping[str, str]
) -> list[Candidate]:
    """The completions for the text before the cursor, best first. `commands` are those of this
    network, `local` the chat's own with their help. `/files attach` lists local folders."""
    if before.startswith("/"):
        available = list(commands)
        completions = _first_words(before[1:], available, local)
        if completions or " " not in before:
            return completions
        completions = _arguments(before[1:], available, state)
        if completions:
            return completions
    if (mention := _MENTION.search(before)) is not None:
        return _starting(mention[1], _people(state), len(mention[1]))
    return []


def _first_words(typed: str, commands: list[Command], local: Mapping[str, str]) -> list[Candidate]:
    """Groups and commands, groups first; after a group, its commands."""
    if " " in typed:
        group, _, rest = typed.partition(" ")
        if " " in rest:
            return []
        offered = [(c.word, c.short) for c in commands if c.path.startswith(f"{group} ")]
        return _starting(rest, offered, len(rest))
    words = dict(local)
    for command in commands:
        group = command.path.partition(" ")[0]
        words.setdefault(group, GROUPS[group].about if group in GROUPS else command.short)
    short = [(c.word, c.short) for c in commands if c.word not in words]
    return _starting(typed, [*words.items(), *dict(short).items()], len(typed), inside=False)


def _arguments(typed: str, commands: list[Command], state: ClientState) -> list[Candidate]:
    from hubbub.people.chat.slash import positional

    *words, last = typed.split(" ")
    names = [word for word in words if word]
    complete = _LOCAL_ARGUMENTS.get(names[0].lower()) if names else None
    if complete is not None:
        return complete(typed.partition(" ")[2], state)
    try:
        match = find_command(names, commands) if names else None
    except UserError:
        match = None
    if match is None:
        return []
    command, count = match
    given = names[count:]
    if last.startswith("--"):
        options = ((p.option, p.help) for p in command.parameters)
        return _starting(last, options, len(last))
    if given and given[-1].startswith("--"):
        named = [p for p in command.parameters if p.option == given[-1] and p.kind != "flag"]
        if named:
            return _starting(last, choices(command, named[0], state, []), len(last))
    given = [word for word in given if not word.startswith("--")]
    places = positional(command)
    at = min(len(given), len(places) - 1)
    if not places or (len(given) > at and not places[at].many):
        return []
    if places[at].name == "path":
        found_paths = paths(last)
        return [Candidate(path, len(last), about, last=about == "") for path, about in found_paths]
    return _starting(last, choices(command, places[at], state, given), len(last))


def choices(
    command: Command, parameter: Parameter, state: ClientState, given: list[str]
) -> Iterable[Choice]:
    """The values of a parameter that the client knows; `given` are the arguments before it."""
    group, name = command.path.partition(" ")[0], parameter.name
    if group in ("stop", "resume"):
        return _stops(group, name, given, state)
    if group == "approvals" and name == "id":
        waiting = state.oversight.approvals.values()
        return ((one.id, f"{one.agent} asks to run {one.tool}") for one in waiting)
    if command.path in ("agents release", "agents as"):
        return ((agent, "you speak for it") for agent in state.oversight.controlled_agents)
    if command.path == "polls vote" and name == "options":
        options = state.known_ids.options.get(given[0] if given else "", ())
        return [(str(n), option) for n, option in enumerate(options, 1)]
    if command.path == "turns interaction":
        interactions = ((m.interaction_id, m.text) for m in _latest(state) if m.hop or m.cause_id)
        return dict(interactions).items()
    if parameter.choices:
        return [(word, "") for word in parameter.choices]
    match name:
        case "emoji":
            return EMOJI
        case "agent":
            return _people(state, "agent")
        case "thread" | "threads":
            return _threads(state)
        case "message_id" | "id" if parameter.letter == "m" or command.path == "messages why":
            mine = command.word in ("edit", "delete")
            return _messages(state, state.me if mine else None)
        case "id" if group == "files":
            return _files(state)
        case "sure":
            return [("yes", "delete it for everyone")]
        case "since":
            return [("mark", "start the next digest after this one")]
    if name in PEOPLE:
        return _people(state)
    return state.known_ids.of(parameter.letter) if parameter.letter else ()


def _stops(word: str, name: str, given: list[str], state: ClientState) -> Iterable[Choice]:
    if name == "scope":
        return [(s, about) for s, about in _SCOPES.items() if word == "stop" or s != "turn"]
    scope = given[0] if given else ""
    if word == "resume":
        stops = [s for s in state.oversight.stops if s.scope == scope and s.target]
        stopped = [(_target(state, s.target or ""), s.reason) for s in stops]
        breakers = state.oversight.breakers if scope == "thread" else ()
        return [*stopped, *((state.shown(b.thread_id), "its breaker is open") for b in breakers)]
    match name, scope:
        case "target", "agent":
            return _people(state, "agent")
        case "target", "turn":
            turns = sorted(state.activities.turns(state.current))
            return ((turn, "running here") for turn in turns)
        case "target", "thread":
            return ((state.shown(thread), "") for thread in state.threads)
    return ()


def _target(state: ClientState, target: str) -> str:
    return state.shown(target) if target in state.threads else target


def _starting(
    typed: str, choices: Iterable[Choice], replaces: int, *, inside: bool = True
) -> list[Candidate]:
    """Choices that start with the typed text, then those that contain it."""
    low = typed.lower()
    matches = [(name, about) for name, about in choices if low in name.lower()]
    matches = [each for each in matches if inside or each[0].lower().startswith(low)]
    matches.sort(key=lambda choice: not choice[0].lower().startswith(low))
    return [Candidate(name, replaces, clip(one_line(about), 60)) for name, about in matches]


def _people(state: ClientState, kind: str | None = None) -> Iterator[Choice]:
    """The other participants (of this kind), those online first."""
    people = (p for p in state.participants.values() if p.id != state.me)
    for person in sorted(people, key=lambda p: (not p.present, p.id)):
        away = "" if person.present else "(away) "
        if kind in (None, person.kind):
            yield person.id, away + (person.card.description or person.kind)


def _threads(state: ClientState) -> Iterator[Choice]:
    for thread in sorted(state.threads.values(), key=lambda t: -t.last_seq):
        unread = f"{thread.unread} new  " if thread.unread else ""
        yield state.shown(thread.id), unread + (thread.last.text if thread.last else "")


def _latest(state: ClientState) -> Iterator[Message]:
    """Messages of the open thread, or of all threads if none is open, latest first."""
    threads = [state.thread(state.current)] if state.current else state.threads.values()
    messages = (message for thread in threads for message in thread.messages.values())
    return iter(sorted(messages, key=lambda message: -message.seq))


def _messages(state: ClientState, sender: str | None = None) -> Iterator[Choice]:
    for message in _latest(state):
        if sender in (None, message.sender_id) and message.amended != "deleted":
            yield message.id, f"{message.sender_id}: {message.text}"


def _files(state: ClientState) -> Iterable[Choice]:
    """Files attached in this thread, latest first, then others seen."""
    attached = ((file_id(item), item.name) for m in _latest(state) for item in m.attachments)
    files = {file: name for file, name in attached if file is not None}
    return (files | {id: name for id, name in state.known_ids.of("f") if id not in files}).items()


def paths(typed: str) -> list[Choice]:
    """Local files and folders that start with `typed`; hidden ones only if it starts with a dot.
    Names with spaces, which would need quotes, are left out."""
    folder, slash, begun = typed.rpartition("/")
    place = Path(folder + slash).expanduser() if slash else Path()
    try:
        with os.scandir(place) as entries:
            matches = sorted(
                (entry.name, entry.is_dir())
                for entry in entries
                if entry.name.startswith(begun)
                and " " not in entry.name
                and (begun or not entry.name.startswith("."))
            )
    except OSError:
        return []
    return [
        (f"{folder}{slash}{name}{'/' if is_folder else ''}", "folder" if is_folder else "")
        for name, is_folder in matches[:MOST]
    ]


# The chat's own commands --------------------------------------------------------------------------


def _of_open(rest: str, state: ClientState) -> list[Candidate]:
    return _starting(rest, _threads(state), len(rest))


def _of_dm(rest: str, state: ClientState) -> list[Candidate]:
    names = re.sub(r" +,(?=\S)", ",", rest)
    if " " in names:
        return []
    typed = names.rpartition(",")[2].lstrip("@")
    named = {name.lstrip("@") for name in names.split(",")[:-1]}
    return _starting(typed, (p for p in _people(state) if p[0] not in named), len(typed))


def _of_channels(rest: str, state: ClientState, *, joined: bool) -> list[Candidate]:
    typed = rest.lstrip("#")
    there = ((n, c.description) for n, c in sorted(state.channels.items()) if c.joined is joined)
    return _starting(typed, there, len(typed))


def _of_reply(rest: str, state: ClientState) -> list[Candidate]:
    return [] if " " in rest else _starting(rest, _messages(state), len(rest))


_LOCAL_ARGUMENTS = {
    "open": _of_open,
    "dm": _of_dm,
    "leave": lambda rest, state: _of_channels(rest, state, joined=True),
    "join": lambda rest, state: _of_channels(rest, state, joined=False),
    "reply": _of_reply,
}
