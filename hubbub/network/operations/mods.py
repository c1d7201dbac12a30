"""The mods of the network: which there are, and new settings for them while they run."""

from __future__ import annotations

import inspect
from difflib import get_close_matches

from hubbub.errors import OperationError, UserError
from hubbub.mods.api import Mod
from hubbub.mods.operation import operation
from hubbub.mods.settings import check_permissions, settings_of
from hubbub.network.caller import Caller
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.mods import ConfigureMod, ListMods, ModState, ModStates

__all__ = ["configure_mod", "list_mods"]


@operation(tool=False)
def list_mods(call: Caller, args: ListMods) -> ModStates:
    """List the mods of the network in the order in which messages pass them."""
    return ModStates(mods=tuple(_state(call, mod) for mod in call.hub.mods.pipeline.mods))


@operation(permission="admin", tool=False, idempotent=True)
def configure_mod(call: Caller, args: ConfigureMod) -> ModState:
    """Give a mod other settings while it runs. Wrong ones change nothing. They hold until the
    network ends: what it starts with is in its YAML."""
    mod = _named(call, args.name)
    try:
        config = settings_of(type(mod), args.settings)
        check_permissions(mod, config)
    except UserError as error:
        raise OperationError(ErrorCode.BAD_REQUEST, str(error)) from error
    call.hub.mods.configure(mod, config)
    return _state(call, mod)


def _named(call: Caller, name: str) -> Mod:
    mods = {mod.name: mod for mod in call.hub.mods.pipeline.mods}
    if name in mods:
        return mods[name]
    near = get_close_matches(name, mods, 1)
    hint = f"did you mean {near[0]}?" if near else "see list_mods"
    raise OperationError(ErrorCode.NOT_FOUND, f"the network has no mod {name[:64]!r}; {hint}")


def _state(call: Caller, mod: Mod) -> ModState:
    own = [op.name for op in call.hub.operations.values() if op.mod == mod.name]
    about = " ".join((inspect.getdoc(mod) or "").split("\n\n")[0].split())
    failures = call.hub.metrics.mod_failures[mod.name]
    return ModState(name=mod.name, about=about, operations=tuple(own), failures=failures)
