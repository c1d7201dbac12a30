"""A gateway: a process that holds the sockets of a network for whichever hub owns it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence

from hubbub.app.lifecycle import GatewayUp, Report, StandingBy
from hubbub.app.running import background, stopping
from hubbub.clock import SystemClock
from hubbub.network.cluster.holder import SessionHolder
from hubbub.network.cluster.messages import Greeting
from hubbub.network.cluster.serving import serve_gateway
from hubbub.network.cluster.uplink import Uplink
from hubbub.network.server import parse_listen

__all__ = ["hold"]


async def hold(
    hubs: Sequence[str],
    token: str,
    listen: str,
    report: Report,
    *,
    name: str = "",
    stop: asyncio.Event | None = None,
    signals: bool = False,
) -> None:
    """Hold sockets on `listen` for the network that one of the `hubs` (host:port) owns, as the
    gateway of this name.

    Until `stop` is set, or until SIGINT, SIGTERM or SIGHUP if `signals`. Raises UserError for an
    address that is wrong or taken, and if a hub refuses the gateway.
    """
    stop = stop or asyncio.Event()
    with stopping(stop, report, signals):
        async with asyncio.TaskGroup() as tasks:

            def spawn(work: Coroutine[object, object, None]) -> None:
                tasks.create_task(work)

            holder = SessionHolder(SystemClock().monotonic, spawn)
            uplink = Uplink(holder, [parse_listen(hub) for hub in hubs], token, name)
            report(StandingBy(f"looks for the hub that owns the network: {' or '.join(hubs)}"))
            greeting = await _first(uplink, stop)
            if greeting is not None:
                async with background(uplink.run()):
                    async with serve_gateway(
                        holder, greeting, listen, lambda: uplink.owner
                    ) as listening:
                        report(GatewayUp(listening.url, tuple(hubs)))
                        await stop.wait()
                    uplink.close()


async def _first(uplink: Uplink, stop: asyncio.Event) -> Greeting | None:
    """The greeting of the first owner; None: it stopped before there was one."""
    first, ended = asyncio.ensure_future(uplink.first()), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((first, ended), return_when=asyncio.FIRST_COMPLETED)
        return first.result() if first.done() else None
    finally:
        first.cancel()
        ended.cancel()
