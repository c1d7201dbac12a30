"""Push notifications: updates of a task are sent to the addresses its asker registered.

The addresses are stored in the asker's memory at the hub until the task has ended and the last
notification was sent, so that notifications resume after a restart of the hub. Each one is sent
once; after a restart the first one has the task's state at that time. An address must be public, or
of a host that the config allows: otherwise an asker could reach hosts in the hub's own network.
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
from hubbub.waiting import cancel

__all__ = ["KEY", "Push"]

log = get_logger(__name__)

KEY = "a2a.push."
"""Prefix of the keys in an asker's memory; the task's id follows."""
MAX_ADDRESSES = 10
"""Addresses per task."""
MAX_TASKS = 1000
MAX_PORT = 2**16 - 1
TIMEOUT_S = 10.0
"""Seconds an address has to accept a notification."""


def _address(url: str) -> httpx.URL:
    """Raises `httpx.InvalidURL`."""
    target = httpx.URL(url)
    if target.scheme not in ("http", "https") or not target.host or (target.port or 0) > MAX_PORT:
        raise httpx.InvalidURL("not a web address")
    return target


class _PushConfigs(BaseModel):
    """The addresses of a task, as stored at the hub."""

    agent: str
    configs: list[JsonValue]


@dataclass
class _Followed:
    """A task with push notifications."""

    asker: TaskClient
    agent: str
    id: str
    configs: dict[str, TaskPushNotificationConfig] = field(default_factory=dict)
    """By id."""

    async def save(self) -> None:
        """Store the addresses at the hub. Raises `OperationError`."""
        configs: list[JsonValue] = [MessageToDict(each) for each in self.configs.values()]
        value = _PushConfigs(agent=self.agent, configs=configs).model_dump()
        await self.asker.client.call("remember", key=KEY + self.id, value=value)


class Push:
    """A context that sends the push notifications of all tasks."""

    def __init__(self, hosts: Sequence[str]):
        """`hosts` are allowed even though they are not public."""
        self._hosts = frozenset(hosts)
        self._followed: dict[str, _Followed] = {}
        """By task."""
        self._tasks = set[asyncio.Task[None]]()
        self._http: httpx.AsyncClient | None = None

    async def __aenter__(self) -> Push:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await cancel(*self._tasks)
        if self._http is not None:
            await self._http.aclose()

    async def check(self, config: TaskPushNotificationConfig) -> None:
        """Raises `InvalidParamsError` for an address that is not allowed."""
        try:
            if _address(config.url).host not in self._hosts:
                await self._resolved(config.url)
        except (OSError, ValueError, httpx.InvalidURL):
            raise InvalidParamsError("url: notifications go to public addresses only") from None
        secrets = config.token + config.authentication.scheme + config.authentication.credentials
        if not secrets.isprintable() or not secrets.isascii():
            raise InvalidParamsError("token, authentication: printable ASCII only")

    async def _resolved(self, url: str) -> httpx.URL:
        """The URL with its host resolved to an IP address, so that DNS cannot change it after the
        check.

        Raises `OSError`, `ValueError` and `httpx.InvalidURL` for an address that is not allowed."""
        target = _address(url)
        port = target.port or {"http": 80, "https": 443}[target.scheme]
        loop = asyncio.get_running_loop()
        infos = await loop.getaddrinfo(target.host, port, type=socket.SOCK_STREAM)
        resolved = target.copy_with(host=str(infos[0][4][0]))
        if target.host not in self._hosts and not await validate_push_notification_url(
            str(resolved)
        ):
            raise OSError(f"{target.host} resolves to {resolved.host}, which is not public")
        return resolved

    async def create(
        self, asker: TaskClient, agent: str, params: TaskPushNotificationConfig
    ) -> TaskPushNotificationConfig:
        """Add an address. The caller has checked that the task is the asker's."""
        await self.check(params)
        if params.task_id not in self._followed and len(self._followed) >= MAX_TASKS:
            raise InvalidParamsError("too many tasks have push notifications")
        followed = self._followed.get(params.task_id) or _Followed(asker, agent, params.task_id)
        config = TaskPushNotificationConfig()
        config.CopyFrom(params)
        config.id = config.id or new_ulid()
        if len(followed.configs) >= MAX_ADDRESSES and config.id not in followed.configs:
            raise InvalidParamsError(f"a task has at most {MAX_ADDRESSES} addresses")
        followed.configs[config.id] = config
        await followed.save()
        self._begin(followed)
        return config

    async def resume(self, asker: TaskClient) -> None:
        """Resume the notifications stored in an asker's memory. Raises `HubbubError`."""
        memory = Recalled.model_validate(await asker.client.call("recall"))
        for key in (entry.key for entry in memory.entries if entry.key.startswith(KEY)):
            value = Recalled.model_validate(await asker.client.call("recall", key=key)).value
            stored = _PushConfigs.model_validate(value)
            followed = _Followed(asker, stored.agent, key.removeprefix(KEY))
            for each in stored.configs:
                config = ParseDict(each, TaskPushNotificationConfig())
                followed.configs[config.id] = config
            self._begin(followed)

    def _begin(self, followed: _Followed) -> None:
        if followed.id not in self._followed:
            self._followed[followed.id] = followed
            task = asyncio.create_task(self._follow(followed))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def get(self, params: GetTaskPushNotificationConfigRequest) -> TaskPushNotificationConfig:
        """Raises `TaskNotFoundError`."""
        try:
            return self._followed[params.task_id].configs[params.id]
        except KeyError:
            raise TaskNotFoundError("there is no such configuration") from None

    def list(
        self, params: ListTaskPushNotificationConfigsRequest
    ) -> ListTaskPushNotificationConfigsResponse:
        """All configurations of a task, on one page."""
        followed = self._followed.get(params.task_id)
        configs = followed.configs.values() if followed is not None else ()
        return ListTaskPushNotificationConfigsResponse(configs=configs)

    async def delete(self, params: DeleteTaskPushNotificationConfigRequest) -> None:
        """Remove an address, if it exists."""
        followed = self._followed.get(params.task_id)
        if followed is not None and followed.configs.pop(params.id, None) is not None:
            await followed.save()

    async def _follow(self, followed: _Followed) -> None:
        asker, id = followed.asker, followed.id
        try:
            with asker.in_flight():
                async for update in asker.follow(followed.agent, id):
                    if update is not None:
                        body = MessageToDict(to_stream_response(update))
                        configs = list(followed.configs.values())
                        await asyncio.gather(*(self._send(each, body) for each in configs))
                await asker.client.call("forget", key=KEY + id)
        except (HubbubError, A2AError) as error:
            log.warning("notifications of a task end", task=id, reason=str(error))
        finally:
            del self._followed[id]

    def _client(self) -> httpx.AsyncClient:
        """Created for the first notification, since it loads the system's trusted certificates."""
        if self._http is None:
            self._http = httpx.AsyncClient(
                timeout=TIMEOUT_S, follow_redirects=False, trust_env=False
            )
        return self._http

    async def _send(self, config: TaskPushNotificationConfig, body: dict[str, object]) -> None:
        target = httpx.URL(config.url)
        headers = {"content-type": "application/a2a+json", "host": target.netloc.decode("ascii")}
        if config.token:
            headers["x-a2a-notification-token"] = config.token
        authentication = config.authentication
        if authentication.scheme and authentication.credentials:
            headers["authorization"] = f"{authentication.scheme} {authentication.credentials}"
        try:
            async with asyncio.timeout(TIMEOUT_S):
                url = await self._resolved(config.url)
                name = {"sni_hostname": target.host}
                async with self._client().stream(
                    "POST", url, json=body, headers=headers, extensions=name
                ) as answer:
                    answer.raise_for_status()
        except (httpx.HTTPError, httpx.InvalidURL, OSError, TimeoutError) as error:
            log.warning("a notification was not delivered", url=config.url, reason=repr(error))
