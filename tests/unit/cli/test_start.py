"""What it takes until a command begins: what is loaded, and what Ctrl-C does meanwhile."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from hubbub.cli.app import OWN

pytestmark = pytest.mark.slow
HEAVY = (
    "openai", "httpx", "httpx2", "rich", "prompt_toolkit", "structlog", "jinja2",
    "a2a", "aiosqlite", "jsonschema", "yaml", "tiktoken", "mcp", "prometheus_client",
)  # fmt: skip
ROOMS = ("hubbub.agents", "hubbub.app", "hubbub.mods", "hubbub.network", "hubbub.testing")
MODELS = ("jinja2", "openai", "rich", "tiktoken")
"""What only agents with a model need, and what shows things."""
CLUSTER = ("psycopg", "hubbub.network.cluster", "hubbub.network.store.postgres", "hubbub.app.node")
"""What only nodes and gateways need, and networks that are on Postgres."""
LIGHT = ("hubbub.app.process",)
"""Of those rooms, what a command may load."""
LOADED = """
import sys
from hubbub.cli import main
sys.argv = ["hubbub", *{args}]
try:
    main()
finally:
    import json
    sys.stderr.write("\\n" + json.dumps(sorted(sys.modules)))
"""
INTERRUPTED = """
import os, signal, sys
class Finder:
    def find_spec(name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder)
sys.argv = ["hubbub", "send", "bob", "hello", "--as", "ann", "--address", "127.0.0.1:1"]
from hubbub.cli import main
main()
"""


def python(code: str) -> subprocess.CompletedProcess[str]:
    run = [sys.executable, "-c", code]
    return subprocess.run(run, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("args", "own"),
    [
        (["send", "bob", "hello", "--as", "ann", "--address", "127.0.0.1:1"], "talk"),
        (["network", "status", "--address", "127.0.0.1:1"], "network"),
        (["--help"], None),
    ],
)
def test_a_plain_command_loads_only_what_it_uses(args: list[str], own: str | None) -> None:
    ran = python(LOADED.format(args=args))
    loaded = set(json.loads(ran.stderr.splitlines()[-1]))
    assert not loaded.intersection(HEAVY)
    rooms = [m for m in loaded if m.startswith(ROOMS) and m not in (*LIGHT, *ROOMS)]
    if own is None:
        assert "hubbub.client" not in loaded, "help asks no network"
    else:
        assert "hubbub.client.client" in loaded, "it has tried to reach the network"
        assert rooms == []
        homes = {home for _, home, _ in OWN.values() if f"hubbub.cli.{home}" in loaded}
        assert homes == {own}


def test_importing_the_client_builds_no_model_and_reads_no_source() -> None:
    ran = python(
        "import hubbub.client\n"
        "from hubbub import field_docs\n"
        "def below(c): return [c, *(d for s in c.__subclasses__() for d in below(s))]\n"
        "print([m.__name__ for m in below(field_docs.Documented)[1:] if m.__pydantic_complete__])\n"
        "print(field_docs._texts.cache_info().currsize)\n"
    )
    assert ran.stdout.splitlines() == ["[]", "0"], ran.stderr


@pytest.mark.parametrize(
    ("entry", "unwanted"),
    [
        ("hubbub.client", (*HEAVY, *ROOMS, "hubbub.config", "hubbub.protocol.operations", "ulid")),
        ("hubbub.app.preflight", (*MODELS, "hubbub.agents", "hubbub.network", "hubbub.web")),
        (
            "hubbub.app.network",
            (*MODELS, *CLUSTER, "hubbub.agents", "hubbub.interop", "hubbub.people"),
        ),
        ("hubbub.app.import_check", (*MODELS, "hubbub.agents", "hubbub.mods", "hubbub.network")),
        ("hubbub.cli.agent_process", ("asyncio", "typer", "pydantic", "hubbub.people")),
        (
            "hubbub.app.agents",
            (
                *MODELS,
                "typer",
                "hubbub.agents.dialects",
                "hubbub.agents.tools.toolbox",
                "hubbub.app.supervisor",
                "hubbub.mods",
                "hubbub.people",
                "hubbub.protocol.control",
            ),
        ),
    ],
)
def test_what_is_started_loads_nothing_that_its_start_does_not_need(
    entry: str, unwanted: tuple[str, ...]
) -> None:
    ran = python(f"import json, sys, {entry}; print(json.dumps(sorted(sys.modules)))")
    loaded = json.loads(ran.stdout)
    prefixes = tuple(f"{each}." for each in unwanted)
    assert [m for m in loaded if m in unwanted or m.startswith(prefixes)] == []


@pytest.mark.parametrize(
    "module", ["typer", "hubbub.cli.talk", "hubbub.client", "websockets.asyncio.client"]
)
def test_ctrl_c_while_a_command_loads_ends_it_without_a_word(module: str) -> None:
    ran = python(INTERRUPTED.format(module=module))
    assert (ran.returncode, ran.stdout, ran.stderr.strip()) == (130, "", "")
