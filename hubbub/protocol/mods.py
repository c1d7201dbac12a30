"""The mods of a running network, as they travel."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from hubbub.protocol.messages import Model, Name
from hubbub.protocol.operations import Input

__all__ = ["ConfigureMod", "ListMods", "ModState", "ModStates"]


class ListMods(Input):
    """Nothing to say."""


class ConfigureMod(Input):
    name: Name
    """The mod; see list_mods."""
    settings: Mapping[str, JsonValue]
    """All of its settings, as they would stand in the YAML; what is left out has its default."""


class ModState(Model):
    """A mod that runs. Its settings are not shown: there may be secrets in them."""

    name: str
    about: str
    """What it does."""
    operations: tuple[str, ...]
    """Names of the operations that it adds."""
    failures: int
    """How often it has failed since the network started."""


class ModStates(Model):
    mods: tuple[ModState, ...]
    """In the order in which messages pass them."""
