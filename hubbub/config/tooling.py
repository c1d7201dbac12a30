"""Tools in the YAML: what an agent may do, how calls are carried out, MCP servers."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hubbub.config.units import Section, Size, Span

__all__ = ["McpServerConfig", "PermissionModeName", "SandboxLimits", "SelectConfig", "ToolConfig"]

PermissionModeName = Literal["read_only", "ask", "full"]


class SandboxLimits(Section):
    """How much a sandboxed tool function may use in one call."""

    memory: Size = 512 * 1024 * 1024
    """Address space in bytes, the interpreter's own (about 100 MB) included."""
    cpu: Span = 10.0
    """Seconds of processor time; `timeout` bounds the time that passes."""
    file: Size = 16 * 1024 * 1024
    """Bytes of each file that it writes."""
    files: Annotated[int, Field(ge=16, le=4096)] = 64
    """Files that are open at once."""
    output: Size = 1024 * 1024
    """Bytes of its result."""
    read: list[str] | None = None
    """Files and folders that it may read, besides Python's own, the function's file and its folder
    of its own; the kernel sees to it (Landlock). Left out: all that the agent's user may."""


class ToolConfig(Section):
    """What the operator says of one tool, above what the tool says of itself."""

    permission: Literal["read", "write", "admin"] | None = None
    """What it does to the world; `permission_mode` goes by it."""
    confirm: bool | Literal["tainted"] | None = None
    """Whether a person must approve each call; tainted: only in turns that have read something from
    outside the network (results of tools, files, messages that carry them)."""
    outside: bool | None = None
    """Whether its results come from outside the network, so that a turn that has read one is
    tainted; left out: as the tool says (functions and MCP tools: yes, the hub's operations: no)."""
    timeout: Span | None = None
    """Of one attempt."""
    attempts: Annotated[int | None, Field(ge=1, le=20)] = None
    """In all, of a call that failed in a way that passes; only idempotent tools are repeated."""
    backoff: Span | None = None
    """Pause before the second attempt; each further one is twice as long."""
    result_budget: Size | None = None
    """Tokens of a result."""
    sandbox: Literal["process"] | SandboxLimits | None = None
    """For functions of your own: `process` runs each call in a process of its own without network,
    within the agent's `sandbox` limits; or limits for this tool."""


class SelectConfig(Section):
    """Which of many tools a model is described from the beginning of a turn: those that are most
    like what has come in. The others it picks."""

    by: Literal["words", "embeddings"]
    """What is compared: the words themselves, or what an endpoint makes of them (`/embeddings`),
    which knows that a parcel is a delivery. Where it cannot, words are compared and the turn's
    record says so."""
    model: str | None = None
    """embeddings: a name of `models`, or a model of the agent's own endpoint; left out: the agent's
    model."""
    first: Annotated[int, Field(ge=1, le=50)] = 8
    """How many tools."""

    @model_validator(mode="after")
    def _has_a_use(self) -> Self:
        if self.model is not None and self.by == "words":
            raise ValueError("`model` has no effect where tools are chosen by words: take it out")
        return self


class McpServerConfig(Section):
    """An MCP server: a program that is started, or a URL."""

    command: Annotated[list[str] | None, Field(min_length=1)] = None
    """Program and arguments; it is talked to over its stdin and stdout."""
    env: dict[str, str] = {}
    """Besides HOME, LOGNAME, PATH, SHELL, TERM and USER: it gets nothing else of the agent's
    environment."""
    cwd: str | None = None
    """The folder in which it runs; left out: the file's."""
    url: str | None = None
    """Of a server that runs already (streamable HTTP)."""
    headers: dict[str, str] = {}
    """Sent with each request, for example `{Authorization: "Bearer ${GITHUB_TOKEN}"}`."""
    tools: list[str] | None = None
    """Which of its tools, by the names it gives them; left out: all."""
    timeout: Span = 30.0
    """Until it has started and told its tools, and of each call."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("an MCP server has either a command or a url")
        if self.url is not None and not self.url.startswith(("http://", "https://")):
            raise ValueError("url: expected http:// or https://")
        return self
