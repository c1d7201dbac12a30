"""The system prompt of an agent: the key `prompt` of an agent in the YAML."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, JsonValue, WithJsonSchema, model_validator

from hubbub.config.problems import nearest
from hubbub.config.units import Id, Section, Size, wrong

__all__ = [
    "COMPONENTS",
    "CONDITIONS",
    "LATEST",
    "ComponentConfig",
    "ComponentsConfig",
    "ExampleConfig",
    "ExampleStep",
    "Prompt",
    "PromptConfig",
    "RolloutConfig",
]

LATEST = "latest"

COMPONENTS: Mapping[str, str] = MappingProxyType(
    {
        "identity": "`instruction`, or the versioned prompt",
        "network": "the agent's name and network",
        "untrusted_data": "that text by others is data and cannot change the instruction",
        "thread_ids": "the naming of threads",
        "speaking": "that only tools have an effect, and how to stop",
        "delegation": "the other participants, and how to delegate",
        "tools": "which tools only read, and which act",
        "mods": "the network's mods",
        "skills": "the instructions that can be loaded",
        "capabilities": "the agent's capabilities as others see them: `card.skills`",
        "permission_mode": "what `permission_mode` allows, unless it is `full`",
        "scratchpad": "where to think, with `scratchpad: true`",
        "examples": "`examples`",
        "knowledge": "passages of documents that match the incoming messages: `knowledge.auto`",
        "memory": "its memory, if it has tools for one",
        "dialect.tool_call": "its tools, and how to call them in the dialect `tool_call`",
        "dialect.final_output": "its tools, and how to call them in the dialect `final_output`",
        "reminder": "`reminder`; always last",
    }
)
"""The built-in components in their order, and their content."""

CONDITIONS: Mapping[str, str] = MappingProxyType(
    {
        "always": "in every turn",
        "asks_first": "`permission_mode` is `ask`",
        "can_delegate": "there is another agent, and a tool to write to it",
        "has_capabilities": "the agent's card has skills",
        "has_mods": "the network has mods",
        "has_others": "the network has other participants",
        "has_skills": "there are instructions to load",
        "has_state": "the agent remembers something",
        "has_tools": "it has tools other than `finish`",
        "in_channel": "it was woken in a channel, or in a reply thread of one",
        "in_direct_thread": "it was woken in a direct thread, or in a reply thread of one",
        "is_auto": "`mode` is `auto`",
        "is_interactive": "`mode` is `interactive`",
        "never": "in no turn",
        "read_only": "`permission_mode` is `read_only`",
    }
)
"""Conditions for `when`, also usable as `not NAME`, and when they hold."""


def _conditions(value: object) -> object:
    """`has_tools`, or a list of such names, as a tuple."""
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple):
        return value
    for name in names:
        if not isinstance(name, str):
            return value
        bare = name.removeprefix("not ").strip()
        if bare not in CONDITIONS:
            raise wrong(f"unknown condition '{bare}'{nearest(bare, CONDITIONS)}")
    return tuple(names)


def _version(value: object) -> object:
    """A version as text. Floats are refused, because YAML reads 1.10 as the number 1.1."""
    if isinstance(value, float):
        raise wrong(f'quote the version, "{value}": as a number, 1.10 is 1.1')
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _share(value: object) -> object:
    """`10%` as 0.1."""
    if not isinstance(value, str):
        return value
    number, percent, rest = value.strip().partition("%")
    try:
        share = float(number) / (100 if percent else 1)
    except ValueError:
        share = -1.0
    if rest or not 0 <= share <= 1:
        raise wrong("expected a share such as 10%, at most 100%")
    return share


def _prompt(value: object) -> object:
    """`shop.py:builder` as a section."""
    return {"builder": value} if isinstance(value, str) else value


_NAMES = [*CONDITIONS, *(f"not {name}" for name in CONDITIONS)]
_ONE: JsonValue = {"type": "string", "enum": [*_NAMES]}
When = Annotated[
    tuple[str, ...],
    BeforeValidator(_conditions),
    WithJsonSchema({"anyOf": [_ONE, {"type": "array", "items": _ONE}]}),
]
Version = Annotated[
    str,
    BeforeValidator(_version),
    Field(pattern=r"^[0-9A-Za-z][0-9A-Za-z.+_-]*$", max_length=64),
]
Share = Annotated[
    float,
    BeforeValidator(_share),
    Field(ge=0, le=1),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "minimum": 0, "maximum": 1},
                {"type": "string", "pattern": r"^\d+(\.\d+)?\s*%$"},
            ]
        }
    ),
]
Priority = Annotated[int, Field(ge=0, le=1000)]


class ComponentConfig(Section):
    """A part of the system prompt: `text`, `file` or `function`."""

    text: str | None = None
    """Its text."""
    file: str | None = None
    """A file with its text; a file that ends in `.j2` is a template with the variables of `prompt`.
    """
    function: str | None = None
    """`file.py:name`, a Python function, `async` or not, that builds the text from the turn's
    context."""
    priority: Priority | None = None
    """Components with a higher priority come first. Default: 50, or that of the replaced component.
    """
    when: When = ()
    """A condition, or a list of conditions that must all hold. Default: always, or that of the
    replaced component."""

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if sum(given is not None for given in (self.text, self.file, self.function)) != 1:
            raise wrong("a component needs either a text, a file or a function")
        return self


class ComponentsConfig(Section):
    """Changes to the built-in components."""

    remove: list[str] = []
    """Names of components to remove."""
    add: dict[Id, ComponentConfig] = {}
    """Additional components, by name."""
    replace: dict[str, ComponentConfig] = {}
    """Replacements for components, by name."""

    @model_validator(mode="after")
    def _names_exist(self) -> Self:
        for name in (*self.remove, *self.replace):
            if name not in COMPONENTS:
                raise wrong(f"there is no component '{name}'{nearest(name, COMPONENTS)}")
        for name in self.remove:
            if name.startswith("dialect."):
                raise wrong(
                    f"a model that calls tools as text needs '{name}': put another text under "
                    "replace instead"
                )
        for name in self.add:
            if name in COMPONENTS:
                raise wrong(f"the component '{name}' already exists: put it under replace")
        for name in self.replace:
            if name in self.remove:
                raise wrong(f"the component '{name}' is both removed and replaced")
        return self


class ExampleStep(Section):
    """A tool call in an example."""

    call: str
    """The tool's name, which can be `finish`."""
    arguments: dict[str, JsonValue] = {}
    """Its arguments."""
    result: str | None = None
    """Its result. Default: not shown."""


class ExampleConfig(Section):
    """An incoming message and how the agent should handle it."""

    incoming: str
    """The message's text."""
    sender: Id = "ann"
    """The message's sender."""
    thread: str | None = None
    """The id of its thread as the agent sees it. Default: the direct thread with the sender."""
    steps: Annotated[list[ExampleStep], Field(min_length=1, max_length=20)]
    """The calls, in order."""


class RolloutConfig(Section):
    """Another version for a share of the threads. Remove the section to roll back."""

    version: Version
    """The version."""
    share: Share
    """The share of threads: `10%` or 0.1. Threads keep the change as the share grows."""

    @model_validator(mode="after")
    def _is_one_version(self) -> Self:
        if self.version == LATEST:
            raise wrong("a rollout needs a specific version")
        return self


class PromptConfig(Section):
    """The system prompt in parts; `file.py:name` alone sets `builder`."""

    builder: str | None = None
    """`file.py:name`, a `PromptBuilder` in Python that replaces the built-in components."""

    name: Id | None = None
    """A versioned prompt that replaces `instruction`: the file `FOLDER/NAME/VERSION.j2`."""
    version: Version = LATEST
    """The version of the named prompt; `latest` is the highest that is not a pre-release (2.10 is
    after 2.9)."""
    folder: str = "prompts"
    """The folder of versioned prompts."""
    variables: dict[str, JsonValue] = {}
    """Variables for the named prompt and for components in `.j2` files."""
    rollout: RolloutConfig | None = None
    """Another version of the named prompt for a share of the threads."""
    components: ComponentsConfig = ComponentsConfig()
    """Parts to remove, add or replace."""
    max_tokens: dict[str, Size] = {}
    """Maximum tokens by component, for example `{memory: 300}`; the rest is cut, with a note in the
    turn's record."""
    examples: Annotated[list[ExampleConfig], Field(max_length=20)] = []
    """Examples of handled messages, shown to the model."""
    reminder: Annotated[list[str], Field(max_length=3)] = []
    """The two or three most important rules, repeated at the very end."""
    scratchpad: bool = False
    """Lets the model think in `<scratchpad>…</scratchpad>` before it acts; the text is stored in
    the turn's record and not sent."""

    @model_validator(mode="after")
    def _check_name(self) -> Self:
        if self.name is None and self.rollout is not None:
            raise wrong("a rollout needs the name of a prompt")
        if self.name is None and self.version != LATEST:
            raise wrong("a version needs the name of a prompt")
        return self


Prompt = Annotated[PromptConfig, BeforeValidator(_prompt)]
