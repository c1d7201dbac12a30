"""The settings of a mod: what its config model makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from pydantic import JsonValue, ValidationError

from hubbub.errors import UserError
from hubbub.mods.api import Mod, ModConfig

__all__ = ["check_permissions", "settings_of"]


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
            near = get_close_matches(name, names, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise UserError(f"mods.{mod.name}.permissions: it has no operation {name!r}{hint}")
