"""Tools in the YAML: permissions, limits of calls, MCP servers."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hubbub.config.units import Headers, Section, Size, Span, WebAddress

__all__ = ["McpServerConfig", "PermissionModeName", "SandboxLimits", "SelectConfig", "ToolConfig"]

PermissionModeName = Literal["read_only", "ask", "full"]


class SandboxLimits(Section):
    """Limits for one call of a sandboxed tool function."""

    memory: Size = 512 * 1024 * 1024
    """Address space in bytes, including the interpreter's own (about 100 MB)."""
    cpu: Span = 10.0
    """CPU time; `timeout` limits elapsed time."""
    file: Size = 16 * 1024 * 1024
    """Bytes per file that it writes."""
    files: Annotated[int, Field(ge=16, le=4096)] = 64
    """Open files."""
    output: Size = 1024 * 1024
    """Bytes of its result."""
    read: list[str] | None = None
    """Files and folders that it can read, in addition to Python's own, the function's file and its
    private folder; enforced by the kernel (Landlock). Default: all that the agent's user can read.
    """


class ToolConfig(Section):
    """The operator's settings for a tool; they override the tool's own."""

    permission: Literal["read", "write", "admin"] | None = None
    """The permission it needs; `permission_mode` depends on it."""
    confirm: bool | Literal["untrusted"] | None = None
    """Whether a person must approve each call; untrusted: only in turns that have read data from
    outside the network (tool results, files, messages that contain them)."""
    untrusted: bool | None = None
    """Whether its results come from outside the network and taint a turn that reads them. Default:
    the tool's own (yes for functions and MCP tools, no for the hub's operations)."""
    timeout: Span | None = None
    """Maximum time of an attempt."""
    attempts: Annotated[int | None, Field(ge=1, le=20)] = None
    """Maximum attempts of a call that fails temporarily; only idempotent tools are retried."""
    backoff: Span | None = None
    """Delay before the second attempt; it doubles for each further one."""
    result_budget: Size | None = None
    """Maximum tokens of a result."""
    sandbox: Literal["process"] | SandboxLimits | None = None
    """For your own functions: `process` runs each call in a separate process without network
    access, within the agent's `sandbox` limits; or limits for this tool."""


class SelectConfig(Section):
    """Which of many tools are described to the model from the start of a turn: those most similar
    to the incoming messages. The model picks the others."""

    by: Literal["words", "embeddings"]
    """How to compare: by words, or by embeddings of an endpoint (`/embeddings`), which know that a
    parcel is a delivery. If the endpoint fails, words are used, with a note in the turn's record.
    """
    model: str | None = None
    """embeddings: a name from `models`, or a model of the agent's own endpoint. Default: the
    agent's model."""
    first: Annotated[int, Field(ge=1, le=50)] = 8
    """The number of tools."""

    @model_validator(mode="after")
    def _has_a_use(self) -> Self:
        if self.model is not None and self.by == "words":
            raise ValueError("`model` has no effect with `by: words`: remove it")
        return self


class McpServerConfig(Section):
    """An MCP server: a program to start, or a URL."""

    command: Annotated[list[str] | None, Field(min_length=1)] = None
    """Program and arguments; it speaks MCP on stdin and stdout."""
    env: dict[str, str] = {}
    """Environment variables in addition to HOME, LOGNAME, PATH, SHELL, TERM and USER; no others are
    inherited."""
    cwd: str | None = None
    """Its working folder. Default: the config's folder."""
    url: WebAddress | None = None
    """The URL of a running server (streamable HTTP)."""
    headers: Headers = {}
    """Sent with each request, for example `{Authorization: "Bearer ${GITHUB_TOKEN}"}`."""
    tools: list[str] | None = None
    """Its tools to use, by the server's names. Default: all."""
    timeout: Span = 30.0
    """Time to start and list its tools, and time of each call."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("an MCP server needs either a command or a url")
        return self
