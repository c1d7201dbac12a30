"""A mod of an installed third-party package: its hooks, tables, tools and commands."""

from __future__ import annotations

import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, create_subprocess_exec
from pathlib import Path

import pytest

from hubbub.errors import OperationError
from hubbub.testing.model_script import Script
from hubbub.testing.model_server import ModelServer
from tests.e2e.support.config_network import ROOT, environment, run_config

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

MOD = '''
from collections.abc import Sequence

from hubbub.mods.api import PASS, Mod, ModConfig, Reject, Verdict
from hubbub.mods.operation import Calling, Commit, Statement, operation
from hubbub.protocol.messages import Draft, Message
from hubbub.protocol.operations import Input
from pydantic import BaseModel

ADD = """
INSERT INTO kudos_count (who, count) VALUES (?, ?)
ON CONFLICT (who) DO UPDATE SET count = count + excluded.count
"""


class KudosConfig(ModConfig):
    word: str = "thanks"
    """The word that earns kudos."""


class Lookup(Input):
    who: str
    """The participant."""


class Gift(Input):
    who: str
    """The recipient."""
    count: int
    """The number of kudos."""


class Count(BaseModel):
    count: int


class Kudos(Mod):
    """Counts kudos.

    Each message with the word gives its recipients one.
    """

    name = "kudos"
    Config = KudosConfig
    config: KudosConfig
    migrations = "kudos_tables"

    def on_message(self, draft: Draft) -> Verdict:
        return Reject("no booing") if draft.content == "boo" else PASS

    def on_stored(self, message: Message) -> Sequence[Statement]:
        if self.config.word not in message.text:
            return ()
        return [Statement(ADD, (each, 1)) for each in message.recipients]

    @operation()
    async def kudos_of(self, call: Calling, args: Lookup) -> Count:
        """Count the kudos of a participant."""
        rows = await self.host.rows("SELECT count FROM kudos_count WHERE who = ?", args.who)
        return Count(count=rows[0][0] if rows else 0)

    @operation(permission="write", output=Count)
    def kudos_give(self, call: Calling, args: Gift) -> Commit:
        """Give a participant kudos."""
        return Commit([Statement(ADD, (args.who, args.count))], Count(count=args.count))
'''

TABLES = "CREATE TABLE kudos_count (who TEXT PRIMARY KEY, count INTEGER NOT NULL);\n"

INFO = "acme_mods-1.2.dist-info"

NETWORK = """
network:
  name: guild
  listen: ${HUBBUB_LISTEN}
  store: ${HUBBUB_STORE}
  auth: open
mods:
  - kudos: {word: bravo}
models:
  default: {model: m, base_url: "${OPENAI_BASE_URL}", api_key: scripted}
agents:
  clerk: {instruction: You keep the books of kudos.}
humans:
  ann: {}
"""

SCRIPT = {
    "rules": [
        {
            "name": "gives",
            "when": {"step": 1, "tools": ["kudos_give", "kudos_of"]},
            "answer": {"calls": [{"tool": "kudos_give", "arguments": {"who": "ann", "count": 5}}]},
        },
        {
            "name": "reports",
            "when": {"step": 2, "tool_result": "5"},
            "answer": {
                "calls": [
                    {"tool": "send_text_message", "arguments": {"to": "ann", "text": "Given."}}
                ]
            },
        },
        {"name": "ends", "answer": {"calls": [{"tool": "finish", "arguments": {"reason": "ok"}}]}},
    ]
}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site-packages folder with a package that registers a mod."""
    files = {
        "acme/__init__.py": "",
        "acme/kudos.py": MOD,
        "acme/kudos_tables/0001_kudos.sql": TABLES,
        f"{INFO}/METADATA": "Metadata-Version: 2.1\nName: acme-mods\nVersion: 1.2\n",
        f"{INFO}/entry_points.txt": "[hubbub.mods]\nkudos = acme.kudos:Kudos\n",
    }
    folder = tmp_path / "site"
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def with_site(site: Path) -> dict[str, str]:
    """The environment in which the package is installed."""
    return {"PYTHONPATH": os.pathsep.join([str(site), str(ROOT)])}


async def output(
    site: Path, *args: str, variables: dict[str, str] | None = None, typed: str | None = None
) -> str:
    """The output of a command; `typed` is its standard input."""
    variables = with_site(site) if variables is None else variables
    process = await create_subprocess_exec(
        sys.executable, "-m", "hubbub", *args,
        stdin=DEVNULL if typed is None else PIPE, stdout=PIPE, stderr=PIPE,
        cwd=site.parent, env=environment(site.parent, **variables),
    )  # fmt: skip
    out, err = await process.communicate(None if typed is None else typed.encode())
    assert process.returncode == 0, err
    return out.decode()


@pytest.mark.behaviour("M-33", "M-321")
async def test_an_installed_mod_adds_hooks_tables_tools_and_commands(
    site: Path, tmp_path: Path
) -> None:
    (tmp_path / "guild.yaml").write_text(NETWORK, encoding="utf-8")
    async with ModelServer(Script.model_validate(SCRIPT)) as model:
        variables = {**with_site(site), "OPENAI_BASE_URL": model.base_url}
        for before in (0, 5):  # the tables survive a restart
            async with run_config(str(tmp_path / "guild"), tmp_path, variables) as network:
                ann, bob = await network.join("ann"), await network.join("bob")
                assert await ann.client.call("kudos_of", who="ann") == {"count": before}
                await ann.tells("clerk", "How about some kudos?")
                await ann.hears("clerk", lambda message: message.text == "Given.")
                assert await ann.client.call("kudos_of", who="ann") == {"count": before + 5}
                await ann.tells("bob", "bravo")
                assert await bob.client.call("kudos_of", who="bob") == {"count": before // 5 + 1}
                with pytest.raises(OperationError, match="kudos: no booing"):
                    await ann.tells("clerk", "boo")
                if before:
                    await _give_by_commands(site, network.url)
        assert model.mistakes == []
        assert {"kudos_give", "kudos_of"} <= set(model.requests[0].tools)


async def _give_by_commands(site: Path, url: str) -> None:
    """The commands work without the package; the hub describes its operations."""
    where = {"HUBBUB_ADDRESS": url, "HUBBUB_AS": "ann", "PYTHONPATH": str(ROOT)}
    help = await output(site, "kudos", "--help", variables=where)
    assert "Counts kudos. (mod kudos)" in help
    assert "give  Give a participant kudos." in help
    assert "of    Count the kudos of a participant." in help
    assert await output(site, "kudos", "give", "cem", "5", variables=where) == "count  5\n"
    count = await output(site, "kudos", "of", "cem", "--json", variables=where)
    assert json.loads(count) == {"count": 5}
    chat = await output(site, "chat", variables=where, typed="/give dan 2\n/kudos of dan\n")
    assert chat.count("count  2") == 2


async def test_mods_commands_show_the_package_of_a_mod(site: Path) -> None:
    assert "package acme-mods 1.2" in await output(site, "mods", "list")
    page = await output(site, "mods", "show", "kudos")
    for part in ("package acme-mods 1.2", "gives its recipients one", "word", "kudos_give"):
        assert part in page
