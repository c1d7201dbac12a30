"""The client of `sdk/typescript` in Node: kills of the hub and of its own process, its package."""

from __future__ import annotations

import asyncio
import json
import shutil
from asyncio.subprocess import PIPE, STDOUT
from pathlib import Path

import pytest

from hubbub.client import Client, WebSocketTransport
from hubbub.network.auth import token_hash
from hubbub.network.store import add_token_offline
from hubbub.protocol.frames import Signal
from hubbub.protocol.operations import Turns, TurnSummary
from hubbub.protocol.turns import Turn
from tests.doc_pages import example
from tests.e2e.support.agents import all_present
from tests.e2e.support.config_network import run_config
from tests.e2e.support.hubs import running_hub
from tests.e2e.support.node import SDK, TYPESCRIPT, node, running_program
from tests.e2e.support.page_types import problems
from tests.unit.configs.people import Person

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not node(), reason="no Node with a built-in WebSocket"),
]

WRITER = """
import { join } from "@hubbub/client";
const writer = await join(process.argv[2], "writer");
for (let n = 0; n < 300; n++) {
  await writer.call("send_text_message", { to: "reader", text: `${n}` });
}
console.log("written");
writer.leave();
"""
READER = """
import { join } from "@hubbub/client";
const reader = await join(process.argv[2], "reader");
console.log("joined");
for await (const { message } of reader.events()) {
  console.log(message.content);
  if (message.content === "299") reader.leave();
}
"""


@pytest.mark.behaviour("I-25")
async def test_messages_between_node_programs_arrive_once_despite_hub_kills(
    tmp_path: Path,
) -> None:
    async with (
        running_hub(tmp_path) as hub,
        running_program(tmp_path, READER, hub.url) as reader,
    ):
        assert await reader.line() == "joined"
        async with running_program(tmp_path, WRITER, hub.url) as writer:
            lines = []
            for n in range(300):
                if n in (40, 41, 160):
                    await hub.kill()
                    await hub.start()
                lines.append(await reader.line())
            assert lines == [str(n) for n in range(300)]
            assert await writer.line() == "written"
            assert (await writer.ended(), await reader.ended()) == (0, 0)
            lost, back = f"no connection to {hub.url}, trying again", "connected again"
            errors = (await reader.errors()).splitlines()
            assert len(errors) >= 2
            assert errors == [f"reader: {lost}", f"reader: {back}"] * (len(errors) // 2)


PAUSING = """
import { join } from "@hubbub/client";
const [, , url] = process.argv;
const reader = await join(url, "reader");
console.log("joined");
const heard = [];
for await (const { message } of reader.events()) {
  heard.push(message.content);
  if (heard.length === 1) break;
}
for await (const { message } of reader.events()) {
  heard.push(message.content);
  if (heard.length === 600) break;
}
console.log(heard.join(" "));
reader.leave();
const again = await join(url, "reader");
for await (const { message } of again.events()) {
  console.log(message.content);
  again.leave();
}
"""


@pytest.mark.behaviour("I-25")
async def test_a_node_program_that_leaves_the_loop_reads_on_in_another_one(tmp_path: Path) -> None:
    """A message over which it left the first one for good would hold up all after a window."""
    async with (
        running_hub(tmp_path) as hub,
        Client(WebSocketTransport(hub.url), "writer", "human") as writer,
        running_program(tmp_path, PAUSING, hub.url) as reader,
    ):
        assert await reader.line() == "joined"
        for n in range(600):
            await writer.call("send_text_message", to="reader", text=f"{n}")
        assert await reader.line() == " ".join(map(str, range(600)))
        assert await reader.line() == "599", "it left the loop over the last one"
        assert await reader.ended() == 0


AGENT = """
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { serve } from "@hubbub/client";
const kills = (where) => {
  if (readFileSync("kills.txt", "utf8") !== where) return;
  writeFileSync("kills.txt", "");
  process.kill(process.pid, "SIGKILL");
};
await serve("thinker", async (message, turn) => {
  kills("start");
  const { text } = await turn.step(() => {
    appendFileSync("steps.txt", "x");
    return { text: `thought about ${message.content}`, tokens_in: 7, tokens_out: 3 };
  });
  kills("step");
  await turn.call("send_text_message", { to: "bob", text });
  kills("message");
  return `told bob: ${text}`;
}, { url: process.argv[2], joined: () => console.log("joined") });
"""


@pytest.mark.behaviour("I-26")
async def test_a_killed_node_agent_resumes_its_turn_from_the_recorded_step(
    tmp_path: Path,
) -> None:
    steps, kills = tmp_path / "steps.txt", tmp_path / "kills.txt"
    async with (
        running_hub(tmp_path) as hub,
        Client(WebSocketTransport(hub.url), "ann", "human") as first,
        Client(WebSocketTransport(hub.url), "bob", "human") as second,
    ):
        ann, bob = Person(first), Person(second)
        for where in ("start", "step", "message"):
            steps.write_text("")
            kills.write_text(where)
            async with running_program(tmp_path, AGENT, hub.url) as agent:
                assert await agent.line() == "joined"
                await ann.tells("thinker", where)
                assert await agent.ended() == -9
            async with running_program(tmp_path, AGENT, hub.url) as agent:
                assert await agent.line() == "joined"
                answer = await ann.hears("thinker")
                assert answer.text == f"told bob: thought about {where}"
                agent.process.terminate()
                assert await agent.ended() == 0
            assert steps.read_text() == "x"
            assert answer.cause_id is not None
            turn = Turn.model_validate(await first.call("read_turn", id=answer.cause_id))
            assert (turn.attempts, turn.tokens_in, turn.tokens_out) == (2, 7, 3)
            assert turn.steps[0].text == f"thought about {where}"
            assert len(turn.sent) == 2
        for where in ("start", "step", "message"):
            assert (await bob.hears("thinker")).text == f"thought about {where}"
        assert len(bob.heard) == 3


@pytest.mark.behaviour("I-27")
async def test_the_two_languages_config_runs_agents_in_python_and_node(
    tmp_path: Path,
) -> None:
    options = {"NODE_OPTIONS": " ".join(node()[1:])}
    async with run_config("two-languages", tmp_path, options) as network:
        await network.shows("ready to split bills")
        ann = await network.join("ann")
        assert await ann.asks("bill", "12.50 + 9 for 2") == "each pays: (12.50 + 9) / 2 = 10.75"
        agents = await ann.client.call("list_participants")
        assert '"Splits bills"' in json.dumps(agents)


STOPPED = """
import { once } from "node:events";
import { serve } from "@hubbub/client";
await serve("worker", async (message, turn) => {
  console.log(`begins ${message.content}`);
  if (message.content === "fails") throw new Error("no such thing");
  if (message.content !== "waits") return message.content;
  await once(turn.ended, "abort");
  console.log(`ends ${turn.ended.reason.message}`);
}, { url: process.argv[2], joined: () => console.log("joined") });
"""


@pytest.mark.behaviour("I-26")
async def test_turns_of_a_node_agent_record_stops_interruptions_and_errors(
    tmp_path: Path,
) -> None:
    async with (
        running_hub(tmp_path) as hub,
        Client(WebSocketTransport(hub.url), "ann", "human") as client,
        running_program(tmp_path, STOPPED, hub.url) as agent,
    ):
        ann = Person(client)
        assert await agent.line() == "joined"
        await ann.tells("worker", "waits")
        assert await agent.line() == "begins waits"
        await ann.tells("worker", "after it")
        await client.call("stop", scope="turn", target="worker-m1", reason="enough")
        assert "enough" in await agent.line()
        assert await agent.line() == "begins after it"
        assert (await ann.hears("worker")).text == "after it"
        await ann.tells("worker", "waits")
        assert await agent.line() == "begins waits"
        await client.call("send_text_message", to="worker", text="no", mode="interrupt")
        assert await agent.line() == "ends interrupted by ann"
        assert await agent.line() == "begins no"
        assert (await ann.hears("worker")).text == "no"
        await ann.tells("worker", "fails")
        assert await agent.line() == "begins fails"
        turns = await _ended_turns(client, "worker")
        outcomes = ["cancelled", "finished", "cancelled", "finished", "handler_error"]
        assert [turn.outcome for turn in reversed(turns)] == outcomes
        assert turns[0].reason == "no such thing"


WAITS = """
import { serve } from "@hubbub/client";
const [, , url] = process.argv;
const options = { url, joined: () => console.log("joined") };
serve("helper", ({ content }) => `${content} ship it`, options);
await serve("lead", async (message, turn) => {
  console.log(`begins ${message.content}`);
  turn.partial("let me see");
  const first = await turn.ask("helper", "well:");
  const answer = await turn.ask("bob", `may I? ${first.content}`);
  const { what } = await turn.confirm("deploy", { what: answer.content });
  return `deployed ${what}`;
}, options);
"""


ASKS = """
import { serve } from "@hubbub/client";
const options = { url: process.argv[2], joined: () => console.log("joined") };
const paint = async (message, turn) =>
  `painted ${(await turn.ask(message, "Which colour?")).content}`;
await serve("painter", paint, options);
"""


@pytest.mark.behaviour("I-26", "H-57")
async def test_a_node_agent_asks_a_question_about_its_task(tmp_path: Path) -> None:
    async with (
        running_hub(tmp_path) as hub,
        Client(WebSocketTransport(hub.url), "ann", "human") as client,
        running_program(tmp_path, ASKS, hub.url) as agent,
    ):
        ann = Person(client)
        assert await agent.line() == "joined"
        await client.call("delegate", to="painter", task="the fence")
        question = await ann.hears("painter")
        await ann.tells("painter", "red")
        result = await ann.hears("painter")
        assert question.request is not None
        assert result.request is not None
        kinds = question.request.kind, result.request.kind
        assert (*kinds, result.text) == ("question", "result", "painted red")


@pytest.mark.behaviour("I-26")
async def test_a_node_agent_awaits_answers_and_approvals_across_kills(
    tmp_path: Path,
) -> None:
    async with (
        running_hub(tmp_path) as hub,
        Client(WebSocketTransport(hub.url), "ann", "human") as first,
        Client(WebSocketTransport(hub.url), "bob", "human") as second,
    ):
        ann, bob = Person(first), Person(second)
        async with running_program(tmp_path, WAITS, hub.url) as agent:
            assert [await agent.line() for _ in range(2)] == ["joined", "joined"]
            await ann.tells("lead", "go")
            assert await agent.line() == "begins go"
            written = await _signal(first, "partial")
            assert isinstance(written.data, dict)
            assert (written.sender, written.data["text"]) == ("lead", "let me see")
            assert (await bob.hears("lead")).text == "may I? well: ship it"
            agent.process.kill()
            await agent.ended()
        await bob.tells("lead", "yes")
        async with running_program(tmp_path, WAITS, hub.url) as agent:
            approval = (await _signal(first, "approval")).data
            assert isinstance(approval, dict)
            assert (approval["tool"], approval["arguments"]) == ("deploy", {"what": "yes"})
            agent.process.kill()
            await agent.ended()
        async with running_program(tmp_path, WAITS, hub.url):
            await first.call("approve", id=approval["id"], arguments={"what": "half of it"})
            assert (await ann.hears("lead")).text == "deployed half of it"
            turns = await _ended_turns(first, "lead")
        assert len(bob.heard) == 1, "a question was repeated"
        assert [turn.id for turn in turns if not turn.reason] == ["lead-m1"], "an answer is a turn"


@pytest.mark.behaviour("I-26")
async def test_node_programs_get_an_error_for_a_wrong_token_or_an_old_node(tmp_path: Path) -> None:
    await add_token_offline(f"sqlite:{tmp_path / 'hub.db'}", token_hash("right"), "lead")
    async with running_hub(tmp_path) as hub:
        for start in ("serve('lead', () => null, { url, token })", "join(url, 'lead', { token })"):
            text = f"""
import {{ join, serve }} from "@hubbub/client";
const [url, token] = [process.argv[2], "wrong"];
await {start}.catch(({{ name, code, message }}) => console.log(code, message));
"""
            async with running_program(tmp_path, text, hub.url) as program:
                assert (await program.line()).startswith("4500 ")
                assert await program.ended() == 0
        text = text.replace("await join", "delete globalThis.WebSocket;\nawait join")
        async with running_program(tmp_path, text, hub.url) as program:
            assert "use Node 22 or newer" in await program.line()


@pytest.mark.behaviour("I-26")
async def test_calls_of_a_node_program_fail_once_nothing_will_answer_them(tmp_path: Path) -> None:
    text = """
import { join } from "@hubbub/client";
const told = ({ code, message }) => console.log(code ?? "none", message);
const first = await join(process.argv[2], "robin", { kind: "agent" });
const second = await join(process.argv[2], "robin", { kind: "agent" });
await first.events().next().catch(told);
await first.call("list_threads").catch(told);
second.leave();
await second.call("list_threads").catch(told);
"""
    async with running_hub(tmp_path) as hub, running_program(tmp_path, text, hub.url) as program:
        ended = await program.line()
        assert ended.startswith("45")
        assert await program.line() == ended
        assert await program.line() == "none left"
        assert await program.ended() == 0


async def test_a_node_agent_whose_signal_has_fired_ends_at_once(tmp_path: Path) -> None:
    text = """
import { serve } from "@hubbub/client";
await serve("echo", () => null, { url: process.argv[2], signal: AbortSignal.abort() });
console.log("ended");
"""
    async with running_program(tmp_path, text, "ws://127.0.0.1:1") as program:
        assert await program.line() == "ended"
        assert await program.ended() == 0


async def _signal(client: Client, type: str) -> Signal:
    """The next signal of this type."""
    async for item in client.events():
        if isinstance(item, Signal) and item.type == type:
            return item
    raise AssertionError("the client was closed")


async def _ended_turns(client: Client, agent: str) -> tuple[TurnSummary, ...]:
    """The turns of an agent, latest first, once all have ended."""
    while True:
        turns = Turns.model_validate(await client.call("list_turns", agent=agent)).turns
        if all(turn.outcome for turn in turns):
            return turns


PAGE = "docs/how-to/write-an-agent-in-typescript.md"
CHECKED = """{"compilerOptions": {"strict": true, "noEmit": true, "target": "ES2023",
"module": "NodeNext", "skipLibCheck": false, "types": ["node"]}, "include": ["*.ts"]}"""
WRONG = """import { join } from "@hubbub/client";
const robin = await join("ws://127.0.0.1:1", "robin");
// @ts-expect-error: no such argument
await robin.call("send_text_message", { to: "bob", text: "hi", txt: "hi" });
"""


async def _run(folder: Path, *words: str) -> tuple[int, str]:
    """Runs a program; returns its exit code and output."""
    process = await asyncio.create_subprocess_exec(*words, stdout=PIPE, stderr=STDOUT, cwd=folder)
    out, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode()


@pytest.mark.npm
@pytest.mark.skipif(not TYPESCRIPT.there(), reason=TYPESCRIPT.missing)
def test_the_page_modules_type_check() -> None:
    assert problems() == []


@pytest.mark.npm
@pytest.mark.timeout(400)
@pytest.mark.skipif(not TYPESCRIPT.there(), reason=TYPESCRIPT.missing)
@pytest.mark.behaviour("I-28")
async def test_the_packed_client_type_checks_and_runs_the_documented_programs(
    tmp_path: Path,
) -> None:
    npm, tsc = shutil.which("npm"), TYPESCRIPT.modules / "typescript" / "bin" / "tsc"
    assert npm is not None
    packed = tmp_path / "packed"
    shutil.copytree(SDK, packed, ignore=shutil.ignore_patterns("node_modules", "types"))
    (packed / "node_modules").symlink_to(TYPESCRIPT.modules)
    code, output = await _run(packed, npm, "pack", "--silent")
    assert code == 0, output
    (package,) = packed.glob("*.tgz")
    user = tmp_path / "user"
    user.mkdir()
    (user / "package.json").write_text('{"type": "module"}')
    assert await _run(user, npm, "install", "--silent", "--offline", str(package)) == (0, "")
    (user / "node_modules" / "@types").symlink_to(TYPESCRIPT.modules / "@types")
    (user / "node_modules" / "undici-types").symlink_to(TYPESCRIPT.modules / "undici-types")
    (user / "tsconfig.json").write_text(CHECKED)
    for name in ("echo.ts", "model.ts", "robin.ts"):
        (user / name).write_text(example(PAGE, name))
    (user / "wrong.ts").write_text(WRONG)
    assert await _run(user, str(TYPESCRIPT.node), str(tsc)) == (0, "")
    async with running_hub(tmp_path) as hub:
        command = [str(TYPESCRIPT.node), str(user / "echo.ts"), hub.url]
        process = await asyncio.create_subprocess_exec(*command, cwd=user)
        try:
            await all_present(hub.url, "echo")
            async with Client(WebSocketTransport(hub.url), "ann", "human") as client:
                answer = await Person(client).asks("echo", "hello")
            assert answer == "you said: hello; I am in 1 threads"
        finally:
            process.terminate()
            await process.wait()
