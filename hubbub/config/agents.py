"""Models and agents in the YAML, with their roles, aliases and context window."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, JsonValue, model_validator

from hubbub.config.budgets import DailyBudget
from hubbub.config.foreign import A2aPeerConfig, AcpConfig
from hubbub.config.knowledge import Knowledge, KnowledgeConfig
from hubbub.config.prompting import Prompt, Share
from hubbub.config.tooling import PermissionModeName, SandboxLimits, SelectConfig, ToolConfig
from hubbub.config.units import (
    Headers,
    Id,
    Secret,
    Section,
    Size,
    Span,
    WebAddress,
    span,
    wrong,
)
from hubbub.protocol.messages import Card
from hubbub.protocol.turns import Role

__all__ = [
    "ROLES_OF",
    "A2aPeerConfig",
    "AcpConfig",
    "AgentConfig",
    "Aliases",
    "CompressionName",
    "ContextConfig",
    "DialectName",
    "ForkConfig",
    "HistoryConfig",
    "ModelConfig",
    "ModelSettings",
    "Price",
    "RolesConfig",
]

_OPENAI = "https://api.openai.com/v1"


CompressionName = Literal["importance", "window", "summary"]
ProtectedName = Literal["requirements", "results", "errors", "last_steps"]


class ContextConfig(Section):
    """How an agent's requests use the model's context window. Sizes are tokens."""

    window: Size | None = None
    """Tokens for a request and its answer, for example 16k; at most the model's `context_window`,
    which is the default. If neither is set, nothing is cut."""
    reserve: Size | None = None
    """Tokens reserved for the answer. Default: the model's `max_output_tokens` or 4k, and at most a
    quarter of the window."""
    compression: CompressionName = "importance"
    """How to shrink earlier steps of a turn that no longer fit. importance: drop steps that only
    read first, and keep a line for errors and writes; window: drop the oldest first; summary: let
    the model summarize them, which costs a request."""
    keep_steps: Annotated[int, Field(ge=1, le=50)] = 5
    """The number of latest steps that stay intact while anything else can be dropped."""
    protect: list[ProtectedName] = ["requirements", "results", "errors", "last_steps"]
    """What stays when the model marks a step to be dropped (`tidy_steps`). requirements: messages
    of people in the meantime; results: a line for steps that changed something; errors: a line for
    steps that failed; last_steps: the last five, complete. It can summarize the others."""


KIND_DEFAULTS: Mapping[str, Mapping[str, JsonValue]] = MappingProxyType(
    {
        "acp": {
            "permission_mode": "ask",
            "final_text": "send",
            "turn_timeout": 3600.0,
            "max_steps": 100,
        },
        "a2a": {"turn_timeout": 3600.0},
    }
)
"""Defaults by kind of agent. A coding agent changes files, works for a long time, and ends with a
text that is its answer; a remote agent can take long, too."""


Name = Annotated[str, Field(min_length=1, max_length=64)]

_STEP_ACTIONS = {"SEARCH_KNOWLEDGE": "search_knowledge", "SEND_MESSAGE": "send_text_message"}
_STEP_FIELDS = {
    "query_text": "query",
    "target_agent_id": "to",
    "message_text": "text",
    "context_summary": "context",
}
_PRESETS: Mapping[str, tuple[Mapping[str, str], Mapping[str, str]]] = MappingProxyType(
    {"step_actions": (_STEP_ACTIONS, _STEP_FIELDS)}
)


class Aliases(Section):
    """Alternative names that models can use, in every dialect. Actions of `final_output` need none:
    their spelling is flexible (`CALL_TOOLS_PARALLEL`)."""

    preset: Literal["step_actions"] | None = None
    """A set of aliases: step_actions has SEARCH_KNOWLEDGE, SEND_MESSAGE, `query_text`,
    `target_agent_id`, `message_text` and `context_summary`."""
    names: dict[Name, Name] = {}
    """Aliases of tools and actions: `{SEARCH_DOCS: search_knowledge}`."""
    fields: dict[Name, Name] = {}
    """Aliases of arguments: `{query_text: query}`. Not applied to tools that have an argument of
    that name."""

    @property
    def all_names(self) -> dict[str, str]:
        """`names` merged over those of the preset."""
        return {**self._preset[0], **self.names}

    @property
    def all_fields(self) -> dict[str, str]:
        """`fields` merged over those of the preset."""
        return {**self._preset[1], **self.fields}

    @property
    def _preset(self) -> tuple[Mapping[str, str], Mapping[str, str]]:
        return _PRESETS[self.preset] if self.preset is not None else ({}, {})

    @model_validator(mode="after")
    def _check_chains(self) -> Self:
        for key, aliases in (("names", self.all_names), ("fields", self.all_fields)):
            for alias, target in aliases.items():
                if target in aliases:
                    what = f"'{alias}' in {key} refers to '{target}', which is an alias itself"
                    raise wrong(f"{what}: use '{aliases[target]}'")
        return self


ROLES_OF: Mapping[str, tuple[Role, ...]] = MappingProxyType(
    {
        "router": ("router", "executor"),  # the executor fills in the chosen tool's arguments
        "planner": ("planner",),
        "executor": ("executor",),
        "reflector": ("reflector",),
        "pipeline": ("router", "planner", "executor", "reflector"),
    }
)
"""The roles for which each kind of agent needs a model."""
RoleModels = dict[Role, Id]


class RolesConfig(Section):
    """Settings for agents with roles."""

    min_confidence: Annotated[float, Field(ge=0, le=1)] = 0.6
    """A router with a lower confidence asks the person."""
    min_score: Annotated[float, Field(ge=1, le=5)] = 3
    """The minimum score, of 5, for a reflector to accept a result."""
    criteria: Annotated[
        dict[Id, Annotated[float, Field(gt=0, allow_inf_nan=False)]], Field(min_length=1)
    ] = {"completeness": 0.4, "correctness": 0.4, "format": 0.2}
    """A reflector's criteria and their weights."""
    judge_simple: bool = False
    """Whether a pipeline also judges the result of a single tool or agent chosen by its router;
    otherwise it returns that result, unless it failed."""
    max_plan_steps: Annotated[int, Field(ge=1, le=50)] = 8
    """Maximum steps of a plan."""
    max_retries: Annotated[int, Field(ge=0, le=20)] = 3
    """Retries of a step or a plan before a person is asked."""
    targets: list[Id] | None = None
    """Agents that can be delegated to. Default: all that are present and have a card."""
    request_timeout: Span = 120.0
    """Time for another agent to answer."""
    instructions: dict[Role, str] = {}
    """Replaces a role's built-in instruction; the agent's own `instruction` follows it."""


class ForkConfig(Section):
    """Lets a model delegate parts of its work to sub-agents with the tool `fork`."""

    timeout: Span = 120.0
    """Maximum time for a sub-agent; the model can set less."""
    most: Annotated[int, Field(ge=1, le=16)] = 4
    """Maximum sub-agents of a turn, or of a sub-agent."""
    depth: Annotated[int, Field(ge=1, le=2)] = 1
    """2: sub-agents can have their own sub-agents."""
    max_steps: Annotated[int, Field(ge=1, le=100)] = 10
    """Maximum answers of the model in a sub-agent."""


DialectName = Literal["native", "tool_call", "final_output"]


class Price(Section):
    """The price of a model's tokens, in US dollars per million, from the endpoint's price list.
    Used to compute the cost of turns; nothing is charged."""

    input: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """Per million input tokens (prompt, tools, results)."""
    output: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """Per million output tokens."""
    cached_input: Annotated[float | None, Field(ge=0, allow_inf_nan=False)] = None
    """Per million input tokens that the endpoint read from its cache. Default: as `input`."""

    def of(self, tokens_in: int, tokens_out: int, cached: int = 0) -> float:
        """The price of these tokens, in US dollars; `cached` of `tokens_in` were in a cache."""
        cached_price = self.input if self.cached_input is None else self.cached_input
        inputs = self.input * (tokens_in - cached) + cached_price * cached
        return round((inputs + self.output * tokens_out) / 1_000_000, 12)


class ModelSettings(Section):
    """A model's parameters. Defaults are the endpoint's."""

    temperature: Annotated[float | None, Field(ge=0, allow_inf_nan=False)] = None
    """Sampling temperature."""
    top_p: Annotated[float | None, Field(gt=0, le=1)] = None
    """Nucleus sampling: the probability mass to sample from."""
    max_output_tokens: Size | None = None
    """Maximum tokens of an answer."""
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    """Reasoning effort, for models that reason."""
    service_tier: Literal["auto", "default", "flex", "scale", "priority"] | None = None
    """Latency and price tier."""
    response_format: dict[str, JsonValue] | None = None
    """The format of its text, for example `{type: json_object}`."""
    extra_body: dict[str, JsonValue] = {}
    """Additional keys of the request body, for endpoint-specific features."""
    extra_headers: Headers = {}
    """Additional headers of the request."""


class ModelConfig(ModelSettings):
    """A model at an OpenAI-compatible endpoint."""

    model: str
    """The model's name at its endpoint."""
    base_url: WebAddress = _OPENAI
    """The endpoint's base URL."""
    api: Literal["chat", "responses"] = "chat"
    """The API: Chat Completions, or OpenAI's Responses."""
    api_key: Secret = ""
    """The API key. Default: none."""
    context_window: Size | None = None
    """Tokens for a request and its answer together, for example 32k. Default: unknown, and nothing
    is cut to fit."""
    timeout: Span = 60.0
    """Time for one request."""
    retries: Annotated[int, Field(ge=0, le=20)] = 2
    """Retries of a request that failed temporarily (429, 500, a timeout)."""
    stream: bool = False
    """Stream answers."""
    tool_choice: Literal["required", "auto"] = "required"
    """`auto` for endpoints that do not support `required`."""
    strict: bool | None = None
    """Whether to mark tools as `strict` if their arguments allow it: the endpoint then enforces
    their schemas. Default: only at api.openai.com."""
    structured_output: bool | None = None
    """Whether to request typed answers (`output`) by JSON Schema instead of the tool `finish`;
    falls back to `finish` if the endpoint refuses. Default: only at api.openai.com."""
    dialect: DialectName | None = None
    """How it calls tools: with the endpoint's tool calls (`native`), or as text in its answers, for
    endpoints and models without them (`tool_call`, `final_output`). Default: `native`, switching to
    `tool_call` if the endpoint refuses tools or ignores that one is required."""
    price: Price | None = None
    """The price of its tokens, for example `{input: 0.25, output: 2.00}`. Default: turns report
    tokens but no cost."""

    @property
    def is_openai(self) -> bool:
        """Whether the endpoint is OpenAI's own."""
        return "api.openai.com" in self.base_url

    @property
    def lacks_key(self) -> bool:
        """Whether the endpoint is OpenAI's own and the required key is missing."""
        return not self.api_key and self.base_url.rstrip("/") == _OPENAI

    def with_settings(self, settings: ModelSettings) -> ModelConfig:
        """The model with these settings; extra keys and headers are merged with its own."""
        update = {key: getattr(settings, key) for key in settings.model_fields_set}
        for key in ("extra_body", "extra_headers"):
            if key in update:
                update[key] = {**getattr(self, key), **update[key]}
        return self.model_copy(update=update)


class HistoryConfig(Section):
    """How much of an agent's threads its prompt shows."""

    messages: Annotated[int, Field(ge=1, le=50)] = 10
    """Messages per thread."""
    threads: Annotated[int, Field(ge=1, le=200)] = 50
    """The number of threads: the one in which it answers, and the most recently active others."""
    types: list[Literal["direct", "channel", "broadcast", "mod"]] | None = None
    """Only messages of these types. Default: all."""
    hide_senders: list[str] = []
    """Senders whose messages are left out."""


class AgentRolloutConfig(Section):
    """Another instruction or model for a share of the threads. Remove the section to roll back."""

    share: Share
    """The share of threads: `10%` or 0.1. Threads keep the change as the share grows."""
    instruction: str | None = None
    """Replaces the agent's own instruction, if set."""
    model: str | None = None
    """A name from `models`; replaces the agent's own model, if set."""


class AgentConfig(Section):
    kind: Literal[
        "llm",
        "python",
        "acp",
        "a2a",
        "program",
        "router",
        "planner",
        "executor",
        "reflector",
        "pipeline",
    ] = "llm"
    """llm: driven by a model; python: a Python class; acp: a coding agent's program; a2a: a remote
    agent; program: a program in any language that joins by itself; the others are roles of models,
    and the pipeline that combines them."""
    object: str | None = None
    """`file.py:name`, an agent declared in Python (`LlmAgent` or `Agent`); the other keys of this
    section override it. Settings for the hub belong here: `daily`, `approvers`, `process`."""
    card: Card = Card()
    """The agent's description for others."""
    model: str = "default"
    """llm: a name from `models`. Roles: the model of all roles not in this agent's `models`."""
    model_settings: ModelSettings = ModelSettings()
    """llm and roles: parameters of its models; they override those in `models`."""
    models: RoleModels = {}
    """Roles: the model for each role, from the network's `models`, for example
    `{router: small, planner: large}`."""
    roles: RolesConfig = RolesConfig()
    """Roles: their settings."""
    channels: list[Id] = []
    """Channels to join in addition to those with `members: all`."""
    mode: Literal["auto", "interactive"] = "auto"
    """llm: interactive: after each step that calls a tool, except to send a message, the agent asks
    how to continue; the answer resumes the work in a new turn."""
    aliases: Aliases = Aliases()
    """llm and roles: alternative names that its models can use for tools, actions and arguments."""
    final_text: Literal["record", "send"] = "record"
    """llm: what to do with text without a tool call. record: store it in the turn's record, and ask
    the model for a call; send: send it as the answer, as with `finish`, and end the turn. acp: what
    to do with the final text of a turn; default `send`."""
    begin_with: str | None = None
    """llm: a tool that the model must call first in each turn, for example `search_knowledge`;
    earlier calls of other tools are refused."""
    fork: ForkConfig | None = None
    """llm: enables the tool `fork`, with which the model delegates parts of its work to sub-agents.
    `{}` uses the default limits. Default: disabled."""
    instruction: str = ""
    """llm and roles: the system prompt."""
    rollout: AgentRolloutConfig | None = None
    """llm: another instruction or model for a share of the threads."""
    prompt: Prompt | None = None
    """llm and roles: the system prompt in parts: versions, components, examples, a reminder; or
    `file.py:name`, a `PromptBuilder` in Python."""
    tools: list[str] | None = None
    """llm and roles: names of operations, or `file.py:function`. Default: all operations that the
    agent may use. Tools of `mcp` are added."""
    disabled_tools: list[str] = []
    """llm and roles: tools to hide from this agent, by the names that models see. `finish` cannot
    be hidden."""
    permission_mode: PermissionModeName = "full"
    """llm and roles: read_only: tools that change something are hidden; ask: a person approves each
    of their calls; full: they run. Sending messages is always allowed; changing the agent's memory
    counts as a change. acp: how to answer the program's permission requests; default `ask`."""
    tool_settings: dict[str, ToolConfig] = {}
    """llm and roles: settings for single tools, by the names that models see."""
    sandbox: SandboxLimits = SandboxLimits()
    """llm and roles: limits for functions that run in a sandbox."""
    mcp: list[Id] = []
    """llm and roles: names from `mcp_servers`; their tools are called SERVER_TOOL."""
    knowledge: Knowledge = KnowledgeConfig()
    """llm and roles: folders of Markdown, in addition to the network's, to search with
    `search_knowledge`. The tool is added to `tools`."""
    skills: list[str] = []
    """llm: instructions to load with `load_skill` when needed: Markdown files with front matter
    (name, description), or folders of them. The tool is added to `tools`."""
    select_over: Annotated[int, Field(ge=1, le=200)] = 24
    """llm: with more tools than this, the model sees one line of each and picks those it needs."""
    select: SelectConfig | None = None
    """llm: which of those tools are preselected, for example `{by: words}`. Default: none."""
    result_budget: Size = 4000
    """llm and roles: maximum tokens of a tool's result; the rest is cut, with a note."""
    template: str | None = None
    """llm and roles: a Jinja2 file that replaces the built-in conversation template."""
    history: HistoryConfig = HistoryConfig()
    """llm and roles: the messages that its prompt shows."""
    context: ContextConfig = ContextConfig()
    """llm and roles: how requests are fitted into the model's context window."""
    max_steps: Annotated[int, Field(ge=1, le=100)] = 10
    """llm and acp: maximum answers of the model in a turn; the default for acp is 100."""
    max_tokens: Size | None = None
    """llm and roles: maximum tokens of a turn, input and output together; an answer in progress is
    completed. Default: no limit."""
    turn_timeout: Span = 300.0
    """Maximum time of a turn, without the time it waits for a person. Default for acp and a2a: 1h.
    """
    tool_timeout: Span = 60.0
    """llm and roles: maximum time of a tool call."""
    class_: Annotated[str | None, Field(alias="class")] = None
    """python: file.py:ClassName"""
    settings: dict[str, JsonValue] = {}
    """python: passed to the class as `self.settings`."""
    acp: AcpConfig | None = None
    """acp: the program."""
    a2a: A2aPeerConfig | None = None
    """a2a: the remote agent."""
    command: Annotated[list[str], Field(max_length=1000)] = []
    """program: the command, run in the config's folder, for example `[node, agents/bill.mjs]`.
    HUBBUB_URL is the network's address, HUBBUB_TOKENS a JSON object of tokens by agent."""
    steer: Literal["steer", "queue", "interrupt"] = "steer"
    """llm and roles: what to do with a person's message in the thread of a running turn. steer: add
    it to the model's next request; queue: keep it for the next turn; interrupt: end the turn and
    start the next one with it. A message can set it for itself (`mode`)."""
    debounce: Annotated[float, BeforeValidator(span), Field(ge=0, le=60)] = 0.0
    """Time that an idle agent waits for more messages before it starts a turn, for example 500ms; a
    person's direct message starts one at once."""
    daily: DailyBudget | None = None
    """The agent's limits for a day. Default: `network.daily.agent`."""
    approvers: list[Id] = []
    """Who approves its tool calls. Default: as in `network.approvals`."""
    hooks: list[str] = []
    """llm and roles: `file.py:Class`, subclasses of `Hooks`, which are called during turns."""
    concurrency: Annotated[int, Field(ge=1, le=64)] = 4
    """Threads in which the agent works concurrently."""
    ignore_senders: list[Id] = []
    """Participants whose messages the agent ignores."""
    process: Literal["own", "shared"] = "own"
    """own: a process for this agent alone; shared: one process for all such agents."""
    greet: str | None = None
    """A message that the agent broadcasts when the network starts; if it is among the last 20
    broadcasts, `NAME is here again.` instead."""

    model_config = ConfigDict(populate_by_name=True, protected_namespaces=())

    @model_validator(mode="before")
    @classmethod
    def _with_kind_defaults(cls, given: JsonValue) -> JsonValue:
        kind = given.get("kind") if isinstance(given, dict) else None
        defaults = KIND_DEFAULTS.get(kind, {}) if isinstance(kind, str) else {}
        return {**defaults, **given} if defaults and isinstance(given, dict) else given

    @property
    def role_models(self) -> dict[Role, str]:
        """The model for each role that the agent's kind needs."""
        return {role: self.models.get(role, self.model) for role in ROLES_OF.get(self.kind, ())}

    @property
    def used_models(self) -> frozenset[str]:
        """The names in the network's `models` that the agent needs."""
        if self.object is not None and "model" not in self.model_fields_set:
            return frozenset()
        if self.kind != "llm":
            return frozenset(self.role_models.values())
        rolled_out = self.rollout and self.rollout.model
        return frozenset({self.model, rolled_out or self.model})

    def rolled_out(self, rollout: AgentRolloutConfig) -> Self:
        """The agent as in threads within the rollout's share."""
        changed = rollout.model_dump(include={"instruction", "model"}, exclude_none=True)
        return self.model_copy(update={**changed, "rollout": None})
