"""Tools of one's own in a model's turns: what runs, what runs again, what the model is told."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from pydantic import JsonValue

from hubbub.config.models import AgentConfig, ModelConfig
from hubbub.errors import ConfigError
from hubbub.testing.model_server import ModelServer, Script
from tests.interaction.agent_rig import POLL_S, Rig, call, finish, rig, says, send
from tests.interaction.peers import Networks, soon

TOOLS = '''
import asyncio
from pathlib import Path

from hubbub import ToolFailed, tool

HERE = Path(__file__).parent


@tool(permission="write")
async def pay(amount: int) -> str:
    """Pay an amount."""
    with (HERE / "paid.txt").open("a") as book:
        book.write(f"{amount}\\n")
    if amount > 100:
        await asyncio.Event().wait()
    return f"paid {amount}"


@tool(idempotent=True)
async def look(what: str) -> str:
    """Look at something."""
    with (HERE / "looked.txt").open("a") as book:
        book.write(f"{what}\\n")
    if (HERE / "wait").exists():
        await asyncio.Event().wait()
    return f"{what} is fine"


@tool(name="sell")
def sell_it(item: str) -> str:
    """Sell an item."""
    raise ToolFailed(f"no {item} left", error="sold_out", near=["tea", "milk"])


def plain(a: int, b: int = 2) -> dict[str, int]:
    """Add two numbers."""
    return {"sum": a + b}


def silent(a: int) -> int:
    return a


NUMBER = 7
'''


class Shop:
    """An agent with these tools, in front of a scripted model."""

    def __init__(self, net: Rig, model: ModelServer, folder: Path):
        self.net, self.model, self.folder = net, model, folder
        (folder / "tools.py").write_text(TOOLS)

    async def start(self, *tools: str, **more: JsonValue) -> None:
        named = [f"tools.py:{name}" for name in tools]
        agent = AgentConfig.model_validate({"tools": [*named, "send_text_message"], **more})
        models = {"default": ModelConfig(model="m", base_url=self.model.base_url, retries=0)}
        await self.net.configured("bot", agent, self.folder, models)

    def lines(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text().split() if path.exists() else []

    async def until_written(self, name: str) -> None:
        """Until a tool that never returns has done its deed."""
        async with soon():
            while not self.lines(name):  # noqa: ASYNC110 - a file announces nothing
                await asyncio.sleep(POLL_S)

    def result(self, request: int = -1) -> str:
        return self.model.requests[request].body.messages[-1].text


async def test_a_plain_function_needs_no_decorator(in_memory: Networks, tmp_path: Path) -> None:
    script = Script(answers=[says(call("plain", a=1)), says(send("ann", "3"), finish())])
    async with ModelServer(script) as model, rig(in_memory) as net:
        shop = Shop(net, model, tmp_path)
        ann = await net.person()
        await shop.start("plain")
        await ann.say("bot", "1 + 2?")
        assert (await ann.event())["message"]["content"] == "3"
        assert json.loads(shop.result()) == {"sum": 3}
        tools = {t.function.name: t.function for t in model.requests[0].body.tools}
        assert tools["plain"].description == "Add two numbers."
        assert tools["plain"].parameters["required"] == ["a"]


async def test_a_tools_own_words_reach_the_model(in_memory: Networks, tmp_path: Path) -> None:
    script = Script(answers=[says(call("sell", item="pie")), says(send("ann", "no"), finish())])
    async with ModelServer(script) as model, rig(in_memory) as net:
        shop = Shop(net, model, tmp_path)
        ann = await net.person()
        await shop.start("sell_it")
        await ann.say("bot", "a pie, please")
        await ann.event()
        assert json.loads(shop.result()) == {
            "error": "sold_out",
            "message": "no pie left",
            "retry": False,
            "valid_names": ["tea", "milk"],
        }
        turn = await net.turn("bot-m1")
        assert turn.steps[0].calls[0].error == "sold_out"


async def test_a_tool_that_takes_too_long_is_given_up(in_memory: Networks, tmp_path: Path) -> None:
    # Nothing is sent: that may take longer than the little time that all tools have here.
    script = Script(answers=[says(call("pay", amount=200)), says(finish()), says(finish())])
    async with ModelServer(script) as model, rig(in_memory) as net:
        shop = Shop(net, model, tmp_path)
        ann = await net.person()
        await shop.start("pay", tool_timeout=0.02)
        await ann.say("bot", "pay")
        await net.turn("bot-m1")
        told = json.loads(shop.result(1))
        assert told["error"] == "timeout"
        assert "may still take effect" in told["message"]


async def test_a_tool_that_may_have_run_when_the_process_died_is_not_run_again(
    in_memory: Networks, tmp_path: Path
) -> None:
    script = Script(answers=[says(call("pay", amount=200)), says(send("ann", "?"), finish())])
    async with ModelServer(script) as model, rig(in_memory) as net:
        shop = Shop(net, model, tmp_path)
        ann = await net.person()
        await shop.start("pay")
        await ann.say("bot", "pay")
        await shop.until_written("paid.txt")
        await net.kill("bot")
        await shop.start("pay")
        await ann.event()
        assert shop.lines("paid.txt") == ["200"]
        assert json.loads(shop.result())["error"] == "interrupted"
        assert len(model.requests) == 2
        assert (await net.turn("bot-m1")).attempts == 2


async def test_a_tool_that_does_no_harm_is_run_again(in_memory: Networks, tmp_path: Path) -> None:
    script = Script(answers=[says(call("look", what="tea")), says(send("ann", "ok"), finish())])
    async with ModelServer(script) as model, rig(in_memory) as net:
        shop = Shop(net, model, tmp_path)
        (tmp_path / "wait").touch()
        ann = await net.person()
        await shop.start("look")
        await ann.say("bot", "look")
        await shop.until_written("looked.txt")
        await net.kill("bot")
        (tmp_path / "wait").unlink()
        await shop.start("look")
        await ann.event()
        assert shop.lines("looked.txt") == ["tea", "tea"]
        assert shop.result() == "tea is fine"


@pytest.mark.parametrize(
    ("name", "says_what"),
    [
        ("NUMBER", "is no function"),
        ("silent", "needs a docstring"),
        ("pey", r"no 'pey' in it; did you mean pay\?"),
    ],
)
async def test_what_cannot_be_a_tool_is_refused_before_anything_starts(
    in_memory: Networks, tmp_path: Path, name: str, says_what: str
) -> None:
    async with ModelServer(Script()) as model, rig(in_memory) as net:
        shop = Shop(net, model, tmp_path)
        await shop.start(name)
        error = await net.death("bot")
        assert isinstance(error, ConfigError)
        with pytest.raises(ConfigError, match=says_what):
            raise error


async def test_two_tools_of_one_name_are_refused(in_memory: Networks, tmp_path: Path) -> None:
    (tmp_path / "more.py").write_text("def pay() -> None:\n    '''Pay again.'''\n")
    async with ModelServer(Script()) as model, rig(in_memory) as net:
        shop = Shop(net, model, tmp_path)
        models = {"default": ModelConfig(model="m", base_url=model.base_url)}
        agent = AgentConfig(tools=["tools.py:pay", "more.py:pay"])
        await net.configured("bot", agent, shop.folder, models)
        error = await net.death("bot")
        assert isinstance(error, ConfigError)
        assert "agents.bot.tools: there are two tools called 'pay'" in str(error)


class TestTemplate:
    async def ask(
        self, networks: Networks, folder: Path, template: str, text: str
    ) -> tuple[str, str]:
        """The prompt that a template makes of `text`, and what the person hears."""
        (folder / "mine.j2").write_text(template)
        script = Script(answers=[says(send("ann", "ok"), finish())])
        async with ModelServer(script) as model, rig(networks) as net:
            ann = await net.person()
            models = {"default": ModelConfig(model="m", base_url=model.base_url)}
            await net.configured("bot", AgentConfig(template="mine.j2"), folder, models)
            await ann.say("bot", text)
            message = (await ann.event())["message"]
            heard = message.get("text_representation") or message["content"]
            sent = [r.body.messages[1].text for r in model.requests]
            return sent[0] if sent else "", str(heard)

    async def test_a_template_of_ones_own_makes_the_prompt(
        self, in_memory: Networks, tmp_path: Path
    ) -> None:
        template = "{{ incoming_message.sender_id }} says {{ incoming_message.text }}"
        prompt, heard = await self.ask(in_memory, tmp_path, template, "a < b")
        assert prompt == "ann says a &lt; b"
        assert heard == "ok"

    async def test_one_that_fails_on_a_message_ends_that_turn(
        self, in_memory: Networks, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        template = "{{ 1 // (incoming_message.text | length - 4) }}"
        prompt, heard = await self.ask(in_memory, tmp_path, template, "four")
        assert prompt == ""
        assert "mine.j2:1: the template fails" in heard
        assert "ConfigError" in capfd.readouterr().err
