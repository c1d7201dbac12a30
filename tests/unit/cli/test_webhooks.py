"""`webhook list | deliveries | retry | serve`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from hubbub.mods.webhooks.signing import signed
from tests.unit.cli.conftest import NETWORK, Command, Ran, running

SECRET = "correct horse battery"


@contextmanager
def refusing() -> Iterator[str]:
    """A receiver that wants nothing; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(410)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nobody reads it."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/x"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def until(hubbub: Command, *args: str) -> Ran:
    """Ask until something is told."""
    deadline = time.monotonic() + 20
    while (ran := hubbub(*args)).json() in ([], {"deliveries": [], "more": False}):
        assert time.monotonic() < deadline
    return ran


@pytest.mark.behaviour("M-256")
def test_webhooks_are_listed_and_sent_again(home: Path, hubbub: Command) -> None:
    with refusing() as url:
        hook = {"name": "audit", "url": url, "secret": SECRET, "events": ["join"]}
        mods = json.dumps([{"webhooks": {"hooks": [hook]}}])
        with running(f"{NETWORK}\nmods: {mods}\n", home):
            assert hubbub("send", "ann", "hello", "--as", "bob").code == 0
            until(hubbub, "webhook", "deliveries", "audit", "--state", "failed", "--json")
            told = hubbub("webhook", "deliveries", "audit", "--limit", "1").out
            assert "join" in told
            assert "410" in told
            assert url in hubbub("webhook", "list").out
            assert '"name": "audit"' in hubbub("webhook", "list", "--json").out
            page = hubbub("webhook", "deliveries", "audit", "--state", "failed", "--json").json()
            assert isinstance(page, dict)
            assert isinstance(page["deliveries"], list)
            first = page["deliveries"][0]
            assert isinstance(first, dict)
            assert "waiting again" in hubbub("webhook", "retry", str(first["id"])).out
            wrong = hubbub("webhook", "deliveries", "nobody")
            assert (wrong.code, "there is no webhook" in wrong.err) == (2, True)


@pytest.mark.slow
@pytest.mark.behaviour("M-257")
def test_webhooks_are_taken_by_a_process_of_its_own(home: Path, hubbub: Command) -> None:
    door = {"name": "ci", "to": "channel_general", "secret": "${CI_SECRET:-correct horse battery}"}
    inbound = {"listen": "127.0.0.1:0", "endpoints": [door]}
    mods = json.dumps([{"webhooks": {"inbound": inbound}}])
    with running(f"{NETWORK}\nmods: {mods}\n", home):
        command = [sys.executable, "-m", "hubbub", "webhook", "serve", "--config", "town.yaml"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
        assert process.stdout is not None
        try:
            url = process.stdout.readline().split()[1]
            body = b'{"text": "the build is red"}'
            request = Request(url, body, signed(SECRET, "e1", time.time(), body))
            with urlopen(request, timeout=20) as answer:
                assert json.load(answer)["posted"]
            assert "the build is red" in hubbub("log").out
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0
            process.stdout.close()


@pytest.mark.behaviour("M-257")
def test_without_settings_there_is_nothing_to_take(home: Path, hubbub: Command) -> None:
    (home / "town.yaml").write_text(NETWORK, encoding="utf-8")
    ran = hubbub("webhook", "serve", "--config", "town.yaml")
    assert (ran.code, "no webhooks come in" in ran.err) == (2, True)
