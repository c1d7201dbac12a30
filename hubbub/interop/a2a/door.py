"""A2A on the hub's own port: an agent is at `/a2a/NAME`, over JSON-RPC and REST.

Its card is at `/a2a/NAME/.well-known/agent-card.json`. The card of the first agent in the config is
also at the hub's own well-known path. Requests need the token of a person in the network; cards
need none.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from importlib.metadata import version
from typing import TypeAlias
from urllib.parse import parse_qsl

from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    CancelTaskRequest,
    ContentTypeNotSupportedError,
    DeleteTaskPushNotificationConfigRequest,
    ExtendedAgentCardNotConfiguredError,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    HTTPAuthSecurityScheme,
    InternalError,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    SecurityRequirement,
    SecurityScheme,
    SendMessageRequest,
    SendMessageResponse,
    StringList,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
    VersionNotSupportedError,
)
from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH, VERSION_HEADER
from a2a.utils.errors import A2AError
from a2a.utils.proto_utils import to_stream_response
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from pydantic import JsonValue

from hubbub.config.models import A2aConfig
from hubbub.errors import ConnectionLost, HubbubError, OperationError
from hubbub.interop.a2a.push import KEY as PUSH_KEY
from hubbub.interop.a2a.push import Push
from hubbub.interop.a2a.tasks import RESTING_STATES, TERMINAL_STATES, TaskClient, Update, a2a_error
from hubbub.interop.a2a.wire import STREAMING_METHODS, Binding, JsonRpc, Rest
from hubbub.interop.http import BadRequest, Exchange, HttpServer
from hubbub.interop.request_clients import Attach, Owner, RequestClients, bearer, refusal_status
from hubbub.logs import get_logger
from hubbub.protocol.messages import Card, Participant

__all__ = ["PATH", "PUSH_KEY", "WELL_KNOWN", "A2aDoor"]

log = get_logger(__name__)

PATH, WELL_KNOWN = "/a2a", "/.well-known"
MAX_BODY = 4 * 1024 * 1024
"""Bytes of a request."""
MAX_VALUES = 5_000
"""JSON values of a request, most of which would be in `data` or `metadata`."""
KEEP_ALIVE_S = 3.0
"""Seconds between keep-alive comments while idle: many clients time out after five."""
Headers: TypeAlias = Mapping[str, str]


class A2aDoor:
    """A context in which `protocol` returns the protocol for a connection."""

    def __init__(
        self,
        config: A2aConfig,
        cards: Mapping[str, Card],
        attach: Attach,
        owner: Owner,
        host: str,
        names: Sequence[str],
        askers: Mapping[str, str],
    ):
        """`cards` are the agents' cards; `host` is the address the hub listens on, `names` are its
        other names. `askers` are people with push notifications from before the hub started, each
        with a token to follow their tasks."""
        self._config, self._cards, self._owner = config, cards, owner
        self._host, self._names, self._askers = host, names, askers
        self._clients = RequestClients(attach, TaskClient)
        self._push = Push(config.push_hosts)
        self._server = HttpServer(self._handle)
        self.protocol = self._server.protocol

    async def __aenter__(self) -> A2aDoor:
        await self._push.__aenter__()
        await self._clients.__aenter__()
        self._resuming = [asyncio.create_task(self._resume(*each)) for each in self._askers.items()]
        return self

    async def __aexit__(self, *exc: object) -> None:
        for task in self._resuming:
            task.cancel()
        await self._server.close()
        await self._push.__aexit__()
        await self._clients.__aexit__()

    async def _resume(self, name: str, token: str) -> None:
        """Resume the push notifications of a person."""
        try:
            await self._push.resume(await self._clients.join(name, "human", token, "", key=token))
        except HubbubError as error:
            log.warning("notifications not resumed", asker=name, reason=str(error))

    async def _handle(self, exchange: Exchange) -> None:
        try:
            exchange.check()
            refusal = exchange.foreign(self._host, self._names)
            if refusal is not None:
                raise BadRequest(403, refusal)
            agent, rest = self._split_path(exchange.path)
            if rest == AGENT_CARD_WELL_KNOWN_PATH and exchange.method in ("GET", "HEAD"):
                await self._send_card(agent, exchange)
            elif rest in ("", "/") and exchange.method == "POST":
                await self._answer(agent, exchange, JsonRpc())
            elif rest in ("", "/"):
                raise BadRequest(405, "JSON-RPC needs POST")
            else:
                await self._answer(agent, exchange, Rest(exchange.method, rest, exchange.query))
        except BadRequest as error:
            await _send_json(exchange, error.status, {"error": str(error)})

    def _split_path(self, path: str) -> tuple[str, str]:
        """The agent and the rest of the path. Raises `BadRequest`."""
        if path == AGENT_CARD_WELL_KNOWN_PATH:
            return self._config.agents[0], path
        name, slash, rest = path.removeprefix(f"{PATH}/").partition("/")
        if not path.startswith(f"{PATH}/") or name not in self._config.agents:
            raise BadRequest(404, "there is no agent at this path")
        return name, slash + rest

    async def _send_card(self, name: str, exchange: Exchange) -> None:
        base = self._config.url or f"http://{exchange.header('host')}"
        agent = Participant(id=name, kind="agent", present=True, card=self._cards.get(name, Card()))
        body = _encoded(MessageToDict(card_of(agent, f"{base.rstrip('/')}{PATH}/{name}")))
        tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        headers = {
            "content-type": "application/json",
            "cache-control": "public, max-age=60",
            "etag": tag,
            "access-control-allow-origin": "*",
        }
        if tag in exchange.headers.get("if-none-match", ""):
            await exchange.respond(304, headers, b"")
        else:
            await exchange.respond(200, headers, body)

    async def _answer(self, agent: str, exchange: Exchange, wire: Binding) -> None:
        try:
            token = bearer(exchange.header("authorization"))
            client = await self._clients.join_person(self._owner, token, exchange.address)
        except OperationError as error:
            status = refusal_status(error)
            challenge = {"www-authenticate": "Bearer"} if status == 401 else {}
            await _send_json(exchange, status, {"error": error.message}, challenge)
            return
        except ConnectionLost as error:
            await _send_json(exchange, 503, {"error": f"the hub is unavailable: {error}"})
            return
        with client.in_flight():
            try:
                body = await exchange.json(MAX_BODY, MAX_VALUES)
                if body and "json" not in exchange.header("content-type"):
                    raise ContentTypeNotSupportedError("Content-Type: application/json")
                wire.read(body)
                _check_version(exchange)
                if wire.method in STREAMING_METHODS:
                    await self._stream(client, agent, exchange, wire)
                else:
                    value = await self._dispatch(client, agent, wire.params)
                    await _send_json(exchange, 200, wire.answer(value))
            except A2AError as error:
                await _fail(exchange, wire, error)
            except HubbubError as error:
                await _fail(exchange, wire, a2a_error(error))

    async def _dispatch(self, client: TaskClient, agent: str, params: Message) -> Message | None:
        match params:
            case SendMessageRequest():
                return SendMessageResponse(task=await self._send(client, agent, params))
            case GetTaskRequest():
                return await client.get(agent, params)
            case ListTasksRequest():
                return await client.list(agent, params)
            case CancelTaskRequest():
                return await client.cancel(agent, params)
        if isinstance(params, _PUSH_REQUESTS):
            await client.get(agent, GetTaskRequest(id=params.task_id))
        match params:
            case TaskPushNotificationConfig():
                return await self._push.create(client, agent, params)
            case GetTaskPushNotificationConfigRequest():
                return self._push.get(params)
            case ListTaskPushNotificationConfigsRequest():
                return self._push.list(params)
            case DeleteTaskPushNotificationConfigRequest():
                await self._push.delete(params)
                return None
        raise ExtendedAgentCardNotConfiguredError("there is no extended card")

    async def _send(self, client: TaskClient, agent: str, params: SendMessageRequest) -> Task:
        """Send the message and return its task, once it is at rest unless the caller does not
        wait."""
        config = params.configuration
        wanted = config.HasField("task_push_notification_config")
        if wanted:
            await self._push.check(config.task_push_notification_config)
        task = await client.send(agent, params)
        if wanted and task.status.state not in TERMINAL_STATES:
            config.task_push_notification_config.task_id = task.id
            await self._push.create(client, agent, config.task_push_notification_config)
        if config.return_immediately or task.status.state in RESTING_STATES:
            return task
        async with aclosing(client.follow(agent, task.id, until=RESTING_STATES)) as updates:
            async for _ in updates:
                pass
        get = GetTaskRequest(id=task.id)
        if config.HasField("history_length"):
            get.history_length = config.history_length
        return await client.get(agent, get)

    async def _stream(
        self, client: TaskClient, agent: str, exchange: Exchange, wire: Binding
    ) -> None:
        params = wire.params
        if isinstance(params, SendMessageRequest):
            params.configuration.return_immediately = True
            id = (await self._send(client, agent, params)).id
            updates = client.follow(agent, id, KEEP_ALIVE_S, RESTING_STATES)
        else:
            assert isinstance(params, SubscribeToTaskRequest), "the other streaming method"
            await client.check_open(agent, params.id)
            updates = client.follow(agent, params.id, KEEP_ALIVE_S)
        headers = {"content-type": "text/event-stream", "cache-control": "no-store"}
        exchange.start(200, {**headers, "x-accel-buffering": "no"})
        await _write(exchange, wire, updates)


_PUSH_REQUESTS = (
    TaskPushNotificationConfig,
    GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest,
    DeleteTaskPushNotificationConfigRequest,
)


def _check_version(exchange: Exchange) -> None:
    """Raises `VersionNotSupportedError`."""
    version = exchange.header(VERSION_HEADER.lower())
    version = version or dict(parse_qsl(exchange.query)).get(VERSION_HEADER, "0.3")
    if version.split(".")[:2] != ["1", "0"]:
        raise VersionNotSupportedError(
            f"{VERSION_HEADER}: only 1.0 is supported, not {version[:20]!r}"
        )


async def _write(exchange: Exchange, wire: Binding, updates: AsyncIterator[Update | None]) -> None:
    try:
        async for update in updates:
            if update is None:
                await exchange.write(b": waiting\n\n")
            else:
                event = wire.answer(to_stream_response(update))
                await exchange.write(b"data: " + _encoded(event) + b"\n\n")
    except HubbubError as error:
        _, event = wire.error(InternalError(str(error)))
        await exchange.write(b"event: error\ndata: " + _encoded(event) + b"\n\n")


async def _fail(exchange: Exchange, wire: Binding, error: A2AError) -> None:
    status, body = wire.error(error)
    await _send_json(exchange, status, body)


def _encoded(body: JsonValue) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode()


async def _send_json(
    exchange: Exchange, status: int, body: Mapping[str, JsonValue], headers: Headers | None = None
) -> None:
    every = {"content-type": "application/json", "cache-control": "no-store"}
    await exchange.respond(status, {**every, **(headers or {})}, _encoded(dict(body)))


MODES = ("text/plain", "application/json")
"""Input modes of an agent; files are accepted as well."""


def card_of(agent: Participant, url: str) -> AgentCard:
    """The card of `agent` at `url`."""
    own = agent.card
    interfaces = [
        AgentInterface(url=url, protocol_binding=binding, protocol_version="1.0")
        for binding in ("JSONRPC", "HTTP+JSON")
    ]
    description = own.description or f"The agent {agent.id}."
    skills = [
        AgentSkill(
            id=f"skill-{n}",
            name=skill[:100],
            description=skill,
            tags=[agent.id],
            examples=own.examples if n == 1 else (),
        )
        for n, skill in enumerate(own.skills or (description,), 1)
    ]
    bearer = SecurityScheme(
        http_auth_security_scheme=HTTPAuthSecurityScheme(
            scheme="Bearer", description="A token of this network."
        )
    )
    return AgentCard(
        name=own.name or agent.id,
        description=description,
        version=version("hubbub"),
        supported_interfaces=interfaces,
        capabilities=AgentCapabilities(streaming=True, push_notifications=True),
        security_schemes={"token": bearer},
        security_requirements=[SecurityRequirement(schemes={"token": StringList()})],
        default_input_modes=MODES,
        default_output_modes=("text/plain",),
        skills=skills,
    )
