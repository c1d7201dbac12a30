"""Serves the page's files: read once, versioned by content, compressed, with the right headers.

There is no build step: `static/` has the source. All files are served below `/static/<hash>/`,
where the hash covers all of them, so that browsers can cache forever. The page loads `bundles/`: a
module with its imports, or a style sheet with its parts, joined at the first request. An edited
file takes effect after a reload.
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
"""The bundles that the page loads first."""
PREFIX = "/static/"
BUNDLES = "bundles/"
FOREVER = "public, max-age=31536000, immutable"
SMALLEST_COMPRESSED = 512
"""Bytes below which compression does not help."""

_INLINE = re.compile(rb"<script>(.*?)</script>", re.DOTALL)
_STYLE_COMMENT = re.compile(
    r"^[ \t]*/\*(?!!|[^/]*?Copyright)(?:[^*]|\*(?!/))*\*/[ \t]*\n", re.MULTILINE
)
"""A comment on lines of its own in a style sheet, except licence notices."""
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
"""Only this server's files and the page's one inline script run, they connect only to this server,
and text becomes HTML only through the sanitizer."""


@dataclass(frozen=True)
class About:
    """The page's information about the network before a person joins."""

    network: str
    auth: str
    """`open` or `tokens`."""
    humans: Sequence[str] = ()
    """People named in the config."""


@dataclass(frozen=True)
class SiteResponse:
    """An HTTP response."""

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
        """The gzipped body; None if compression does not help."""
        if len(self.body) < SMALLEST_COMPRESSED or not self.type.startswith(("text/", "image/svg")):
            return None
        return gzip.compress(self.body, 9, mtime=0)


@dataclass
class _Tree:
    """A snapshot of all files."""

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
        """The hash of the page's inline script, as a source in the security policy."""
        match = _INLINE.search(self.files["index.html"].body)
        digest = hashlib.sha256(match[1] if match else b"").digest()
        return f"'sha256-{base64.b64encode(digest).decode()}'"

    def find(self, name: str) -> _StaticFile | None:
        """A file or a bundle. Raises BundleError for modules that cannot be bundled."""
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
        """A style sheet with its imports inlined, without whole lines of comments."""

        def part(match: re.Match[str]) -> str:
            return self._sheet(posixpath.join(posixpath.dirname(name), match[1]))

        return _PART.sub(part, _STYLE_COMMENT.sub("", self.files[name].body.decode()))

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
        """Read all files, and build and compress the first bundles. Optional: it saves the first
        request the wait."""
        tree = self._current()
        for name in FIRST:
            file = tree.find(BUNDLES + name)
            _ = file and file.compressed

    def find(self, path: str, headers: Mapping[str, str]) -> SiteResponse | None:
        """The response to a GET of `path`; None if there is no such file."""
        if path == "/":
            return self._index(headers)
        if path == "/join":
            return self._join_page(headers)
        if path == "/favicon.ico":
            path = f"{PREFIX}-/icon.svg"
        if not path.startswith(PREFIX):
            return None
        version, _, name = path.removeprefix(PREFIX).partition("/")
        tree = self._current(check=False)
        file = tree.find(name)
        if file is None:
            return None
        # A page loaded before an update requests an old hash: it gets the current file.
        extra = {"Cache-Control": FOREVER if version == tree.hash else "no-cache"}
        if file.type.startswith("image/svg"):  # opened directly, it would be a document
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

    def _join_page(self, headers: Mapping[str, str]) -> SiteResponse:
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

    def _current(self, *, check: bool = True) -> _Tree:
        """The files; with `check`, read again if they were edited."""
        if self._tree is None or (check and self._tree.stamp != tuple(_stamp(self._static))):
            self._tree = _read(self._static, tuple(_stamp(self._static)))
        return self._tree


@lru_cache(maxsize=1)
def _read(folder: Path, stamp: tuple[tuple[str, int, int], ...]) -> _Tree:
    """The files with this stamp, shared by all networks of the process."""
    files = {name: _StaticFile(name, (folder / name).read_bytes()) for name, *_ in stamp}
    return _Tree(stamp, files)


def _stamp(folder: Path, inside: str = "") -> list[tuple[str, int, int]]:
    """All files below the folder: name, modification time and size. Runs for every request for the
    page, with one system call per file.
    """
    files: list[tuple[str, int, int]] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            name = f"{inside}{entry.name}"
            if entry.is_dir():
                files += _stamp(folder / entry.name, f"{name}/")
            elif entry.is_file():
                stat = entry.stat()
                files.append((name, stat.st_mtime_ns, stat.st_size))
    return sorted(files) if not inside else files


def _reply(file: _StaticFile, headers: Mapping[str, str], extra: Mapping[str, str]) -> SiteResponse:
    every = {
        "Content-Type": file.type,
        "ETag": file.etag,
        "Vary": "Accept-Encoding",
        "Cross-Origin-Resource-Policy": "same-origin",
        **extra,
    }
    if file.etag in headers.get("If-None-Match", ""):
        return SiteResponse(304, every)
    if file.compressed is not None and _accepts_gzip(headers.get("Accept-Encoding", "")):
        return SiteResponse(200, {**every, "Content-Encoding": "gzip"}, file.compressed)
    return SiteResponse(200, every, file.body)


def _accepts_gzip(accepted: str) -> bool:
    for part in accepted.lower().split(","):
        name, _, weight = part.strip().partition(";")
        if name == "gzip":
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


_DEFAULT = "ws://127.0.0.1:4820"


def joining_page(network: str, url: str, *, tokens: bool) -> bytes:
    """The HTML of `/join` for the network at `url` (ws://host:port); `tokens`: whether joining
    needs a token."""
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
