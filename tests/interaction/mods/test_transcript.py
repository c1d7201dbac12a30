"""Transcripts: what was said as a file, and back."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from hubbub import Agent, Message
from hubbub.mods.api import Mod, ModConfig, Reject, Verdict
from hubbub.mods.edits.mod import EditsConfig, EditsMod
from hubbub.mods.transcript.mod import TranscriptMod
from hubbub.protocol.messages import Draft
from hubbub.testing.mod_contract import mod_contract
from tests.interaction.agent_rig import Rig
from tests.interaction.peers import Frame, Network, Networks, Peer, config

test_it_is_a_good_neighbour = pytest.mark.behaviour("M-215")(mod_contract(TranscriptMod))

NETWORKS = Networks(sockets=False)
LIMITS = {"limits": {"burst": 100_000, "calls_per_second": 100_000}}
OLGA = {"olga": {"roles": ["owner"]}}
FILE = config(network=LIMITS, channels={"desk": {"members": ["ann", "bot", "olga"]}}, humans=OLGA)
EMPTY = config(network=LIMITS, humans=OLGA)
EPOCH = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
HEADER = json.dumps({"transcript": 1, "network": "old", "epoch": EPOCH})


def mods() -> list[Mod]:
    return [EditsMod(EditsConfig()), TranscriptMod(ModConfig())]


async def export(peer: Peer, **args: Any) -> str:
    text, more = "", dict[str, Any]()
    while True:
        piece = await peer.call("export_transcript", **args, **more)
        text += str(piece["text"])
        if piece.get("cursor") is None:
            return text
        more = {"cursor": piece["cursor"]}


async def lines_of(peer: Peer, **args: Any) -> list[str]:
    return (await export(peer, format="jsonl", **(args or {"everything": True}))).splitlines()


async def import_(peer: Peer, lines: list[str], header: str = HEADER) -> Any:
    return await peer.call("import_transcript", header=header, lines=lines)


async def refused(peer: Peer, name: str, **args: Any) -> Frame:
    answer = await peer.ask(name, **args)
    assert answer["op"] == "error", answer
    return answer


def line(seq: int = 1, **change: Any) -> str:
    """A line of a transcript of another network."""
    given = {
        "id": f"m{seq}", "seq": seq, "thread_id": "channel.desk", "tseq": seq, "sender_id": "ann",
        "sender_kind": "human", "type": "channel", "content": f"no {seq}",
        "interaction_id": f"i{seq}", "hop": 0, "sent_at": "2026-01-31T09:00:00.123Z", **change,
    }  # fmt: skip
    return json.dumps({key: value for key, value in given.items() if value is not ...})


async def talk(network: Network) -> tuple[Peer, Peer, Peer]:
    olga, ann = await network.join("olga"), await network.join("ann")
    bot = await network.join("bot", "agent")
    asked = await ann.call("post_to_channel", channel="desk", text="@bot how much?")
    await bot.call("reply", message_id=asked["id"], text="42", cause=asked["id"])
    await bot.say("ann", "psst", cause=asked["id"])
    await olga.call("broadcast_text_message", text="lunch")
    return olga, ann, bot


# Export -----------------------------------------------------------------------------------------


@pytest.mark.behaviour("M-215")
async def test_each_exports_what_it_may_read_and_no_more() -> None:
    async with NETWORKS.start(FILE, mods=mods()) as network:
        olga, ann, bot = await talk(network)
        texts = [json.loads(each).get("content") for each in await lines_of(ann, thread="bot")]
        assert texts == [None, "psst"]
        found = await lines_of(bot, interaction="i1")
        assert [json.loads(each).get("id") for each in found] == [None, "m1", "m2", "m3"]
        assert "psst" not in await export(olga, interaction="i1")
        everything = await export(olga, everything=True, format="markdown")
        assert "how much?" in everything
        assert "psst" not in everything
        assert "lunch" in everything
        operator = await network.join("operator", "service")
        assert "psst" in await export(operator, everything=True)


@pytest.mark.behaviour("M-223")
async def test_what_one_may_not_read_one_cannot_export() -> None:
    async with NETWORKS.start(FILE, mods=mods()) as network:
        _, ann, bot = await talk(network)
        eve = await network.join("eve", "agent")
        for args in ({"thread": "channel_desk"}, {"thread": "dm.ann.bot"}, {"interaction": "i1"}):
            answer = await refused(eve, "export_transcript", **args)
            assert answer["code"] in ("unknown_thread", "unknown_interaction")
        assert (await refused(bot, "export_transcript", everything=True))["code"] == "forbidden"
        for some in ({}, {"thread": "channel_desk", "everything": True}):
            assert (await refused(ann, "export_transcript", **some))["code"] == "bad_request"
        lines = {"header": HEADER, "lines": [line()]}
        assert (await refused(bot, "import_transcript", **lines))["code"] == "forbidden"


@pytest.mark.behaviour("M-215")
@pytest.mark.parametrize("size", [1, 20_000, 60_000])
async def test_long_threads_come_in_pieces_and_completely(size: int) -> None:
    async with NETWORKS.start(FILE, mods=mods()) as network:
        ann = await network.join("ann")
        count = 120 if size == 1 else 30
        for n in range(count):
            text = f"{n}:" + "x" * (size if n % 3 == 0 else 1)
            await ann.call("post_to_channel", channel="desk", text=text)
        for args in ({"thread": "channel_desk"}, {"everything": True}):
            lines = await lines_of(ann, **args)
            found = [json.loads(each)["content"].partition(":")[0] for each in lines[1:]]
            assert found == [str(n) for n in range(count)]
        piece = await ann.call("export_transcript", thread="channel_desk")
        assert len(piece["text"]) < 300_000
        assert piece["cursor"]


@pytest.mark.behaviour("M-216")
@pytest.mark.parametrize("args", [{"thread": "channel_desk"}, {"everything": True}])
async def test_what_is_said_meanwhile_does_not_come_into_it(args: dict[str, Any]) -> None:
    async with NETWORKS.start(FILE, mods=mods()) as network:
        ann = await network.join("ann")
        for n in range(60):
            await ann.call("post_to_channel", channel="desk", text=str(n))
        first = await ann.call("export_transcript", format="jsonl", **args)
        await ann.call("post_to_channel", channel="desk", text="late")
        rest = await ann.call("export_transcript", format="jsonl", cursor=first["cursor"], **args)
        assert "cursor" not in rest
        assert (first["messages"], rest["messages"]) == (50, 10)


@pytest.mark.behaviour("M-215")
async def test_empty_threads_and_deleted_messages_are_shown_as_such() -> None:
    async with NETWORKS.start(FILE, mods=mods()) as network:
        ann = await network.join("ann")
        secret = await ann.call("post_to_channel", channel="desk", text="secret")
        edited = await ann.call("post_to_channel", channel="desk", text="wrong")
        await ann.call("delete_message", message_id=secret["id"])
        await ann.call("edit_message", message_id=edited["id"], text="right")
        for format in ("markdown", "jsonl", "html"):
            text = await export(ann, thread="channel_desk", format=format)
            assert "secret" not in text
            assert "wrong" not in text
            assert "right" in text
        assert (await export(ann, thread="broadcast")).count("\n") <= 1


HOSTILE = [
    "</pre><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "```\n# out\n<b>bold</b>",
    "`````` ```\n\n---\n",
    "~~~\n> quote\n",
    '"><svg onload=alert(1)>',
    "&lt;script&gt; ]]> --> <!--",
    "\n\n# first line\n",
    "\u202e\u2028\u0085 right to left",
    "[x](javascript:alert(1))",
]


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.behaviour("M-217")
@pytest.mark.parametrize("text", HOSTILE)
async def test_nothing_breaks_out_of_a_page(text: str) -> None:
    async with NETWORKS.start(FILE, mods=mods()) as network:
        ann = await network.join("ann")
        await hostile(ann, text)
        parser = _Tags()
        page = await export(ann, thread="channel_desk", format="html")
        parser.feed(page)
        assert parser.tags == {
            "html", "head", "meta", "title", "style", "body", "h1", "article", "header", "b", "pre",
            "blockquote", "ul", "li",
        }  # fmt: skip
        assert parser.attributes <= {"lang", "charset", "http-equiv", "content", "name", "id"}
        assert text.strip() in parser.text
        assert page.count("<article") == 2


@pytest.mark.behaviour("M-217")
@pytest.mark.parametrize("text", HOSTILE)
async def test_nothing_breaks_out_of_a_fence(text: str) -> None:
    async with NETWORKS.start(FILE, mods=mods()) as network:
        ann = await network.join("ann")
        await hostile(ann, text)
        tokens = MarkdownIt().parse(await export(ann, thread="channel_desk"))
        kinds = [token.type for token in tokens if token.type.endswith(("_open", "fence", "block"))]
        assert set(kinds) == {"heading_open", "paragraph_open", "fence"}
        fences = [token.content for token in tokens if token.type == "fence"]
        assert len(fences) == 4  # two texts, one of them with a quote and attachments
        assert kinds.count("heading_open") == 1
        assert any(text in fence for fence in fences)


async def hostile(ann: Peer, text: str) -> None:
    """The text in all places that take one."""
    first = await ann.call("post_to_channel", channel="desk", text=text)
    await ann.call(
        "post_to_channel",
        channel="desk",
        text=f"x\n{text}",
        quote={"message_id": first["id"], "text": text},
        attachments=[{"name": text, "media_type": text, "uri": text}],
    )


# Import -----------------------------------------------------------------------------------------


def alike(text: str) -> Any:
    """A line without what an import adds."""
    return {k: v for k, v in json.loads(text).items() if k not in ("imported", "outside")}


WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
STEPS = st.lists(
    st.tuples(st.sampled_from(("post", "reply", "direct", "json", "quote", "edit")), WORDS),
    max_size=8,
)


@pytest.mark.behaviour("M-218")
@given(STEPS, st.integers(1, 5))
@settings(max_examples=20, deadline=None)
async def test_what_was_exported_and_imported_is_exported_again(
    steps: list[tuple[str, str]], at_once: int
) -> None:
    async with NETWORKS.start(FILE, mods=mods()) as network:
        olga, ann = await network.join("olga"), await network.join("ann")
        bot = await network.join("bot", "agent")
        last = await ann.call("post_to_channel", channel="desk", text="@bot begin")
        for kind, text in steps:
            last = await step(kind, text or "-", ann, bot, last)
        operator = await network.join("operator", "service")
        header, *lines = await lines_of(operator)
        del olga
    async with NETWORKS.start(EMPTY, mods=mods()) as network:
        operator = await network.join("operator", "service")
        for start in range(0, len(lines), at_once):
            part = lines[start : start + at_once]
            told = await import_(operator, part, header)
            assert told == {"imported": len(part), "before": 0, "skipped": 0}
        _, *again = await lines_of(operator)
        assert list(map(alike, again)) == list(map(alike, lines))
        assert (await import_(operator, lines[:200], header))["imported"] == 0


async def step(kind: str, text: str, ann: Peer, bot: Peer, last: Any) -> Any:
    match kind:
        case "post":
            return await ann.call("post_to_channel", channel="desk", text=text)
        case "reply":
            return await bot.call("reply", message_id=last["id"], text=text, cause=last["id"])
        case "direct":
            return await ann.say("bot", text)
        case "json":
            await bot.call("send_message", to="ann", content={"a": [text, 1.5, None]})
        case "quote":
            quote = {"message_id": last["id"], "text": text}
            await ann.call("post_to_channel", channel="desk", text=text, quote=quote)
        case "edit":
            said = await ann.call("post_to_channel", channel="desk", text="first")
            await ann.call("edit_message", message_id=said["id"], text=f"then {text}")
    return last


@pytest.mark.behaviour("M-219")
async def test_imported_lines_are_there_for_their_readers_and_wake_nobody() -> None:
    async with NETWORKS.start(FILE, mods=mods()) as network:
        ann, bot = await network.join("ann"), await network.join("bot", "agent", turns=True)
        direct = {"thread_id": "dm.ann.bot", "type": "direct", "recipients": ["bot"]}
        lines = [line(7, mentions=["bot"], content="@bot do it"), line(9, **direct)]
        operator = await network.join("operator", "service")
        assert (await import_(operator, lines))["imported"] == 2
        events = await bot.sync()
        assert [each.get("wake") for each in events] == [None, None]
        assert all(each["message"]["imported"] for each in events)
        assert events[0]["message"]["sent_at"] == "2026-01-31T09:00:00.123Z"
        page = await ann.call("read_thread", thread="bot")
        assert page["messages"][0]["id"] == "m2"
        why = await ann.call("explain_wake", agent="bot", message_id="m1")
        assert (why["woken"], why["reason"]) == (False, "imported")
        assert await bot.sync() == []
        assert not [e for e in await ann.sync() if e["message"]["sender_kind"] == "system"]


class Parrot(Agent):
    """Says what it overhears."""

    async def on_channel_message(self, message: Message) -> str:
        return f"heard {message.text}"

    async def on_mention(self, message: Message) -> str:
        return "yes?"


@pytest.mark.behaviour("M-219")
async def test_an_agent_that_overhears_channels_leaves_history_alone() -> None:
    async with NETWORKS.start(FILE, mods=mods()) as network:
        net, ann = Rig(network), await network.join("ann")
        try:
            await net.python("bot", Parrot())
            operator = await network.join("operator", "service")
            await import_(operator, [line(1), line(2, content="@bot", mentions=["bot"])])
            await ann.call("post_to_channel", channel="desk", text="@bot there?")
            await ann.take(3)
            page = await ann.call("read_thread", thread="channel_desk")
            assert [m["content"] for m in page["messages"]] == [
                "no 1", "@bot", "@bot there?", "yes?",
            ]  # fmt: skip
        finally:
            await net.stop()


@pytest.mark.behaviour("M-219")
async def test_an_import_that_was_cut_off_goes_on_where_it_was() -> None:
    async with NETWORKS.start(EMPTY, mods=mods()) as network:
        operator = await network.join("operator", "service")
        lines = [line(n, reply_to="m1" if n > 1 else ...) for n in range(1, 6)]
        await import_(operator, lines[:3])
        told = await import_(operator, lines)
        assert told == {"imported": 2, "before": 3, "skipped": 0}
        page = await operator.call("read_thread", thread="channel.desk")
        assert [m["content"] for m in page["messages"]] == [f"no {n}" for n in range(1, 6)]
        assert [m.get("reply_to") for m in page["messages"]] == [None, *["m1"] * 4]


@pytest.mark.behaviour("M-219")
async def test_ids_are_translated_and_what_is_not_there_is_left_out() -> None:
    async with NETWORKS.start(EMPTY, mods=mods()) as network:
        operator = await network.join("operator", "service")
        lines = [
            line(40),
            line(41, thread_id="channel.desk.t40", interaction_id="i40", hop=1,
                 cause_id="bot-m40", sender_id="bot", sender_kind="agent"),
            line(50, thread_id="channel.desk.t41", quote={"message_id": "m7", "text": "gone"},
                 reply_to="m7", cause_id="m7", interaction_id="i7", hop=3),
            line(51, thread_id="channel.desk.t7"),
            line(52, amends={"message_id": "m7", "kind": "edited"}),
            line(53, thread_id="mod.tasks", type="mod", sender_id="hub", sender_kind="system"),
        ]  # fmt: skip
        told = await import_(operator, lines)
        assert told == {"imported": 4, "before": 0, "skipped": 2}
        found = [json.loads(each) for each in (await lines_of(operator))[1:]]
        one, two, three, four = found
        assert (one["id"], one["interaction_id"]) == ("m1", "i1")
        assert (two["thread_id"], two["cause_id"], two["hop"]) == ("channel.desk.t1", "bot-m1", 1)
        assert two["interaction_id"] == "i1"
        assert (three["thread_id"], three["interaction_id"]) == ("channel.desk.t2", "i3")
        assert three["quote"] == {"message_id": "", "text": "gone"}
        assert "reply_to" not in three
        assert "cause_id" not in three
        assert four["thread_id"] == "channel.desk"


@pytest.mark.behaviour("M-220")
async def test_a_thread_with_messages_of_its_own_takes_no_import() -> None:
    async with NETWORKS.start(FILE, mods=mods()) as network:
        olga, ann = await network.join("olga"), await network.join("ann")
        await import_(olga, [line(1)])
        await ann.call("post_to_channel", channel="desk", text="what is this?")
        assert (await import_(olga, [line(1), line(2)]))["imported"] == 1  # begun by an import
        other = json.dumps({"transcript": 1, "network": "x", "epoch": EPOCH[:-1] + "Z"})
        answer = await refused(olga, "import_transcript", header=other, lines=[line(1)])
        assert answer["code"] == "conflict"
        await ann.call("broadcast_text_message", text="hello")
        lines = [line(3), line(4, thread_id="broadcast", type="broadcast")]
        answer = await refused(olga, "import_transcript", header=HEADER, lines=lines, first=10)
        assert answer["code"] == "conflict"
        assert answer["message"].startswith("line 11: broadcast has messages of its own here")
        own = (await lines_of(olga, thread="channel_desk"))[0]
        answer = await refused(olga, "import_transcript", header=own, lines=[])
        assert "this very network" in answer["message"]


WRONG: list[tuple[str, str]] = [
    ("{", "is no JSON"),
    ("[]", "should be an object"),
    ('{"a": NaN}', "is no number"),
    ("[" * 10_000, "nested too deep"),
    (line(content="a\0b"), "NUL"),
    (line(content="x").replace('"x"', '"\\ud800"'), "half a character"),
    (line().replace('"hop": 0', '"hop": 0, "hop": 1'), "twice"),
    (line().replace('"hop": 0', '"hop": 0, "content": 1e999').replace('"content": "no 1", ', ""),
     "too large"),
    (line(content=[[[]]]).replace("[[[]]]", "[" * 40 + "]" * 40), "nested deeper"),
    (line(id="m2"), "id: 'm2' is not the message at 1"),
    (line(seq=0), "id: "),
    (line(thread_id="channel.desk\n"), "is no thread"),
    (line(thread_id="dm.bob.ann", type="direct"), "is no thread"),
    (line(type="direct"), "messages do not stand in"),
    (line(sender_id="hub"), "the hub, and it alone"),
    (line(sender_id="hub", sender_kind="agent"), "the hub, and it alone"),
    (line(sender_id='a"b'), "ids of participants"),
    (line(spoken_by='a"},{'), "ids of participants"),
    (line(timer_of="a b"), "ids of participants"),
    (line(mentions=["<b>"]), "ids of participants"),
    (line(thread_id="dm.bob.cat", type="direct"), "has no part in"),
    (line(interaction_id="x"), "interaction_id"),
    (line(hop=-1), "hop"),
    (line(sent_at="2999-01-01T00:00:00Z"), "has not come yet"),
    (line(sent_at="0001-01-01T00:00:00+12:00"), "no time of a network"),
    (line(sent_at="2026-01-01T00:00:00"), "sent_at"),
    (line(content=...), "content"),
]  # fmt: skip


@pytest.mark.behaviour("M-221")
@pytest.mark.parametrize(("wrong", "why"), WRONG)
async def test_a_wrong_line_is_told_by_its_number_and_nothing_is_imported(
    wrong: str, why: str
) -> None:
    async with NETWORKS.start(EMPTY, mods=mods()) as network:
        olga = await network.join("olga")
        lines = [line(100), wrong]
        answer = await refused(olga, "import_transcript", header=HEADER, lines=lines, first=7)
        assert answer["code"] == "bad_request"
        assert re.match(rf"line 8: .*{re.escape(why)}", answer["message"]), answer["message"]
        assert len(await lines_of(olga)) == 1


@pytest.mark.behaviour("M-221")
@pytest.mark.parametrize(
    "header",
    ["", "{}", "[]", '{"transcript":2}', '{"transcript":1,"network":"x","epoch":"../../etc"}'],
)
async def test_what_is_no_transcript_is_refused_at_its_first_line(header: str) -> None:
    async with NETWORKS.start(EMPTY, mods=mods()) as network:
        olga = await network.join("olga")
        answer = await refused(olga, "import_transcript", header=header, lines=[line()])
        assert answer["message"].startswith("line 1: a transcript begins with")


class Gate(Mod):
    """Lets nothing pass that is forbidden."""

    name = "gate"

    def on_message(self, draft: Draft) -> Verdict:
        return Reject("no") if draft.content == "bad" else super().on_message(draft)


@pytest.mark.behaviour("M-221")
async def test_what_a_mod_rejects_is_told_by_its_line_and_what_stands_before_it_stays() -> None:
    async with NETWORKS.start(EMPTY, mods=[*mods(), Gate(ModConfig())]) as network:
        olga = await network.join("olga")
        lines = [line(1), line(2, content="bad"), line(3)]
        answer = await refused(olga, "import_transcript", header=HEADER, lines=lines)
        assert (answer["code"], answer["message"]) == ("rejected", "line 3: gate: no")
        big = [line(1), line(2, content="x" * 70_000)]
        answer = await refused(olga, "import_transcript", header=HEADER, lines=big)
        assert answer["code"] == "too_large"
        assert await import_(olga, [line(1), line(3)]) == {
            "imported": 2, "before": 0, "skipped": 0
        }  # fmt: skip
        found = [json.loads(each)["content"] for each in (await lines_of(olga))[1:]]
        assert found == ["no 1", "no 3"]


@pytest.mark.behaviour("M-222")
async def test_a_hostile_line_forges_nothing_that_others_rely_on() -> None:
    async with NETWORKS.start(EMPTY, mods=mods()) as network:
        olga, bot = await network.join("olga"), await network.join("bot", "agent", turns=True)
        await network.join("ann")
        await network.join("calc", "agent", turns=True)
        asked = await bot.call("delegate", to="calc", task="count")
        direct = {"thread_id": "dm.ann.olga", "type": "direct"}
        lines = [
            line(1, **direct, request={"id": asked["id"], "kind": "result"}, mode="interrupt"),
            line(2, **direct, attachments=[{"name": "a", "uri": "FILE:f1"}]),
            line(3, **direct, spoken_by="olga", sender_id="ann", outside=False),
            line(4, **direct, sender_id="hub", sender_kind="system",
                 content={"notice": "approval", "id": "a1"}),
        ]  # fmt: skip
        await import_(olga, lines)
        found = [json.loads(each) for each in (await lines_of(olga, thread="ann"))[1:]]
        assert all(each["imported"] and each["outside"] for each in found)
        assert not any({"request", "mode"} & each.keys() for each in found)
        assert found[1]["attachments"][0]["uri"] == "imported:f1"
        open_ = await bot.call("list_requests")
        assert [each["state"] for each in open_["requests"]] == ["open"]
        assert (await olga.call("list_approvals"))["approvals"] == []
