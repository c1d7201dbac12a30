"""A network as an MCP server: a host joins as a participant and uses its tools and resources."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hubbub.client import Client
from tests.interaction.agent_harness import Harness, harness, one_person, said_to
from tests.interaction.peers import Networks, config

mcp = pytest.importorskip("mcp", reason="needs the extra `mcp`")
pytestmark = pytest.mark.slow  # reading the SDK takes longer than running all of this


@asynccontextmanager
async def host(net: Harness, name: str = "claude") -> AsyncIterator[Any]:
    """An MCP client of the server of one participant."""
    from hubbub.interop.mcp.participant import McpParticipant
    from hubbub.interop.mcp.server import ParticipantTools, mcp_server

    async with Client(net.network.local.transport(), name, "agent") as joined:
        me = McpParticipant(joined)
        async with me.listening(), mcp.Client(mcp_server(me, ParticipantTools(me))) as client:
            yield client


async def wait(client: Any, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool("wait_for_messages", arguments)
    assert not result.is_error, result.content[0].text
    answer: dict[str, Any] = result.structured_content
    return answer


async def run_tool(client: Any, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    text = result.content[0].text
    return json.loads(text) if text.startswith("{") else text


@pytest.mark.behaviour("I-11")
async def test_a_host_receives_answers_and_acknowledges_messages(in_memory: Networks) -> None:
    async with one_person(in_memory) as (net, ann):
        async with host(net) as client:
            assert "You are `claude`" in client.instructions
            await ann.say("claude", "what is new?")
            received = await wait(client)
            (message,) = received["messages"]
            assert (message["sender"], message["content"], message["reply"]) == (
                "ann",
                "what is new?",
                "required",
            )
            again = await wait(client)
            assert again["messages"] == received["messages"], "repeated until acknowledged"
            sent = await run_tool(client, "send_text_message", text="nothing")
            event = await ann.event()
            assert event["message"]["content"] == "nothing"
            assert event["message"]["sender_id"] == "claude", "set by its token, not an argument"
            assert event["message"]["cause_id"] == message["id"], sent
            nothing = await wait(client, cursor=received["cursor"], timeout_s=0)
            assert (nothing["messages"], nothing["more"]) == ([], False)
        await net.network.gone("claude")
        await ann.say("claude", "are you there?")
        async with host(net) as client:  # a new connection of the host
            assert [m["content"] for m in (await wait(client))["messages"]] == ["are you there?"]


@pytest.mark.behaviour("I-11")
async def test_answers_name_their_causes_in_the_most_recent_threads(
    in_memory: Networks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hubbub.interop.mcp.participant.MAX_THREADS", 2)
    async with harness(in_memory) as net:
        several = {name: await net.person(name) for name in ("ann", "bea", "cid")}
        async with host(net) as client:
            cursor: dict[str, Any] = {}
            ids = {}
            for name in ("ann", "bea", "ann", "cid"):
                await several[name].say("claude", "well?")
                received = await wait(client, **cursor)
                cursor = {"cursor": received["cursor"]}
                ids[name] = received["messages"][-1]["id"]
            for name in ("ann", "cid"):
                await run_tool(client, "send_text_message", to=name, text="well")
                event = await several[name].event()
                assert event["message"]["cause_id"] == ids[name]


@pytest.mark.behaviour("I-11")
async def test_an_unacknowledged_message_is_delivered_again(in_memory: Networks) -> None:
    async with one_person(in_memory) as (net, ann):
        async with host(net) as client:
            await ann.say("claude", "one")
            first = await wait(client)
            await run_tool(client, "ack", cursor=first["cursor"])
            await ann.say("claude", "two")
            await wait(client)
        await net.network.gone("claude")
        async with host(net) as client:
            assert [m["content"] for m in (await wait(client))["messages"]] == ["two"]


@pytest.mark.behaviour("I-12")
async def test_operations_are_tools_with_hints_and_threads_are_resources(
    in_memory: Networks, snapshot: object
) -> None:
    async with harness(in_memory) as net:
        ann, bob = await net.person(), await net.person("bob")
        await bob.say("ann", "between us")
        async with host(net) as client:
            await ann.say("claude", "hello")
            tools = (await client.list_tools()).tools
            hints = {tool.name: tool.annotations.model_dump(exclude_none=True) for tool in tools}
            assert hints == snapshot
            assert all("cause" not in str(tool.input_schema["properties"]) for tool in tools)
            resources = await client.list_resources()
            assert [str(each.uri) for each in resources.resources] == [
                "hubbub://inbox",
                "hubbub://threads",
            ]
            for uri in ("hubbub://inbox", "hubbub://threads", "hubbub://threads/direct_ann"):
                text = (await client.read_resource(uri)).contents[0].text
                assert "hello" in text
                assert "between us" not in text
            with pytest.raises(mcp.MCPError):
                await client.read_resource("hubbub://threads/dm.ann.bob")
            wrong = await run_tool(client, "send_text_message", to="nobody", text="hello")
            assert wrong["error"] == "unknown_participant"
            wrong = await run_tool(client, "send_text_mesage", to="ann", text="hello")
            assert wrong["valid_names"][0] == "send_text_message"
            wrong = await run_tool(client, "wait_for_messages", timeout_s=1e9)
            assert wrong["error"] == "invalid_arguments"


@pytest.mark.behaviour("I-11")
async def test_a_waiting_host_receives_progress_notifications(
    in_memory: Networks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hubbub.interop.mcp.participant.PROGRESS_S", 0.01)
    async with one_person(in_memory) as (net, ann), host(net) as client:
        reports = list[float]()

        async def report(progress: float, total: float | None, message: str | None) -> None:
            reports.append(progress)
            if len(reports) == 2:
                await ann.say("claude", "at last")

        result = await client.call_tool("wait_for_messages", {}, progress_callback=report)
        assert result.structured_content["messages"][0]["content"] == "at last"
        assert len(reports) >= 2


@pytest.mark.behaviour("I-11")
async def test_two_hosts_talk_and_their_answers_name_their_causes(in_memory: Networks) -> None:
    async with (
        one_person(in_memory) as (net, ann),
        host(net) as claude,
        host(net, "codex") as codex,
    ):
        asked = await ann.say("claude", "ask codex")
        await wait(claude)
        await run_tool(claude, "send_text_message", to="codex", text="what is 6 * 7?")
        (question,) = (await wait(codex))["messages"]
        assert (question["sender"], question["reply"]) == ("claude", "optional")
        await run_tool(codex, "send_text_message", text="42")
        (_, answer) = (await wait(claude))["messages"]
        assert answer["content"] == "42"
        await run_tool(claude, "send_text_message", to="ann", text="42")
        assert await said_to(ann) == "42"
        operator = await net.network.join("operator", "service")
        message = await operator.call("read_message", id=question["id"])
        assert message["cause_id"] == asked["id"]


@pytest.mark.behaviour("I-11")
async def test_budgets_stops_and_size_limits_apply_to_hosts(in_memory: Networks) -> None:
    async with harness(in_memory, config(network={"budgets": {"hops": 1}})) as net:
        ann, _ = await net.person(), await net.network.join("cursor", "agent")
        async with host(net) as client:
            await ann.say("claude", "ask cursor")
            await wait(client)
            sent = await run_tool(client, "send_text_message", to="cursor", text="and you?")
            assert sent["not_woken"] == {"cursor": "hop_limit"}
            large = await run_tool(client, "send_text_message", to="ann", text="x" * 1_000_000)
            assert large["error"] == "too_large"
            await ann.call("stop", scope="agent", target="claude")
            refused = await run_tool(client, "send_text_message", to="ann", text="I go on")
            assert refused["error"] == "stopped"
