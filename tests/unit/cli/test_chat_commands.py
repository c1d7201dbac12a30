"""What is typed and what it means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.cli.chat import commands as c
from hubbub.cli.chat.commands import COMMANDS, Command, parse
from hubbub.errors import UserError


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("hello there", c.Say("hello there")),
        ("  @bob  look  ", c.Say("@bob  look")),
        ("//etc/hosts", c.Say("/etc/hosts")),
        ("two\nlines", c.Say("two\nlines")),
        ("/threads", c.Threads()),
        ("/THREADS", c.Threads()),
        ("/open 2", c.Open("2")),
        ("/open direct_bob", c.Open("direct_bob")),
        ("/dm bob", c.Direct(("bob",))),
        ("/dm @bob,carol", c.Direct(("bob", "carol"))),
        ("/dm bob,bob,", c.Direct(("bob",))),
        ("/dm bob how are  you?", c.Direct(("bob",), "how are  you?")),
        ("/channel general", c.ToChannel("general")),
        ("/channel #general", c.ToChannel("general")),
        ("/join #desk", c.Join("desk")),
        ("/create desk", c.Create("desk")),
        ("/leave", c.Leave(None)),
        ("/leave #desk", c.Leave("desk")),
        ("/who", c.Who()),
        ("/reply m42 fine by me", c.ReplyTo("m42", "fine by me")),
        ("/more", c.More()),
        ("/wait", c.Wait(10.0)),
        ("/wait 0.5", c.Wait(0.5)),
        ("/help", c.Help()),
        ("/quit", c.Quit()),
    ],
)
def test_a_line_means_its_command(line: str, command: Command) -> None:
    assert parse(line) == command


@pytest.mark.parametrize("line", ["", "   ", "\n", "\t"])
def test_an_empty_line_means_nothing(line: str) -> None:
    assert parse(line) is None


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("/thread", "did you mean /threads?"),
        ("/frobnicate", "/help lists them"),
        ("/", "/help lists them"),
        ("/threads now", "takes nothing after it: /threads"),
        ("/open", "/open <n or name>"),
        ("/dm", "/dm <who>"),
        ("/dm ,", "takes a name"),
        ("/channel", "takes one name"),
        ("/join a b", "takes one name: /join <name>"),
        ("/leave a b", "takes one channel"),
        ("/reply", "takes a message's id and a text: /reply <m42> <text>"),
        ("/reply m42", "a text"),
        ("/reply 42 yes", "takes a message's id"),
        ("/wait soon", "takes a number of seconds"),
        ("/wait -1", "takes a number of seconds"),
        ("/wait nan", "takes a number of seconds"),
        ("/wait 1e9", "at most 3600"),
    ],
)
def test_a_wrong_line_gets_one_sentence_with_the_way_to_write_it(line: str, says: str) -> None:
    with pytest.raises(UserError) as caught:
        parse(line)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.text(max_size=60))
def test_every_line_is_a_command_or_one_clear_sentence(line: str) -> None:
    try:
        command = parse(line)
    except UserError:
        assert line.strip().startswith("/")
    else:
        assert (command is None) == (not line.strip())


@given(st.text(min_size=1, max_size=60).filter(str.strip))
def test_everything_can_be_said(text: str) -> None:
    text = text.strip()
    line = f"/{text}" if text.startswith("/") else text
    assert parse(line) == c.Say(text)


def test_every_command_explains_itself() -> None:
    for name, spec in COMMANDS.items():
        assert spec.usage.startswith(f"/{name}")
        assert spec.help
