"""A coding agent on the network: from its section of the YAML to its turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from acp.schema import EnvVariable, HttpHeader, HttpMcpServer, McpServerStdio

from hubbub.agents.backend import AgentBackend
from hubbub.agents.inbox import Inbox, TurnPlan, WakingMessage
from hubbub.agents.launch import inbox_of, run_backend
from hubbub.agents.model_backend import conversation_template, load_hooks
from hubbub.agents.prompt.context import Note
from hubbub.agents.prompt.render import PROGRAM_CLOSING, ConversationPrompt, ConversationTemplate
from hubbub.agents.prompt.system import load_system_prompts
from hubbub.agents.prompt_client import DIALECTS
from hubbub.agents.runner import GRACE_S
from hubbub.agents.system_prompt import SystemPromptBuilder
from hubbub.agents.tools.approval import HubApprover
from hubbub.agents.tools.assembly import ToolKit, servers_of, tool_policy_of
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.agents.turn.activity import TurnActivities
from hubbub.agents.turn.driver import (
    SteeringQueue,
    StepCalls,
    TrustState,
    TurnDriver,
    untrusted_ids,
)
from hubbub.agents.turn.hooks import HookChain, Hooks
from hubbub.agents.turn.outbox import Outbox
from hubbub.agents.turn.recorder import TurnRecorder
from hubbub.client import Client
from hubbub.config.agents import AgentConfig
from hubbub.config.tooling import McpServerConfig
from hubbub.errors import ConfigError
from hubbub.interop.acp.network import NetworkTools, OfferedTool
from hubbub.interop.acp.program import AcpProgram, Server
from hubbub.interop.acp.sessions import AcpSessions
from hubbub.interop.acp.turn import AcpTurn, Workspace
from hubbub.interop.answer import ANSWER, AnswerTool
from hubbub.interop.tools import offered
from hubbub.protocol.frames import Ready

__all__ = ["run_acp_agent"]


class _Unsteered(SteeringQueue):
    """Always empty: a program takes one prompt at a time, so messages wait for the next."""

    def waiting(self) -> tuple[WakingMessage, ...]:
        return ()


class AcpBackend(AgentBackend):
    """Takes turns by prompting a program.

    `tools` builds the toolbox from the operations the hub offers, once per connection.
    """

    def __init__(
        self,
        client: Client,
        inbox: Inbox,
        shared: Workspace,
        template: ConversationTemplate,
        prompt_builder: SystemPromptBuilder,
        tools: Callable[[Ready], Toolbox],
        hooks: Sequence[Hooks] = (),
    ):
        self._inbox, self._shared, self._template = inbox, shared, template
        self._prompt_builder, self._make_tools, self._hooks = prompt_builder, tools, hooks
        self._ready, self._tools = client.ready, tools(client.ready)
        self._activities = TurnActivities(partial(client.signal, "activity"))
        self._offer()

    async def ready(self, ready: Ready) -> None:
        self._ready, self._tools = ready, self._make_tools(ready)
        self._offer()
        await self._activities.repeat()

    def _offer(self) -> None:
        specs, writing = offered(self._tools, ANSWER), self._tools.writing
        self._shared.network.offered = [OfferedTool(s, s.name not in writing) for s in specs]

    async def dropped(self, turn: str) -> None:
        prompting = self._shared.live.pop(turn, None)
        if prompting is not None:
            prompting.cancel()
        self._shared.sessions.release(turn)
        await self._activities.drop(turn)

    def shares(self, thread_id: str, parked: str) -> bool:
        key = self._shared.sessions.key
        return key(thread_id) == key(parked)

    async def take_turn(self, plan: TurnPlan, recorder: TurnRecorder) -> None:
        plan = await recorder.prepare()
        sessions = self._shared.sessions
        try:
            await sessions.hold(sessions.key(plan.thread_id), plan.id)
            await self._take_turn(plan, recorder)
        finally:
            if not recorder.parked:
                sessions.release(plan.id)

    async def _take_turn(self, plan: TurnPlan, recorder: TurnRecorder) -> None:
        shared, inbox = self._shared, self._inbox
        history, threads = shared.config.history, inbox.threads
        conversation = ConversationPrompt.of(
            self._template, threads, plan, inbox.me, history, PROGRAM_CLOSING
        )
        toolbox, native = self._tools.for_turn(), DIALECTS["native"]
        system = await self._prompt_builder.of(plan, toolbox, native, self._ready, threads)
        steps = await recorder.begin(
            model=self._prompt_builder.model,
            system_prompt=system.text,
            prompt=conversation.text,
            prompt_id=system.prompt_id,
            components=system.recorded,
            tools=tuple(tool.spec.name for tool in shared.network.offered),
        )
        hooks = HookChain(self._hooks, plan, inbox.me)
        recorder.before_end = hooks.turn_ended
        trust = TrustState(bool(untrusted_ids(conversation.in_thread)), steps)
        calls = StepCalls(toolbox, recorder, hooks.around if hooks else None, trust)
        async with self._activities.of(plan) as activity:
            turn = AcpTurn(shared, plan, calls, activity, steps, system.text, conversation.text)
            steering_queue = _Unsteered(inbox, plan.thread_id, "queue")
            driver = TurnDriver(
                turn, calls, turn.ask, activity=activity, hooks=hooks, steering_queue=steering_queue
            )
            await driver.run(shared.config.turn_timeout)


async def run_acp_agent(
    config: AgentConfig,
    name: str,
    client: Client,
    base_dir: Path,
    *,
    grace_s: float = GRACE_S,
    greet_cid: str | None = None,
    mods: Sequence[Note] = (),
    mcp_servers: Mapping[str, McpServerConfig] | None = None,
) -> None:
    """Run the coding agent that `client` is connected as (with `turns=True`) until cancelled.

    Its program starts with the first turn and ends with the agent. Arguments and exceptions are
    those of `hubbub.agents.launch.run_agent`.
    """
    if config.acp is None:
        raise ConfigError(f"agents.{name}: a coding agent needs `acp: {{command: [...]}}`")
    workspace = (base_dir / config.acp.cwd).resolve()
    program = AcpProgram(config.acp.model_copy(update={"cwd": str(workspace)}))
    inbox = inbox_of(config, name)
    outbox = Outbox(client, inbox)
    servers = list(_servers(servers_of(config, name, mcp_servers or {})))
    tool_policy = replace(tool_policy_of(config), approver=HubApprover(client))
    prompts = load_system_prompts(config, name, base_dir)
    answer = AnswerTool(outbox, client.offers, workspace)
    kit = ToolKit(
        config,
        name,
        base_dir,
        tool_policy=tool_policy,
        more=[answer],
        operator_text=prompts.operator_text,
    )
    prompt_builder = SystemPromptBuilder(
        prompts, config, client.network, Path(config.acp.command[0]).name, mods=mods
    )
    template, hooks = conversation_template(config, base_dir), load_hooks(config, base_dir)
    async with program, NetworkTools() as network:
        shared = Workspace(
            name,
            config,
            AcpSessions(program, network, client, servers),
            network,
            HubApprover(client),
            workspace,
            client.hello.limits.text_bytes,
        )
        tools = partial(kit.toolbox, caller=outbox)
        backend = AcpBackend(client, inbox, shared, template, prompt_builder, tools, hooks)
        await run_backend(client, inbox, backend, config, grace_s, greet_cid)


def _servers(configs: Mapping[str, McpServerConfig]) -> Iterator[Server]:
    """MCP servers in the protocol's form. Raises `ConfigError` for unsupported settings."""
    for name, config in configs.items():
        if config.tools is not None or config.cwd is not None:
            what = "`tools` and `cwd` have no effect for a coding agent, which connects by itself"
            raise ConfigError(f"mcp_servers.{name}: {what}: leave them out")
        if config.command is not None:
            program, *arguments = config.command
            env = [EnvVariable(name=key, value=value) for key, value in config.env.items()]
            yield McpServerStdio(name=name, command=program, args=arguments, env=env)
        elif config.url is not None:
            headers = [HttpHeader(name=key, value=v) for key, v in config.headers.items()]
            yield HttpMcpServer(type="http", name=name, url=config.url, headers=headers)
