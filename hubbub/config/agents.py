"""Models and agents in the YAML, with what is theirs alone: roles, other names of tools, coding
agents, the context window."""

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
from hubbub.config.units import Id, Section, Size, Span, span, wrong
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
    """How an agent's questions fill the context window of its model. Sizes are tokens."""

    window: Size | None = None
    """Tokens that a question and its answer may have, for example 16k; left out, or more than that:
    the model's `context_window`. If neither is known, nothing is cut."""
    reserve: Size | None = None
    """Tokens of the window that are kept free for the answer. Left out: the model's
    `max_output_tokens` or 4k, and at most a quarter of the window."""
    compression: CompressionName = "importance"
    """What becomes of earlier steps of a turn for which there is no room. importance: those that
    only read go first, errors and writes stay as a line; window: the oldest go first; summary: the
    model puts them into fewer words, which costs a request."""
    keep_steps: Annotated[int, Field(ge=1, le=50)] = 5
    """The last steps, which stay as they are as long as anything else can go."""
    protect: list[ProtectedName] = ["requirements", "results", "errors", "last_steps"]
    """What stays when the model marks a step to be left out (`tidy_steps`). requirements: what
    people said meanwhile; results: of steps that changed something, a line; errors: of steps that
    failed, a line; last_steps: the last five, whole. It may put others into words of its own."""


USUAL_OF: Mapping[str, Mapping[str, JsonValue]] = MappingProxyType(
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
"""What holds for agents of a kind where their section says nothing else. A coding agent changes
files, works for a long time, and ends with a text that is its answer; one elsewhere may take long,
too."""


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
    """Names that stand for others, in every dialect. Actions of `final_output` are understood
    however they are spelled (`CALL_TOOLS_PARALLEL`), and need none."""

    preset: Literal["step_actions"] | None = None
    """Aliases that come along: step_actions has SEARCH_KNOWLEDGE, SEND_MESSAGE, `query_text`,
    `target_agent_id`, `message_text` and `context_summary`."""
    names: dict[Name, Name] = {}
    """Of tools and actions: `{SEARCH_DOCS: search_knowledge}`."""
    fields: dict[Name, Name] = {}
    """Of arguments: `{query_text: query}`. A tool that has such an argument itself is given it."""

    @property
    def all_names(self) -> dict[str, str]:
        """With those of the preset; own ones count first."""
        return {**self._preset[0], **self.names}

    @property
    def all_fields(self) -> dict[str, str]:
        """With those of the preset; own ones count first."""
        return {**self._preset[1], **self.fields}

    @property
    def _preset(self) -> tuple[Mapping[str, str], Mapping[str, str]]:
        return _PRESETS[self.preset] if self.preset is not None else ({}, {})

    @model_validator(mode="after")
    def _mean_one_thing(self) -> Self:
        for key, aliases in (("names", self.all_names), ("fields", self.all_fields)):
            for alias, meant in aliases.items():
                if meant in aliases:
                    what = f"'{alias}' in {key} stands for '{meant}', which is an alias itself"
                    raise wrong(f"{what}: say what it stands for, '{aliases[meant]}'")
        return self


ROLES_OF: Mapping[str, tuple[Role, ...]] = MappingProxyType(
    {
        "router": ("router", "executor"),  # it fills in the arguments of the tool that was chosen
        "planner": ("planner",),
        "executor": ("executor",),
        "reflector": ("reflector",),
        "pipeline": ("router", "planner", "executor", "reflector"),
    }
)
"""The roles that an agent of a kind needs a model for."""
RoleModels = dict[Role, Id]


class RolesConfig(Section):
    """What agents of these kinds keep to."""

    min_confidence: Annotated[float, Field(ge=0, le=1)] = 0.6
    """A router that is less sure than this asks the person."""
    min_score: Annotated[float, Field(ge=1, le=5)] = 3
    """A reflector accepts no results to which it gives less than this, of 5."""
    criteria: Annotated[
        dict[Id, Annotated[float, Field(gt=0, allow_inf_nan=False)]], Field(min_length=1)
    ] = {"completeness": 0.4, "correctness": 0.4, "format": 0.2}
    """What a reflector gives scores for, and how much each weighs."""
    judge_simple: bool = False
    """Whether a pipeline judges what its router gave to one tool or agent, too; else it says what
    came of it, unless that has failed."""
    max_plan_steps: Annotated[int, Field(ge=1, le=50)] = 8
    """Steps of a plan."""
    max_retries: Annotated[int, Field(ge=0, le=20)] = 3
    """How often a step or the plan is tried again before a person is asked."""
    targets: list[Id] | None = None
    """Agents that may be given work; left out: all that are present and have a card."""
    request_timeout: Span = 120.0
    """How long another agent may take for its answer."""
    instructions: dict[Role, str] = {}
    """In place of what a role is told; the agent's own `instruction` follows it."""


class ForkConfig(Section):
    """Lets a model give parts of its work to sub-agents: the tool `fork`."""

    timeout: Span = 120.0
    """The longest that a sub-agent may take; the model may say less."""
    most: Annotated[int, Field(ge=1, le=16)] = 4
    """Sub-agents of one turn, or of one sub-agent."""
    depth: Annotated[int, Field(ge=1, le=2)] = 1
    """2: sub-agents may have sub-agents of their own."""
    max_steps: Annotated[int, Field(ge=1, le=100)] = 10
    """Answers of the model in one sub-agent."""


DialectName = Literal["native", "tool_call", "final_output"]


class Price(Section):
    """What a model's tokens cost, in US dollars per million. The endpoint's page of prices says it;
    nothing is charged here: turns tell what they have cost by it."""

    input: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """For a million tokens that the model reads (prompt, tools, results)."""
    output: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """For a million tokens that it writes."""

    def of(self, tokens_in: int, tokens_out: int) -> float:
        """The price of so many tokens, in US dollars."""
        return round((self.input * tokens_in + self.output * tokens_out) / 1_000_000, 12)


class ModelSettings(Section):
    """How a model answers. What is left out is as its endpoint has it."""

    temperature: Annotated[float | None, Field(ge=0, allow_inf_nan=False)] = None
    """How freely it chooses its words."""
    top_p: Annotated[float | None, Field(gt=0, le=1)] = None
    """The share of likely words among which it chooses."""
    max_output_tokens: Size | None = None
    """Of one answer."""
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    """How long it thinks, for models that do."""
    service_tier: Literal["auto", "default", "flex", "scale", "priority"] | None = None
    """How soon it answers, and at which price."""
    response_format: dict[str, JsonValue] | None = None
    """The form of text that it writes, for example `{type: json_object}`."""
    extra_body: dict[str, JsonValue] = {}
    """More keys of the request, for what this endpoint alone knows."""
    extra_headers: dict[str, str] = {}
    """More headers of the request."""


class ModelConfig(ModelSettings):
    """An OpenAI-compatible endpoint and a model of it."""

    model: str
    """The model's name at its endpoint."""
    base_url: str = _OPENAI
    """The endpoint."""
    api: Literal["chat", "responses"] = "chat"
    """How it is asked: Chat Completions, or OpenAI's Responses."""
    api_key: str = ""
    """Left out: for endpoints that want none."""
    context_window: Size | None = None
    """Tokens that a question and its answer may have together, for example 32k. Left out: not
    known, and nothing is cut to fit."""
    timeout: Span = 60.0
    """Of one request."""
    retries: Annotated[int, Field(ge=0, le=20)] = 2
    """Of a request that failed for now (429, 500, a timeout)."""
    stream: bool = False
    """Read answers as they are written."""
    tool_choice: Literal["required", "auto"] = "required"
    """`auto` for endpoints that do not know `required`."""
    strict: bool | None = None
    """Whether tools are sent as `strict`, those whose arguments allow it: the endpoint holds calls
    to their schemas then. Left out: at api.openai.com."""
    structured_output: bool | None = None
    """Whether answers of a type (`output`) are asked for by the endpoint's JSON Schema in place of
    the tool `finish`; where it refuses that, by `finish` after all. Left out: at api.openai.com.
    """
    dialect: DialectName | None = None
    """How it calls tools: by the endpoint's own means (`native`), or by words in its answers, for
    endpoints and models that cannot (`tool_call`, `final_output`). Left out: `native`, and
    `tool_call` from then on where the endpoint refuses tools or ignores that one is required."""
    price: Price | None = None
    """What its tokens cost, for example `{input: 0.25, output: 2.00}`; left out: turns tell tokens
    and no money."""

    @property
    def is_openai(self) -> bool:
        """Whether the endpoint is OpenAI's own."""
        return "api.openai.com" in self.base_url

    @property
    def lacks_key(self) -> bool:
        """Whether the endpoint is OpenAI's own, which answers nothing without a key."""
        return not self.api_key and self.base_url.rstrip("/") == _OPENAI

    def with_settings(self, settings: ModelSettings) -> ModelConfig:
        """The same, asked with these settings; extra keys and headers are added to its own."""
        said = {key: getattr(settings, key) for key in settings.model_fields_set}
        for key in ("extra_body", "extra_headers"):
            if key in said:
                said[key] = {**getattr(self, key), **said[key]}
        return self.model_copy(update=said)


class HistoryConfig(Section):
    """How much of its threads an agent's prompt shows."""

    messages: Annotated[int, Field(ge=1, le=50)] = 10
    """Per thread."""
    threads: Annotated[int, Field(ge=1, le=200)] = 50
    """The most recently active ones."""
    types: list[Literal["direct", "channel", "broadcast", "mod"]] | None = None
    """Only messages of these types; None: all."""
    hide_senders: list[str] = []
    """Messages of these senders are left out."""


class AgentRolloutConfig(Section):
    """Another instruction or model for a share of the threads. Remove the section to roll it
    back."""

    share: Share
    """How many threads get it: `10%`, or 0.1. A thread that has it keeps it as the share grows."""
    instruction: str | None = None
    """In place of the agent's own; left out: that."""
    model: str | None = None
    """A name from `models`, in place of the agent's own; left out: that."""


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
    """llm: a model decides; python: a class does; acp: a coding agent's own program does; a2a: an
    agent elsewhere does; program: a program in any language that joins by itself; the others are
    roles of models, and the pipeline that joins them."""
    object: str | None = None
    """`file.py:name`, an agent that Python declares (`LlmAgent`, or an `Agent`); the other keys of
    this section are laid over it. What the hub itself heeds stands here: `daily`, `approvers`,
    `process`."""
    card: Card = Card()
    """What others are told about the agent."""
    model: str = "default"
    """llm: a name from `models`. Roles: that of all roles that `models` does not name."""
    model_settings: ModelSettings = ModelSettings()
    """llm and roles: how its models answer, over what `models` says."""
    models: RoleModels = {}
    """Roles: a name from the network's `models` for each role, for example
    `{router: small, planner: large}`."""
    roles: RolesConfig = RolesConfig()
    """Roles: what they keep to."""
    channels: list[Id] = []
    """Channels that it joins besides those that everybody joins."""
    mode: Literal["auto", "interactive"] = "auto"
    """llm: interactive: after each step that calls a tool, other than to say something, the agent
    asks how to go on, in words of its own; the answer goes on with the work in a new turn."""
    aliases: Aliases = Aliases()
    """llm and roles: other names that its models may use for tools, actions and arguments."""
    final_text: Literal["record", "send"] = "record"
    """llm: what becomes of text without a tool call. record: it stands in the turn's record, and
    the model is asked for a call; send: it is the answer to whoever wrote, as with `finish`, and
    the turn ends. acp: what becomes of the text that a turn ends with, `send` if left out."""
    begin_with: str | None = None
    """llm: a tool that the model must call first in each turn, for example `search_knowledge`;
    calls of others before it are refused."""
    fork: ForkConfig | None = None
    """llm: the tool `fork`, with which the model gives parts of its work to sub-agents; left out:
    there is none. `{}`: with the usual limits."""
    instruction: str = ""
    """llm and roles: the system prompt."""
    rollout: AgentRolloutConfig | None = None
    """llm: another instruction or model, for a share of the threads."""
    prompt: Prompt | None = None
    """llm and roles: the system prompt in parts: versions, components, examples, a reminder; or
    `file.py:name`, a `PromptBuilder` of Python."""
    tools: list[str] | None = None
    """llm and roles: names of operations, or `file.py:function`; left out: all that the agent may
    use. Those of `mcp` come on top."""
    disabled_tools: list[str] = []
    """llm and roles: tools that do not exist for this agent, by the names that models see. `finish`
    always does."""
    permission_mode: PermissionModeName = "full"
    """llm and roles: read_only: tools that change something are not there; ask: a person approves
    each of their calls; full: they run. Messages may be sent in every mode; what the agent
    remembers is a change. acp: the answer to what the program asks permission for, `ask` if left
    out."""
    tool_settings: dict[str, ToolConfig] = {}
    """llm and roles: about single tools, by the names that models see."""
    sandbox: SandboxLimits = SandboxLimits()
    """llm and roles: limits of the functions that run in a sandbox."""
    mcp: list[Id] = []
    """llm and roles: names from `mcp_servers`; their tools are called SERVER_TOOL."""
    knowledge: Knowledge = KnowledgeConfig()
    """llm and roles: folders of Markdown, besides the network's, that it searches with
    `search_knowledge`. The tool comes on top of `tools`."""
    skills: list[str] = []
    """llm: instructions that it loads with `load_skill` when it needs them: Markdown files with a
    front matter (name, description), or folders of them. The tool comes on top of `tools`."""
    select_over: Annotated[int, Field(ge=1, le=200)] = 24
    """llm: with more tools than this the model reads one line of each and picks those it needs."""
    select: SelectConfig | None = None
    """llm: which of so many tools it need not pick, for example `{by: words}`; left out: none."""
    result_budget: Size = 4000
    """llm and roles: tokens of a tool's result; the rest is cut, and said to be."""
    template: str | None = None
    """llm and roles: a Jinja2 file in place of the shipped conversation template."""
    history: HistoryConfig = HistoryConfig()
    """llm and roles: what its prompt shows."""
    context: ContextConfig = ContextConfig()
    """llm and roles: how questions are made to fit the model's context window."""
    max_steps: Annotated[int, Field(ge=1, le=100)] = 10
    """llm: answers of the model in one turn. acp: likewise, 100 if left out."""
    max_tokens: Size | None = None
    """llm and roles: tokens of one turn, read and written together; the answer under way is
    finished. Left out: no bound."""
    turn_timeout: Span = 300.0
    """Of one turn; the time in which it waits for a person does not count. acp and a2a: 1h if left
    out."""
    tool_timeout: Span = 60.0
    """llm and roles: of one tool call."""
    class_: Annotated[str | None, Field(alias="class")] = None
    """python: file.py:ClassName"""
    settings: dict[str, JsonValue] = {}
    """python: handed to the class as `self.settings`."""
    acp: AcpConfig | None = None
    """acp: the program."""
    a2a: A2aPeerConfig | None = None
    """a2a: where the agent is."""
    command: Annotated[list[str], Field(max_length=1000)] = []
    """program: what is run in the file's folder, for example `[node, agents/bill.mjs]`. HUBBUB_URL
    says where the network is, HUBBUB_TOKENS has its token in a JSON object by the agent's name."""
    steer: Literal["steer", "queue", "interrupt"] = "steer"
    """llm and roles: what a person says in the thread of a turn that runs. steer: the model is
    shown it with its next question; queue: it waits for the next turn; interrupt: the turn ends,
    and the next begins with it. A message may say it for itself (`mode`)."""
    debounce: Annotated[float, BeforeValidator(span), Field(ge=0, le=60)] = 0.0
    """Time that an idle agent waits for more before a turn begins, for example 500ms; a person's
    direct message does not wait."""
    daily: DailyBudget | None = None
    """What the agent may spend in a day; left out: as `network.daily.agent` says."""
    approvers: list[Id] = []
    """Who is asked about its tools; left out: as `network.approvals` says."""
    hooks: list[str] = []
    """llm and roles: `file.py:Class`, classes that derive from `Hooks` and are told what turns
    do."""
    concurrency: Annotated[int, Field(ge=1, le=64)] = 4
    """Threads that the agent works in at the same time."""
    ignore_senders: list[Id] = []
    """Participants to whom the agent never reacts."""
    process: Literal["own", "shared"] = "own"
    """own: a process for this agent; shared: one for all that say so."""
    greet: str | None = None
    """A message that the agent broadcasts when the network starts; instead of it `NAME is here
    again.` if it stands among the last 20 broadcasts."""

    model_config = ConfigDict(populate_by_name=True, protected_namespaces=())

    @model_validator(mode="before")
    @classmethod
    def _usual_of_its_kind(cls, said: JsonValue) -> JsonValue:
        kind = said.get("kind") if isinstance(said, dict) else None
        usual = USUAL_OF.get(kind, {}) if isinstance(kind, str) else {}
        return {**usual, **said} if usual and isinstance(said, dict) else said

    @property
    def role_models(self) -> dict[Role, str]:
        """Which model answers for which role that the agent's kind needs."""
        return {role: self.models.get(role, self.model) for role in ROLES_OF.get(self.kind, ())}

    @property
    def used_models(self) -> frozenset[str]:
        """The models that the agent needs, by the names of the network's `models`."""
        if self.object is not None and "model" not in self.model_fields_set:
            return frozenset()
        if self.kind != "llm":
            return frozenset(self.role_models.values())
        rolled_out = self.rollout and self.rollout.model
        return frozenset({self.model, rolled_out or self.model})

    def rolled_out(self, rollout: AgentRolloutConfig) -> Self:
        """The agent as those threads have it that are in the rollout's share."""
        changed = rollout.model_dump(include={"instruction", "model"}, exclude_none=True)
        return self.model_copy(update={**changed, "rollout": None})
