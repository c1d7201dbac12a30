"""`prompts list | show | diff | lint`: the prompts of agents, and problems in them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.output import (
    DEFAULT_CONFIG,
    ConfigOption,
    JsonFlag,
    console,
    counted,
    emit_json,
    help_if_alone,
    table,
)
from hubbub.config.problems import nearest, shown_path
from hubbub.config.prompting import LATEST
from hubbub.errors import ConfigError, UserError
from hubbub.people.text import visible

if TYPE_CHECKING:
    from hubbub.agents.prompt.lint import Finding
    from hubbub.agents.prompt.versions import PromptLibrary, PromptTemplate
    from hubbub.app.prompts import AgentPrompt
    from hubbub.config.loader import LoadedConfig
    from hubbub.lab.previews import PromptPreview

__all__ = ["group", "register"]

FolderOption = Annotated[
    Path | None,
    typer.Option("--folder", help="A folder of prompts, instead of those of the config."),
]
NameArgument = Annotated[str, typer.Argument(help="The prompt's name, for example triage.")]

group = typer.Typer(
    help="List, show, compare and check prompts.",
    invoke_without_command=True,
    callback=help_if_alone,
)


def register(app: typer.Typer, word: str) -> None:
    group.command("model-server")(model_server)
    app.add_typer(group, name=word)


# list -------------------------------------------------------------------------------------------


@group.command("list")
def list_(
    config: ConfigOption = DEFAULT_CONFIG, folder: FolderOption = None, as_json: JsonFlag = False
) -> None:
    """List versioned prompts with their fingerprints, variables and users. Exits with code 1 if one
    cannot be read.
    """
    loaded = _load(config) if folder is None else None
    prompt_libraries = _libraries(folder, loaded)
    users = _users(loaded) if loaded else {}
    rows = [
        _listed(library, name, version, users.get((library.folder, name, version), []))
        for library in prompt_libraries
        for name in library.names()
        for version in library.versions(name)
    ]
    problems = [row["problem"] for row in rows if "problem" in row]
    if as_json:
        emit_json(rows)
    else:
        _print_prompts(prompt_libraries, [row for row in rows if "problem" not in row])
        for problem in problems:
            typer.echo(problem, err=True)
    if problems:
        raise typer.Exit(1)


def _listed(
    library: PromptLibrary, name: str, version: str, used_by: list[str]
) -> dict[str, object]:
    """A version's row; for an invalid one, its path and the problem."""
    try:
        return _described(library.load(name, version), used_by)
    except ConfigError as error:
        path = shown_path(library.path(name, version))
        row = {"name": name, "version": version, "path": path, "used_by": used_by}
        return {**row, "problem": str(error)}


def _print_prompts(
    prompt_libraries: Iterable[PromptLibrary], rows: list[dict[str, object]]
) -> None:
    if not rows:
        where = " and ".join(shown_path(library.folder) for library in prompt_libraries)
        typer.echo(f"no prompts in {where}: a prompt is a file NAME/VERSION.j2")
        return
    head = ("PROMPT", "VERSION", "FINGERPRINT", "VARIABLES", "USED BY")
    table(head, [tuple(_cell(row[key]) for key in _COLUMNS) for row in rows])


_COLUMNS = ("name", "version", "prompt_id", "required", "used_by")


def _cell(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _described(template: PromptTemplate, used_by: list[str]) -> dict[str, object]:
    return {
        "name": template.name,
        "version": template.version,
        "prompt_id": template.fingerprint,
        "path": shown_path(template.path),
        "required": sorted(template.required - _provided()),
        "optional": sorted(template.optional - _provided()),
        "used_by": used_by,
    }


def _provided() -> frozenset[str]:
    from hubbub.agents.prompt.system import PROVIDED

    return PROVIDED


def _users(loaded: LoadedConfig) -> dict[tuple[Path, str, str], list[str]]:
    """The agents that use each version, with their share if it is not 100%."""
    from hubbub.agents.prompt.versions import PromptLibrary

    users: dict[tuple[Path, str, str], list[str]] = {}
    for agent, config in loaded.file.agents.items():
        settings = config.prompt
        if settings is None or settings.name is None:
            continue
        library = PromptLibrary(loaded.path.parent / settings.folder)
        share = settings.rollout.share if settings.rollout else 0.0
        parts = [(settings.version, 1 - share)]
        parts += [(settings.rollout.version, share)] if settings.rollout else []
        for version, part in parts:
            resolved = library.resolve(settings.name, version)
            user = agent if part == 1 else f"{agent} ({100 * part:.4g} %)"
            users.setdefault((library.folder, settings.name, resolved), []).append(user)
    return users


# show -------------------------------------------------------------------------------------------


@group.command()
def show(
    name: Annotated[
        str | None,
        typer.Argument(help="NAME or NAME@VERSION. Default: the whole system prompt of --agent."),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option("--agent", "-a", help="The agent whose variables to use. Default: any user."),
    ] = None,
    source: Annotated[bool, typer.Option("--source", help="Show the raw template.")] = False,
    config: ConfigOption = DEFAULT_CONFIG,
    folder: FolderOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show a prompt as the model reads it, with the variables of the config."""
    if source or folder is not None:
        if name is None:
            raise UserError("name a prompt")
        if agent is not None:
            raise UserError(
                "--source and --folder show the raw template, so they cannot take --agent"
            )
        _show_source(_find(name, folder, None if folder else _load(config)), as_json)
        return
    prompts = _agents(_load(config))
    if name is None:
        _show_agent(_agent(prompts, agent), as_json)
        return
    bare, _, version = name.partition("@")
    user = _agent(prompts, agent) if agent is not None else _user(prompts, bare)
    template = user.library.load(bare, version or user.prompts.settings.version)
    text = user.render(template)
    if as_json:
        emit_json({**_described(template, [user.name]), "text": text})
        return
    _head(f"{template.fingerprint}  with the variables of agents.{user.name}")
    typer.echo(visible(text))


def _show_source(template: PromptTemplate, as_json: bool) -> None:
    if as_json:
        emit_json({**_described(template, []), "source": template.source})
        return
    _head(f"{template.fingerprint}  {shown_path(template.path)}")
    typer.echo(visible(template.source))


def _show_agent(prompt: AgentPrompt, as_json: bool) -> None:
    from hubbub.lab.previews import previews

    shown = previews(prompt)
    if as_json:
        texts = [_preview(preview) for preview in shown]
        roles = shown[0].role is not None
        emit_json({"agent": prompt.name, **({"roles": texts} if roles else texts[0])})
        return
    for n, preview in enumerate(shown):
        if n:
            typer.echo()
        _head(_heading(prompt.name, preview), _sizes(preview.tokens))
        typer.echo(visible(preview.text))


def _preview(preview: PromptPreview) -> dict[str, object]:
    prompt = preview.prompt
    return {
        **({"role": preview.role} if preview.role else {}),
        "prompt_id": prompt.prompt_id,
        "components": list(prompt.components),
        "tokens": preview.tokens,
        "text": preview.text,
    }


def _sizes(tokens: Mapping[str, int]) -> str:
    parts = ", ".join(f"{name} {count:,}" for name, count in tokens.items())
    return f"{sum(tokens.values()):,} tokens (o200k) before the conversation: {parts}"


def _heading(agent: str, preview: PromptPreview) -> str:
    id = f"{preview.prompt.prompt_id}  " if preview.prompt.prompt_id else ""
    role = f", its {preview.role}" if preview.role else ""
    step = f" for a step with `{preview.tool}`" if preview.tool else ""
    parts = [part.removeprefix("role:") for part in preview.prompt.components]
    return f"{id}agents.{agent}{role}{step}: {', '.join(parts)}"


def _head(text: str, *more: str) -> None:
    from rich.text import Text

    lines = [f"--- {visible(text)}", *(f"    {line}" for line in more)]
    console().print(Text("\n".join(lines), style="dim"))


def _find(name: str, folder: Path | None, loaded: LoadedConfig | None) -> PromptTemplate:
    bare, _, version = name.partition("@")
    return _library(bare, folder, loaded).load(bare, version or LATEST)


def _library(name: str, folder: Path | None, loaded: LoadedConfig | None) -> PromptLibrary:
    """The library that has the prompt; the first one if none does."""
    from hubbub.app.prompts import library_with

    return library_with(_libraries(folder, loaded), name)


def _libraries(folder: Path | None, loaded: LoadedConfig | None) -> list[PromptLibrary]:
    """The libraries that a command works on."""
    from hubbub.agents.prompt.versions import PromptLibrary
    from hubbub.app.prompts import libraries

    return list(libraries(loaded).values()) if loaded else [PromptLibrary(folder or Path())]


def _agents(loaded: LoadedConfig) -> dict[str, AgentPrompt]:
    from hubbub.app.prompts import agent_prompts

    return agent_prompts(loaded)


def _agent(prompts: Mapping[str, AgentPrompt], name: str | None) -> AgentPrompt:
    if name is None and len(prompts) == 1:
        return next(iter(prompts.values()))
    if not prompts:
        raise UserError("no agent of this network has a model, so there is no prompt")
    if name is None:
        raise UserError(f"name an agent with --agent{nearest('', prompts)}")
    if name not in prompts:
        raise UserError(f"there is no agent '{name}' with a model{nearest(name, prompts)}")
    return prompts[name]


def _user(prompts: Mapping[str, AgentPrompt], name: str) -> AgentPrompt:
    for prompt in prompts.values():
        if prompt.prompts.settings.name == name:
            return prompt
    used = {p.prompts.settings.name or "" for p in prompts.values()} - {""}
    hint = nearest(name, used)
    raise UserError(f"no agent uses the prompt '{name}'{hint or '; show it with --source'}")


# diff -------------------------------------------------------------------------------------------


@group.command()
def diff(
    name: NameArgument,
    old: Annotated[
        str | None, typer.Argument(help="A version. Default: the one before NEW.")
    ] = None,
    new: Annotated[str, typer.Argument(help="A version.")] = LATEST,
    config: ConfigOption = DEFAULT_CONFIG,
    folder: FolderOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show the differences between two versions of a prompt."""
    library = _library(name, folder, None if folder else _load(config))
    later = library.load(name, new)
    earlier = library.load(name, old or _before(library, name, later.version))
    lines = list(_difference(earlier, later))
    if as_json:
        ids = {"old": earlier.fingerprint, "new": later.fingerprint}
        emit_json({"name": name, **ids, "diff": lines})
        return
    _print_difference(lines)
    if not lines:
        typer.echo(f"{earlier.fingerprint} and {later.fingerprint} are identical")


def _before(library: PromptLibrary, name: str, version: str) -> str:
    versions = library.versions(name)
    at = versions.index(version)
    if at == 0:
        raise UserError(f"'{name}' has no version before {version}")
    return versions[at - 1]


def _difference(old: PromptTemplate, new: PromptTemplate) -> Iterator[str]:
    ids = old.fingerprint, new.fingerprint
    texts = old.source.splitlines(), new.source.splitlines()
    return difflib.unified_diff(*texts, *ids, lineterm="")


_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def _print_difference(lines: list[str]) -> None:
    from rich.text import Text

    screen = console()
    for n, line in enumerate(lines):
        style = "bold" if n < 2 else _STYLES.get(line[:1], "")
        screen.print(Text(visible(line), style=style))


# lint -------------------------------------------------------------------------------------------


@group.command()
def lint(
    target: Annotated[
        Path, typer.Argument(help="A network's YAML file, or a prompt file.")
    ] = DEFAULT_CONFIG,
    as_json: JsonFlag = False,
) -> None:
    """Check prompts for problems: place, rule and remedy. Exits with code 1 if one is an error."""
    findings = _findings(target)
    errors = sum(1 for finding in findings if finding.level == "error")
    if as_json:
        emit_json([_as_json(finding) for finding in findings])
    else:
        _print_findings(findings)
        warnings = len(findings) - errors
        counts = counted(errors, "error", "errors"), counted(warnings, "warning", "warnings")
        typer.echo(f"{target}: {', '.join(counts)}" if findings else f"{target}: no problems")
    if errors:
        raise typer.Exit(1)


def _findings(target: Path) -> list[Finding]:
    from hubbub.agents.prompt.lint import lint as check
    from hubbub.lab.lint import config_subjects, file_subject

    if target.exists() and not target.is_file():
        raise ConfigError("cannot be read: not a file", shown_path(target))
    if target.suffix in (".yaml", ".yml"):
        checked = [check(subject) for subject in config_subjects(_load(target))]
        unique = dict.fromkeys(finding for findings in checked for finding in findings)
        return sorted(unique, key=lambda f: (f.place.file, f.place.line or 0, f.rule))
    return check(file_subject(target))


def _as_json(finding: Finding) -> dict[str, object]:
    return {
        "rule": finding.rule,
        "level": finding.level,
        "path": finding.place.file,
        "line": finding.place.line,
        "message": finding.message,
    }


def _print_findings(findings: list[Finding]) -> None:
    from rich.text import Text

    screen = console()
    for finding in findings:
        place = ":".join(str(part) for part in finding.place if part is not None)
        style = "red" if finding.level == "error" else "yellow"
        line = Text.assemble(
            f"{place}: ",
            (finding.level, style),
            f": {visible(finding.message)} ",
            (f"[{finding.rule}]", "dim"),
        )
        screen.print(line)


def _load(path: Path) -> LoadedConfig:
    """The config, without checking its agents' Python code: only functions that are tools are
    imported, when a prompt needs them."""
    from hubbub.app.agent_checks import check_tools
    from hubbub.config.loader import load
    from hubbub.mods.loader import known_mods

    config = load(path, mods=known_mods().keys())
    check_tools(config)
    return config


def model_server(
    script: Annotated[Path, typer.Argument(help="The model's script (YAML).")],
    host: Annotated[str, typer.Option("--host")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 picks a free port.")] = 0,
) -> None:
    """Serve a scripted model over the OpenAI API, until Ctrl-C."""
    from hubbub.testing.model_server import main

    main(script, host, port)
