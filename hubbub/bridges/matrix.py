"""Matrix, as an application service: the homeserver lets the bridge act as its own users, and sends
it the events of their rooms, repeatedly until accepted."""

from __future__ import annotations

import asyncio
import hmac
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar
from urllib.parse import quote

import httpx2
from pydantic import Field, JsonValue, SecretStr

from hubbub.bridges.chat import (
    Chat,
    ChatRefused,
    Deleted,
    Edited,
    Incoming,
    IncomingMessage,
    Outgoing,
    Person,
    PersonLeft,
    Take,
)
from hubbub.client import Backoff
from hubbub.config.units import Section, parse_address
from hubbub.errors import UserError
from hubbub.interop.http import BadRequest, Exchange, HttpServer
from hubbub.logs import get_logger

__all__ = ["Matrix", "MatrixConfig"]

log = get_logger(__name__)

MARK = "org.hubbub.message"
"""Key in the content of bridged messages, by which bridges ignore each other's."""
REQUEST_S = 60.0
MAX_BYTES = 16 * 1024 * 1024
"""Size of one transaction: 100 events of 64 KiB, and the JSON around them."""

MAX_TEXT = 60_000
"""Bytes of a text as JSON: an event has 64 KiB, and that of an edit contains the text twice."""
_UNREADABLE = "bridges cannot read encrypted rooms"


class MatrixConfig(Section):
    homeserver: str = Field(pattern=r"^https?://")
    """Its address for clients, such as `https://matrix.example.org`."""
    domain: str
    """The part after the colon in its user ids."""
    listen: str = "127.0.0.1:4850"
    """host:port on which the bridge accepts the homeserver's requests."""
    url: str | None = None
    """The bridge's URL as the homeserver sees it; default: `http://` and `listen`."""
    as_token: SecretStr
    """Authenticates the bridge to the homeserver: at least 20 random characters of your choice."""
    hs_token: SecretStr
    """Authenticates the homeserver to the bridge."""
    prefix: str = Field("hubbub_", pattern=r"^[a-z0-9_.-]+_$")
    """Prefix of the bridge's users: `calculator` is `@hubbub_calculator:example.org`."""


class MatrixRefused(ChatRefused):
    """The homeserver returned a permanent error."""

    def __init__(self, code: str, message: str):
        self.code = code
        super().__init__(f"{code}: {message}")


class Matrix(Chat):
    """A homeserver. Channels are rooms, named by id or alias."""

    Config = MatrixConfig
    has_ids: ClassVar[bool] = True

    def __init__(self, name: str, settings: MatrixConfig, channels: Sequence[str]):
        super().__init__(name, settings, channels)
        self._settings, self._backoff = settings, Backoff()
        self._bot = f"@{settings.prefix}bridge:{settings.domain}"
        self._rooms: dict[str, str] = {}
        """Room ids by their name in the YAML."""
        self._channels: dict[str, str] = {}
        """The reverse."""
        self._joined: set[tuple[str, str]] = set()
        """Our users, with the rooms they have joined."""
        self._display_names: dict[str, str] = {}
        self._ready = asyncio.Event()
        self._http = httpx2.AsyncClient(
            base_url=settings.homeserver,
            headers={"authorization": f"Bearer {settings.as_token.get_secret_value()}"},
            timeout=REQUEST_S,
            trust_env=False,
        )

    @property
    def title(self) -> str:
        return self._settings.domain

    def setup(self) -> Mapping[str, object]:
        own = re.escape(f"@{self._settings.prefix}")
        users = f"{own}.*:{re.escape(self._settings.domain)}"
        return {
            "id": f"hubbub-{self.name}",
            "url": self._settings.url or f"http://{self._settings.listen}",
            "as_token": self._settings.as_token.get_secret_value(),
            "hs_token": self._settings.hs_token.get_secret_value(),
            "sender_localpart": f"{self._settings.prefix}bridge",
            "rate_limited": False,
            "namespaces": {
                "users": [{"exclusive": True, "regex": users}],
                "aliases": [],
                "rooms": [],
            },
        }

    async def probe(self) -> str:
        answer = await self._http.get("/_matrix/client/v3/account/whoami")
        if answer.status_code != 200:
            raise UserError(
                f"{self._settings.homeserver} has not registered the bridge: give its server the "
                f"output of `hubbub bridges setup {self.name}`, and restart it"
            )
        return f"{self._settings.homeserver} has registered the bridge"

    async def run(self, take: Take) -> None:
        host, port = parse_address(self._settings.listen)
        http = HttpServer(lambda exchange: self._answer(exchange, take))
        try:
            server = await asyncio.get_running_loop().create_server(http.protocol, host, port)
        except OSError as error:
            raise UserError(f"cannot listen on {self._settings.listen}: {error}") from error
        try:
            await self._join_rooms()
            await asyncio.Event().wait()
        finally:
            server.close()
            await http.close()
            await self._http.aclose()

    async def _join_rooms(self) -> None:
        """Join the rooms. Raises `UserError`."""
        try:
            await self._register(self._bot)
            for channel in self.channels:
                result = await self._call("POST", _path("join", channel), self._bot)
                room = str(result["room_id"])
                if await self._is_encrypted(room):
                    raise UserError(f"bridge {self.name}: {channel} is encrypted: {_UNREADABLE}")
                self._rooms[channel], self._channels[room] = room, channel
                self._joined.add((self._bot, room))
        except MatrixRefused as error:
            raise UserError(f"bridge {self.name}: {error}; invite {self._bot} there") from error
        self._ready.set()

    async def _is_encrypted(self, room: str) -> bool:
        path = _path("rooms", room, "state", "m.room.encryption")
        try:
            await self._call("GET", path, self._bot)
        except MatrixRefused as error:
            if error.code != "M_NOT_FOUND":
                raise
            return False
        return True

    # From the network to the room -----------------------------------------------------------------

    async def show(self, agents: Sequence[str]) -> None:
        for agent in agents:
            for channel in self.channels:
                await self._ghost(agent, channel)

    async def say(self, message: Outgoing) -> str | None:
        user, room = await self._ghost(message.author, message.channel)
        try:
            return await self._send(message, user, room)
        except MatrixRefused as error:
            if error.code != "M_FORBIDDEN":
                raise
        self._joined.discard((user, room))  # it may have been removed from the room
        await self._ghost(message.author, message.channel)
        return await self._send(message, user, room)

    async def _send(self, message: Outgoing, user: str, room: str) -> str:
        if message.change == "deleted":
            if message.changes is None:
                raise ChatRefused("the deleted message is not in the room")
            path = _path("rooms", room, "redact", message.changes, message.id)
            return str((await self._call("PUT", path, user, {}))["event_id"])
        path = _path("rooms", room, "send", "m.room.message", message.id)
        return str((await self._call("PUT", path, user, self._content(message)))["event_id"])

    def _content(self, message: Outgoing) -> dict[str, JsonValue]:
        users: list[JsonValue] = [self._user_of(person) for person in message.mentions]
        text = _shortened(message.text, MAX_TEXT // 2 if message.change else MAX_TEXT)
        content: dict[str, JsonValue] = {
            "msgtype": "m.text",
            "body": text,
            "m.mentions": {"user_ids": users} if users else {},
        }
        if message.change == "edited":
            body = f"* {text}"
            edited: dict[str, JsonValue] = {**content, MARK: message.id, "body": body}
            if message.changes is None:
                return edited
            relation: JsonValue = {"rel_type": "m.replace", "event_id": message.changes}
            return {**edited, "m.new_content": content, "m.relates_to": relation}
        relates: dict[str, JsonValue] = {}
        if message.thread is not None:
            relates = {"rel_type": "m.thread", "event_id": message.thread}
        if message.parent is not None and message.parent.id is not None:
            relates["m.in_reply_to"] = {"event_id": message.parent.id}
            relates |= {"is_falling_back": False} if message.parent.id != message.thread else {}
        return {**content, MARK: message.id, **({"m.relates_to": relates} if relates else {})}

    async def _ghost(self, participant: str, channel: str) -> tuple[str, str]:
        """The Matrix user of a participant, joined to the channel's room, and the room's id. Waits
        until the bridge has joined."""
        await self._ready.wait()
        user, room = self._ghost_id(participant), self._rooms[channel]
        if (user, room) in self._joined:
            return user, room
        await self._register(user)
        name = {"displayname": participant}
        await self._call("PUT", _path("profile", user, "displayname"), user, name)
        try:
            await self._call("POST", _path("join", room), user)
        except MatrixRefused as error:
            if error.code != "M_FORBIDDEN":
                raise
            await self._call("POST", _path("rooms", room, "invite"), self._bot, {"user_id": user})
            await self._call("POST", _path("join", room), user)
        self._joined.add((user, room))
        return user, room

    def _ghost_id(self, participant: str) -> str:
        # Matrix ids have no capitals, and participant ids no `=`.
        local = re.sub(r"[A-Z]", lambda match: f"={ord(match[0]):02x}", participant)
        return f"@{self._settings.prefix}{local}:{self._settings.domain}"

    def _participant_of(self, user: str) -> str | None:
        """The participant of one of our users; None for other users."""
        if not self._is_ours(user):
            return None
        local = user.partition(":")[0].removeprefix(f"@{self._settings.prefix}")
        return re.sub(r"=([0-9a-f]{2})", lambda match: chr(int(match[1], 16)), local)

    def _is_ours(self, user: str) -> bool:
        local, _, domain = user.partition(":")
        return local.startswith(f"@{self._settings.prefix}") and domain == self._settings.domain

    def _user_of(self, person: Person) -> str:
        return person.id if person.id.startswith("@") else f"@{person.id}:{self._settings.domain}"

    async def _register(self, user: str) -> None:
        local = user.partition(":")[0].removeprefix("@")
        body: dict[str, JsonValue] = {
            "type": "m.login.application_service",
            "username": local,
            "inhibit_login": True,
        }
        try:
            await self._call("POST", "register", None, body)
        except MatrixRefused as error:
            if error.code != "M_USER_IN_USE":
                raise

    async def _call(
        self, method: str, path: str, user: str | None, body: Mapping[str, JsonValue] | None = None
    ) -> dict[str, JsonValue]:
        """Call the homeserver as one of our users, repeatedly until it answers. Raises
        `MatrixRefused`."""
        attempt, params = 0, {"user_id": user} if user else {}
        while True:
            wait = 0.0
            try:
                answer = await self._http.request(
                    method,
                    f"/_matrix/client/v3/{path}",
                    params=params,
                    json=None if method == "GET" else dict(body or {}),
                )
                value = answer.json()
            except (httpx2.HTTPError, ValueError) as error:
                log.warning("the homeserver does not answer", why=str(error) or repr(error))
            else:
                if answer.status_code < 300:
                    assert isinstance(value, dict)
                    return value
                if answer.status_code < 500 and answer.status_code != 429:
                    raise MatrixRefused(str(value.get("errcode")), str(value.get("error")))
                wait = float(value.get("retry_after_ms") or 0) / 1000
            await self._backoff.sleep(self._backoff.after(wait, attempt))
            attempt += 1

    # From the room to the network -----------------------------------------------------------------

    async def _answer(self, exchange: Exchange, take: Take) -> None:
        """Handle a request of the homeserver. A transaction is answered when the network has stored
        all of it."""
        status, value = 200, dict[str, JsonValue]()
        try:
            exchange.check()
            token = exchange.header("authorization").removeprefix("Bearer ")
            own = self._settings.hs_token.get_secret_value()
            if not hmac.compare_digest(token.encode(), own.encode()):
                status, value = 403, {"errcode": "M_FORBIDDEN"}
            elif exchange.path.startswith("/_matrix/app/v1/transactions/"):
                await self._transaction(json.loads(await exchange.body(MAX_BYTES)), take)
            elif exchange.path != "/_matrix/app/v1/ping":
                status, value = 404, {"errcode": "M_NOT_FOUND"}
        except (BadRequest, ValueError, RecursionError) as error:
            status = error.status if isinstance(error, BadRequest) else 400
            value = {"errcode": "M_BAD_JSON", "error": str(error)}
        body = json.dumps(value).encode()
        await exchange.respond(status, {"content-type": "application/json"}, body)

    async def _transaction(self, value: JsonValue, take: Take) -> None:
        await self._ready.wait()
        events = _map(value).get("events")
        for each in events if isinstance(events, list) else ():
            for event in await self._read(_map(each)):
                await take(event)

    async def _read(self, event: Mapping[str, JsonValue]) -> Sequence[Incoming]:
        """The event for the network, or none."""
        sender, id = _text(event, "sender"), _text(event, "event_id")
        channel = self._channels.get(_text(event, "room_id"))
        content = _map(event.get("content"))
        if channel is None or self._is_ours(sender) or MARK in content:
            return ()
        match event.get("type"):
            case "m.room.redaction":
                deleted = _text(event, "redacts") or _text(content, "redacts")
                return (Deleted(id, deleted),)
            case "m.room.member" if content.get("membership") in ("leave", "ban"):
                return (PersonLeft(self._person_id(_text(event, "state_key"))),)
            case "m.room.message" if content.get("msgtype") != "m.notice":  # sent by bots
                person = Person(self._person_id(sender), await self._display_name(sender))
                return tuple(self._message_events(id, person, channel, content))
            case "m.room.encrypted":
                log.warning("a message was not bridged", message=id, why=_UNREADABLE)
        return ()

    def _message_events(
        self, id: str, person: Person, channel: str, content: Mapping[str, JsonValue]
    ) -> Iterator[Incoming]:
        relates = _map(content.get("m.relates_to"))
        target = _text(relates, "event_id")
        answers = _text(_map(relates.get("m.in_reply_to")), "event_id")
        if relates.get("rel_type") == "m.replace":
            yield Edited(
                id, person, channel, target, self._display_text(_map(content.get("m.new_content")))
            )
            return
        in_thread = relates.get("rel_type") == "m.thread"
        text = self._display_text(content)
        if answers and text.startswith("> "):  # older clients quote the message they answer
            text = text.partition("\n\n")[2] or text
        thread, quoted = (target, None) if in_thread else (None, answers or None)
        yield IncomingMessage(id, person, channel, text, thread=thread, quotes=quoted)

    def _display_text(self, content: Mapping[str, JsonValue]) -> str:
        """The text, with mentioned participants as `@name`."""
        kind, text = _text(content, "msgtype"), _text(content, "body")
        if kind == "m.emote":
            return f"*{text}*"
        if kind != "m.text":
            return f"[{kind.removeprefix('m.')}: {text}]"
        users = _map(content.get("m.mentions")).get("user_ids")
        for user in users if isinstance(users, list) else ():
            name = self._participant_of(str(user))
            if name is not None:
                text = re.sub(
                    rf"(?<![\w@-])@?{re.escape(name)}:?(?![\w-])", f"@{name}", text, count=1
                )
        return text

    def _person_id(self, user: str) -> str:
        """A user of our homeserver without `@` and domain; other user ids unchanged."""
        local, _, domain = user.removeprefix("@").partition(":")
        return local if domain == self._settings.domain else user

    async def _display_name(self, user: str) -> str:
        if user not in self._display_names:
            try:
                profile = await self._call("GET", _path("profile", user, "displayname"), self._bot)
            except MatrixRefused:
                profile = {}
            self._display_names[user] = _text(profile, "displayname") or user.partition(":")[0][1:]
        return self._display_names[user]


def _shortened(text: str, max_bytes: int) -> str:
    kept = text
    while len(json.dumps(kept, ensure_ascii=False).encode()) > max_bytes:
        kept = kept[: len(kept) * 9 // 10]
    return kept if kept == text else f"{kept}… ({len(text) - len(kept)} more characters)"


def _path(*parts: str) -> str:
    return "/".join(quote(part, safe="") for part in parts)


def _map(value: JsonValue | None) -> Mapping[str, JsonValue]:
    return value if isinstance(value, dict) else {}


def _text(value: Mapping[str, JsonValue], key: str) -> str:
    text = value.get(key)
    return text if isinstance(text, str) else ""
