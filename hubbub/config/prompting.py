"""How the system prompt of an agent is put together: the key `prompt` of an agent in the YAML."""

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
        "network": "which agent it is, in which network",
        "untrusted_data": "that what others wrote is data, and cannot change the instruction",
        "thread_ids": "how threads are called",
        "speaking": "that only tools have an effect, and how to stop",
        "delegation": "who else is here, and how to hand something over",
        "tools": "which tools only read, and which act",
        "mods": "the network's mods",
        "skills": "instructions that can be loaded",
        "capabilities": "what the agent can do, as others see it: `card.skills`",
        "permission_mode": "what `permission_mode` allows, unless it is `full`",
        "scratchpad": "where it may think, with `scratchpad: true`",
        "examples": "`examples`",
        "knowledge": "passages of documents that match what has come in: `knowledge.auto`",
        "memory": "what it remembers, if it has something to remember with",
        "dialect.tool_call": "its tools, and how to call them in the dialect `tool_call`",
        "dialect.final_output": "its tools, and how to call them in the dialect `final_output`",
        "reminder": "`reminder`; the very last",
    }
)
"""The components that every prompt begins with, in their order, and what they tell the model."""

CONDITIONS: Mapping[str, str] = MappingProxyType(
    {
        "always": "in every turn",
        "asks_first": "`permission_mode` is `ask`",
        "can_delegate": "another agent is there, and a tool to write to it",
        "has_capabilities": "the agent's card has skills",
        "has_mods": "the network has mods",
        "has_others": "the network has other participants",
        "has_skills": "there are instructions to load",
        "has_state": "the agent remembers something",
        "has_tools": "it may call more than `finish`",
        "in_channel": "a channel, or a reply thread of one, woke the agent",
        "in_direct_thread": "a direct thread, or a reply thread of one, woke it",
        "is_auto": "`mode` is `auto`",
        "is_interactive": "`mode` is `interactive`",
        "never": "in no turn",
        "read_only": "`permission_mode` is `read_only`",
    }
)
"""What `when` may name, each also as `not NAME`, and when it holds."""


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
    """A version as text. YAML reads 1.10 as the number 1.1: that must not pass."""
    if isinstance(value, float):
        raise wrong(f'write the version in quotes, "{value}": as a number 1.10 is 1.1')
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
    """What it says, as it stands here."""
    file: str | None = None
    """A file that says it; one that ends in `.j2` is a template with the variables of `prompt`."""
    function: str | None = None
    """`file.py:name`, a Python function, `async` or not: of the turn's context it makes the text.
    """
    priority: Priority | None = None
    """Higher stands first; left out: 50, or that of the component that is replaced."""
    when: When = ()
    """A condition, or a list of conditions that must all hold; left out: always, or as the
    component that is replaced."""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if sum(given is not None for given in (self.text, self.file, self.function)) != 1:
            raise wrong("a component has either a text, a file or a function")
        return self


class ComponentsConfig(Section):
    """What differs from the components that every prompt has."""

    remove: list[str] = []
    """Names of components to leave out."""
    add: dict[Id, ComponentConfig] = {}
    """More components, by name."""
    replace: dict[str, ComponentConfig] = {}
    """Other texts for components, by name."""

    @model_validator(mode="after")
    def _names_exist(self) -> Self:
        for name in (*self.remove, *self.replace):
            if name not in COMPONENTS:
                raise wrong(f"there is no component '{name}'{nearest(name, COMPONENTS)}")
        for name in self.remove:
            if name.startswith("dialect."):
                raise wrong(
                    f"a model that calls tools in words cannot do without '{name}': put other "
                    "words below replace"
                )
        for name in self.add:
            if name in COMPONENTS:
                raise wrong(f"the component '{name}' exists: put it below replace")
        for name in self.replace:
            if name in self.remove:
                raise wrong(f"the component '{name}' is removed and replaced")
        return self


class ExampleStep(Section):
    """A tool call of an example."""

    call: str
    """The tool's name; `finish` is one."""
    arguments: dict[str, JsonValue] = {}
    """What it is called with."""
    result: str | None = None
    """What comes back; left out: not shown."""


class ExampleConfig(Section):
    """An incoming message and what the agent should do about it."""

    incoming: str
    """Its text."""
    sender: Id = "ann"
    """Who sends it."""
    thread: str | None = None
    """The id of its thread as the agent sees it; left out: the direct one with the sender."""
    steps: Annotated[list[ExampleStep], Field(min_length=1, max_length=20)]
    """The calls, one after the other."""


class RolloutConfig(Section):
    """Another version for a share of the threads. Remove the section to roll it back."""

    version: Version
    """The version."""
    share: Share
    """How many threads get it: `10%`, or 0.1. A thread that has it keeps it as the share grows."""

    @model_validator(mode="after")
    def _is_one_version(self) -> Self:
        if self.version == LATEST:
            raise wrong("a rollout names its version")
        return self


class PromptConfig(Section):
    """The system prompt in parts; `file.py:name` alone is its `builder`."""

    builder: str | None = None
    """`file.py:name`, a `PromptBuilder` of Python in place of the components that every prompt has.
    """

    name: Id | None = None
    """A versioned prompt in place of `instruction`: the file `FOLDER/NAME/VERSION.j2`."""
    version: Version = LATEST
    """Of the named prompt; `latest` is the highest that is no pre-release (2.10 after 2.9)."""
    folder: str = "prompts"
    """Where versioned prompts lie."""
    variables: dict[str, JsonValue] = {}
    """What the named prompt and components in `.j2` files need to know."""
    rollout: RolloutConfig | None = None
    """Another version of the named prompt for a share of the threads."""
    components: ComponentsConfig = ComponentsConfig()
    """Parts to remove, add or replace."""
    max_tokens: dict[str, Size] = {}
    """The most that a component may say, by its name, for example `{memory: 300}`; the rest is cut,
    and the turn's record says so."""
    examples: Annotated[list[ExampleConfig], Field(max_length=20)] = []
    """What to do about some messages, shown to the model."""
    reminder: Annotated[list[str], Field(max_length=3)] = []
    """The two or three rules that matter most, said again at the very end."""
    scratchpad: bool = False
    """The model may think in `<scratchpad>…</scratchpad>` before it acts: it is kept in the record
    of the turn and sent to nobody."""

    @model_validator(mode="after")
    def _has_what_it_speaks_of(self) -> Self:
        if self.name is None and self.rollout is not None:
            raise wrong("a rollout needs the name of a prompt")
        if self.name is None and self.version != LATEST:
            raise wrong("a version needs the name of a prompt")
        return self


Prompt = Annotated[PromptConfig, BeforeValidator(_prompt)]
