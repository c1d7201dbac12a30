"""The mods of the network: which there are, and new settings for them while they run."""

from __future__ import annotations

import inspect

from hubbub.errors import OperationError, UserError
from hubbub.mods.api import Mod
from hubbub.mods.loader import check_permissions, settings_of
from hubbub.mods.operation import operation
from hubbub.network.caller import Caller
from hubbub.network.kernel import Kernel
from hubbub.network.mods.runtime import Mods
from hubbub.network.registry import Registry
from hubbub.network.service import Service
from hubbub.protocol.admin import ConfigureMod, ListMods, ModState, ModStates
from hubbub.protocol.codes import ErrorCode
from hubbub.wording import did_you_mean

__all__ = ["ModService"]


class ModService(Service):
    """Lists the mods, and gives them other settings while they run."""

    def __init__(self, kernel: Kernel, mods: Mods, registry: Registry):
        super().__init__(kernel)
        self._mods, self._registry = mods, registry

    @operation(tool=False)
    def list_mods(self, call: Caller, args: ListMods) -> ModStates:
        """List the mods of the network in the order in which messages pass them."""
        return ModStates(mods=tuple(self._described(mod) for mod in self.kernel.pipeline.mods))

    @operation(permission="admin", tool=False, idempotent=True)
    def configure_mod(self, call: Caller, args: ConfigureMod) -> ModState:
        """Give a mod other settings while it runs. Wrong ones change nothing. They hold until the
        network ends: what it starts with is in its YAML."""
        mod = self._named(args.name)
        try:
            config = settings_of(type(mod), args.settings)
            check_permissions(mod, config)
        except UserError as error:
            raise OperationError(ErrorCode.BAD_REQUEST, str(error)) from error
        self._mods.configure(mod, config)
        return self._described(mod)

    def _named(self, name: str) -> Mod:
        mods = {mod.name: mod for mod in self.kernel.pipeline.mods}
        if name in mods:
            return mods[name]
        hint = did_you_mean(name, mods, "; see list_mods")
        raise OperationError(ErrorCode.NOT_FOUND, f"the network has no mod {name[:64]!r}{hint}")

    def _described(self, mod: Mod) -> ModState:
        own = [op.name for op in self._registry.values() if op.mod == mod.name]
        about = " ".join((inspect.getdoc(mod) or "").split("\n\n")[0].split())
        failures = self.kernel.metrics.mod_failures[mod.name]
        return ModState(name=mod.name, about=about, operations=tuple(own), failures=failures)
