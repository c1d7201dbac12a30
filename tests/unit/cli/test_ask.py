"""`ask` and `send --wait` against a running network with agents that follow a script."""

from __future__ import annotations

import asyncio
import io
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from hubbub.cli.talk import AnswerPrinter
from hubbub.client import Client, WebSocketTransport
from hubbub.protocol.frames import Event
from hubbub.protocol.messages import Message
from hubbub.protocol.turns import TurnEnd, TurnStart
from tests.unit.cli.conftest import Shell
from tests.unit.people.chatting import posted


@contextmanager
def agents(url: str, *names: str) -> Iterator[None]:
    """Run agents that echo their messages in another thread; `hush` does not answer."""
    joined, stops = threading.Barrier(len(names) + 1), list[Callable[[], object]]()

    async def answer(client: Client, message: Message, turn: str) -> None:
        start = TurnStart(id=turn, thread_id=message.thread_id, messages=(message.id,))
        await client.call("begin_turn", start=start)
        if client.participant != "hush":
            text = f"you said: {message.text}"
            await client.call("send_text_message", to=message.thread_id, text=text, cause=turn)
        await client.call("end_turn", end=TurnEnd(id=turn, outcome="finished"))

    async def run(name: str) -> None:
        async with Client(WebSocketTransport(url), name, "agent", turns=True) as client:
            await asyncio.to_thread(joined.wait, 20)
            async for item in client.events():
                if isinstance(item, Event) and item.wake is not None:
                    await answer(client, item.message, item.wake.turn)

    async def work() -> None:
        stop = asyncio.Event()
        stops.append(partial(asyncio.get_running_loop().call_soon_threadsafe, stop.set))
        tasks = [asyncio.create_task(run(name)) for name in names]
        await stop.wait()
        for task in tasks:  # asyncio.run would cancel their clients' own tasks too
            task.cancel()
        await asyncio.wait(tasks)

    thread = threading.Thread(target=lambda: asyncio.run(work()), daemon=True)
    thread.start()
    try:
        joined.wait(20)
        yield
    finally:
        stops[0]()
        thread.join(20)


def test_a_question_goes_to_the_named_agents_and_their_answer_is_printed(
    town: str, hubbub: Shell, snapshot: SnapshotAssertion
) -> None:
    hubbub("send", "--as", "bob", "--broadcast", "hi")
    output = hubbub.transcript("ask hello")
    with agents(town, "echo"):
        output += hubbub.transcript("ask what is new", "ask echo what is new", 'ask "echo this"')
        with agents(town, "hush", "concierge"):
            output += hubbub.transcript(
                "ask who are you?",
                "ask @echo hello",
                "ask '@echo hello again'",
                "ask hush hello",
                "ask ehco hello",
                "ask @ehco",
                "ask bob hello",
                "ask echo",
                "ask",
                "send --wait echo,hush hello",
                "send --wait bob hello",
            )
            answer = hubbub("ask", "--json", "echo", "1").json()
            assert (answer["answer"], answer["reason"]) == ("you said: 1", None)
            assert [m["sender_id"] for m in answer["messages"]] == ["echo"]
            result = hubbub("send", "--wait", "--json", "hush", "1")
            assert (result.code, '"answer": null' in result.out) == (1, True)
    with agents(town, "one", "two"):
        output += hubbub.transcript("ask --timeout 0.1 hello")
    assert output == snapshot


def test_piped_input_is_appended_to_the_question(
    town: str, hubbub: Shell, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads, writes = os.pipe()
    os.write(writes, b"+ a line\n- \xff another\n")
    os.close(writes)
    with agents(town, "echo"), os.fdopen(reads) as piped:
        monkeypatch.setattr("sys.stdin", piped)
        assert hubbub("ask", "echo", "review", "this").out == (
            "you said: review this\n\n+ a line\n- � another\n"
        )
    with agents(town, "echo"), Path(os.devnull).open() as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        assert hubbub("ask", "echo", "hello").out == "you said: hello\n"
        monkeypatch.setattr("sys.stdin", None)
        assert hubbub("ask", "echo", "hello").out == "you said: hello\n"


def test_an_answer_is_printed_while_it_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr("sys.stdout", out)
    printer = AnswerPrinter()
    for text in ("The", "The answer", "The answer \x1b[31m"):
        printer.part("bot", text)
    printer.whole(posted(1, "The answer \x1b[31mis 4"))
    printer.part("bot", "Besides")
    printer.whole(posted(2, "No: it is 5"))
    AnswerPrinter(names=True).whole(posted(3, "so it is"))
    assert out.getvalue().splitlines() == [
        "The answer <U+001B>[31mis 4", "Besides", "No: it is 5", "bob: so it is",
    ]  # fmt: skip
