"""The system message: who the agent is, what its operator wants, and what the network is.

prompts = load_system_prompts(config, "editor", folder)      once for each agent
prompts.of(context)                                          for each turn
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path

from hubbub.agents.models.base import ToolSpec
from hubbub.agents.prompt.builder import (
    DEFAULT_PRIORITY,
    Component,
    PromptBuilder,
    Render,
    call_function,
)
from hubbub.agents.prompt.components import (
    CONTRACT,
    FOR_PROGRAMS,
    condition,
    default_builder,
    plain_builder,
)
from hubbub.agents.prompt.context import PromptContext
from hubbub.agents.prompt.files import prompt_text
from hubbub.agents.prompt.versions import SUFFIX, PromptLibrary, PromptTemplate, compile_prompt
from hubbub.config.agents import AgentConfig
from hubbub.config.problems import listing, nearest, shown_path
from hubbub.config.prompting import ComponentConfig, PromptConfig, RolloutConfig
from hubbub.errors import ConfigError
from hubbub.loading import load_attribute

__all__ = [
    "PROVIDED",
    "SystemPrompt",
    "SystemPrompts",
    "load_system_prompts",
    "position",
    "system_prompt",
    "template_variables",
    "version_for",
]

# Which version of a prompt a thread gets during a rollout. Pure.


def version_for(
    pinned: str, rollout: RolloutConfig | None, agent: str, thread: str, prompt: str
) -> str:
    """The rolled-out version for its share of the threads, else the pinned one.

    A thread (canonical id) keeps its version as long as the share does not drop below it: a thread
    that has the new version at 10 % has it at 20 %, too.
    """
    if rollout is None or position(agent, thread, prompt) >= rollout.share:
        return pinned
    return rollout.version


def position(agent: str, thread: str, prompt: str) -> float:
    """The thread's position among all threads: uniformly distributed over 0 <= position < 1."""
    digest = hashlib.sha256("\0".join((agent, thread, prompt)).encode()).digest()
    # A float holds 53 bits exactly; more would round some positions up to 1.
    return (int.from_bytes(digest[:8]) >> 11) / 2**53


_OWN = frozenset({"examples", "reminder", "scratchpad", "write_calls"})
"""Fields of the context that only the config uses, not templates."""
PROVIDED = frozenset(field.name for field in fields(PromptContext)) - _OWN
"""Variables that every prompt template has."""


def system_prompt(instruction: str, name: str, network: str) -> str:
    """The agent's instruction, then the standard components."""
    context = PromptContext(agent=name, network=network, instruction=instruction)
    return plain_builder().build(context)


@dataclass(frozen=True, slots=True)
class SystemPrompt:
    """The system message of one turn, and its description in the turn's record."""

    body: str
    components: tuple[str, ...]
    """Names of its components, in order."""
    prompt_id: str | None = None
    """The fingerprint of the versioned prompt in it."""
    closing: str = ""
    """The reminder: the last text that a model reads, after the dialect's part."""
    texts: tuple[str, ...] = ()
    """The texts of the components."""
    contract: Contract | None = None
    """What stands between the body and the closing, for a model that calls tools in text."""
    uncut: tuple[int, ...] = ()
    """Tokens that the components had before they were cut; 0: not cut."""

    @property
    def text(self) -> str:
        """The full text."""
        return "\n\n".join(self.texts)

    @property
    def recorded(self) -> tuple[str, ...]:
        """The components as a turn's record lists them, with those that were cut marked."""
        cut = zip(self.components, self.uncut, strict=True)
        return tuple(
            f"{name} (cut, of {tokens} tokens)" if tokens else name for name, tokens in cut
        )


@dataclass(frozen=True, slots=True)
class Contract:
    """Describes how to call tools in a text dialect, and which tools there are."""

    builder: PromptBuilder
    context: PromptContext

    def __call__(self, dialect: str, tools: Sequence[ToolSpec]) -> str:
        """The text for a request with these tools; empty for native tool calls."""
        name = f"{CONTRACT}{dialect}"
        builder = self.builder if name in self.builder else default_builder()
        if name not in builder:
            return ""
        context = replace(self.context, dialect=dialect, tools=tools)
        section = builder[name].section(context)
        return section.text if section is not None else ""


@dataclass(frozen=True, slots=True)
class VersionedPrompt:
    """A versioned prompt, and the version that a share of the threads gets instead."""

    settings: PromptConfig
    versions: Mapping[str, PromptTemplate]
    """The templates, by version as in the config."""

    def of(self, agent: str, thread: str) -> PromptTemplate:
        """The template for a thread (canonical id)."""
        pinned, rollout = self.settings.version, self.settings.rollout
        return self.versions[version_for(pinned, rollout, agent, thread, self.settings.name or "")]


@dataclass(frozen=True, slots=True)
class SystemPrompts:
    """Makes the system messages of one agent. Pure: the same context makes the same message."""

    instruction: str | Render
    builder: PromptBuilder
    settings: PromptConfig
    choice: VersionedPrompt | None = None
    sources: tuple[str, ...] = ()
    """The sources of its templates."""

    @property
    def operator_text(self) -> str:
        """All of the operator's text in it, unrendered."""
        instruction = self.instruction if isinstance(self.instruction, str) else ""
        return "\n".join([instruction, self.settings.model_dump_json(), *self.sources])

    async def awaited(self, context: PromptContext) -> SystemPrompts:
        """The same with the results of async functions. Raises `ConfigError` if one raises."""
        instruction = self.instruction
        if not isinstance(instruction, str):
            result = await call_function(instruction, context, "the instruction")
            if not isinstance(result, str):
                raise ConfigError(f"the instruction gives {type(result).__name__}: return a text")
            instruction = result
        builder = await self.builder.awaited(replace(context, instruction=instruction))
        return replace(self, instruction=instruction, builder=builder)

    def of(self, context: PromptContext, thread: str) -> SystemPrompt:
        """The system message for a turn in `thread` (canonical id).

        Fills in instruction, examples and the like. Raises `ConfigError` with file and line when a
        template fails.
        """
        settings = self.settings
        assert isinstance(self.instruction, str), "it is awaited before"
        context = replace(
            context,
            instruction=self.instruction,
            examples=settings.examples,
            reminder=settings.reminder,
            scratchpad=settings.scratchpad,
        )
        prompt_id = None
        if self.choice is not None:
            template = self.choice.of(context.agent, thread)
            text = template.render(template_variables(context, settings))
            context, prompt_id = replace(context, instruction=text), template.fingerprint
        sections = self.builder.sections(context)
        ends = [s for s in sections if s.name == "reminder" and s is sections[-1]]
        contracts = [section for section in sections if section.name.startswith(CONTRACT)]
        body = [section for section in sections if section not in (*contracts, *ends)]
        shown = (*body, *contracts, *ends)
        return SystemPrompt(
            "\n\n".join(section.text for section in body),
            tuple(section.name for section in shown),
            prompt_id,
            ends[0].text if ends else "",
            tuple(section.text for section in shown),
            Contract(self.builder, context),
            tuple(section.uncut for section in shown),
        )


def load_system_prompts(
    config: AgentConfig,
    name: str,
    base_dir: Path,
    builder: PromptBuilder | None = None,
    instruction: Render | None = None,
) -> SystemPrompts:
    """From an agent's config; relative files are relative to `base_dir`. A program's `builder` and
    `instruction` replace those in the config.

    Raises `ConfigError` when a file does not exist or a variable is missing.
    """
    settings = config.prompt
    if builder is not None:
        builder = builder.clone()
    elif settings is None:
        builder = plain_builder()
    else:
        builder = _builder(settings, name, base_dir)
    for replacement in FOR_PROGRAMS if config.kind == "acp" else ():
        builder.replace(replacement)
    if settings is None:
        return SystemPrompts(instruction or config.instruction, builder, PromptConfig())
    choice = _choice(settings, config.instruction, name, base_dir)
    templates = list(choice.versions.values()) if choice else []
    for component in settings.components.remove:
        if component in builder:  # a name listed twice is removed once
            builder.unregister(component)
    for key, given in settings.components.replace.items():
        builder.replace(_component(key, given, builder[key], settings, base_dir, templates))
    for key, given in settings.components.add.items():
        builder.register(_component(key, given, None, settings, base_dir, templates))
    for component, most in settings.max_tokens.items():
        if component not in builder:
            what = f"agents.{name}.prompt.max_tokens: there is no component {component!r}"
            raise ConfigError(f"{what}{nearest(component, builder.names)}")
        builder.replace(replace(builder[component], max_tokens=most))
    _check_variables(settings, templates, name)
    sources = tuple(template.source for template in templates)
    return SystemPrompts(instruction or config.instruction, builder, settings, choice, sources)


def _builder(settings: PromptConfig, name: str, base_dir: Path) -> PromptBuilder:
    """The builder that a config names, or the standard one."""
    if settings.builder is None:
        return default_builder()
    builder = load_attribute(settings.builder, base_dir)
    if not isinstance(builder, PromptBuilder):
        place = f"agents.{name}.prompt.builder: {settings.builder}"
        raise ConfigError(f"{place} is no PromptBuilder: `default_builder()` makes one")
    return builder.clone()


def _choice(
    settings: PromptConfig, instruction: str, name: str, base_dir: Path
) -> VersionedPrompt | None:
    if settings.name is None:
        return None
    library = PromptLibrary(base_dir / settings.folder)
    wanted = [settings.version] + ([settings.rollout.version] if settings.rollout else [])
    versions = {version: library.load(settings.name, version) for version in wanted}
    for template in versions.values():
        template.check(PROVIDED | set(settings.variables))
        if instruction.strip() and "instruction" not in template.required | template.optional:
            what = f"the prompt {template.name}@{template.version} has no place for"
            problem = (
                f"{what} the instruction of agents.{name}: put {{{{ instruction }}}} into it, or"
            )
            raise ConfigError(f"{problem} remove the instruction", shown_path(template.path))
    return VersionedPrompt(settings, versions)


def _component(
    name: str,
    given: ComponentConfig,
    replaced: Component | None,
    settings: PromptConfig,
    base_dir: Path,
    templates: list[PromptTemplate],
) -> Component:
    """The component from the config. Its template, if it has one, is added to `templates`."""
    priority = given.priority
    if priority is None:
        priority = replaced.priority if replaced else DEFAULT_PRIORITY
    path = base_dir / (given.file or "")
    content: str | Render
    if given.text is not None:
        content = given.text
    elif given.function is not None:
        function = load_attribute(given.function, base_dir)
        if not callable(function):
            raise ConfigError(f"the prompt component {name!r}: {given.function} is no function")
        content = function
    elif path.suffix == SUFFIX:
        template = compile_prompt(path, name, path.stem)
        template.check(PROVIDED | set(settings.variables))
        templates.append(template)
        content = partial(_render, template, settings)
    else:
        content = prompt_text(path, "the component")
    when = condition(given.when) or (replaced.when if replaced else None)
    return Component(name, content, priority, when)


def _render(template: PromptTemplate, settings: PromptConfig, context: PromptContext) -> str:
    return template.render(template_variables(context, settings))


def template_variables(context: PromptContext, settings: PromptConfig) -> dict[str, object]:
    """The variables of a prompt template."""
    provided = {name: getattr(context, name) for name in PROVIDED}
    return {**provided, **settings.variables}


def _check_variables(settings: PromptConfig, templates: list[PromptTemplate], name: str) -> None:
    """A variable that no template uses is probably misspelled."""
    used = frozenset[str]().union(*(t.required | t.optional for t in templates))
    for variable in settings.variables:
        if variable in PROVIDED:
            what = f"agents.{name}.prompt.variables gives '{variable}', which every prompt has"
            raise ConfigError(f"{what}: choose another name ({listing(PROVIDED)} are taken)")
        if variable not in used:
            hint = nearest(variable, used - PROVIDED)
            what = f"agents.{name}.prompt.variables gives '{variable}', which no template uses"
            raise ConfigError(f"{what}{hint}")
