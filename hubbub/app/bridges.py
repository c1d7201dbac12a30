"""Bridges in a network's YAML: loading, checking, and the process of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path

from pydantic import ValidationError

from hubbub.app.agents import lost
from hubbub.app.lifeline import URL, agent_tokens
from hubbub.app.process import run_loop
from hubbub.app.running import until_signal
from hubbub.bridges.bridge import Bridge
from hubbub.bridges.chat import Chat
from hubbub.client import WebSocketTransport
from hubbub.client.runfile import Address, find_network
from hubbub.config.explain import explain
from hubbub.config.loader import LoadedConfig, load
from hubbub.config.paths import beside
from hubbub.config.problems import ConfigProblems, nearest, shown_path
from hubbub.errors import ConfigError, ConnectionLost, UserError
from hubbub.loading import load_attribute, missing_extra
from hubbub.waiting import first_error

__all__ = ["chat_of", "check_bridges", "load_bridge", "run"]


def load_bridge(path: Path, name: str, environ: Mapping[str, str]) -> tuple[LoadedConfig, Chat]:
    """A network's config, and the other chat of one of its bridges. Raises `ConfigError`."""
    config = load(path, environ=environ)
    if name not in config.file.bridges:
        text = f"there is no bridge '{name}'{nearest(name, config.file.bridges)}"
        raise ConfigError(text, shown_path(config.path))
    return config, chat_of(config, name)


def check_bridges(config: LoadedConfig) -> Iterator[ConfigError]:
    """Problems with the kinds of bridges and their settings."""
    for name in config.file.bridges:
        try:
            chat_of(config, name)
        except ConfigProblems as error:
            yield from error.problems
        except UserError as error:
            yield config.problem(("bridges", name, "kind"), f"bridges.{name}: {error}")


def chat_of(config: LoadedConfig, name: str) -> Chat:
    """The other chat of a bridge. Raises `UserError`."""
    bridge = config.file.bridges[name]
    kind = _class(bridge.kind, config.path.parent)
    try:
        settings = kind.Config.model_validate(bridge.settings)
    except ValidationError as error:
        at = ("bridges", name, "settings")
        raise ConfigProblems(explain(error, kind.Config, config.document, at=at)) from error
    return kind(name, settings, list(bridge.channels.values()))


def _class(kind: str, folder: Path) -> type[Chat]:
    if kind == "irc" and (problem := missing_extra("irc")) is not None:
        raise UserError(problem)
    if ":" in kind:
        class_ = load_attribute(kind, folder)
    else:
        class_ = getattr(import_module(f"hubbub.bridges.{kind}"), kind.capitalize())
    if not (isinstance(class_, type) and issubclass(class_, Chat)):
        raise UserError(f"{kind} is not a subclass of hubbub.bridges.chat.Chat")
    return class_


def run(
    path: Path, name: str, address: str | None, token: str | None, environ: Mapping[str, str]
) -> None:
    """Run a bridge until SIGINT or SIGTERM. Raises `HubbubError`.

    The launcher passes the network's address and the bridge's token in the environment. Otherwise
    the network is at `address`, or else at the config's address.
    """
    config, chat = load_bridge(path, name, environ)
    url = environ.get(URL)
    place = Address(url) if url else find_network(address or str(config.address))
    given = token or agent_tokens(environ).get(name)
    store = beside(config.file.network.store)
    pairs = None if store is None else Path(f"{store}.{name}")
    channels = config.file.bridges[chat.name].channels

    def current_token() -> str | None:  # `hubbub up` makes new ones for this machine
        return given or find_network(place.url).tokens.get(name)

    bridge = Bridge(
        chat.name,
        chat,
        channels,
        lambda: WebSocketTransport(place.url),
        token=current_token,
        pairs=pairs,
    )
    try:
        run_loop(until_signal(bridge.run()))
    except (BaseExceptionGroup, ConnectionLost) as failure:
        error = first_error(failure)
        raise (
            lost(name, place.url, error) if isinstance(error, ConnectionLost) else error
        ) from failure
