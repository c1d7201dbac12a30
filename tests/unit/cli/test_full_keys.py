"""Keys, commands, places of the palette, and which panels are open."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.cli.chat import commands as chat
from hubbub.cli.chat.completion import candidates
from hubbub.cli.full import commands as full
from hubbub.cli.full.commands import COMMANDS, Command, parse
from hubbub.cli.full.dialogs import help_text
from hubbub.cli.full.keys import KEYS, Key, Where, action_of, begins, of, sequence
from hubbub.cli.full.palette import places
from hubbub.cli.full.panels import NARROW, WIDE, Panels
from hubbub.cli.full.screen import ChatScreen
from hubbub.errors import UserError
from tests.doc_pages import ROOT
from tests.unit.cli.chatting import arrive, said, state_of


def test_no_key_does_two_things_in_one_place() -> None:
    for place in get_args(Where):
        pressed = [name for key in of(place) for name in key.press.split(",")]
        assert len(pressed) == len(set(pressed))


def test_keys_that_work_everywhere_are_not_letters() -> None:
    """They work in the composer too."""
    assert all(len(name) > 1 for key in of("everywhere") for name in key.press.split(","))


def test_every_key_of_the_screen_has_an_action_there() -> None:
    for key in KEYS:
        if key.where != "composer":
            assert hasattr(ChatScreen, f"action_{key.action.partition('(')[0]}"), key


def test_the_help_is_made_of_the_table() -> None:
    text = help_text({spec.needs for spec in COMMANDS.values()}).plain
    for key in KEYS:
        assert f"  {key.shown:<15}{key.help}\n" in text
    for spec in COMMANDS.values():
        assert spec.usage in text


def test_sequences_are_found_by_their_keys() -> None:
    assert begins("g")
    assert not begins("i")
    assert sequence("g", "i") == "inbox"
    assert sequence("g", "x") is None


def test_a_key_is_found_by_any_of_its_names() -> None:
    assert action_of("composer", "shift+enter") == action_of("composer", "ctrl+j") == "newline"
    assert action_of("composer", "j") is None
    assert action_of("outside", "down") == action_of("outside", "j") == "select(1)"


# Commands -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("hello", chat.Say("hello")),
        ("two\nlines", chat.Say("two\nlines")),
        ("//hello", chat.Say("/hello")),
        ("/open #general", chat.Open("#general")),
        ("/dm bob hi", chat.Direct(("bob",), "hi")),
        ("/go m42", full.GoTo("m42")),
        ("/inbox", full.Inbox()),
        ("/turn bob-m4", full.ShowTurn("bob-m4")),
        ("/theme", full.Theme("")),
        ("/theme nord", full.Theme("nord")),
        ("/again", full.Again()),
        ("/drop", full.Drop()),
        ("/quit", chat.Quit()),
        ("  ", None),
    ],
)
def test_a_line_is_a_command_or_something_said(line: str, command: Command | None) -> None:
    assert parse(line) == command


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("/go nowhere", "/go takes a message's id: /go <m42>"),
        ("/inbox now", "/inbox takes nothing after it"),
        ("/thme", "did you mean /theme?"),
        ("/more", "there is no command /more"),
        ("/threads", "there is no command /threads"),
    ],
)
def test_a_wrong_command_gets_one_sentence(line: str, says: str) -> None:
    with pytest.raises(UserError) as caught:
        parse(line)
    assert says in str(caught.value)


def test_the_commands_of_the_full_screen_are_completed() -> None:
    assert [found.text for found in candidates("/th", state_of(), COMMANDS)] == ["theme"]
    assert [found.text for found in candidates("/th", state_of())] == ["threads"]
    assert candidates("hi @bo", state_of(), COMMANDS)[0].text == "bob"


# The palette --------------------------------------------------------------------------------------


def test_the_palette_has_threads_people_channels_and_keys_what_is_new_first() -> None:
    state = arrive(state_of(), said(3, thread="dm.ann.bob", tseq=1))
    found = list(places(state))
    titles = [place.title for place in found]
    assert titles[0] == "@bob"
    assert found[0].about == "1 new"
    assert {"#general", "broadcast", "@concierge", "join #desk"} <= set(titles)
    assert "@ann" not in titles
    assert ":inbox" in {place.line for place in found}
    for place in found:
        if not place.line.startswith(":"):
            assert parse(place.line) is not None


# Panels -------------------------------------------------------------------------------------------


def panels(width: int) -> Panels:
    found = Panels()
    found.resized(width)
    return found


def test_on_a_wide_terminal_threads_are_open_and_details_on_demand() -> None:
    found = panels(WIDE)
    assert (found.left, found.right) == (True, False)
    found.toggle_right()
    assert (found.left, found.right) == (True, True)
    found.chosen()
    assert (found.left, found.right) == (True, True)


def test_on_a_narrow_terminal_panels_fold_away_and_lie_over_the_conversation_one_at_a_time() -> (
    None
):
    found = panels(80)
    assert (found.left, found.right) == (False, False)
    found.toggle_left()
    assert (found.left, found.right) == (True, False)
    found.toggle_right()
    assert (found.left, found.right) == (False, True)
    found.toggle_left()
    assert (found.left, found.right) == (True, False)
    found.chosen()
    assert (found.left, found.right) == (False, False)


def test_escape_closes_what_lies_nearest() -> None:
    found = panels(80)
    found.toggle_left()
    assert found.close()
    assert not found.close()
    wide = panels(WIDE)
    wide.toggle_right()
    assert wide.close()
    assert not wide.close()
    assert wide.left


def test_growing_and_shrinking_folds_and_unfolds() -> None:
    found = panels(WIDE)
    found.resized(NARROW - 1)
    assert not found.left
    found.resized(NARROW)
    assert found.left


def test_what_a_person_closed_stays_closed_while_the_width_stays_of_a_kind() -> None:
    found = panels(WIDE)
    found.toggle_left()
    found.resized(WIDE + 10)
    found.resized(NARROW)
    assert not found.left


deeds = st.lists(
    st.one_of(
        st.integers(20, 200).map(lambda width: ("resized", width)),
        st.sampled_from(["toggle_left", "toggle_right", "chosen", "close"]).map(lambda d: (d, 0)),
    ),
    max_size=20,
)


@given(deeds)
def test_on_a_narrow_terminal_two_panels_never_lie_over_each_other(
    deeds: list[tuple[str, int]],
) -> None:
    found = panels(100)
    for deed, width in deeds:
        getattr(found, deed)(*([width] if width else []))
        assert not (found.width < NARROW and found.left and found.right)


def test_the_page_about_the_terminal_has_every_key_and_command() -> None:
    page = (ROOT / "docs" / "how-to" / "work-in-the-terminal.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert rows == [
        *(f"| `{key.shown}` | {key.help} |" for place in get_args(Where) for key in _all(place)),
        *(f"| `{_in_cell(spec.usage)}` | {spec.help} |" for spec in COMMANDS.values()),
    ]


def _in_cell(text: str) -> str:
    return text.replace("|", r"\|")


def _all(place: Where) -> list[Key]:
    return [key for key in KEYS if key.where == place]
