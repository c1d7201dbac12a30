"""What becomes of a task is sent to the addresses that its asker has named.

They are forgotten when the hub ends, and each is asked once: what matters is what the task is when
somebody looks. An address must be public, or of a host that the config allows: else an asker could
have the hub knock on doors in its own network.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence

import httpx
from a2a.types import (
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    InvalidParamsError,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    TaskNotFoundError,
    TaskPushNotificationConfig,
)
from a2a.utils.proto_utils import to_stream_response
from a2a.utils.push_url_validator import validate_push_notification_url
from google.protobuf.json_format import MessageToDict

from hubbub.errors import HubbubError
from hubbub.ids import new_ulid
from hubbub.interop.a2a.tasks import TaskClient
from hubbub.logs import get_logger

__all__ = ["Push"]

log = get_logger(__name__)

MOST = 10
"""Addresses of a task."""
MOST_TASKS = 1000
TIMEOUT_S = 10.0
"""Seconds that an address has to take a notification."""


class Push:
    """A context: the addresses of all tasks that somebody follows by them."""

    def __init__(self, hosts: Sequence[str]):
        """`hosts` may be asked though they are not public."""
        self._hosts = frozenset(hosts)
        self._of: dict[str, dict[str, TaskPushNotificationConfig]] = {}
        """By task, then by their ids."""
        self._tasks = set[asyncio.Task[None]]()

    async def __aenter__(self) -> Push:
        self._http = httpx.AsyncClient(timeout=TIMEOUT_S, follow_redirects=False, trust_env=False)
        return self

    async def __aexit__(self, *exc: object) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._http.aclose()

    async def check(self, config: TaskPushNotificationConfig) -> None:
        """Raises `InvalidParamsError` for an address that is not to be asked."""
        try:
            await self._resolved(config.url)
        except (OSError, ValueError, httpx.InvalidURL):
            raise InvalidParamsError("url: notifications go to public addresses only") from None
        said = config.token + config.authentication.scheme + config.authentication.credentials
        if not said.isprintable() or not said.isascii():
            raise InvalidParamsError("token, authentication: printable ASCII only")

    async def _resolved(self, url: str) -> httpx.URL:
        """The same place by its number, which no name server can change after it was judged.

        Raises `OSError`, `ValueError` and `httpx.InvalidURL` where nothing may be sent to."""
        named = httpx.URL(url)
        if named.scheme not in ("http", "https") or not named.host:
            raise httpx.InvalidURL("no web address")
        port = named.port or {"http": 80, "https": 443}[named.scheme]
        loop = asyncio.get_running_loop()
        infos = await loop.getaddrinfo(named.host, port, type=socket.SOCK_STREAM)
        resolved = named.copy_with(host=str(infos[0][4][0]))
        if named.host not in self._hosts and not await validate_push_notification_url(
            str(resolved)
        ):
            raise OSError(f"{named.host} leads to {resolved.host}, which is not public")
        return resolved

    async def create(
        self, who: TaskClient, agent: str, asked: TaskPushNotificationConfig
    ) -> TaskPushNotificationConfig:
        """Notify this address, too. The task is the asker's."""
        await self.check(asked)
        known = self._of.get(asked.task_id)
        if known is None:
            if len(self._of) >= MOST_TASKS:
                raise InvalidParamsError("too many tasks are followed by notifications")
            known = self._of[asked.task_id] = {}
            task = asyncio.create_task(self._follow(who, agent, asked.task_id))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        config = TaskPushNotificationConfig()
        config.CopyFrom(asked)
        config.id = config.id or new_ulid()
        if len(known) >= MOST and config.id not in known:
            raise InvalidParamsError(f"a task has at most {MOST} addresses")
        known[config.id] = config
        return config

    def get(self, asked: GetTaskPushNotificationConfigRequest) -> TaskPushNotificationConfig:
        """Raises `TaskNotFoundError`."""
        try:
            return self._of[asked.task_id][asked.id]
        except KeyError:
            raise TaskNotFoundError("there is no such configuration") from None

    def list(
        self, asked: ListTaskPushNotificationConfigsRequest
    ) -> ListTaskPushNotificationConfigsResponse:
        """All of a task; there are few."""
        known = self._of.get(asked.task_id, {})
        return ListTaskPushNotificationConfigsResponse(configs=known.values())

    def delete(self, asked: DeleteTaskPushNotificationConfigRequest) -> None:
        """It may have gone already."""
        self._of.get(asked.task_id, {}).pop(asked.id, None)

    async def _follow(self, who: TaskClient, agent: str, task: str) -> None:
        try:
            with who.asking():
                async for update in who.follow(agent, task):
                    if update is not None:
                        body = MessageToDict(to_stream_response(update))
                        configs = list(self._of[task].values())
                        await asyncio.gather(*(self._send(each, body) for each in configs))
        except HubbubError as error:
            log.warning("notifications of a task end", task=task, reason=str(error))
        finally:
            del self._of[task]

    async def _send(self, config: TaskPushNotificationConfig, body: dict[str, object]) -> None:
        named = httpx.URL(config.url)
        headers = {"content-type": "application/a2a+json", "host": named.netloc.decode("ascii")}
        if config.token:
            headers["x-a2a-notification-token"] = config.token
        proof = config.authentication
        if proof.scheme and proof.credentials:
            headers["authorization"] = f"{proof.scheme} {proof.credentials}"
        try:
            async with asyncio.timeout(TIMEOUT_S):
                url = await self._resolved(config.url)
                name = {"sni_hostname": named.host}
                async with self._http.stream(
                    "POST", url, json=body, headers=headers, extensions=name
                ) as answer:
                    answer.raise_for_status()
        except (httpx.HTTPError, httpx.InvalidURL, OSError, TimeoutError) as error:
            log.warning("a notification was not taken", url=config.url, reason=repr(error))
