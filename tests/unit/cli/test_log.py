"""`log`: the messages of the network."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys

import pytest

from tests.unit.cli.conftest import Command


def texts(out: str) -> list[str]:
    return [line.rpartition("  ")[2] for line in out.splitlines()]


def test_the_last_messages_are_shown_oldest_first(town: str, hubbub: Command) -> None:
    for n in range(5):
        hubbub("send", "--broadcast", f"message {n}")
    assert texts(hubbub("log", "-n", "3").out) == ["message 2", "message 3", "message 4"]
    assert len(texts(hubbub("log").out)) == 5
    assert hubbub("log", "-n", "0").out == ""


def test_an_empty_log_is_empty(town: str, hubbub: Command) -> None:
    assert hubbub("log").out == ""


def test_a_line_tells_who_where_and_what(town: str, hubbub: Command) -> None:
    hubbub("send", "-c", "general", "one\ntwo \x1b[31m")
    ran = hubbub("log")
    assert " m1 ann #general  one\n    two <U+001B>[31m\n" in ran.out


@pytest.mark.behaviour("U-3")
def test_as_json_each_line_is_a_message(town: str, hubbub: Command) -> None:
    hubbub("send", "--broadcast", "one")
    (line,) = hubbub("log", "--json").out.splitlines()
    message = json.loads(line)
    assert (message["sender_id"], message["content"]) == ("ann", "one")


def test_one_thread_can_be_chosen(town: str, hubbub: Command) -> None:
    hubbub("send", "--broadcast", "to all")
    hubbub("send", "-c", "general", "to some")
    assert texts(hubbub("log", "--thread", "channel_general").out) == ["to some"]
    assert texts(hubbub("log", "-t", "broadcast").out) == ["to all"]
    assert hubbub("log", "-t", "broadcast", "-n", "0").out == ""


@pytest.mark.parametrize("thread", ["direct_bob", "bob", "@bob", "dm.ann.bob"])
def test_a_direct_thread_is_named_as_its_reader_names_it(
    town: str, hubbub: Command, thread: str
) -> None:
    hubbub("send", "--as", "bob", "ann", "psst")
    assert texts(hubbub("log", "-t", thread).out) == ["psst"]
    assert texts(hubbub("log", "--as", "bob", "-t", "ann").out) == ["psst"]


@pytest.mark.parametrize("thread", ["general", "#general", "channel_general", "channel.general"])
def test_a_channel_has_many_names(town: str, hubbub: Command, thread: str) -> None:
    assert hubbub("send", thread, "to some").code == 0
    assert texts(hubbub("log", "-t", thread).out) == ["to some"]


@pytest.mark.parametrize("thread", ["nonsense!", "direct_bob", "genral"])
def test_a_thread_that_cannot_be_meant_is_told(town: str, hubbub: Command, thread: str) -> None:
    ran = hubbub("log", "-t", thread)
    assert ran.code == 2
    assert f"there is no thread '{thread}'" in ran.err


def test_a_thread_in_which_nothing_was_said_is_told_without_the_hubs_words(
    town: str, hubbub: Command
) -> None:
    hubbub("send", "--as", "bob", "--broadcast", "hi")
    ran = hubbub("log", "-t", "bob")
    assert ran.code == 2
    assert "see `hubbub threads`" in ran.err


@pytest.mark.slow
@pytest.mark.parametrize("thread", [(), ("--thread", "channel_general")])
async def test_following_shows_what_comes_until_ctrl_c(
    town: str, hubbub: Command, thread: tuple[str, ...]
) -> None:
    await asyncio.to_thread(hubbub, "send", "-c", "general", "before")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "hubbub", "log", "-f", *thread, stdout=subprocess.PIPE, env=os.environ
    )
    assert process.stdout is not None
    async with asyncio.timeout(30):
        assert (await process.stdout.readline()).endswith(b"before\n")
        await asyncio.to_thread(hubbub, "send", "-c", "general", "after")
        assert (await process.stdout.readline()).endswith(b"after\n")
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 0
