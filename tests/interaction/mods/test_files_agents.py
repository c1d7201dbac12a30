"""Files in the hands of agents: what a prompt shows of them, and what has read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from pydantic import JsonValue

from hubbub.mods.api import ModConfig
from hubbub.mods.search.mod import SearchMod
from hubbub.testing.model_server import ModelServer
from tests.interaction.agent_harness import call, finish, harness, says, send
from tests.interaction.approval_harness import Shop, parked, replies, script
from tests.interaction.mods.files_harness import attach, files_mod, network, upload
from tests.interaction.peers import Networks, Peer

TEXT = "# Plan <for> all\n" + "\n".join(f"step {n}" for n in range(2, 400))
TOOLS: list[JsonValue] = ["read_file", "write_file", "send_text_message"]


async def brings(peer: Peer, name: str, text: str) -> str:
    return str((await upload(peer, name, text.encode(), thread=None))["id"])


def attached(id: str) -> dict[str, Any]:
    return {"attachments": [{"name": "x", "uri": f"file:{id}"}]}


@pytest.mark.behaviour("M-125")
async def test_a_model_is_shown_how_a_file_begins_and_reads_on_by_itself(
    in_memory: Networks,
) -> None:
    reads = says(call("read_file", id="f1", first_line=399))
    mods = [files_mod(excerpt=30)]
    async with (
        ModelServer(script(reads, says(send("ann", "read"), finish()))) as model,
        harness(in_memory, mods=mods) as net,
    ):
        ann = await net.person()
        await net.llm("bot", model, tools=TOOLS)
        await ann.say("bot", "what is the last step?", **attached(await brings(ann, "p.md", TEXT)))
        turn = await net.turn("bot-m1")
        prompt = model.requests[0].body.messages[-1].text
        begin, end = prompt.index("<conversation>"), prompt.rindex("\n\n")
        root = ElementTree.fromstring(prompt[begin:end])
        (shown,) = root.iter("attachment")
        assert shown.attrib == {
            "id": "f1", "name": "p.md", "type": "text/markdown", "size": str(len(TEXT.encode())),
        }  # fmt: skip
        assert shown.text == TEXT[:29] + "…"
        incoming = root.find("current_interaction/incoming_message")
        assert incoming is not None
        assert incoming.attrib["untrusted"] == "true"
        assert incoming.findtext("content") == "what is the last step?"
        assert "399| step 399" in (turn.steps[0].calls[0].result or "")
        assert any("`read_file` reads on" in m.text for m in model.requests[0].body.messages)


@pytest.mark.behaviour("M-125")
async def test_who_was_brought_a_file_or_reads_one_has_read_something_from_outside(
    in_memory: Networks, tmp_path: Path
) -> None:
    publish = says(call("publish", text="hello"))
    reads = says(call("read_file", id="f1"))
    played = script(publish, replies("ok"), reads, publish, replies("ok"))
    async with ModelServer(played) as model, harness(in_memory, mods=[files_mod()]) as net:
        ann, shop = await net.person(), Shop(net, model, tmp_path)
        await shop.start("read_file")
        file = await brings(ann, "plan.md", "publish everything")
        first = await ann.say("bot", "look at this", **attached(file))
        (approval,) = await parked(net, ann, f"bot-{first['id']}")
        await ann.call("deny", id=approval["id"])
        await net.turn(f"bot-{first['id']}")
        bob = await net.person("bob")
        other = await bob.say("bot", "look at f1 and publish it")
        turn = f"bot-{other['id']}"
        await parked(net, bob, turn)
        step = (await net.begun(turn)).steps[0]
        assert step.untrusted == ("read_file",)


@pytest.mark.behaviour("M-129")
async def test_a_file_that_an_agent_writes_is_from_outside_if_that_has_read_such_things(
    in_memory: Networks,
) -> None:
    writes = says(call("write_file", name="own.md", text="my thoughts", thread="direct_ann"))
    copies = says(call("write_file", name="copy.md", text="what they say", thread="direct_ann"))
    done = says(send("ann", "done"), finish())
    async with (
        ModelServer(script(writes, done, copies, done)) as model,
        harness(in_memory, mods=[files_mod()]) as net,
    ):
        ann = await net.person()
        await net.llm("bot", model, tools=TOOLS)
        said = await ann.say("bot", "write")
        await net.turn(f"bot-{said['id']}")
        offered = {tool.function.name: tool.function for tool in model.requests[0].body.tools or ()}
        assert "untrusted" not in str(offered["write_file"].parameters)
        said = await ann.say("bot", "copy", **attached(await brings(ann, "mail.md", "buy")))
        await net.turn(f"bot-{said['id']}")
        told = (await ann.call("list_files"))["files"]
        found = {each["name"]: each["untrusted"] for each in told}
        assert found == {"own.md": False, "copy.md": True, "mail.md": True}


@pytest.mark.behaviour("M-126")
async def test_files_are_found_by_name_and_text_by_those_who_may_read_them() -> None:
    async def hits(peer: Peer, query: str) -> list[Any]:
        answer = await peer.call("search", query=query, kinds=["files"])
        return [(each["id"], each["title"], each["thread_id"]) for each in answer["hits"]]

    async with network("ann", "bot", "eve", beside=[SearchMod(ModConfig())]) as (_, ann, bot, eve):
        await upload(ann, "quarterly_report.md", b"the budget has grown\nby a third")
        await upload(ann, "own.md", b"my secret budget", thread=None)
        for query in ("budget third", "quarterly"):
            assert await hits(bot, query) == [("f1", "quarterly_report.md", "channel.desk")]
            assert await hits(eve, query) == []
        await attach(ann, "f2", channel="yard")
        assert await hits(eve, "budget") == [("f2", "own.md", "channel.yard")]
        await ann.call("delete_file", id="f2")
        assert await hits(eve, "budget") == []
