"""Looks at everything a network needs on this machine, and says what to do where it is missing."""

from __future__ import annotations

import os
import platform
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hubbub.agents.dialects.base import Dialect
from hubbub.agents.models.base import ChatModel, Completion, ToolSpec
from hubbub.agents.prompt_client import DIALECTS
from hubbub.app.preflight import check_port, load_valid, programs_of
from hubbub.app.providers import ModelProposal, find_models
from hubbub.client.runfile import RunFile, find_run_files
from hubbub.config.agents import A2aPeerConfig, AcpConfig, AgentConfig, DialectName
from hubbub.config.loader import LoadedConfig
from hubbub.config.models import ModelConfig
from hubbub.config.paths import MEMORY_STORE, POSTGRES, SQLITE, shown_store
from hubbub.config.problems import shown_path
from hubbub.errors import (
    ConfigError,
    HubbubError,
    LogDamaged,
    ModelError,
    StoreUnavailable,
    ToolsRefused,
    UserError,
)
from hubbub.loading import missing_extra

__all__ = ["Diagnosis", "Symptom", "diagnose", "diagnose_log", "probe_model"]

Verdict = Literal["ok", "warning", "problem"]


@dataclass(frozen=True)
class Symptom:
    """One thing that was looked at. A `problem` keeps a network from running."""

    what: str
    verdict: Verdict
    text: str


@dataclass(frozen=True)
class Diagnosis:
    """All findings, and the models within reach that the config does not have."""

    findings: tuple[Symptom, ...]
    proposals: tuple[ModelProposal, ...] = ()

    @property
    def healthy(self) -> bool:
        return not any(finding.verdict == "problem" for finding in self.findings)


async def diagnose(path: Path | None, environ: Mapping[str, str] = os.environ) -> Diagnosis:
    """Look at this machine and, unless `path` is None, at the network of that config."""
    findings = [_python(), _sqlite()]
    config: LoadedConfig | None = None
    if path is not None:
        try:
            config = load_valid(path)
            findings.append(Symptom("config", "ok", f"{shown_path(config.path)} holds together"))
        except ConfigError as error:
            findings += [Symptom("config", "problem", line) for line in str(error).splitlines()]
    models: Mapping[str, ModelConfig] = {}
    if config is not None:
        running = _running(config)
        findings += [_port(config, running), await _store(config, running), await _tokens(config)]
        models = config.file.models
    findings += [await _model(name, model) for name, model in models.items()]
    if config is not None:
        findings += [await _program(name, acp) for name, acp in programs_of(config)]
        agents = config.file.agents.items()
        findings += [await _elsewhere(n, agent.a2a) for n, agent in agents if agent.a2a is not None]
        findings += await _doors(config)
        findings += [await _bridge(config, name) for name in config.file.bridges]
        if any(map(_has_sandbox, config.file.agents.values())):
            findings.append(await _sandbox())
    proposals = [] if models else await find_models(environ)
    return Diagnosis(tuple(findings), tuple(proposals))


def diagnose_log(path: Path) -> Diagnosis:
    """Read all of the network's log; whether or not its hub runs."""
    from hubbub.network.store.verify import verify_log

    url = load_valid(path).file.network.store
    file = shown_store(url) if url.startswith(POSTGRES) else shown_path(Path(shown_store(url)))
    try:
        count = verify_log(url)
    except LogDamaged as error:
        remedy = "a backup can be put in its place (`hubbub network restore`)"
        text = f"{file} is not whole: {error}; {remedy}"
        return Diagnosis((Symptom("log", "problem", text),))
    except (UserError, StoreUnavailable) as error:
        return Diagnosis((Symptom("log", "problem", str(error)),))
    text = f"all {count} messages of {file} are as they were written"
    return Diagnosis((Symptom("log", "ok", text),))


def _python() -> Symptom:
    version = platform.python_version()
    return Symptom("python", "ok", f"{version} on {platform.system()} {platform.machine()}")


def _sqlite() -> Symptom:
    version = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < (3, 24):
        return Symptom("sqlite", "problem", f"{version}, but 3.24 or newer is needed")
    return Symptom("sqlite", "ok", version)


def _has_sandbox(agent: AgentConfig) -> bool:
    single = any(said.sandbox is not None for said in agent.tool_settings.values())
    return single or "sandbox" in agent.model_fields_set


_LAYERS = {
    "namespace": "no network (namespace)",
    "landlock": "files outside of it (Landlock)",
    "seccomp": "processes and sockets (seccomp)",
}
"""What the kernel refuses, and by what."""


async def _sandbox() -> Symptom:
    from hubbub.agents.tools.base import ToolFailed
    from hubbub.agents.tools.sandbox.process import layers

    try:
        standing = await layers()
    except ToolFailed as error:
        return Symptom("sandbox", "problem", f"no function runs in it: {error.message}")
    missing = [told for layer, told in _LAYERS.items() if layer not in standing]
    if missing:
        text = f"this machine's kernel does not enforce: {', '.join(missing)}"
        return Symptom("sandbox", "warning", text)
    return Symptom("sandbox", "ok", f"the kernel enforces {', '.join(_LAYERS.values())}")


def _running(config: LoadedConfig) -> RunFile | None:
    url = f"ws://{config.address}"
    return next((run for run in find_run_files() if run.url == url), None)


def _port(config: LoadedConfig, running: RunFile | None) -> Symptom:
    if running is not None:
        text = (
            f"{config.address} is held by the network '{running.network}' (process {running.pid})"
        )
        return Symptom("port", "ok", text)
    try:
        check_port(config.address)
    except UserError as error:
        return Symptom("port", "problem", str(error))
    return Symptom("port", "ok", f"{config.address} is free")


async def _store(config: LoadedConfig, running: RunFile | None) -> Symptom:
    url = config.file.network.store
    if url == MEMORY_STORE:
        return Symptom("database", "warning", "in memory: everything is forgotten at the end")
    if running is not None:
        return Symptom("database", "ok", "in use by the running network")
    if url.startswith(POSTGRES):
        return await _existing_store(url)
    return _missing_store(Path(url.removeprefix(SQLITE))) or await _existing_store(url)


def _missing_store(file: Path) -> Symptom | None:
    """None if the file is there."""
    if file.exists():
        return None
    if os.access(file.parent, os.W_OK):
        return Symptom("database", "ok", f"{shown_path(file)} will be made")
    text = f"{shown_path(file.parent)} cannot be written: choose another folder for the store"
    return Symptom("database", "problem", text)


async def _existing_store(url: str) -> Symptom:
    """Opens the database as a hub would."""
    from hubbub.network.store import open_store

    try:
        store = open_store(url)
        state = await store.open()
    except (UserError, StoreUnavailable) as error:
        return Symptom("database", "problem", str(error))
    await store.close()
    return Symptom("database", "ok", f"{shown_store(url)} has {state.head} messages")


async def _tokens(config: LoadedConfig) -> Symptom:
    from hubbub.network.store.offline import list_tokens_offline

    network = config.file.network
    if network.auth == "open":
        return Symptom("tokens", "ok", "none needed: everybody on this machine may join")
    counts: Mapping[str, int] = {}
    if network.store != MEMORY_STORE:
        try:
            counts = await list_tokens_offline(network.store)
        except (UserError, StoreUnavailable) as error:
            return Symptom("tokens", "problem", str(error))
    without = [name for name in config.file.humans if name not in counts]
    if without:
        text = (
            f"{', '.join(without)} can join only on this machine: `hubbub tokens add {without[0]}` "
            "makes a token for elsewhere"
        )
        return Symptom("tokens", "warning", text)
    return Symptom("tokens", "ok", f"{sum(counts.values())} tokens for {len(counts)} participants")


async def _model(name: str, model: ModelConfig) -> Symptom:
    what = f"model {name}"
    if model.lacks_key:
        text = f"models.{name}.api_key is empty: set OPENAI_API_KEY, or base_url to another server"
        return Symptom(what, "problem", text)
    try:
        return Symptom(what, "ok", await probe_model(name, model))
    except ModelError as error:
        return Symptom(what, "problem", str(error))


async def _program(agent: str, config: AcpConfig) -> Symptom:
    from hubbub.interop.acp.program import ProgramFailed, probe  # an extra

    try:
        return Symptom(f"agent {agent}", "ok", await probe(config))
    except ProgramFailed as error:
        return Symptom(f"agent {agent}", "problem", str(error))


async def _elsewhere(agent: str, config: A2aPeerConfig) -> Symptom:
    from hubbub.interop.a2a.peer import PeerFailed, probe  # an extra

    try:
        return Symptom(f"agent {agent}", "ok", await probe(config))
    except PeerFailed as error:
        return Symptom(f"agent {agent}", "problem", f"{config.url}: {error}")


async def _bridge(config: LoadedConfig, name: str) -> Symptom:
    from hubbub.app.bridges import chat_of  # who has none imports none

    try:
        return Symptom(f"bridge {name}", "ok", await chat_of(config, name).probe())
    except (OSError, HubbubError) as error:
        why = str(error) or "no answer"
        return Symptom(f"bridge {name}", "problem", f"the other chat cannot be reached: {why}")


async def _doors(config: LoadedConfig) -> Sequence[Symptom]:
    """What else is spoken on the hub's port, and what is missing for it."""
    network, found = config.file.network, list[Symptom]()
    if network.mcp:
        wrong = missing_extra("mcp")
        text = f"MCP hosts join at http://{config.address}/mcp/NAME, with the token of NAME"
        found.append(Symptom("door mcp", "ok" if wrong is None else "problem", wrong or text))
    if network.openai:
        key = "a person's name" if network.auth == "open" else "a person's token"
        agents = ", ".join(config.file.agents)
        text = (
            f"the OpenAI API is at http://{config.address}/v1; the key is {key}, models: {agents}"
        )
        none = "there are no agents, which are the models of the OpenAI API"
        verdict: Verdict = "ok" if agents else "warning"
        found.append(Symptom("door openai", verdict, text if agents else none))
    if network.a2a is not None:
        wrong, base = missing_extra("a2a"), network.a2a.url or f"http://{config.address}"
        places = ", ".join(f"{base}/a2a/{agent}" for agent in network.a2a.agents)
        text = f"A2A: {places}; who asks brings a person's token"
        found.append(Symptom("door a2a", "ok" if wrong is None else "problem", wrong or text))
    return found


async def probe_model(name: str, model: ModelConfig) -> str:
    """Ask the model to call a tool, as agents do. What it did, as a sentence.

    Raises ModelError when it cannot be used for agents, with the reason.
    """
    from hubbub.agents.models.openai import Redaction
    from hubbub.agents.models.providers import open_model

    tool = ToolSpec(
        "finish",
        "End this turn.",
        {"type": "object", "properties": {"reason": {"type": "string"}}, "required": ["reason"]},
    )
    tries: tuple[DialectName, ...] = (model.dialect,) if model.dialect else ("native", "tool_call")
    endpoint = open_model(model.model_copy(update={"retries": 0}), name)
    what = f"{model.model} at {Redaction(model.base_url, model.api_key).address}"
    try:
        for dialect in tries:
            answer = await _probe(endpoint, DIALECTS[dialect], tool, last=dialect == tries[-1])
            if any(call.name == tool.name for call in answer.calls):
                tokens = f"{answer.tokens_in}+{answer.tokens_out} tokens"
                how = "" if dialect == "native" else f" in the dialect {dialect}"
                return f"{what} calls tools{how} ({tokens})"
    finally:
        await endpoint.close()
    raise ModelError(
        f"{what} answers without calling a tool, which agents need: "
        "choose a model that can call tools"
    )


async def _probe(model: ChatModel, dialect: Dialect, tool: ToolSpec, *, last: bool) -> Completion:
    """What the model answers in the dialect. No tools at all is an answer, unless it is the `last`
    dialect to be tried."""
    system = "\n\n".join(filter(None, (_PROBE, dialect.instructions([tool]))))
    question = dialect.question(system, "Call the tool `finish` now.", [], [tool])
    try:
        return dialect.read(await model.answer(question))
    except ToolsRefused:
        if last:
            raise
        return Completion()


_PROBE = "You do what is asked for by calling tools."
