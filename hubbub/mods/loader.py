"""Mods by name: the built-in ones, and those that installed packages register.

A package registers its mods with the entry point group `hubbub.mods`; pluggy finds them. A mod runs
only when the network's YAML names it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

import pluggy
from pydantic import JsonValue, ValidationError

from hubbub.errors import UserError
from hubbub.mods.api import Mod

__all__ = ["ENTRY_POINTS", "known_mods", "load_mods"]

ENTRY_POINTS = "hubbub.mods"


def known_mods() -> dict[str, type[Mod]]:
    """All mods that can be named, by name."""
    from hubbub.mods.moderation import Moderation

    found: dict[str, type[Mod]] = {Moderation.name: Moderation}
    plugins = pluggy.PluginManager(ENTRY_POINTS)
    plugins.load_setuptools_entrypoints(ENTRY_POINTS)
    for plugin in plugins.get_plugins():
        if isinstance(plugin, type) and issubclass(plugin, Mod):
            found.setdefault(plugin.name, plugin)
    return found


def load_mods(
    entries: Sequence[str | Mapping[str, Mapping[str, JsonValue] | None]],
) -> list[Mod]:
    """The mods of a YAML list, in its order: names, or a name with its settings.

    Raises `UserError` for an unknown name (with the nearest known one) and for wrong settings.
    """
    known = known_mods()
    mods: list[Mod] = []
    for entry in entries:
        named = {entry: None} if isinstance(entry, str) else entry
        for name, settings in named.items():
            if name not in known:
                near = get_close_matches(name, known, 1)
                hint = (
                    f"did you mean {near[0]}?" if near else f"there are: {', '.join(sorted(known))}"
                )
                raise UserError(f"mods: there is no mod {name!r}; {hint}")
            if any(mod.name == name for mod in mods):
                raise UserError(f"mods: {name!r} is listed twice")
            mods.append(_make(known[name], settings or {}))
    return mods


def _make(kind: type[Mod], settings: Mapping[str, JsonValue]) -> Mod:
    try:
        return kind(kind.Config.model_validate(dict(settings)))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(["mods", kind.name, *map(str, first["loc"])])
        raise UserError(f"{place}: {first['msg'][0].lower()}{first['msg'][1:]}") from None
