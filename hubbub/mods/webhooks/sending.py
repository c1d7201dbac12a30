"""One request to a receiver."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import NamedTuple

import httpx2

from hubbub.mods.webhooks.settings import HookConfig
from hubbub.mods.webhooks.signing import signed

__all__ = ["Answer", "Sender"]

MOST_READ = 1000
"""Bytes of an answer that are looked at; nobody needs more of it."""
GONE = 410
"""The receiver wants no more of this, ever."""


class Answer(NamedTuple):
    """What became of a request."""

    fine: bool
    outcome: str
    """For people: the status, or why there is none."""
    final: bool = False
    """Whether to ask again would be of no use."""
    wait: float = 0.0
    """Seconds for which the receiver wants to be left alone."""


class Sender:
    """Sends to one receiver, over connections that it keeps."""

    def __init__(self, certificates: ssl.SSLContext):
        # Proxies of the environment, redirects and cookies are left out: what is sent goes to the
        # address in the settings and nowhere else.
        self._client = httpx2.AsyncClient(
            verify=certificates, trust_env=False, follow_redirects=False, timeout=None
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def send(
        self, hook: HookConfig, id: str, body: bytes, now: float, within: float
    ) -> Answer:
        """`within` seconds the answer must be there. Raises nothing for what a receiver can do
        wrong."""
        headers = signed(hook.secret.get_secret_value(), id, now, body)
        headers |= {"content-type": "application/json", "user-agent": "hubbub-webhooks"}
        try:
            async with asyncio.timeout(within):
                async with self._client.stream(
                    "POST", hook.url, content=body, headers=headers
                ) as response:
                    text = await _beginning(response)
        except TimeoutError:
            return Answer(fine=False, outcome=f"no answer within {within:g} s")
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            return Answer(fine=False, outcome=f"{type(error).__name__}: {error}")
        finally:
            self._client.cookies.clear()
        code = response.status_code
        if 200 <= code < 300:
            return Answer(fine=True, outcome=str(code))
        wait = _wait(response.headers.get("retry-after", ""), now)
        return Answer(fine=False, outcome=f"{code} {text}".rstrip(), final=code == GONE, wait=wait)


async def _beginning(response: httpx2.Response) -> str:
    """Some of the answer, as one line."""
    read = b""
    async for part in response.aiter_raw(MOST_READ):
        read += part
        if len(read) >= MOST_READ:
            break
    text = read[:MOST_READ].decode("utf-8", "replace")
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _wait(told: str, now: float) -> float:
    """Of `Retry-After`: seconds, or a date."""
    if told.isascii() and told.isdecimal() and len(told) < 10:
        return float(told)
    try:
        when = parsedate_to_datetime(told)
    except (ValueError, OverflowError):
        return 0.0
    return max(0.0, (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() - now)
