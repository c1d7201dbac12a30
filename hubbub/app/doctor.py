"""Checks everything a network needs on this machine, and suggests a remedy for each problem."""

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
from hubbub.app.preflight import check_port, load_valid, programs_of, unpriced
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
    """The result of one check. A `problem` prevents the network from running."""

    what: str
    verdict: Verdict
    text: str


@dataclass(frozen=True)
class Diagnosis:
    """All findings, and available models that the config does not use."""

    findings: tuple[Symptom, ...]
    proposals: tuple[ModelProposal, ...] = ()

    @property
    def healthy(self) -> bool:
        return not any(finding.verdict == "problem" for finding in self.findings)


async def diagnose(path: Path | None, environ: Mapping[str, str] = os.environ) -> Diagnosis:
    """Check this machine and, unless `path` is None, the network of that config."""
    findings = [_python(), _sqlite()]
    config: LoadedConfig | None = None
    if path is not None:
        try:
            config = load_valid(path)
            findings.append(Symptom("config", "ok", f"{shown_path(config.path)} is valid"))
        except ConfigError as error:
            findings += [Symptom("config", "problem", line) for line in str(error).splitlines()]
    models: Mapping[str, ModelConfig] = {}
    if config is not None:
        running = _running(config)
        findings += [_port(config, running), await _store(config, running), await _tokens(config)]
        models = config.file.models
    findings += [await _model(name, model) for name, model in models.items()]
    if config is not None:
        if (warning := unpriced(config)) is not None:
            findings.append(Symptom("limits", "warning", warning))
        findings += [await _program(name, acp) for name, acp in programs_of(config)]
        agents = config.file.agents.items()
        findings += [await _remote(n, agent.a2a) for n, agent in agents if agent.a2a is not None]
        findings += await _doors(config)
        findings += [await _bridge(config, name) for name in config.file.bridges]
        if any(map(_has_sandbox, config.file.agents.values())):
            findings.append(await _sandbox())
    proposals = [] if models else await find_models(environ)
    return Diagnosis(tuple(findings), tuple(proposals))


def diagnose_log(path: Path) -> Diagnosis:
    """Verify the network's whole log. Its hub can be running."""
    from hubbub.network.store.verify import verify_log

    url = load_valid(path).file.network.store
    if url.startswith(POSTGRES):
        file, remedy = shown_store(url), "restore a backup of the database"
    else:
        file = shown_path(Path(shown_store(url)))
        remedy = "restore a backup with `hubbub network restore`"
    try:
        count = verify_log(url)
    except LogDamaged as error:
        text = f"{file}: {error}; {remedy}"
        return Diagnosis((Symptom("log", "problem", text),))
    except (UserError, StoreUnavailable) as error:
        return Diagnosis((Symptom("log", "problem", str(error)),))
    text = f"all {count} messages in {file} are intact"
    return Diagnosis((Symptom("log", "ok", text),))


def _python() -> Symptom:
    version = platform.python_version()
    return Symptom("python", "ok", f"{version} on {platform.system()} {platform.machine()}")


def _sqlite() -> Symptom:
    version = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < (3, 24):
        return Symptom("sqlite", "problem", f"{version}, but 3.24 or newer is required")
    return Symptom("sqlite", "ok", version)


def _has_sandbox(agent: AgentConfig) -> bool:
    single = any(tool.sandbox is not None for tool in agent.tool_settings.values())
    return single or "sandbox" in agent.model_fields_set


_LAYERS = {
    "namespace": "no network (namespace)",
    "landlock": "no files outside of it (Landlock)",
    "seccomp": "no processes and sockets (seccomp)",
}
"""The restrictions that the kernel enforces, and the mechanism of each."""


async def _sandbox() -> Symptom:
    from hubbub.agents.tools.base import ToolFailed
    from hubbub.agents.tools.sandbox.process import layers

    try:
        enforced = await layers()
    except ToolFailed as error:
        return Symptom("sandbox", "problem", f"functions cannot run in it: {error.message}")
    missing = [text for layer, text in _LAYERS.items() if layer not in enforced]
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
            f"{config.address} is used by the network '{running.network}' (process {running.pid})"
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
        return Symptom("database", "warning", "in memory: everything is lost when it stops")
    if running is not None:
        return Symptom("database", "ok", "in use by the running network")
    if url.startswith(POSTGRES):
        return await _server_store(url)
    file = Path(url.removeprefix(SQLITE))
    return _missing_store(file) or _existing_store(file)


def _missing_store(file: Path) -> Symptom | None:
    """The finding if the file does not exist; None if it does."""
    if file.exists():
        return None
    if os.access(file.parent, os.W_OK):
        return Symptom("database", "ok", f"{shown_path(file)} will be created")
    text = f"{shown_path(file.parent)} is not writable: choose another folder for the store"
    return Symptom("database", "problem", text)


def _existing_store(file: Path) -> Symptom:
    from hubbub.network.store import read_head_offline

    try:
        head = read_head_offline(file)
    except (UserError, StoreUnavailable) as error:
        return Symptom("database", "problem", str(error))
    if head is None:
        text = f"{shown_path(file)} has an older schema, which the next start migrates"
        return Symptom("database", "ok", text)
    return Symptom("database", "ok", f"{shown_path(file)} has {head} messages")


async def _server_store(url: str) -> Symptom:
    """Open the database as a hub would."""
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
        return Symptom("tokens", "ok", "not required: anyone on this machine can join")
    counts: Mapping[str, int] = {}
    if network.store != MEMORY_STORE:
        try:
            counts = await list_tokens_offline(network.store)
        except (UserError, StoreUnavailable) as error:
            return Symptom("tokens", "problem", str(error))
    without = [name for name in config.file.humans if name not in counts]
    if without:
        text = (
            f"{', '.join(without)} can join only from this machine; to join from others, create a "
            f"token with `hubbub tokens add {without[0]}`"
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
    except (ModelError, ConfigError) as error:
        return Symptom(what, "problem", str(error))


async def _program(agent: str, config: AcpConfig) -> Symptom:
    from hubbub.interop.acp.program import ProgramFailed, probe  # an extra

    try:
        return Symptom(f"agent {agent}", "ok", await probe(config))
    except ProgramFailed as error:
        return Symptom(f"agent {agent}", "problem", str(error))


async def _remote(agent: str, config: A2aPeerConfig) -> Symptom:
    from hubbub.interop.a2a.peer import PeerFailed, probe  # an extra

    try:
        return Symptom(f"agent {agent}", "ok", await probe(config))
    except PeerFailed as error:
        return Symptom(f"agent {agent}", "problem", f"{config.url}: {error}")


async def _bridge(config: LoadedConfig, name: str) -> Symptom:
    from hubbub.app.bridges import chat_of  # only imported if there are bridges

    try:
        return Symptom(f"bridge {name}", "ok", await chat_of(config, name).probe())
    except (OSError, HubbubError) as error:
        why = str(error) or "no answer"
        return Symptom(f"bridge {name}", "problem", f"cannot reach the other chat: {why}")


async def _doors(config: LoadedConfig) -> Sequence[Symptom]:
    """The other protocols on the hub's port, and what they lack."""
    network, findings = config.file.network, list[Symptom]()
    if network.mcp:
        problem = missing_extra("mcp")
        text = f"MCP hosts join at http://{config.address}/mcp/NAME with the token of NAME"
        findings.append(Symptom("mcp", "ok" if problem is None else "problem", problem or text))
    if network.openai:
        key = "a person's name" if network.auth == "open" else "a person's token"
        agents = ", ".join(config.file.agents)
        text = f"OpenAI API at http://{config.address}/v1; the key is {key}, the models: {agents}"
        none = "there are no agents to offer as models of the OpenAI API"
        verdict: Verdict = "ok" if agents else "warning"
        findings.append(Symptom("openai", verdict, text if agents else none))
    if network.a2a is not None:
        problem, base = missing_extra("a2a"), network.a2a.url or f"http://{config.address}"
        places = ", ".join(f"{base}/a2a/{agent}" for agent in network.a2a.agents)
        text = f"A2A at {places}; callers need a person's token"
        findings.append(Symptom("a2a", "ok" if problem is None else "problem", problem or text))
    return findings


async def probe_model(name: str, model: ModelConfig) -> str:
    """Ask the model to call a tool, as agents do. Returns the outcome as a sentence.

    Raises `ModelError` or `ConfigError` if agents cannot use it, with the reason.
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
        f"{what} answered without calling a tool: agents need a model that calls tools"
    )


async def _probe(model: ChatModel, dialect: Dialect, tool: ToolSpec, *, last: bool) -> Completion:
    """The model's answer in a dialect. An endpoint that refuses tools gives an empty answer, except
    for the `last` dialect."""
    system = "\n\n".join(filter(None, (_PROBE, dialect.instructions([tool]))))
    question = dialect.question(system, "Call the tool `finish` now.", [], [tool])
    try:
        return dialect.read(await model.answer(question))
    except ToolsRefused:
        if last:
            raise
        return Completion()


_PROBE = "You do what you are asked by calling tools."
