"""The kernel: what every service may use. It knows no service by name."""

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
from hubbub.network.writes import AGAIN_S, Writes

__all__ = ["Kernel"]

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Kernel:
    """The parts of a running hub that move a message, and the facts they share."""

    file: NetworkFile
    clock: Clock
    """For what bears a date."""
    steady: SteadyClock
    """For what lasts a while: deadlines, expiries."""
    store: Store
    state: NetworkState
    queues: Queues
    log: Log
    router: Router
    pipeline: Pipeline
    """The mods, as messages pass them."""
    writes: Writes
    """The way into the log."""
    fanout: Fanout
    """The way out to the sessions."""
    notifications: Notifications
    """What the hub itself tells those who are connected."""
    metrics: HubMetrics
    draining: asyncio.Event
    """Set when the hub takes no more calls."""
    spawn: Callable[[Coroutine[Any, Any, None]], None]
    """Runs a coroutine in the hub's task group."""

    async def until_readable(self, attempt: Callable[[], Awaitable[None]]) -> None:
        """Do this, and do it again every second while the store cannot be read, until the hub
        stops: what is done in part must do no harm when it is done twice."""
        said = False
        while not self.draining.is_set():
            try:
                await attempt()
            except StoreUnavailable as error:
                if not said:
                    log.warning("it is tried again until the store answers", error=str(error))
                said = True
            else:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(AGAIN_S):
                    await self.draining.wait()

    @property
    def config(self) -> NetworkConfig:
        return self.file.network

    @property
    def limits(self) -> Limits:
        return self.file.network.limits
