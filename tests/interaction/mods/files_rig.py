"""What tests of files share: a network with the mod, uploads, and a look into its folder."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hubbub.client import Client
from hubbub.clock import Clock
from hubbub.config.models import ChannelConfig, HumanConfig, NetworkConfig, NetworkFile
from hubbub.config.paths import MEMORY_STORE
from hubbub.errors import OperationError
from hubbub.mods.api import Mod
from hubbub.mods.files.mod import FilesMod
from hubbub.mods.files.settings import FilesConfig
from hubbub.mods.settings import settings_of
from hubbub.network.ports import Store
from hubbub.testing.network import LocalNetwork

__all__ = [
    "PNG",
    "ask",
    "attach",
    "b64",
    "begin",
    "contents",
    "files_mod",
    "folder_of",
    "network",
    "refused",
    "sha",
    "upload",
]

PNG = b"\x89PNG\r\n\x1a\n" + b"\x00\x01\x02" * 50


def files_mod(**config: Any) -> FilesMod:
    """With settings as the YAML has them."""
    made = settings_of(FilesMod, config)
    assert isinstance(made, FilesConfig)
    return FilesMod(made)


def network(
    store: str | Store = "sqlite::memory:",
    *,
    clock: Clock | None = None,
    beside: Sequence[Mod] = (),
    **config: Any,
) -> LocalNetwork:
    file = NetworkFile(
        network=NetworkConfig(auth="open", store=store if isinstance(store, str) else MEMORY_STORE),
        humans={"olga": HumanConfig(roles=["owner"]), "ann": HumanConfig()},
        channels={
            "desk": ChannelConfig(members=["ann", "bot"]),
            "yard": ChannelConfig(members=["ann", "eve"]),
        },
    )
    return LocalNetwork(file, store=store, mods=[files_mod(**config), *beside], clock=clock)


def the_mod(local: LocalNetwork) -> FilesMod:
    mod = local.hub.mods.pipeline.mods[0]
    assert isinstance(mod, FilesMod)
    return mod


def folder_of(local: LocalNetwork) -> Path:
    """Where the mod keeps what came in."""
    return the_mod(local).host.folder


def contents(local: LocalNetwork) -> dict[str, set[str]]:
    """The names of all that lies there."""
    places = ("objects", "uploads", "texts")
    return {name: {p.name for p in (folder_of(local) / name).iterdir()} for name in places}


async def ask(client: Client, name: str, /, **args: object) -> dict[str, Any]:
    answer = await client.call(name, **args)  # type: ignore[arg-type]
    assert isinstance(answer, dict)
    return answer


async def refused(client: Client, name: str, /, **args: object) -> OperationError:
    with pytest.raises(OperationError) as caught:
        await ask(client, name, **args)
    return caught.value


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


async def begin(client: Client, name: str, data: bytes, **args: object) -> str:
    """An upload that has all of its bytes, and is no file yet."""
    answer = await ask(client, "begin_upload", name=name, size=len(data), **args)
    id, chunk = str(answer["upload"]), int(answer["chunk"])
    for at in range(0, len(data), chunk):
        part = b64(data[at : at + chunk])
        await ask(client, "upload_chunk", upload=id, offset=at, data=part)
    return id


async def upload(client: Client, name: str, data: bytes, **args: object) -> dict[str, Any]:
    """A file."""
    args.setdefault("thread", "channel.desk")
    return await ask(client, "finish_upload", upload=await begin(client, name, data, **args))


async def attach(client: Client, id: str, **args: object) -> dict[str, Any]:
    """Post a message with a file to the desk."""
    files = [{"name": "whatever", "uri": f"file:{id}"}]
    args.setdefault("channel", "desk")
    return await ask(client, "post_to_channel", text="see here", attachments=files, **args)
