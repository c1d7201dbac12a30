"""Failures of mods: counted, logged, and reported to the owners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hubbub.logs import get_logger
from hubbub.mods.api import Mod
from hubbub.mods.guard import HookTimeout
from hubbub.network.kernel import Kernel
from hubbub.protocol import thread_ids
from hubbub.user_code import describe_error

__all__ = ["Failures", "owners_of"]

log = get_logger(__name__)

AGAIN_S = 60.0
"""Seconds until the same failure is reported again; doubles each time."""
SELDOM_S = 3600.0
"""Upper limit of that delay in seconds."""


@dataclass(slots=True)
class _ReportedFailure:
    at: float
    wait: float = AGAIN_S
    since: int = 0
    """Unreported failures of the same kind since then."""


class Failures:
    """The failures of one hub's mods."""

    kernel: Kernel
    """Set before any mod is called; it contains the pipeline that reports failures."""

    def __init__(self) -> None:
        self._reported: dict[tuple[str, str], _ReportedFailure] = {}
        self.last: dict[tuple[str, str], str] = {}
        """The last failure by mod and hook."""

    def add(self, mod: Mod, hook: str, error: BaseException) -> None:
        """Count and report that a mod failed or was slow in a hook, an operation or another
        call."""
        late = isinstance(error, HookTimeout)
        why = str(error) if late else describe_error(error)
        self.kernel.metrics.mod_failures[mod.name] += 1
        self.last[mod.name, hook] = why
        now = self.kernel.clock.monotonic()
        before = self._reported.get((mod.name, hook))
        switched_off = isinstance(error, HookTimeout) and error.off
        if before is not None and now - before.at < before.wait and not switched_off:
            before.since += 1
            log.debug("mod failed again", mod=mod.name, hook=hook, why=why)
            return
        latest = _ReportedFailure(now)
        if before is not None:
            quiet = now - before.at >= 2 * before.wait
            latest.wait = AGAIN_S if quiet else min(2 * before.wait, SELDOM_S)
            if before.since:
                why += f" (and {before.since} more since the last notice)"
        self._reported[mod.name, hook] = latest
        log.error("mod failed", mod=mod.name, hook=hook, why=why, exc_info=None if late else error)
        verb = "is slow" if late else "failed"
        text = f"The mod {mod.name} {verb} in {hook}: {why}"
        self.kernel.spawn(self._notify_owners(mod.name, hook, text, off=switched_off))

    async def _notify_owners(self, mod: str, hook: str, text: str, *, off: bool) -> None:
        """Notify each owner in a direct thread with the hub."""
        details = {"code": "mod_failed", "mod": mod, "hook": hook}
        once = f"mod-failed:{mod}:{hook}:{int(self.kernel.clock.now() // AGAIN_S)}{':off' * off}"
        for owner in owners_of(self.kernel):
            thread = thread_ids.direct((owner, "hub"))
            self.kernel.writes.notice(thread, text, details, f"{once}:{owner}", to=(owner,))


def owners_of(kernel: Kernel) -> Sequence[str]:
    """The owners in the config; in an open network, where everyone is one, the connected people."""
    named = kernel.file.owners
    if named or kernel.config.auth != "open":
        return [name for name in named if kernel.state.knows(name)]
    people = kernel.fanout.sessions_of_people()
    return list(dict.fromkeys(s.participant for s in people if not s.observe))
