"""What becomes of a task is sent to the addresses that its asker has named.

The asker remembers them at the hub until the task is over and the last notification was sent, so
that a hub that comes back goes on with them. Each notification is sent once; after a restart comes
what the task is by then. An address must be public, or of a host that the config allows: else an
asker could have the hub knock on doors in its own network.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field

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
from a2a.utils.errors import A2AError
from a2a.utils.proto_utils import to_stream_response
from a2a.utils.push_url_validator import validate_push_notification_url
from google.protobuf.json_format import MessageToDict, ParseDict
from pydantic import BaseModel, JsonValue

from hubbub.errors import HubbubError
from hubbub.ids import new_ulid
from hubbub.interop.a2a.tasks import TaskClient
from hubbub.logs import get_logger
from hubbub.protocol.memory import Recalled

__all__ = ["KEY", "Push"]

log = get_logger(__name__)

KEY = "a2a.push."
"""Of an asker's memory: with the id of a task, the addresses of that."""
MOST = 10
"""Addresses of a task."""
MOST_TASKS = 1000
TIMEOUT_S = 10.0
"""Seconds that an address has to take a notification."""


def _address(url: str) -> httpx.URL:
    """Raises `httpx.InvalidURL`."""
    named = httpx.URL(url)
    if named.scheme not in ("http", "https") or not named.host:
        raise httpx.InvalidURL("no web address")
    return named


class _PushConfigs(BaseModel):
    """What is remembered of a task."""

    agent: str
    configs: list[JsonValue]


@dataclass
class _Followed:
    """A task of an asker at an agent."""

    who: TaskClient
    agent: str
    id: str
    configs: dict[str, TaskPushNotificationConfig] = field(default_factory=dict)
    """By their ids."""

    async def keep(self) -> None:
        """For a hub that comes back. Raises `OperationError`."""
        configs: list[JsonValue] = [MessageToDict(each) for each in self.configs.values()]
        value = _PushConfigs(agent=self.agent, configs=configs).model_dump()
        await self.who.client.call("remember", key=KEY + self.id, value=value)


class Push:
    """A context: the addresses of all tasks that somebody follows by them."""

    def __init__(self, hosts: Sequence[str]):
        """`hosts` may be asked though they are not public."""
        self._hosts = frozenset(hosts)
        self._of: dict[str, _Followed] = {}
        """By task."""
        self._tasks = set[asyncio.Task[None]]()
        self._http: httpx.AsyncClient | None = None

    async def __aenter__(self) -> Push:
        return self

    async def __aexit__(self, *exc: object) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._http is not None:
            await self._http.aclose()

    async def check(self, config: TaskPushNotificationConfig) -> None:
        """Raises `InvalidParamsError` for an address that is not to be asked."""
        try:
            if _address(config.url).host not in self._hosts:
                await self._resolved(config.url)
        except (OSError, ValueError, httpx.InvalidURL):
            raise InvalidParamsError("url: notifications go to public addresses only") from None
        said = config.token + config.authentication.scheme + config.authentication.credentials
        if not said.isprintable() or not said.isascii():
            raise InvalidParamsError("token, authentication: printable ASCII only")

    async def _resolved(self, url: str) -> httpx.URL:
        """The same place by its number, which no name server can change after it was judged.

        Raises `OSError`, `ValueError` and `httpx.InvalidURL` where nothing may be sent to."""
        named = _address(url)
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
        if asked.task_id not in self._of and len(self._of) >= MOST_TASKS:
            raise InvalidParamsError("too many tasks are followed by notifications")
        followed = self._of.get(asked.task_id) or _Followed(who, agent, asked.task_id)
        config = TaskPushNotificationConfig()
        config.CopyFrom(asked)
        config.id = config.id or new_ulid()
        if len(followed.configs) >= MOST and config.id not in followed.configs:
            raise InvalidParamsError(f"a task has at most {MOST} addresses")
        followed.configs[config.id] = config
        await followed.keep()
        self._begin(followed)
        return config

    async def resume(self, who: TaskClient) -> None:
        """Go on with what an asker remembers. Raises `HubbubError`."""
        known = Recalled.model_validate(await who.client.call("recall"))
        for key in (entry.key for entry in known.entries if entry.key.startswith(KEY)):
            value = Recalled.model_validate(await who.client.call("recall", key=key)).value
            kept = _PushConfigs.model_validate(value)
            followed = _Followed(who, kept.agent, key.removeprefix(KEY))
            for config in kept.configs:
                read = ParseDict(config, TaskPushNotificationConfig())
                followed.configs[read.id] = read
            self._begin(followed)

    def _begin(self, followed: _Followed) -> None:
        if followed.id not in self._of:
            self._of[followed.id] = followed
            task = asyncio.create_task(self._follow(followed))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def get(self, asked: GetTaskPushNotificationConfigRequest) -> TaskPushNotificationConfig:
        """Raises `TaskNotFoundError`."""
        try:
            return self._of[asked.task_id].configs[asked.id]
        except KeyError:
            raise TaskNotFoundError("there is no such configuration") from None

    def list(
        self, asked: ListTaskPushNotificationConfigsRequest
    ) -> ListTaskPushNotificationConfigsResponse:
        """All of a task; there are few."""
        followed = self._of.get(asked.task_id)
        known = followed.configs.values() if followed is not None else ()
        return ListTaskPushNotificationConfigsResponse(configs=known)

    async def delete(self, asked: DeleteTaskPushNotificationConfigRequest) -> None:
        """It may have gone already."""
        followed = self._of.get(asked.task_id)
        if followed is not None and followed.configs.pop(asked.id, None) is not None:
            await followed.keep()

    async def _follow(self, followed: _Followed) -> None:
        who, id = followed.who, followed.id
        try:
            with who.asking():
                async for update in who.follow(followed.agent, id):
                    if update is not None:
                        body = MessageToDict(to_stream_response(update))
                        configs = list(followed.configs.values())
                        await asyncio.gather(*(self._send(each, body) for each in configs))
                await who.client.call("forget", key=KEY + id)
        except (HubbubError, A2AError) as error:
            log.warning("notifications of a task end", task=id, reason=str(error))
        finally:
            del self._of[id]

    def _client(self) -> httpx.AsyncClient:
        """Made for the first notification: it reads all authorities that the system trusts."""
        if self._http is None:
            self._http = httpx.AsyncClient(
                timeout=TIMEOUT_S, follow_redirects=False, trust_env=False
            )
        return self._http

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
                async with self._client().stream(
                    "POST", url, json=body, headers=headers, extensions=name
                ) as answer:
                    answer.raise_for_status()
        except (httpx.HTTPError, httpx.InvalidURL, OSError, TimeoutError) as error:
            log.warning("a notification was not taken", url=config.url, reason=repr(error))
