"""A gateway's connection to the owner of its network, which is one of several hubs and can
change."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from hubbub.errors import UserError
from hubbub.logs import get_logger
from hubbub.network.cluster.holder import OwnerLink, SessionHolder
from hubbub.network.cluster.link import NAME_HEADER, PATH, PROTOCOL, MessageLink
from hubbub.network.cluster.messages import FromOwner, Greeting, read_from_owner

__all__ = ["Uplink"]

log = get_logger(__name__)

SILENT_S = 4.0
"""Seconds of silence from the owner, which sends something each second, before the link is cut."""
WITHIN_S = 2.0
"""Seconds for a hub to answer, as a hanging one still accepts connections."""
AGAIN_S = 0.1


class Uplink:
    """Keeps a gateway linked to the owner."""

    def __init__(
        self, holder: SessionHolder, hubs: Sequence[tuple[str, int]], token: str, name: str = ""
    ):
        """`hubs` are the addresses of all possible owners of the network; `name` is the
        gateway's."""
        self.holder, self._hubs, self._token = holder, deque(hubs), token
        self._name = name
        self.changes = 0
        """How often it was linked to an owner."""
        self.link: OwnerLink | None = None
        self._refusal = ""

    @property
    def owner(self) -> tuple[str, int] | None:
        """The owner's address, if there is one."""
        return self._hubs[0] if self.link is not None else None

    async def first(self) -> Greeting:
        """Link to the owner, waiting until there is one. Raises UserError if a hub refuses gateways
        or the token."""
        while (link := await self._dial()) is None:
            if self._refusal:
                raise UserError(self._refusal)
            await self._pause()
        assert link.greeting is not None
        return link.greeting

    def close(self) -> None:
        """End the link after everything already sent."""
        if self.link is not None:
            self.link.close()

    async def run(self) -> None:
        """Keep the gateway linked to the current owner, forever."""
        logged = ""
        while True:
            if self.link is None and await self._dial() is None:
                if self._refusal and self._refusal != logged:
                    log.warning("the gateway is refused", why=self._refusal)
                logged = self._refusal
                await self._pause()
            if self.link is not None:
                await self.link.gone.wait()
                self.link = None

    async def _pause(self) -> None:
        self._hubs.rotate(-1)
        await asyncio.sleep(AGAIN_S / len(self._hubs))

    async def _dial(self) -> OwnerLink | None:
        """Try the next hub. Returns None if it does not answer as an owner."""
        self._refusal = ""
        host, port = self._hubs[0]
        wire = _Dialled(f"{host}:{port}", self._token, self._name)
        link = OwnerLink(self.holder, wire)
        wire.end = link
        try:
            async with asyncio.timeout(WITHIN_S):
                await asyncio.get_running_loop().create_connection(lambda: wire, host, port)
                await link.greeted.wait()
        except (OSError, TimeoutError):
            link.cut()
        if link.gone.is_set():
            self._refusal = wire.refusal
            return None
        self.link = link
        self.changes += 1
        return link


class _Dialled(MessageLink[FromOwner]):
    """The end that requests the link."""

    def __init__(self, address: str, token: str, name: str):
        super().__init__(read_from_owner, self._look, SILENT_S)
        self._address, self._token, self._name = address, token, name
        self.refusal = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert self._transport is not None
        self._transport.write(
            f"GET {PATH} HTTP/1.1\r\nHost: {self._address}\r\nConnection: Upgrade\r\n"
            f"Upgrade: {PROTOCOL}\r\nAuthorization: Bearer {self._token}\r\n"
            f"{NAME_HEADER}: {self._name}\r\n\r\n".encode()
        )

    def _look(self, transport: asyncio.Transport, head: bytes) -> bool:
        status = head.split(b" ", 2)[1:2]
        if status == [b"101"]:
            return True
        if status == [b"403"]:
            self.refusal = (
                f"{self._address} does not accept this gateway's token: HUBBUB_GATEWAY_TOKEN must "
                "match `gateway_token` under `network` in the hub's config"
            )
        elif status != [b"503"]:
            self.refusal = (
                f"{self._address} does not accept gateways: set `gateway_token` under `network` "
                "in its config"
            )
        return False
