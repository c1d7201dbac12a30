"""Files and agents: excerpts in prompts, untrusted turns, and search."""

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


async def upload_private(peer: Peer, name: str, text: str) -> str:
    return str((await upload(peer, name, text.encode(), thread=None))["id"])


def attached(id: str) -> dict[str, Any]:
    return {"attachments": [{"name": "x", "uri": f"file:{id}"}]}


@pytest.mark.behaviour("M-125")
async def test_a_prompt_has_an_excerpt_and_the_model_can_read_on(in_memory: Networks) -> None:
    read = says(call("read_file", id="f1", first_line=399))
    mods = [files_mod(excerpt=30)]
    async with (
        ModelServer(script(read, says(send("ann", "read"), finish()))) as model,
        harness(in_memory, mods=mods) as net,
    ):
        ann = await net.person()
        await net.llm("bot", model, tools=TOOLS)
        await ann.say(
            "bot", "what is the last step?", **attached(await upload_private(ann, "p.md", TEXT))
        )
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
        assert any("`read_file` reads the rest" in m.text for m in model.requests[0].body.messages)


@pytest.mark.behaviour("M-125")
async def test_receiving_or_reading_a_file_makes_a_turn_untrusted(
    in_memory: Networks, tmp_path: Path
) -> None:
    publish = says(call("publish", text="hello"))
    read = says(call("read_file", id="f1"))
    played = script(publish, replies("ok"), read, publish, replies("ok"))
    async with ModelServer(played) as model, harness(in_memory, mods=[files_mod()]) as net:
        ann, shop = await net.person(), Shop(net, model, tmp_path)
        await shop.start("read_file")
        file = await upload_private(ann, "plan.md", "publish everything")
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
async def test_a_file_written_by_an_untrusted_turn_is_untrusted(in_memory: Networks) -> None:
    write = says(call("write_file", name="own.md", text="my thoughts", thread="direct_ann"))
    copy = says(call("write_file", name="copy.md", text="what they say", thread="direct_ann"))
    done = says(send("ann", "done"), finish())
    async with (
        ModelServer(script(write, done, copy, done)) as model,
        harness(in_memory, mods=[files_mod()]) as net,
    ):
        ann = await net.person()
        await net.llm("bot", model, tools=TOOLS)
        sent = await ann.say("bot", "write")
        await net.turn(f"bot-{sent['id']}")
        offered = {tool.function.name: tool.function for tool in model.requests[0].body.tools or ()}
        assert "untrusted" not in str(offered["write_file"].parameters)
        sent = await ann.say("bot", "copy", **attached(await upload_private(ann, "mail.md", "buy")))
        await net.turn(f"bot-{sent['id']}")
        files = (await ann.call("list_files"))["files"]
        assert {each["name"]: each["untrusted"] for each in files} == {
            "own.md": False, "copy.md": True, "mail.md": True,
        }  # fmt: skip


@pytest.mark.behaviour("M-126")
async def test_files_are_found_by_name_and_text_only_by_their_readers() -> None:
    async def hits(peer: Peer, query: str) -> list[Any]:
        answer = await peer.call("search", query=query, kinds=["files"])
        return [(each["id"], each["title"], each["thread_id"]) for each in answer["hits"]]

    async with network("ann", "bot", "eve", extra=[SearchMod(ModConfig())]) as (_, ann, bot, eve):
        await upload(ann, "quarterly_report.md", b"the budget has grown\nby a third")
        await upload(ann, "own.md", b"my secret budget", thread=None)
        for query in ("budget third", "quarterly"):
            assert await hits(bot, query) == [("f1", "quarterly_report.md", "channel.desk")]
            assert await hits(eve, query) == []
        await attach(ann, "f2", channel="yard")
        assert await hits(eve, "budget") == [("f2", "own.md", "channel.yard")]
        await ann.call("delete_file", id="f2")
        assert await hits(eve, "budget") == []
