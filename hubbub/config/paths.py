"""Paths in a config, which are relative to the file that contains them, even an included one."""

from __future__ import annotations

import os
import re
import zlib
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pydantic import JsonValue

from hubbub.config.source import Loc, YamlDocument

__all__ = [
    "EVERY",
    "MEMORY_STORE",
    "POSTGRES",
    "SQLITE",
    "anchor_paths",
    "beside",
    "check_postgres_url",
    "shown_store",
    "split_spec",
    "without_password",
]

SQLITE = "sqlite:"
POSTGRES = "postgresql://"
"""Prefixes of store URLs."""
EVERY = "*"
MEMORY_STORE = "sqlite::memory:"


_HOST = r"(?:\[[^]@/]*\]|[^][@/?:,]*)(?::\d*)?"
_POSTGRES_URL = re.compile(
    rf"{POSTGRES}(?:(?P<user>[^:@/]*)(?::[^@/]*)?@)?(?P<hosts>{_HOST}(?:,{_HOST})*)"
    r"(?:/(?P<database>[^@?]*))?(?:\?(?P<query>.*))?"
)
"""As libpq reads it: with several hosts, and with any characters but @ and / in the password."""
_NOT_ENCODED = re.compile(r"\s|%(?![0-9A-Fa-f]{2})")
_PLACE = ("host=", "hostaddr=", "port=", "dbname=")
"""The parameters of a URL that say which database it is."""


def check_postgres_url(url: str) -> None:
    """Raises `ValueError` for a malformed URL, with a sentence that does not show its password."""
    if not url.startswith(POSTGRES):
        raise ValueError(f"it must start with {POSTGRES}")
    if not _POSTGRES_URL.fullmatch(url) or _NOT_ENCODED.search(url):
        raise ValueError(
            "it is malformed: in a password, write special characters percent-encoded, such as "
            "%40 for @, %2F for / and %25 for %"
        )


def without_password(url: str) -> str:
    """The URL of a store, for output."""
    url = re.sub(r"^(\w+://[^:@/]*):.*@", r"\1@", url)
    return re.sub(r"(?<=[?&])password=[^&]*&?", "", url).rstrip("?&")


def shown_store(url: str) -> str:
    """A store's name for messages: a file, or a database without its password."""
    if not url.startswith(POSTGRES):
        return url.removeprefix(SQLITE)
    parts = _POSTGRES_URL.fullmatch(url)
    if parts is None:
        return "the Postgres database"
    hosts = re.sub(r":\d*(?=,|$)", "", parts["hosts"])
    name = unquote(parts["database"] or parts["user"] or "")
    return f"the Postgres database {name}" + (f" on {hosts}" if hosts else "")


def beside(url: str) -> Path | None:
    """The path prefix for files that belong to a store: the store's own path, or for Postgres one
    in the user's data folder. None if the store is in memory."""
    if not url.startswith(POSTGRES):
        return None if url == MEMORY_STORE else Path(url.removeprefix(SQLITE))
    parts = _POSTGRES_URL.fullmatch(url)
    assert parts is not None, "it was checked"
    hosts, database = parts["hosts"], parts["database"]
    if "," not in hosts:
        server = urlsplit(f"//{hosts}")
        hosts = f"{server.hostname}:{server.port}"
    path = "" if database is None else f"/{database}"
    query = [each for each in (parts["query"] or "").split("&") if each.startswith(_PLACE)]
    where = zlib.crc32(f"{hosts}{path}?{'&'.join(query)}".encode())
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    folder = Path(home, "hubbub")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder / f"{unquote(database or '').replace('/', '_')}-{where:08x}.db"


def split_spec(spec: str) -> tuple[str, str] | None:
    """`file.py:Name` as file and name (`*` for all names); None if `spec` has another form."""
    file, _, name = spec.rpartition(":")
    named = name.isidentifier() or name == EVERY
    return (file, name) if file.endswith(".py") and named else None


def anchor_paths(document: YamlDocument) -> None:
    """Make the relative paths of a file absolute, in place.

    Paths are in `network.store` and `network.agent_folder`, an agent's `class`, `object`,
    `template`, `tools`, `hooks`, `skills`, `acp.cwd` and `prompt` (its folder and the files of its
    components), in `knowledge`, and in the names of mods that are files. In the settings of an
    agent or mod, a string is a path if it starts with `./` or `../`.
    """
    folder = document.place(()).file.parent
    document.data = {key: _anchored(value, (key,), folder) for key, value in document.data.items()}
    _anchor_mods(document, folder)


def _anchor_mods(document: YamlDocument, folder: Path) -> None:
    """A mod with settings is a key, `mods/thanks.py:Thanks: {...}`: the places of its settings
    change along with it."""
    mods = document.data.get("mods")
    for n, entry in enumerate(mods) if isinstance(mods, list) else ():
        if not isinstance(entry, dict):
            continue
        for key in list(entry):
            spec = split_spec(key)
            if spec is not None:
                moved = f"{_absolute(spec[0], folder)}:{spec[1]}"
                entry[moved] = entry.pop(key)
                old: Loc = ("mods", n, key)
                for loc in [loc for loc in document.places if loc[:3] == old]:
                    document.places["mods", n, moved, *loc[3:]] = document.places.pop(loc)


def _anchored(value: JsonValue, loc: Loc, folder: Path) -> JsonValue:
    match value:
        case str():
            return _anchored_text(value, loc, folder)
        case dict():
            return {key: _anchored(child, (*loc, key), folder) for key, child in value.items()}
        case list():
            return [_anchored(child, (*loc, n), folder) for n, child in enumerate(value)]
    return value


def _anchored_text(text: str, loc: Loc, folder: Path) -> str:
    match loc:
        case ("network", "store") if text.startswith(SQLITE) and text not in (SQLITE, MEMORY_STORE):
            return SQLITE + _absolute(text.removeprefix(SQLITE), folder)
        case (
            ("agents", _, "class" | "object")
            | ("agents", _, "tools" | "hooks", _)
            | ("agents", _, "prompt")
            | ("agents", _, "prompt", "builder")
            | ("agents", _, "prompt", "components", "add" | "replace", _, "function")
            | ("mods", int())
        ):
            spec = split_spec(text)
            return f"{_absolute(spec[0], folder)}:{spec[1]}" if spec else text
        case ("network", "agent_folder", "path"):
            return _absolute(text, folder)
        case ("mcp_servers", _, "cwd") | ("agents", _, "acp", "cwd"):
            return _absolute(text, folder)
        case ("agents", _, "template") | ("agents", _, "prompt", "folder"):
            return _absolute(text, folder)
        case ("knowledge", int()) | ("knowledge", "folders", _) | ("agents", _, "skills", _):
            return _absolute(text, folder)
        case ("agents", _, "knowledge", int()) | ("agents", _, "knowledge", "folders", _):
            return _absolute(text, folder)
        case ("agents", _, "prompt", "components", "add" | "replace", _, "file"):
            return _absolute(text, folder)
        case ("agents", _, "settings", *_) | ("mods", *_) if text.startswith(("./", "../")):
            return _absolute(text, folder)
    return text


def _absolute(text: str, folder: Path) -> str:
    path = Path.home() / text[2:] if text.startswith("~/") else folder / text
    return str(path.resolve())
