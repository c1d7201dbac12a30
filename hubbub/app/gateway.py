"""A gateway: a process that holds a network's sockets on behalf of the hub that owns it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack

from hubbub.app.lifecycle import GatewayUp, Report, StandingBy
from hubbub.app.metrics import Figures, serve_metrics
from hubbub.app.running import background, stopping
from hubbub.clock import SystemClock
from hubbub.network.cluster.holder import SessionHolder
from hubbub.network.cluster.messages import Greeting
from hubbub.network.cluster.serving import serve_gateway
from hubbub.network.cluster.uplink import Uplink
from hubbub.network.exposition import render
from hubbub.network.server import parse_listen

__all__ = ["figures_of", "hold"]


async def hold(
    hubs: Sequence[str],
    token: str,
    listen: str,
    report: Report,
    *,
    name: str = "",
    metrics: str = "",
    signals: bool = False,
) -> None:
    """Hold sockets on `listen` for the network that one of the `hubs` (host:port) owns, as the
    gateway `name`; serve metrics on `metrics` (host:port).

    Runs until cancelled, or until SIGINT, SIGTERM or SIGHUP if `signals`. Raises `UserError` for an
    address that is invalid or in use, and if a hub refuses the gateway.
    """
    stop = asyncio.Event()
    parse_listen(listen)  # a mistake need not wait for an owner
    with stopping(stop, report, signals):
        async with AsyncExitStack() as stack, asyncio.TaskGroup() as tasks:

            def spawn(work: Coroutine[object, object, None]) -> None:
                tasks.create_task(work)

            holder = SessionHolder(SystemClock().monotonic, spawn)
            uplink = Uplink(holder, [parse_listen(hub) for hub in hubs], token, name)
            figures = Figures(name, figures_of(holder, uplink))
            await stack.enter_async_context(
                serve_metrics(metrics, lambda: render(others=[figures]))
            )
            report(StandingBy(f"looking for the hub that owns the network: {' or '.join(hubs)}"))
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
    """The greeting of the first owner; None if stopped before there was one."""
    first, ended = asyncio.ensure_future(uplink.first()), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((first, ended), return_when=asyncio.FIRST_COMPLETED)
        return first.result() if first.done() else None
    finally:
        first.cancel()
        ended.cancel()


def figures_of(
    holder: SessionHolder, uplink: Uplink
) -> Callable[[], Mapping[tuple[str, str], float]]:
    """A gateway's metrics, for `Figures`."""
    counted = holder.metrics
    return lambda: {
        ("gateway_sessions", "Identified sockets"): counted.sessions,
        ("gateway_entries_total", "Messages received from owners"): counted.passed_on,
        ("gateway_deliveries_total", "Events pushed to sockets"): counted.deliveries,
        ("gateway_bad_frames_total", "Frames refused"): counted.bad_frames,
        ("gateway_linked", "Whether linked to an owner"): uplink.link is not None,
        ("gateway_owner_changes_total", "Links to owners so far"): uplink.changes,
    }
