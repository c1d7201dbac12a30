"""The numbered scripts of a mod's tables: found beside its class, and checked for names.

All names that they make begin with the mod's own (`polls_vote` of the mod `polls`), so that mods
cannot meet in the database, and nobody touches the hub's tables. The store holds them to it once
more when they run.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from pathlib import Path

from hubbub.errors import UserError
from hubbub.mods.api import Mod

__all__ = ["scripts_of", "table_prefix"]

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
