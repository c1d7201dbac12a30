"""What could come next while a person types: commands, names, threads, messages, files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from hubbub.cli.chat.commands import COMMANDS, Spec, join_names
from hubbub.cli.chat.known import Known
from hubbub.cli.chat.text import clip, one_line
from hubbub.cli.control.choices import choices
from hubbub.cli.workplace.choices import paths, work_choices

__all__ = ["Candidate", "candidates"]

_MENTION = re.compile(r"(?:^|(?<=[^A-Za-z0-9_@]))@([A-Za-z0-9_-]*)\Z")


@dataclass(frozen=True)
class Candidate:
    """A completion."""

    text: str
    replaces: int
    """How many characters before the cursor it stands for."""
    about: str = ""
    last: bool = True
    """Whether another word follows; False: more of the same, as below a folder."""


def candidates(
    before: str, session: Known, commands: Mapping[str, Spec[object]] = COMMANDS
) -> list[Candidate]:
    """The completions for a line that reads `before` up to the cursor, best first. `/attach` looks
    into folders of this machine."""
    if before.startswith("/") and " " not in before:
        offered = ((n, spec) for n, spec in commands.items() if spec.is_among(session.offers))
        told = ((name, spec.help) for name, spec in offered)
        return _starting(before[1:], told, len(before) - 1)
    if before.startswith("/"):
        word, _, rest = before[1:].partition(" ")
        spec = commands.get(word.lower())
        there = spec is not None and spec.is_among(session.offers)
        found = _arguments(word.lower(), rest, session) if there else []
        if found:
            return found
    if (mention := _MENTION.search(before)) is not None:
        return _starting(mention[1], _people(session), len(mention[1]))
    return []


def _arguments(command: str, rest: str, session: Known) -> list[Candidate]:
    match command:
        case "open":
            return _starting(rest, _threads(session), len(rest))
        case "dm" if " " not in (names := join_names(rest)):
            typed = names.rpartition(",")[2].lstrip("@")
            named = {name.lstrip("@") for name in names.split(",")[:-1]}
            people = (p for p in _people(session) if p[0] not in named)
            return _starting(typed, people, len(typed))
        case "channel" | "leave":
            return _starting(rest.lstrip("#"), _channels(session, True), len(rest.lstrip("#")))
        case "join":
            return _starting(rest.lstrip("#"), _channels(session, False), len(rest.lstrip("#")))
        case "reply" if " " not in rest:
            return _starting(rest, _messages(session), len(rest))
        case "attach" if " " not in rest:
            found = paths(rest)
            return [Candidate(path, len(rest), about, last=about == "") for path, about in found]
        case _:
            *words, typed = rest.split(" ")
            before = list(filter(None, words))
            found = [*choices(command, before, session), *work_choices(command, before, session)]
            return _starting(typed, found, len(typed))


def _starting(typed: str, choices: Iterable[tuple[str, str]], replaces: int) -> list[Candidate]:
    """Those that begin with what was typed, then those that contain it."""
    low = typed.lower()
    found = [(name, about) for name, about in choices if low in name.lower()]
    found.sort(key=lambda choice: not choice[0].lower().startswith(low))
    return [Candidate(name, replaces, clip(one_line(about), 60)) for name, about in found]


def _people(session: Known) -> Iterator[tuple[str, str]]:
    """Everybody but oneself, those who are here first."""
    people = (p for p in session.participants.values() if p.id != session.me)
    for person in sorted(people, key=lambda p: (not p.present, p.id)):
        away = "" if person.present else "(away) "
        yield person.id, away + (person.card.description or person.kind)


def _threads(session: Known) -> Iterator[tuple[str, str]]:
    for thread in sorted(session.threads.values(), key=lambda t: -t.last_seq):
        unread = f"{thread.unread} new  " if thread.unread else ""
        yield session.shown(thread.id), unread + (thread.last.text if thread.last else "")


def _channels(session: Known, joined: bool) -> Iterator[tuple[str, str]]:
    return (
        (name, channel.description)
        for name, channel in sorted(session.channels.items())
        if channel.joined is joined
    )


def _messages(session: Known) -> Iterator[tuple[str, str]]:
    """Messages of the current thread, the latest first."""
    messages = session.thread(session.current).messages.values()
    for message in reversed(list(messages)):
        yield message.id, f"{message.sender_id}: {message.text}"
