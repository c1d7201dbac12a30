"""Finds mods by name: built-in ones, ones registered by installed packages, and files.

A package registers its mods under their names in the entry point group `hubbub.mods`. A file is
given as `mods/thanks.py:Thanks`. A mod is imported and run only if the network's YAML lists it.
`allow_mods` can restrict which mods can be listed.
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
from hubbub.user_code import describe_error
from hubbub.wording import did_you_mean

__all__ = [
    "BUILT_IN",
    "NAME",
    "ListedMod",
    "check_compatible",
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
    """The settings as the mod's model. Raises `UserError` with the place of the first error."""
    try:
        return kind.Config.model_validate(dict(settings))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(["mods", kind.name, *map(str, first["loc"])])
        raise UserError(f"{place}: {first['msg'][0].lower()}{first['msg'][1:]}") from None


def check_permissions(mod: Mod, config: ModConfig) -> None:
    """Raises `UserError` if the settings have a permission for an unknown operation."""
    names = [operation.name for operation in mod.operations()]
    for name in config.permissions:
        if name not in names:
            hint = did_you_mean(name, names)
            raise UserError(f"mods.{mod.name}.permissions: there is no operation {name!r}{hint}")


_NUMBERED = re.compile(r"[0-9]{4}_[a-z0-9_]+\.sql")


def table_prefix(mod: str) -> str:
    """The prefix of all names in a mod's part of the database."""
    return f"{mod.replace('-', '_')}_"


def scripts_of(kind: type[Mod]) -> Mapping[int, str]:
    """The scripts of a mod's tables by number, from 1 without gaps. Empty if it has none.

    Raises `UserError` if the folder is missing or its numbers have gaps.
    """
    if kind.migrations is None:
        return {}
    folder = Path(inspect.getfile(kind)).parent / kind.migrations
    if not folder.is_dir():
        raise UserError(
            f"the mod {kind.name}: there is no folder {folder}, which `migrations` names"
        )
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
"""Pattern for names of mods."""

Entry = str | Mapping[str, Mapping[str, JsonValue] | None]
"""An entry of the YAML's list: a name, or a name with settings."""


@dataclass(frozen=True, slots=True)
class KnownMod:
    """An available mod, and where it comes from."""

    name: str
    origin: str
    """For people: `built in`, `package acme-mods 1.2`, or the file."""
    load: Callable[[], object]
    """Imports it."""


@dataclass(frozen=True, slots=True)
class ListedMod:
    """A mod in the YAML's list."""

    kind: type[Mod]
    origin: str
    settings: Mapping[str, JsonValue]


def known_mods() -> Mapping[str, KnownMod]:
    """All mods available by name, without importing them."""
    mods = {name: _built_in(name) for name in sorted(BUILT_IN)}
    for entry in _registered():
        if entry.name not in mods:  # a package cannot replace a built-in mod
            mods[entry.name] = KnownMod(entry.name, _package(entry), entry.load)
    return mods


@cache
def _registered() -> Sequence[EntryPoint]:
    """Cached, because this opens a file of each installed package."""
    return tuple(entry_points(group=ENTRY_POINTS))


def _package(entry: EntryPoint) -> str:
    return f"package {entry.dist.name} {entry.dist.version}" if entry.dist else "a package"


def _built_in(name: str) -> KnownMod:
    module, _, kind = BUILT_IN[name].partition(":")
    return KnownMod(name, "built in", partial(_attribute, module, kind))


def _attribute(module: str, name: str) -> object:
    return getattr(import_module(module), name)


def find_mod(name: str, allowed: Collection[str] | None = None) -> ListedMod:
    """The mod with this name or `file.py:Class`, without settings.

    Raises `UserError` if it does not exist, is not allowed, cannot be imported, or is not a mod.
    """
    listed = _find(name)
    if allowed is not None and listed.name not in allowed and listed.origin != "built in":
        raise UserError(
            f"mods: {name!r} ({listed.origin}) is not in network.allow_mods. It would run inside "
            f"the hub with full privileges; add {listed.name!r} there if you trust it"
        )
    try:
        kind = listed.load()
    except UserError:
        raise
    except Exception as exc:  # a third-party module can raise anything
        text = f"mods: {name!r} ({listed.origin}) cannot be imported: {describe_error(exc)}"
        raise UserError(text) from exc
    return ListedMod(_checked(name, listed.origin, kind), listed.origin, {})


def _find(name: str) -> KnownMod:
    spec = split_spec(name)
    if spec is not None:
        return KnownMod(spec[1], str(spec[0]), partial(load_attribute, name, Path()))
    if name in BUILT_IN:
        return _built_in(name)  # without reading the entry points of all packages
    mods = known_mods()
    if name in mods:
        return mods[name]
    hint = did_you_mean(name, mods, f"; available: {', '.join(sorted(mods))}")
    raise UserError(f"mods: there is no mod {name!r}{hint}")


def _checked(name: str, origin: str, kind: object) -> type[Mod]:
    if not (isinstance(kind, type) and issubclass(kind, Mod)):
        raise UserError(f"mods: {name!r} ({origin}) is not a subclass of hubbub's Mod")
    own = getattr(kind, "name", None)
    if not isinstance(own, str) or not NAME.fullmatch(own):
        raise UserError(
            f"mods: {name!r} ({origin}) needs a `name` of lower-case letters, digits and _"
        )
    if own != name and split_spec(name) is None:
        raise UserError(f"mods: {name!r} ({origin}) has the name {own!r}; the two must be equal")
    scripts_of(kind)
    return kind


def named(entries: Sequence[Entry], allowed: Collection[str] | None = None) -> list[ListedMod]:
    """The mods of a YAML list, in order. Raises `UserError`, also for a mod listed twice, a missing
    requirement, or two mods that conflict."""
    mods: list[ListedMod] = []
    for entry in entries:
        pairs = {entry: None} if isinstance(entry, str) else entry
        for name, settings in pairs.items():
            listed = find_mod(name, allowed)
            try:
                check_compatible(listed.kind, [mod.kind for mod in mods])
            except UserError as error:
                raise UserError(f"mods: {error}") from None
            mods.append(ListedMod(listed.kind, listed.origin, settings or {}))
    return mods


def check_compatible(kind: type[Mod], before: Sequence[type[Mod]]) -> None:
    """Raises `UserError` if a mod is not compatible with those listed before it."""
    names = [other.name for other in before]
    if kind.name in names:
        raise UserError(f"the mod {kind.name!r} is listed twice")
    for needed in kind.requires:
        if needed not in names:
            raise UserError(f"{kind.name!r} needs {needed!r}, which must be listed before it")
    for other in before:
        if other.name in kind.conflicts or kind.name in other.conflicts:
            raise UserError(f"{kind.name!r} and {other.name!r} cannot be in one network")
        if _shares_prefix(kind.name, other.name) or _shares_prefix(other.name, kind.name):
            raise UserError(
                f"{kind.name!r} and {other.name!r} cannot be in one network, because the names of "
                "their tables would have the same prefix"
            )


def _shares_prefix(one: str, other: str) -> bool:
    """Whether names of tables of the mod `one` start with the prefix of `other`."""
    return one.startswith(table_prefix(other))


def load_mods(entries: Sequence[Entry], allowed: Collection[str] | None = None) -> list[Mod]:
    """The mods of a YAML list, created with their settings. Raises `UserError` like `named`, and
    for invalid settings."""
    return [_create(mod) for mod in named(entries, allowed)]


def _create(listed: ListedMod) -> Mod:
    mod = listed.kind(settings_of(listed.kind, listed.settings))
    check_permissions(mod, mod.config)
    return mod


def operations_of(file: NetworkFile) -> Sequence[Operation]:
    """The operations that the mods of a config add. Raises `UserError` like `load_mods`."""
    mods = load_mods(file.mods, file.network.allow_mods)
    return [operation for mod in mods for operation in mod.operations()]


def docs_of(kind: type[Mod]) -> str:
    """The first paragraph of a mod's docstring, as one line."""
    return " ".join((inspect.getdoc(kind) or "").split("\n\n")[0].split())
