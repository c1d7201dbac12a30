"""The linter's input: the texts of a prompt with their places, and what the agent can do. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hubbub.protocol.messages import Permission

__all__ = [
    "ContractFact",
    "LintSubject",
    "PromptSentence",
    "PromptText",
    "SourceLine",
    "TemplateText",
    "ToolFact",
]

_BREAK = re.compile(r"(?<=[^\d\s][.!?])[\"'”’)*_]*\s+|\n\s*\n|\n(?=\s*(?:[-*•#]|\d+[.)])\s)")


class SourceLine(NamedTuple):
    """A line of a file; lines count from 1, None means the file as a whole."""

    file: str
    line: int | None = None


class PromptSentence(NamedTuple):
    """A sentence, or an item of a list."""

    text: str
    place: SourceLine
    start: int
    """Its offset in its passage."""


@dataclass(frozen=True, slots=True)
class PromptText:
    """A text that a model reads."""

    what: str
    """For people: `instruction`, `component style`."""
    text: str
    places: Sequence[SourceLine]
    """Where each line of the text comes from."""
    own: bool = True
    """Whether it is the operator's; False: it comes with Hubbub."""

    def place(self, at: int) -> SourceLine:
        """Where the character at `at` comes from."""
        return self._on(self.text.count("\n", 0, at))

    def _on(self, line: int) -> SourceLine:
        return self.places[min(line, len(self.places) - 1)]

    def statements(self) -> Iterator[PromptSentence]:
        """The sentences and items, in order; one may span several lines."""
        start = counted = line = 0
        for end in [*_BREAK.finditer(self.text), None]:
            stop = end.start() if end else len(self.text)
            text = self.text[start:stop]
            if text.strip():
                at = start + len(text) - len(text.lstrip())
                line += self.text.count("\n", counted, at)
                counted = at
                yield PromptSentence(self.text[at:stop].rstrip(), self._on(line), at)
            start = end.end() if end else stop


@dataclass(frozen=True, slots=True)
class ToolFact:
    """A tool's properties that a prompt may contradict."""

    name: str
    description: str = ""
    permission: Permission = "read"


@dataclass(frozen=True, slots=True)
class TemplateText:
    """A Jinja2 template."""

    file: str
    source: str


@dataclass(frozen=True, slots=True)
class ContractFact:
    """The description of tool calls in a text dialect."""

    dialect: str
    place: SourceLine
    text: str
    """With the agent's tools."""
    needed: Sequence[str]
    """What it must mention: the syntax that the parser reads, and the tools."""


@dataclass(frozen=True, slots=True)
class LintSubject:
    """The input: the prompt of an agent, or a file by itself."""

    name: str
    """`agents.editor`, or the file."""
    place: SourceLine
    passages: Sequence[PromptText]
    """In the order in which the model reads them."""
    templates: Sequence[TemplateText] = ()
    tools: Mapping[str, ToolFact] | None = None
    """The agent's tools by name; None: not known."""
    others: frozenset[str] = frozenset()
    """Tools of the network that the agent does not have."""
    words: frozenset[str] = frozenset()
    """Names that are no tools: participants, channels, arguments of tools."""
    prefixes: tuple[str, ...] = ()
    """Prefixes of tools from elsewhere that are not known."""
    called: Sequence[tuple[str, SourceLine]] = ()
    """Tools that examples call."""
    reminded: bool = False
    """Whether the prompt ends with a reminder."""
    contracts: Sequence[ContractFact] = ()
    warned: bool = True
    """Whether it says that participants' text is data."""
