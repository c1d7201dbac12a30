"""Versioned prompts: `FOLDER/NAME/VERSION.j2`, Jinja2 in a sandbox.

    library = PromptLibrary(folder)
    prompt = library.load("triage", "latest")
    prompt.required                        {"shop"}
    prompt.render({"shop": "Acme"})
    prompt.fingerprint                     triage@2.10#1f0a3c9b

A variable is required unless the template itself tests it with `is defined` or gives it a
`default(…)`. Templates include and import nothing, so the fingerprint covers everything.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import total_ordering
from pathlib import Path

from jinja2 import StrictUndefined, Template, meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from hubbub.agents.prompt.files import (
    TEMPLATE_ERRORS,
    parse_alone,
    parse_error,
    prompt_text,
    render_error,
)
from hubbub.config.problems import nearest, shown_path
from hubbub.config.prompting import LATEST
from hubbub.errors import ConfigError

__all__ = ["PromptLibrary", "PromptTemplate", "PromptVersion", "compile_prompt", "latest"]

SUFFIX = ".j2"
_RANKS = {"dev": -4, "a": -3, "alpha": -3, "b": -2, "beta": -2, "c": -1, "rc": -1, "pre": -1,
          "preview": -1, "post": 1}  # fmt: skip
_OTHER = -2.5
"""The rank of any other word, for example `draft`: before the release, after its alphas."""
_NUMBERED = re.compile(r"v?(?P<release>\d+(?:\.\d+)*)(?P<rest>.*)", re.IGNORECASE)


@total_ordering
class PromptVersion:
    """Ordered: draft < 2.9 < 2.10-rc.1 < 2.10. Versions without a number come first."""

    def __init__(self, text: str):
        self.text = text
        match = _NUMBERED.fullmatch(text.partition("+")[0])
        self.numbered = match is not None
        release = [int(n) for n in match["release"].split(".")] if match else []
        while release and release[-1] == 0:
            release.pop()
        parts = re.findall(r"\d+|[a-z]+", (match["rest"] if match else text).lower())
        # A release has no parts: 0 sorts between pre-releases and post-releases.
        ranked = list(map(_ranked, parts))
        self._key = (self.numbered, release, [*ranked, (0.0, "", -1)], text)
        self.released = match is not None and not any(rank < 0 for rank, _, _ in ranked)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PromptVersion) and self._key == other._key

    def __lt__(self, other: PromptVersion) -> bool:
        return self._key < other._key

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Version({self.text!r})"


def _ranked(part: str) -> tuple[float, str, int]:
    if part.isdigit():
        return 0.0, "", int(part)
    rank = _RANKS.get(part)
    return (_OTHER, part, 0) if rank is None else (rank, "", 0)


def latest(versions: Iterable[str]) -> str | None:
    """The highest release, or else the highest pre-release; None if no version has a number: a
    `draft` is only used by name.
    """
    numbered = [version for version in map(PromptVersion, versions) if version.numbered]
    best = max((v for v in numbered if v.released), default=None) or max(numbered, default=None)
    return best.text if best else None


@dataclass(frozen=True, slots=True)
class PromptTemplate:
    """One version of a prompt."""

    name: str
    version: str
    path: Path
    source: str
    required: frozenset[str]
    """Variables without which it cannot be rendered."""
    optional: frozenset[str]
    """Other variables that it uses."""
    lines: Mapping[str, int]
    """Where each variable is first used."""
    template: Template

    @property
    def fingerprint(self) -> str:
        """`name@version#hash`, as in a turn's record. The hash is of the template's text."""
        digest = hashlib.sha256(self.source.encode()).hexdigest()[:8]
        return f"{self.name}@{self.version}#{digest}"

    def check(self, given: Iterable[str]) -> None:
        """Raises `ConfigError`, with variable and file, when a required variable is missing."""
        names = set(given)
        spare = names - self.required - self.optional
        for name in sorted(self.required - names):
            near = nearest(name, spare) if spare else ""
            hint = near if near.startswith("; did") else ""
            message = f"the prompt {self.name}@{self.version} needs the variable '{name}'{hint}"
            raise ConfigError(message, shown_path(self.path), self.lines[name])

    def render(self, variables: Mapping[str, object]) -> str:
        """The text. Raises `ConfigError` with file and line when it fails or lacks a variable."""
        self.check(variables)
        try:
            return self.template.render(variables)
        except TEMPLATE_ERRORS as exc:
            raise render_error(exc, self.path, "the prompt") from exc


class PromptLibrary:
    """The versioned prompts in a folder. Files are read on demand."""

    def __init__(self, folder: Path):
        self.folder = folder

    def names(self) -> tuple[str, ...]:
        """Prompts that have a version, sorted."""
        if not self.folder.is_dir():
            return ()
        return tuple(sorted({path.parent.name for path in self.folder.glob(f"*/*{SUFFIX}")}))

    def versions(self, name: str) -> tuple[str, ...]:
        """The versions of a prompt, lowest first; none if it does not exist. `latest` is none."""
        texts = {path.name.removesuffix(SUFFIX) for path in (self.folder / name).glob(f"*{SUFFIX}")}
        return tuple(version.text for version in sorted(map(PromptVersion, texts - {LATEST})))

    def resolve(self, name: str, version: str = LATEST) -> str:
        """The version itself, or the one that `latest` means. Raises `ConfigError` with a
        suggestion if it does not exist.
        """
        versions, place = self.versions(name), shown_path(self.folder)
        if not versions and self.path(name, LATEST).exists():
            what = (
                f"the prompt '{name}' has no version: rename {LATEST}{SUFFIX}, for example to 1.0"
            )
            raise ConfigError(f"{what}{SUFFIX}", place)
        if not versions:
            hint = nearest(name, self.names()) or "; there are no prompts in it"
            raise ConfigError(f"there is no prompt '{name}'{hint}", place)
        resolved = latest(versions) if version == LATEST else version
        if resolved is None:
            what = f"the prompt '{name}' has no numbered version: name one of {', '.join(versions)}"
            raise ConfigError(what, place)
        if resolved not in versions:
            listed = f"; versions: {', '.join(versions)}"
            raise ConfigError(f"the prompt '{name}' has no version '{version}'{listed}", place)
        return resolved

    def load(self, name: str, version: str = LATEST) -> PromptTemplate:
        """Read and compile a version. Raises `ConfigError` with file and line."""
        resolved = self.resolve(name, version)
        return compile_prompt(self.path(name, resolved), name, resolved)

    def path(self, name: str, version: str) -> Path:
        """The file of a version."""
        return self.folder / name / f"{version}{SUFFIX}"


def compile_prompt(
    path: Path, name: str | None = None, version: str | None = None
) -> PromptTemplate:
    """Compile a template file. Name and version default to those of its folder and file.

    Raises `ConfigError` with file and line.
    """
    source = prompt_text(path, "the prompt")
    tree = parse_alone(_ENVIRONMENT, source, path, "the prompt")
    try:
        required, optional, lines = _variables(tree)
        # Compiled from its source: parsing has modified the tree.
        code = _ENVIRONMENT.compile(source, filename=str(path))
    except TEMPLATE_ERRORS as exc:
        raise parse_error(exc, path, "the prompt") from exc
    template = Template.from_code(_ENVIRONMENT, code, _ENVIRONMENT.globals)
    name, version = name or path.parent.name, version or path.name.removesuffix(SUFFIX)
    return PromptTemplate(name, version, path, source, required, optional, lines, template)


_ENVIRONMENT = ImmutableSandboxedEnvironment(
    autoescape=False,  # the operator's own text; participants' text is escaped already
    undefined=StrictUndefined,
    keep_trailing_newline=False,
    trim_blocks=True,
    lstrip_blocks=True,
)


def _variables(tree: nodes.Template) -> tuple[frozenset[str], frozenset[str], dict[str, int]]:
    """The required names, the optional ones, and the line where each is first used."""
    free = meta.find_undeclared_variables(tree) - set(_ENVIRONMENT.globals)
    guarded = {
        node.node.name
        for node in tree.find_all(nodes.Test)
        if node.name in ("defined", "undefined") and isinstance(node.node, nodes.Name)
    }
    guarded |= {
        node.node.name
        for node in tree.find_all(nodes.Filter)
        if node.name in ("default", "d") and isinstance(node.node, nodes.Name)
    }
    lines: dict[str, int] = {}
    for node in tree.find_all(nodes.Name):
        lines[node.name] = min(node.lineno, lines.get(node.name, node.lineno))
    return frozenset(free - guarded), frozenset(free & guarded), lines
