"""What `hubbub webhooks serve` does: find the settings, join the network, and take webhooks."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hubbub.app.inbound.service import PATH, inbound
from hubbub.app.loops import run_loop
from hubbub.app.preflight import load_valid
from hubbub.client import WebSocketTransport
from hubbub.client.runfile import find_network
from hubbub.config.address import Address, parse_address
from hubbub.errors import ConnectionLost, UserError
from hubbub.mods.loader import load_mods
from hubbub.mods.webhooks.mod import WebhooksMod
from hubbub.mods.webhooks.settings import InboundConfig

__all__ = ["InboundJob", "job_of", "run"]

Announce = Callable[[Sequence[str]], None]
"""Is told the addresses of all endpoints when they can be reached."""


@dataclass(frozen=True)
class InboundJob:
    """Where to listen, and which network to join."""

    config: InboundConfig
    listen: Address
    url: str
    token: str | None


def job_of(path: Path, address: str | None, token: str | None) -> InboundJob:
    """What the network's YAML says of webhooks that come in. Raises `UserError`."""
    file = load_valid(path).file
    mods = load_mods(file.mods, file.network.allow_mods)
    found = [mod for mod in mods if isinstance(mod, WebhooksMod)]
    if not found or not found[0].config.inbound.endpoints:
        raise UserError(f"{path}: no webhooks come in: mods.webhooks.inbound.endpoints has none")
    config = found[0].config.inbound
    place = find_network(address or file.network.name)
    own = token or place.tokens.get(config.sender)
    return InboundJob(config, parse_address(config.listen), place.url, own)


def run(job: InboundJob, announce: Announce) -> None:
    """Take webhooks until SIGINT or SIGTERM. Raises `HubbubError`."""
    run_loop(_until_signal(job, announce))


async def _until_signal(job: InboundJob, announce: Announce) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with contextlib.AsyncExitStack() as stack:
        try:
            port = await stack.enter_async_context(
                inbound(
                    job.config,
                    WebSocketTransport(job.url),
                    job.token,
                    host=job.listen.host,
                    port=job.listen.port,
                )
            )
        except OSError as error:
            raise UserError(f"nothing can listen at {job.listen}: {error.strerror}") from error
        except ConnectionLost as error:
            raise UserError(
                f"no network answers at {job.url}; start one with `hubbub up`, or name another "
                "with --address"
            ) from error
        bound = Address(job.listen.host, port)
        announce([f"http://{bound}{PATH}{each.name}" for each in job.config.endpoints])
        await stop.wait()
