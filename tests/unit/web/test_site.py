"""The page as files: names, headers, compression, imports."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import sys
from base64 import b64encode
from html import unescape
from pathlib import Path

from hubbub.web.site import STATIC, About, Site, SiteResponse

OPEN = About("town", "open", ("ann", "bob"))
HEADERS = {"Host": "127.0.0.1:4820", "Accept-Encoding": "gzip, br"}


def get(site: Site, path: str, headers: dict[str, str] | None = None) -> SiteResponse:
    reply = site.find(path, HEADERS if headers is None else headers)
    assert reply is not None
    return reply


def text(reply: SiteResponse) -> str:
    body = reply.body
    if reply.headers.get("Content-Encoding") == "gzip":
        body = gzip.decompress(body)
    return body.decode()


def small(folder: Path) -> Site:
    (folder / "index.html").write_text("$base $network $about")
    (folder / "main.js").write_text('import "./core/a.js";\n')
    for name in ("core", "styles"):
        (folder / name).mkdir()
    (folder / "core" / "a.js").write_text("export { b } from '../b.js';\nimport('./later.js');\n")
    (folder / "b.js").write_text("export const b = 1;\n")
    (folder / "core" / "later.js").write_text("export const c = 1;\n")
    (folder / "styles" / "main.css").write_text('@import url("more.css");\nb {}\n')
    (folder / "styles" / "more.css").write_text("/* Why,\n   and how. */\na {}")
    return Site(OPEN, folder)


def base(site: Site) -> str:
    match = re.search(r"/static/[0-9a-f]{16}", text(get(site, "/")))
    assert match is not None
    return match[0]


def test_a_request_for_the_page_takes_few_calls_per_file() -> None:
    """Anyone who reaches the port can request the page, without a token."""
    site, calls = Site(OPEN), 0
    get(site, "/")
    files = sum(1 for path in STATIC.rglob("*") if path.is_file())

    def count(frame: object, event: str, called: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        site.find("/", HEADERS)
    finally:
        sys.setprofile(None)
    assert calls < 30 * files


def test_the_page_contains_its_network_before_anyone_joins() -> None:
    page = text(get(Site(OPEN), "/"))
    match = re.search(r'<meta name="hubbub" content="([^"]*)">', page)
    assert match is not None
    assert json.loads(unescape(match[1])) == {
        "network": "town",
        "auth": "open",
        "humans": ["ann", "bob"],
    }
    page = text(get(Site(About('"><script>alert(1)</script>', "open")), "/"))
    assert "<script>alert" not in page, "the name is escaped"


def test_the_policy_allows_exactly_the_one_inline_script() -> None:
    reply = get(Site(OPEN), "/")
    page = text(reply)
    [script] = re.findall(r"<script(?![^>]*\bsrc=)[^>]*>(.*?)</script>", page, re.DOTALL)
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = reply.headers["Content-Security-Policy"]
    assert re.findall(r"script-src ([^;]*)", policy) == [f"'self' 'sha256-{digest}'"]
    assert "<style" not in page
    assert not re.search(r"\son[a-z]+=", page)
    assert "unsafe" not in policy
    for allowed in ("default-src 'none'", "ws://127.0.0.1:4820 "):
        assert allowed in policy
    assert "require-trusted-types-for 'script'" in policy


def test_the_page_loads_one_bundled_script_and_style_sheet(
    tmp_path: Path,
) -> None:
    page = text(get(Site(OPEN), "/"))
    names = re.findall(r'(?:href|src)="/static/[0-9a-f]{16}/([^"]+)"', page)
    assert names == ["icon.svg", "bundles/styles/main.css", "bundles/main.js"]
    site = small(tmp_path)
    script = text(get(site, f"{base(site)}/bundles/main.js"))
    assert re.findall(r'^"([^"]+)"\(', script, re.MULTILINE) == ["b.js", "core/a.js", "main.js"]
    assert text(get(site, f"{base(site)}/bundles/styles/main.css")) == "a {}\nb {}\n"
    later = get(site, f"{base(site)}/bundles/core/later.js")
    assert '"core/later.js"' in text(later)
    mapping = get(site, f"{base(site)}/bundles/core/later.js.map")
    assert json.loads(text(mapping))["sources"] == ["../../core/later.js"]
    (tmp_path / "b.js").write_text("export const b = 2;\n")
    assert "b = 2" in text(get(site, f"{base(site)}/bundles/main.js")), "edits take effect"


def test_files_under_the_current_hash_are_cached_forever() -> None:
    site = Site(OPEN)
    reply = get(site, f"{base(site)}/main.js")
    assert reply.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert reply.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert text(reply) == (STATIC / "main.js").read_text()
    site.prepare()  # compresses in advance
    for path in ("/", f"{base(site)}/bundles/main.js", f"{base(site)}/main.js"):
        before = get(site, path)
        again = get(site, path, {**HEADERS, "If-None-Match": before.headers["ETag"]})
        assert (again.status, again.body) == (304, b""), "cached files are not sent again"
    assert text(before) == (STATIC / "main.js").read_text()


def test_a_page_from_before_an_update_still_gets_its_files(tmp_path: Path) -> None:
    site = small(tmp_path)
    old = base(site)
    (tmp_path / "b.js").write_text("export const b = 2;\n")
    new = base(site)
    assert new != old
    reply = get(site, f"{old}/b.js")
    assert reply.headers["Cache-Control"] == "no-cache"
    assert text(reply) == "export const b = 2;\n"


def test_files_are_compressed_for_clients_that_accept_it() -> None:
    cases: list[tuple[str, bool]] = [
        ("gzip, deflate, br", True),
        ("GZIP;q=0.5", True),
        ("gzip;q=0", False),
        ("br", False),
        ("", False),
    ]
    for accepted, compressed in cases:
        site = Site(OPEN)
        reply = get(site, f"{base(site)}/vendor/purify.js", {"Accept-Encoding": accepted})
        assert (reply.headers.get("Content-Encoding") == "gzip") is compressed
        assert reply.headers["Vary"] == "Accept-Encoding"
        assert text(reply) == (STATIC / "vendor" / "purify.js").read_text()


def test_only_the_files_of_the_page_are_served() -> None:
    site = Site(OPEN)
    for path in (
        *("x/../site.py", "x/..%2fsite.py", "/etc/passwd", "x/", "", "x/core"),
        *("x/bundles/", "x/bundles/core", "x/bundles/no.js", "x/bundles/no.js.map"),
        *("x/bundles/no.css", "x/bundles/icon.svg", "x/bundles/bundles/main.js"),
    ):
        assert site.find(f"/static/{path}", HEADERS) is None
    assert site.find("/other", HEADERS) is None
    assert get(site, "/favicon.ico").headers["Content-Type"] == "image/svg+xml"
    page = text(get(site, "/join"))
    assert "Connect to <code>ws://127.0.0.1:4820</code>" in page


def test_every_library_is_listed_with_its_licence() -> None:
    vendor = STATIC / "vendor"
    listed = (vendor / "README.md").read_text()
    licences = {path.stem for path in (vendor / "licences").iterdir()}
    names = {line.split("|")[1].strip() for line in listed.splitlines() if line.count("|") == 5}
    packages = names - {"package", "---"}
    assert {name.removeprefix("@").replace("/", "-") for name in packages} == licences
