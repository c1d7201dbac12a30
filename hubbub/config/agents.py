"""Models and agents in the YAML."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field, JsonValue, model_validator

from hubbub.config.acp import USUAL_OF_ACP, AcpConfig
from hubbub.config.aliases import Aliases
from hubbub.config.budgets import DailyBudget
from hubbub.config.context import ContextConfig
from hubbub.config.knowledge import Knowledge, KnowledgeConfig
from hubbub.config.prompting import Prompt
from hubbub.config.roles import ROLES_OF, ForkConfig, RoleModels, RolesConfig
from hubbub.config.tooling import PermissionModeName, SandboxConfig, ToolConfig
from hubbub.config.units import Id, Section, Size, Span, span
from hubbub.protocol.messages import Card
from hubbub.protocol.turns import Role

__all__ = ["AgentConfig", "DialectName", "History", "ModelConfig", "ModelSettings", "Price"]

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
    base_url: str = "https://api.openai.com/v1"
    """The endpoint."""
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
    dialect: DialectName | None = None
    """How it calls tools: by the endpoint's own means (`native`), or by words in its answers, for
    endpoints and models that cannot (`tool_call`, `final_output`). Left out: `native`, and
    `tool_call` from then on where the endpoint refuses tools or ignores that one is required."""
    price: Price | None = None
    """What its tokens cost, for example `{input: 0.25, output: 2.00}`; left out: turns tell tokens
    and no money."""

    def with_settings(self, settings: ModelSettings) -> ModelConfig:
        """The same, asked with these settings; extra keys and headers are added to its own."""
        said = {key: getattr(settings, key) for key in settings.model_fields_set}
        for key in ("extra_body", "extra_headers"):
            if key in said:
                said[key] = {**getattr(self, key), **said[key]}
        return self.model_copy(update=said)


class History(Section):
    """How much of its threads an agent's prompt shows."""

    messages: Annotated[int, Field(ge=1, le=50)] = 10
    """Per thread."""
    threads: Annotated[int, Field(ge=1, le=200)] = 50
    """The most recently active ones."""
    types: list[Literal["direct", "channel", "broadcast", "mod"]] | None = None
    """Only messages of these types; None: all."""
    hide_senders: list[str] = []
    """Messages of these senders are left out."""


class AgentConfig(Section):
    kind: Literal[
        "llm", "python", "acp", "router", "planner", "executor", "reflector", "pipeline"
    ] = "llm"
    """llm: a model decides; python: a class does; acp: a coding agent's own program does; the
    others are roles of models, and the pipeline that joins them."""
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
    mode: Literal["auto", "interactive"] = "auto"
    """llm: interactive: after each step that calls a tool, other than to say something, the agent
    asks whether to go on; the answer goes on with the work in a new turn."""
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
    sandbox: SandboxConfig = SandboxConfig()
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
    result_budget: Size = 4000
    """llm and roles: tokens of a tool's result; the rest is cut, and said to be."""
    template: str | None = None
    """llm and roles: a Jinja2 file in place of the shipped conversation template."""
    history: History = History()
    """llm and roles: what its prompt shows."""
    context: ContextConfig = ContextConfig()
    """llm and roles: how questions are made to fit the model's context window."""
    max_steps: Annotated[int, Field(ge=1, le=100)] = 10
    """llm: answers of the model in one turn. acp: likewise, 100 if left out."""
    max_tokens: Size | None = None
    """llm and roles: tokens of one turn, read and written together; the answer under way is
    finished. Left out: no bound."""
    turn_timeout: Span = 300.0
    """Of one turn; the time in which it waits for a person does not count. acp: 1h if left out."""
    tool_timeout: Span = 60.0
    """llm and roles: of one tool call."""
    class_: Annotated[str | None, Field(alias="class")] = None
    """python: file.py:ClassName"""
    settings: dict[str, JsonValue] = {}
    """python: handed to the class as `self.settings`."""
    acp: AcpConfig | None = None
    """acp: the program."""
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
        usual = isinstance(said, dict) and said.get("kind") == "acp"
        return {**USUAL_OF_ACP, **said} if usual and isinstance(said, dict) else said

    @property
    def role_models(self) -> dict[Role, str]:
        """Which model answers for which role that the agent's kind needs."""
        return {role: self.models.get(role, self.model) for role in ROLES_OF.get(self.kind, ())}

    @property
    def used_models(self) -> frozenset[str]:
        """The models that the agent needs, by the names of the network's `models`."""
        if self.object is not None and "model" not in self.model_fields_set:
            return frozenset()
        return frozenset({self.model} if self.kind == "llm" else self.role_models.values())
