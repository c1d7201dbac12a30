"""Programs import only the modules that their start needs, and Ctrl-C ends them meanwhile."""

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
PACKAGES = ("hubbub.agents", "hubbub.app", "hubbub.mods", "hubbub.network", "hubbub.testing")
LIGHT = ("hubbub.app.process",)
"""The modules of these packages that a command can import."""
MODELS = ("jinja2", "openai", "rich", "tiktoken")
"""Libraries that only agents with a model and the terminal need."""
CLUSTER = ("psycopg", "hubbub.network.cluster", "hubbub.network.store.postgres", "hubbub.app.node")
"""Modules that only nodes, gateways and networks on Postgres need."""
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
def test_a_simple_command_imports_only_the_modules_it_uses(
    args: list[str], own: str | None
) -> None:
    result = python(LOADED.format(args=args))
    loaded = set(json.loads(result.stderr.splitlines()[-1]))
    assert not loaded.intersection(HEAVY)
    if own is None:
        assert "hubbub.client" not in loaded, "help needs no network"
    else:
        assert "hubbub.client.client" in loaded, "the command tried to connect"
        heavy = [m for m in loaded if m.startswith(PACKAGES) and m not in (*LIGHT, *PACKAGES)]
        assert heavy == []
        modules = {module for _, module, _ in OWN.values() if f"hubbub.cli.{module}" in loaded}
        assert modules == {own}


def test_importing_the_client_builds_no_model_and_reads_no_source() -> None:
    result = python(
        "import hubbub.client\n"
        "from hubbub import field_docs\n"
        "def tree(c): return [c, *(d for s in c.__subclasses__() for d in tree(s))]\n"
        "print([m.__name__ for m in tree(field_docs.Documented)[1:] if m.__pydantic_complete__])\n"
        "print(field_docs._texts.cache_info().currsize)\n"
    )
    assert result.stdout.splitlines() == ["[]", "0"], result.stderr


@pytest.mark.parametrize(
    ("entry", "unwanted"),
    [
        (
            "hubbub.client",
            (*HEAVY, *PACKAGES, "hubbub.config", "hubbub.protocol.operations"),
        ),
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
def test_an_entry_point_does_not_import_modules_that_its_start_does_not_need(
    entry: str, unwanted: tuple[str, ...]
) -> None:
    result = python(f"import json, sys, {entry}; print(json.dumps(sorted(sys.modules)))")
    loaded = json.loads(result.stdout)
    prefixes = tuple(f"{each}." for each in unwanted)
    assert [m for m in loaded if m in unwanted or m.startswith(prefixes)] == []


@pytest.mark.parametrize(
    "module", ["typer", "hubbub.cli.talk", "hubbub.client", "websockets.asyncio.client"]
)
def test_ctrl_c_during_the_imports_of_a_command_ends_it_silently(module: str) -> None:
    result = python(INTERRUPTED.format(module=module))
    assert (result.returncode, result.stdout, result.stderr.strip()) == (130, "", "")
