"""Mods by name: the built-in ones, those that installed packages register, and files.

A package registers its mods with the entry point group `hubbub.mods`, under their names. A file is
named as `mods/thanks.py:Thanks`. A mod runs only when the network's YAML names it, and is imported
only then; `allow_mods` may narrow down which can be named at all.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from pydantic import JsonValue, ValidationError

from hubbub.config.models import NetworkFile
from hubbub.config.paths import split_spec
from hubbub.errors import UserError
from hubbub.loading import load_attribute
from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.operation import Operation
from hubbub.user_code import told
from hubbub.wording import did_you_mean

__all__ = [
    "BUILT_IN",
    "NAME",
    "ListedMod",
    "check_company",
    "check_permissions",
    "docs_of",
    "find_mod",
    "known_mods",
    "load_mods",
    "named",
    "operations_of",
    "scripts_of",
    "settings_of",
    "table_prefix",
]


def settings_of(kind: type[Mod], settings: Mapping[str, JsonValue]) -> ModConfig:
    """The settings as the mod's model. Raises `UserError` with the place of the first mistake."""
    try:
        return kind.Config.model_validate(dict(settings))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(["mods", kind.name, *map(str, first["loc"])])
        raise UserError(f"{place}: {first['msg'][0].lower()}{first['msg'][1:]}") from None


def check_permissions(mod: Mod, config: ModConfig) -> None:
    """Raises `UserError` if the settings give a permission to an operation that there is not."""
    names = [operation.name for operation in mod.operations()]
    for name in config.permissions:
        if name not in names:
            hint = did_you_mean(name, names)
            raise UserError(f"mods.{mod.name}.permissions: it has no operation {name!r}{hint}")


_NUMBERED = re.compile(r"[0-9]{4}_[a-z0-9_]+\.sql")


def table_prefix(mod: str) -> str:
    """What all names in a mod's part of the database begin with."""
    return f"{mod.replace('-', '_')}_"


def scripts_of(kind: type[Mod]) -> Mapping[int, str]:
    """The scripts of a mod's tables by number, from 1 without gaps; empty if it has none.

    Raises `UserError` for a folder that is not there, or whose numbers have gaps.
    """
    if kind.migrations is None:
        return {}
    folder = Path(inspect.getfile(kind)).parent / kind.migrations
    if not folder.is_dir():
        raise UserError(f"the mod {kind.name} has no folder {folder}; its `migrations` names it")
    names = sorted(file.name for file in folder.iterdir() if _NUMBERED.fullmatch(file.name))
    numbers = list(range(1, len(names) + 1))
    if not names or [int(name[:4]) for name in names] != numbers:
        raise UserError(
            f"the mod {kind.name}: {folder} needs scripts 0001_name.sql, 0002_name.sql and so on, "
            "without gaps"
        )
    texts = ((folder / name).read_text(encoding="utf-8") for name in names)
    return dict(zip(numbers, texts, strict=True))


BUILT_IN: Mapping[str, str] = {
    "digest": "hubbub.mods.digest.mod:DigestMod",
    "directory": "hubbub.mods.directory.mod:DirectoryMod",
    "documents": "hubbub.mods.documents.mod:DocumentsMod",
    "edits": "hubbub.mods.edits.mod:EditsMod",
    "files": "hubbub.mods.files.mod:FilesMod",
    "moderation": "hubbub.mods.moderation.mod:Moderation",
    "polls": "hubbub.mods.polls.mod:PollsMod",
    "reactions": "hubbub.mods.reactions.mod:ReactionsMod",
    "schedule": "hubbub.mods.schedule.mod:ScheduleMod",
    "search": "hubbub.mods.search.mod:SearchMod",
    "tasks": "hubbub.mods.tasks.mod:TasksMod",
    "threads": "hubbub.mods.threads.mod:ThreadsMod",
    "transcript": "hubbub.mods.transcript.mod:TranscriptMod",
    "webhooks": "hubbub.mods.webhooks.mod:WebhooksMod",
}


ENTRY_POINTS = "hubbub.mods"

NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
"""What a mod may be called."""

Entry = str | Mapping[str, Mapping[str, JsonValue] | None]
"""Of the YAML's list: a name, or a name with its settings."""


@dataclass(frozen=True, slots=True)
class KnownMod:
    """A mod that can be named, and where it comes from."""

    name: str
    origin: str
    """For people: `built in`, `package acme-mods 1.2`, or the file."""
    load: Callable[[], object]
    """Imports it."""


@dataclass(frozen=True, slots=True)
class ListedMod:
    """A mod of the YAML's list."""

    kind: type[Mod]
    origin: str
    settings: Mapping[str, JsonValue]


def known_mods() -> Mapping[str, KnownMod]:
    """All mods that can be named by their name alone. Nothing is imported."""
    found = {name: _built_in(name) for name in sorted(BUILT_IN)}
    for entry in _registered():
        if entry.name not in found:  # a package cannot take a built-in one's place
            found[entry.name] = KnownMod(entry.name, _package(entry), entry.load)
    return found


@cache
def _registered() -> Sequence[EntryPoint]:
    """Read once: it opens a file of each installed package."""
    return tuple(entry_points(group=ENTRY_POINTS))


def _package(entry: EntryPoint) -> str:
    return f"package {entry.dist.name} {entry.dist.version}" if entry.dist else "a package"


def _built_in(name: str) -> KnownMod:
    module, _, kind = BUILT_IN[name].partition(":")
    return KnownMod(name, "built in", partial(_attribute, module, kind))


def _attribute(module: str, name: str) -> object:
    return getattr(import_module(module), name)


def find_mod(name: str, allowed: Collection[str] | None = None) -> ListedMod:
    """The mod that the YAML means: by name, or `file.py:Class`. Without settings.

    Raises `UserError` for one that there is not, that is not allowed, that cannot be imported, or
    that is no mod.
    """
    found = _find(name)
    if allowed is not None and found.name not in allowed and found.origin != "built in":
        raise UserError(
            f"mods: {name!r} ({found.origin}) is not among network.allow_mods; it would run inside "
            f"the hub with all of its rights: add {found.name!r} there if you trust it"
        )
    try:
        kind = found.load()
    except UserError:
        raise
    except Exception as exc:  # a module of others may raise anything
        text = f"mods: {name!r} ({found.origin}) cannot be imported: {told(exc)}"
        raise UserError(text) from exc
    return ListedMod(_checked(name, found.origin, kind), found.origin, {})


def _find(name: str) -> KnownMod:
    spec = split_spec(name)
    if spec is not None:
        return KnownMod(spec[1], str(spec[0]), partial(load_attribute, name, Path()))
    if name in BUILT_IN:
        return _built_in(name)  # without looking through all packages
    known = known_mods()
    if name in known:
        return known[name]
    hint = did_you_mean(name, known, f"; there are: {', '.join(sorted(known))}")
    raise UserError(f"mods: there is no mod {name!r}{hint}")


def _checked(name: str, origin: str, kind: object) -> type[Mod]:
    if not (isinstance(kind, type) and issubclass(kind, Mod)):
        raise UserError(f"mods: {name!r} ({origin}) is no class that derives from hubbub's Mod")
    own = getattr(kind, "name", None)
    if not isinstance(own, str) or not NAME.fullmatch(own):
        raise UserError(
            f"mods: {name!r} ({origin}) needs a `name` of lower-case letters, digits and _"
        )
    if own != name and split_spec(name) is None:
        raise UserError(f"mods: {name!r} ({origin}) calls itself {own!r}; the two must be the same")
    scripts_of(kind)
    return kind


def named(entries: Sequence[Entry], allowed: Collection[str] | None = None) -> list[ListedMod]:
    """The mods of a YAML list, in its order. Raises `UserError`, also for lists that do not fit
    together: one named twice, one that another needs and that does not stand before it, two that
    cannot live in one network."""
    mods: list[ListedMod] = []
    for entry in entries:
        pairs = {entry: None} if isinstance(entry, str) else entry
        for name, settings in pairs.items():
            found = find_mod(name, allowed)
            try:
                check_company(found.kind, [mod.kind for mod in mods])
            except UserError as error:
                raise UserError(f"mods: {error}") from None
            mods.append(ListedMod(found.kind, found.origin, settings or {}))
    return mods


def check_company(kind: type[Mod], before: Sequence[type[Mod]]) -> None:
    """Raises `UserError` if a mod cannot join those that stand before it."""
    names = [other.name for other in before]
    if kind.name in names:
        raise UserError(f"the mod {kind.name!r} is listed twice")
    for needed in kind.requires:
        if needed not in names:
            raise UserError(f"{kind.name!r} needs {needed!r}, which must stand before it")
    for other in before:
        if other.name in kind.conflicts or kind.name in other.conflicts:
            raise UserError(f"{kind.name!r} and {other.name!r} cannot be in one network")
        if _begins(kind.name, other.name) or _begins(other.name, kind.name):
            raise UserError(
                f"{kind.name!r} and {other.name!r} cannot be in one network: tables are told apart "
                "by what their names begin with"
            )


def _begins(one: str, other: str) -> bool:
    """Whether tables of the mod `one` may have names that belong to `other`."""
    return one.startswith(table_prefix(other))


def load_mods(entries: Sequence[Entry], allowed: Collection[str] | None = None) -> list[Mod]:
    """The mods of a YAML list, made with their settings. Raises `UserError` as `named`, and for
    wrong settings."""
    return [_make(mod) for mod in named(entries, allowed)]


def _make(mod: ListedMod) -> Mod:
    made = mod.kind(settings_of(mod.kind, mod.settings))
    check_permissions(made, made.config)
    return made


def operations_of(file: NetworkFile) -> Sequence[Operation]:
    """The operations that the mods of a config add. Raises `UserError` as `load_mods`."""
    mods = load_mods(file.mods, file.network.allow_mods)
    return [operation for mod in mods for operation in mod.operations()]


def docs_of(kind: type[Mod]) -> str:
    """The first paragraph of a mod's docstring, as one line."""
    return " ".join((inspect.getdoc(kind) or "").split("\n\n")[0].split())
