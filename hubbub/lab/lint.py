"""Prepares the prompts of a config or a file for the linter."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from hubbub.agents.dialects.text_dialect import TextDialect
from hubbub.agents.prompt.builder import PromptBuilder
from hubbub.agents.prompt.components import CONTRACT
from hubbub.agents.prompt.files import prompt_text
from hubbub.agents.prompt.lint_subject import (
    ContractFact,
    LintSubject,
    PromptText,
    SourceLine,
    TemplateText,
    ToolFact,
)
from hubbub.agents.prompt.render import SHIPPED
from hubbub.agents.prompt.versions import SUFFIX
from hubbub.agents.prompt_client import DIALECTS
from hubbub.app.prompts import AgentPrompt, agent_prompts
from hubbub.config.loader import LoadedConfig
from hubbub.config.problems import shown_path
from hubbub.config.source import Loc

__all__ = ["config_subjects", "file_subject"]

_CODE = re.compile(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", re.DOTALL)


def file_subject(path: Path) -> LintSubject:
    """A file on its own, a template or plain text, without knowledge of its tools.

    Raises `ConfigError` if it cannot be read.
    """
    passage = _file_text(path.name, path)
    templates = [_template(path)] if path.suffix == SUFFIX else []
    return LintSubject(shown_path(path), SourceLine(shown_path(path)), [passage], templates)


def config_subjects(loaded: LoadedConfig) -> list[LintSubject]:
    """The prompts of all agents of a config that have a model. Raises `ConfigError`."""
    return [_Agent(loaded, prompt).subject() for prompt in agent_prompts(loaded).values()]


class _Agent:
    """Collects the texts of one agent's prompts, with their source lines."""

    def __init__(self, loaded: LoadedConfig, prompt: AgentPrompt):
        self._loaded, self._prompt = loaded, prompt
        self._config, self._settings = prompt.config, prompt.prompts.settings
        self._loc: Loc = ("agents", prompt.name)
        self._place = _place(loaded, self._loc)

    def subject(self) -> LintSubject:
        config, settings, builder = self._config, self._settings, self._prompt.prompts.builder
        tools = self._tools()
        offered = {op.name for op in self._prompt.ready.operations if op.tool}
        return LintSubject(
            name=f"agents.{self._prompt.name}",
            place=self._place,
            passages=[*self._system(builder), self._conversation()],
            templates=list(self._templates()),
            tools=tools,
            others=frozenset((offered | set(config.disabled_tools)) - set(tools)),
            words=self._known_names(),
            prefixes=tuple(f"{server}_" for server in config.mcp),
            called=[
                (step.call, _place(self._loaded, (*self._loc, "prompt", "examples", n, "steps", i)))
                for n, example in enumerate(settings.examples)
                for i, step in enumerate(example.steps)
            ],
            reminded=bool(settings.reminder) and "reminder" in builder,
            contracts=list(self._contracts()),
            warned="untrusted_data" in builder,
        )

    def _tools(self) -> dict[str, ToolFact]:
        toolbox = self._prompt.toolbox
        permissions = {entry.name: entry.permission for entry in toolbox.registry.entries}
        facts = {name: ToolFact(name, "", permissions.get(name, "write")) for name in toolbox.names}
        for spec in toolbox.registry.definitions():
            facts[spec.name] = ToolFact(spec.name, spec.description, permissions[spec.name])
        return facts

    def _known_names(self) -> frozenset[str]:
        """Names other than tools that prompts put in backticks: participants, channels, variables,
        arguments.
        """
        file = self._loaded.file
        names = {*file.agents, *file.humans, *file.channels, *self._settings.variables}
        for spec in self._prompt.toolbox.registry.definitions():
            arguments = spec.parameters.get("properties")
            names |= set(arguments) if isinstance(arguments, dict) else set()
        return frozenset(names)

    # Texts --------------------------------------------------------------------------------------

    def _system(self, builder: PromptBuilder) -> Iterator[PromptText]:
        """The components' texts in order, including Hubbub's own."""
        context = self._prompt.context(self._prompt.thread())
        builder = self._prompt.awaited(context).builder
        components = self._settings.components
        for name in builder.names:
            loc = (*self._loc, "prompt", "components")
            if name in components.replace:
                yield self._component(name, (*loc, "replace", name))
            elif name in components.add:
                yield self._component(name, (*loc, "add", name))
            elif name == "identity":
                yield from self._identity()
            elif name == "reminder":
                yield from self._reminder()
            elif name != "examples" and not name.startswith(CONTRACT):
                section = replace(builder[name], when=None).section(context)
                text = section.text if section is not None else ""
                yield PromptText(f"component {name}", text, [self._place], own=False)

    def _contracts(self) -> Iterator[ContractFact]:
        """The description of tools in each text dialect."""
        thread = self._prompt.thread()
        context = self._prompt.context(thread)
        contract = self._prompt.awaited(context).of(context, thread).contract
        assert contract is not None, "every system prompt has one"
        for dialect in DIALECTS.values():
            if not isinstance(dialect, TextDialect):
                continue
            loc: Loc = (*self._loc, "prompt", "components", "replace", f"{CONTRACT}{dialect.name}")
            replaced = loc[-1] in self._settings.components.replace
            default = dialect.instructions(context.tools)
            tools = [tool.name for tool in context.tools if tool.name in default]
            yield ContractFact(
                dialect.name,
                _place(self._loaded, loc) if replaced else self._place,
                contract(dialect.name, context.tools),
                (*dialect.form, *tools),
            )

    def _component(self, name: str, loc: Loc) -> PromptText:
        components = self._settings.components
        given = {**components.add, **components.replace}[name]
        if given.text is not None:
            return self._yaml_text(f"component {name}", given.text, (*loc, "text"))
        return _file_text(f"component {name}", self._folder / (given.file or ""))

    def _identity(self) -> Iterator[PromptText]:
        choice = self._prompt.prompts.choice
        for template in choice.versions.values() if choice else ():
            yield _file_text(f"prompt {template.name}@{template.version}", template.path)
        if self._config.instruction.strip():
            loc = (*self._loc, "instruction")
            yield self._yaml_text("instruction", self._config.instruction, loc)

    def _reminder(self) -> Iterator[PromptText]:
        for n, rule in enumerate(self._settings.reminder):
            yield self._yaml_text("reminder", rule, (*self._loc, "prompt", "reminder", n))

    def _conversation(self) -> PromptText:
        if self._config.template is None:
            text = _literal_text(SHIPPED.read_text(encoding="utf-8"))
            return PromptText("conversation template", text, [self._place], own=False)
        return _file_text("conversation template", self._folder / self._config.template)

    def _templates(self) -> Iterator[TemplateText]:
        choice, components = self._prompt.prompts.choice, self._settings.components
        paths = [template.path for template in choice.versions.values()] if choice else []
        for given in (*components.add.values(), *components.replace.values()):
            if given.file is not None and given.file.endswith(SUFFIX):
                paths.append(self._folder / given.file)
        if self._config.template is not None:
            paths.append(self._folder / self._config.template)
        return map(_template, paths)

    def _yaml_text(self, name: str, text: str, loc: Loc) -> PromptText:
        """A text of the config with its source lines, matched by content below the key."""
        start = self._loaded.document.place(loc)
        source = start.file.read_text(encoding="utf-8").splitlines()
        lines = text.splitlines() or [""]
        places, at = [], start.line
        for line in lines:
            until = min(len(source), start.line + 2 * len(lines) + 5)
            matches = (n for n in range(at, until + 1) if _has_text(source[n - 1], line))
            at = next(matches, at)
            places.append(SourceLine(shown_path(start.file), at))
        return PromptText(name, text, places)

    @property
    def _folder(self) -> Path:
        return self._loaded.path.parent


def _has_text(raw: str, line: str) -> bool:
    """Whether a line of YAML contains the text, or the start of it if folded."""
    raw, line = raw.strip(), line.strip()
    return bool(line) and (line in raw or (len(raw) > 20 and line.startswith(raw)))


def _place(loaded: LoadedConfig, loc: Loc) -> SourceLine:
    place = loaded.document.place(loc)
    return SourceLine(shown_path(place.file), place.line)


def _file_text(name: str, path: Path) -> PromptText:
    text = prompt_text(path, "the file")
    if path.suffix == SUFFIX:
        text = _literal_text(text)
    places = [SourceLine(shown_path(path), n) for n in range(1, text.count("\n") + 2)]
    return PromptText(name, text, places)


def _literal_text(template: str) -> str:
    """A template's literal text on its original lines, with ellipses for expressions."""
    return _CODE.sub(lambda c: "…" * c[0].startswith("{{") + "\n" * c[0].count("\n"), template)


def _template(path: Path) -> TemplateText:
    return TemplateText(shown_path(path), prompt_text(path, "the file"))
