"""The page as files: read once, named by their content, compressed, with the headers they need.

There is no build: `static/` has the page as it was written. All files are served below
`/static/<hash>/`, where the hash is of everything together, so that a browser may keep whatever it
has for good. The page itself asks for `bundles/`: there a module comes with all that it imports,
and a style sheet with its parts, joined when somebody first asks. An edited file shows after a
reload.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import mimetypes
import os
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from html import escape
from pathlib import Path
from string import Template

from hubbub.web.bundle import Bundles

__all__ = ["About", "Site", "SiteResponse", "joining_page"]

STATIC = Path(__file__).with_name("static")
FIRST = ("main.js", "styles/main.css")
"""The bundles that the page begins with."""
PREFIX = "/static/"
BUNDLES = "bundles/"
FOREVER = "public, max-age=31536000, immutable"
SMALLEST_COMPRESSED = 512
"""Bytes below which compressing gains nothing."""

_INLINE = re.compile(rb"<script>(.*?)</script>", re.DOTALL)
_PART = re.compile(r'@import url\("([^"]+)"\);')

TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".map": "application/json",
    ".html": "text/html; charset=utf-8",
    ".svg": "image/svg+xml",
    ".md": "text/plain; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}

POLICY = (
    "default-src 'none'; script-src 'self' {script}; style-src 'self'; img-src 'self'; "
    "font-src 'self'; manifest-src 'self'; connect-src 'self' ws://{host} wss://{host}; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types dompurify"
)
"""Only files of this server and the one script that stands in the page run, talk to this server
alone, and no text becomes HTML unless it has been through the sanitizer."""


@dataclass(frozen=True)
class About:
    """What the page knows of the network before anybody has joined."""

    network: str
    auth: str
    """`open` or `tokens`."""
    humans: Sequence[str] = ()
    """People that the config names."""


@dataclass(frozen=True)
class SiteResponse:
    """An HTTP answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True)
class _StaticFile:
    name: str
    body: bytes

    @cached_property
    def type(self) -> str:
        suffix = posixpath.splitext(self.name)[1]
        return TYPES.get(suffix) or mimetypes.guess_type(self.name)[0] or "application/octet-stream"

    @cached_property
    def etag(self) -> str:
        return f'"{hashlib.sha256(self.body).hexdigest()[:16]}"'

    @cached_property
    def compressed(self) -> bytes | None:
        """Gzipped; None where that gains nothing."""
        if len(self.body) < SMALLEST_COMPRESSED or not self.type.startswith(("text/", "image/svg")):
            return None
        return gzip.compress(self.body, 9, mtime=0)


@dataclass
class _Tree:
    """All files as they were at one moment."""

    stamp: tuple[tuple[str, int, int], ...]
    files: dict[str, _StaticFile]
    hash: str = field(init=False)
    _bundled: dict[str, _StaticFile] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        whole = hashlib.sha256()
        for name, file in sorted(self.files.items()):
            whole.update(f"{name}\0{file.etag}\0".encode())
        self.hash = whole.hexdigest()[:16]

    @cached_property
    def script(self) -> str:
        """The script in the page itself, as a policy names it: by its hash."""
        found = _INLINE.search(self.files["index.html"].body)
        digest = hashlib.sha256(found[1] if found else b"").digest()
        return f"'sha256-{base64.b64encode(digest).decode()}'"

    def find(self, name: str) -> _StaticFile | None:
        """A file, or a bundle. Raises BundleError for modules that cannot be joined."""
        if name in self.files or not name.startswith(BUNDLES):
            return self.files.get(name)
        if name not in self._bundled:
            text = self._bundle(name.removeprefix(BUNDLES))
            if text is None:
                return None
            self._bundled[name] = _StaticFile(name, text.encode())
        return self._bundled[name]

    def _bundle(self, name: str) -> str | None:
        source, _, suffix = name.rpartition(".")
        if suffix == "map" and source in self._texts:
            return self._scripts.source_map(source)
        if suffix == "css" and name in self.files:
            return self._sheet(name)
        return self._scripts.script(name) if name in self._texts else None

    def _sheet(self, name: str) -> str:
        """A style sheet with those that it imports, which lie beside it."""

        def part(found: re.Match[str]) -> str:
            return self._sheet(posixpath.join(posixpath.dirname(name), found[1]))

        return _PART.sub(part, self.files[name].body.decode())

    @cached_property
    def _texts(self) -> dict[str, str]:
        modules = (name for name in self.files if name.endswith(".js"))
        return {name: self.files[name].body.decode() for name in modules}

    @cached_property
    def _scripts(self) -> Bundles:
        return Bundles(FIRST[0], self._texts)


class Site:
    """The page of one network."""

    def __init__(self, about: About, static: Path = STATIC):
        self._about, self._static = about, static
        self._tree: _Tree | None = None

    def prepare(self) -> None:
        """Read everything, and join and compress what the page begins with; needed by nobody, but
        then no request waits for it."""
        tree = self._current()
        for name in FIRST:
            file = tree.find(BUNDLES + name)
            _ = file and file.compressed

    def find(self, path: str, headers: Mapping[str, str]) -> SiteResponse | None:
        """The answer to a GET of `path`; None if there is nothing here."""
        if path == "/":
            return self._index(headers)
        if path == "/join":
            return self._joining(headers)
        if path == "/favicon.ico":
            path = f"{PREFIX}-/icon.svg"
        if not path.startswith(PREFIX):
            return None
        version, _, name = path.removeprefix(PREFIX).partition("/")
        tree = self._current(look=False)
        file = tree.find(name)
        if file is None:
            return None
        # A page that was loaded before an update asks by an old hash: it gets what there is.
        extra = {"Cache-Control": FOREVER if version == tree.hash else "no-cache"}
        if file.type.startswith("image/svg"):  # opened by itself, it would be a page
            extra["Content-Security-Policy"] = "default-src 'none'"
        return _reply(file, headers, extra)

    def _index(self, headers: Mapping[str, str]) -> SiteResponse:
        tree = self._current()
        base = f"{PREFIX}{tree.hash}"
        about = {
            "network": self._about.network,
            "auth": self._about.auth,
            "humans": list(self._about.humans),
        }
        body = Template(tree.files["index.html"].body.decode()).substitute(
            base=base,
            network=escape(self._about.network),
            about=escape(json.dumps(about)),
        )
        extra = {
            "Cache-Control": "no-cache",
            "Content-Security-Policy": POLICY.format(
                host=headers.get("Host", ""), script=tree.script
            ),
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Opener-Policy": "same-origin",
        }
        return _reply(_StaticFile("index.html", body.encode()), headers, extra)

    def _joining(self, headers: Mapping[str, str]) -> SiteResponse:
        about = self._about
        scheme = "wss" if headers.get("X-Forwarded-Proto") == "https" else "ws"
        url = f"{scheme}://{headers.get('Host', '')}"
        body = joining_page(about.network, url, tokens=about.auth == "tokens")
        headers = {
            "Content-Type": TYPES[".html"],
            "Cache-Control": "no-cache",
            "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
        }
        return SiteResponse(200, headers, body)

    def _current(self, *, look: bool = True) -> _Tree:
        """The files as they are; `look`: whether they may have been edited since."""
        if self._tree is None or (look and self._tree.stamp != tuple(_stamp(self._static))):
            self._tree = _read(self._static, tuple(_stamp(self._static)))
        return self._tree


@lru_cache(maxsize=1)
def _read(folder: Path, stamp: tuple[tuple[str, int, int], ...]) -> _Tree:
    """The files of this moment, which all networks of a process share."""
    read = {name: _StaticFile(name, (folder / name).read_bytes()) for name, *_ in stamp}
    return _Tree(stamp, read)


def _stamp(folder: Path, inside: str = "") -> list[tuple[str, int, int]]:
    """All files below the folder by name, with when they were written and their size.

    Whoever asks for the page has them looked at: that takes one call to the system for each.
    """
    found: list[tuple[str, int, int]] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            name = f"{inside}{entry.name}"
            if entry.is_dir():
                found += _stamp(folder / entry.name, f"{name}/")
            elif entry.is_file():
                about = entry.stat()
                found.append((name, about.st_mtime_ns, about.st_size))
    return sorted(found) if not inside else found


def _reply(file: _StaticFile, headers: Mapping[str, str], extra: Mapping[str, str]) -> SiteResponse:
    made = {
        "Content-Type": file.type,
        "ETag": file.etag,
        "Vary": "Accept-Encoding",
        "Cross-Origin-Resource-Policy": "same-origin",
        **extra,
    }
    if file.etag in headers.get("If-None-Match", ""):
        return SiteResponse(304, made)
    if file.compressed is not None and _takes_gzip(headers.get("Accept-Encoding", "")):
        return SiteResponse(200, {**made, "Content-Encoding": "gzip"}, file.compressed)
    return SiteResponse(200, made, file.body)


def _takes_gzip(accepted: str) -> bool:
    for part in accepted.lower().split(","):
        name, _, weight = part.strip().partition(";")
        if name == "gzip":
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


_DEFAULT = "ws://127.0.0.1:4820"


def joining_page(network: str, url: str, *, tokens: bool) -> bytes:
    """HTML for the network at `url` (ws://host:port); `tokens`: whether one is needed to join."""
    address = url.removeprefix("ws://")
    page = Template(STATIC.with_name("join.html").read_text("utf-8"))
    return page.substitute(
        name=escape(network),
        url=escape(url),
        option="" if url == _DEFAULT else f" --address {escape(address)}",
        as_whom=" --as ann" if tokens else "",
        secret="HUBBUB_TOKEN=… " if tokens else "",
        token=', "token": "…"' if tokens else "",
    ).encode()
