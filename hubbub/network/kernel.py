"""The kernel: the parts that every service can use. It depends on no service."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from hubbub.clock import Clock, SteadyClock
from hubbub.config.models import Limits, NetworkConfig, NetworkFile
from hubbub.errors import StoreUnavailable
from hubbub.logs import get_logger
from hubbub.mods.pipeline import Pipeline
from hubbub.network.fanout import Fanout
from hubbub.network.log import Log
from hubbub.network.metrics import HubMetrics
from hubbub.network.notifications import Notifications
from hubbub.network.ports import Store
from hubbub.network.queues import Queues
from hubbub.network.routing import Router
from hubbub.network.state import NetworkState
from hubbub.network.writes import RETRY_S, Writes

__all__ = ["Kernel"]

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Kernel:
    """The parts of a running hub that move messages, and their shared state."""

    file: NetworkFile
    clock: Clock
    """For timestamps."""
    steady: SteadyClock
    """For durations: deadlines, expiries."""
    store: Store
    state: NetworkState
    queues: Queues
    log: Log
    router: Router
    pipeline: Pipeline
    """The mods that messages pass through."""
    writes: Writes
    """The way into the log."""
    fanout: Fanout
    """The way out to the sessions."""
    notifications: Notifications
    """The hub's own events for connected participants."""
    metrics: HubMetrics
    draining: asyncio.Event
    """Set when the hub stops accepting calls."""
    spawn: Callable[[Coroutine[Any, Any, None]], None]
    """Runs a coroutine in the hub's task group."""

    async def until_readable(self, attempt: Callable[[], Awaitable[None]]) -> None:
        """Run `attempt`, and retry it every second while the store cannot be read, until the hub
        stops. It must be safe to repeat after a partial run."""
        logged = False
        while not self.draining.is_set():
            try:
                await attempt()
            except StoreUnavailable as error:
                if not logged:
                    log.warning("retrying until the store can be read", error=str(error))
                logged = True
            else:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(RETRY_S):
                    await self.draining.wait()

    @property
    def config(self) -> NetworkConfig:
        return self.file.network

    @property
    def limits(self) -> Limits:
        return self.file.network.limits
