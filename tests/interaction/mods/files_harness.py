"""Harness for tests of files: a network with the mod, uploads, and the contents of its folder."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hubbub.clock import Clock
from hubbub.mods.api import Mod
from hubbub.mods.files.mod import FilesMod
from hubbub.mods.files.uploads import FilesConfig
from hubbub.mods.loader import settings_of
from hubbub.network.ports import Store
from tests.interaction.mods.workspace import QUICK
from tests.interaction.peers import Frame, Network, Networks, Peer, config

__all__ = [
    "PNG", "TEXT", "attach", "b64", "begin", "contents", "files_mod", "folder_of", "network", "sha",
    "upload",
]  # fmt: skip

TEXT = b"# Plan\n\none\ntwo\nthree\n"
PNG = b"\x89PNG\r\n\x1a\n" + b"\x00\x01\x02" * 50


def files_mod(**settings: Any) -> FilesMod:
    """The mod with settings as written in YAML."""
    config = settings_of(FilesMod, settings)
    assert isinstance(config, FilesConfig)
    return FilesMod(config)


@asynccontextmanager
async def network(
    *who: str,
    store: str | Store = "sqlite::memory:",
    clock: Clock | None = None,
    extra: Sequence[Mod] = (),
    **settings: Any,
) -> AsyncIterator[tuple[Any, ...]]:
    """A network and the peers of these participants. ann and olga, its owner, are people."""
    file = config(
        network={**QUICK, **({"store": store} if isinstance(store, str) else {})},
        humans={"olga": {"roles": ["owner"]}, "ann": {}},
        channels={"desk": {"members": ["ann", "bot"]}, "yard": {"members": ["ann", "eve"]}},
    )
    mods = [files_mod(**settings), *extra]
    async with Networks(sockets=False).start(file, store=store, mods=mods, clock=clock) as net:
        kinds = {"ann": "human", "olga": "human"}
        yield (net, *[await net.join(name, kinds.get(name, "agent")) for name in who])


def folder_of(net: Network) -> Path:
    """The folder in which the mod stores contents."""
    mod = net.hub.services.mods.pipeline.mods[0]
    assert isinstance(mod, FilesMod)
    return mod.host.folder


def contents(net: Network) -> dict[str, set[str]]:
    """The names of stored files by subfolder, without empty subfolders."""
    folders = {name: folder_of(net) / name for name in ("objects", "uploads", "texts")}
    files = {name: {each.name for each in folder.iterdir()} for name, folder in folders.items()}
    return {name: names for name, names in files.items() if names}


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


async def begin(peer: Peer, name: str, data: bytes, **args: Any) -> str:
    """An upload with all of its bytes that is not finished yet."""
    answer = await peer.call("begin_upload", name=name, size=len(data), **args)
    id, chunk = str(answer["upload"]), int(answer["chunk"])
    for at in range(0, len(data), chunk):
        part = b64(data[at : at + chunk])
        await peer.call("upload_chunk", upload=id, offset=at, data=part)
    return id


async def upload(peer: Peer, name: str, data: bytes, **args: Any) -> Frame:
    """Upload a file."""
    id = await begin(peer, name, data, **{"thread": "channel.desk", **args})
    file: Frame = await peer.call("finish_upload", upload=id)
    return file


async def attach(peer: Peer, *ids: str, channel: str = "desk") -> Frame:
    """Post a message with files; the message as read back."""
    files = [{"name": "whatever", "uri": f"file:{id}"} for id in ids]
    sent = await peer.call("post_to_channel", channel=channel, text="see", attachments=files)
    message: Frame = await peer.call("read_message", id=sent["id"])
    return message
