"""Keys, help, places of the palette, and which panels are open."""

from __future__ import annotations

from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from hubbub.cli.full.commands import COMMANDS, parse
from hubbub.cli.full.dialogs import help_text
from hubbub.cli.full.keys import KEYS, Where, action_of, begins, of, sequence
from hubbub.cli.full.palette import places
from hubbub.cli.full.panels import NARROW, WIDE, Panels
from hubbub.cli.full.screen import ChatScreen
from tests.doc_pages import ROOT
from tests.unit.cli.chatting import arrive, said, state_of


def test_keys_do_one_thing_in_one_place_and_have_an_action() -> None:
    for place in get_args(Where):
        pressed = [name for key in of(place) for name in key.press.split(",")]
        assert len(pressed) == len(set(pressed))
    letters = [n for key in of("everywhere") for n in key.press.split(",") if len(n) == 1]
    assert letters == [], "they would work in the composer too"
    for key in KEYS:
        if key.where != "composer":
            assert hasattr(ChatScreen, f"action_{key.action.partition('(')[0]}"), key


def test_the_help_and_the_page_about_the_terminal_have_every_key_and_command() -> None:
    text = help_text({spec.needs for spec in COMMANDS.values()}).plain
    for key in KEYS:
        assert f"  {key.shown:<15}{key.help}\n" in text
    for spec in COMMANDS.values():
        assert spec.usage in text
    page = (ROOT / "docs" / "how-to" / "work-in-the-terminal.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    keys = [key for place in get_args(Where) for key in KEYS if key.where == place]
    assert rows == [
        *(f"| `{key.shown}` | {key.help} |" for key in keys),
        *(f"| `{spec.usage.replace('|', chr(92) + '|')}` | {spec.help} |"
          for spec in COMMANDS.values()),
    ]  # fmt: skip


def test_keys_are_found_by_any_of_their_names_and_sequences_by_their_keys() -> None:
    assert action_of("composer", "shift+enter") == action_of("composer", "ctrl+j") == "newline"
    assert action_of("composer", "j") is None
    assert action_of("outside", "down") == action_of("outside", "j") == "select(1)"
    assert (begins("g"), begins("i")) == (True, False)
    assert (sequence("g", "i"), sequence("g", "x")) == ("inbox", None)


def test_the_palette_has_threads_people_channels_and_keys_what_is_new_first() -> None:
    found = list(places(arrive(state_of(), said(3, thread="dm.ann.bob", tseq=1))))
    titles = [place.title for place in found]
    assert (titles[0], found[0].about) == ("@bob", "1 new")
    assert {"#general", "broadcast", "@concierge", "join #desk"} <= set(titles)
    assert "@ann" not in titles
    lines = [place.line for place in found]
    assert ":inbox" in lines
    assert all(parse(line) is not None for line in lines if not line.startswith(":"))


def panels(width: int) -> Panels:
    found = Panels()
    found.resized(width)
    return found


def test_panels_stand_beside_the_conversation_or_lie_over_it_one_at_a_time() -> None:
    wide = panels(WIDE)
    assert (wide.left, wide.right) == (True, False)
    wide.toggle_right()
    wide.chosen()
    assert (wide.left, wide.right) == (True, True)
    assert wide.close()
    assert not wide.close()
    assert wide.left
    narrow = panels(80)
    assert (narrow.left, narrow.right) == (False, False)
    for deed, left, right in (
        (narrow.toggle_left, True, False),
        (narrow.toggle_right, False, True),
        (narrow.toggle_left, True, False),
        (narrow.chosen, False, False),
        (narrow.toggle_left, True, False),
        (narrow.close, False, False),
    ):
        deed()
        assert (narrow.left, narrow.right) == (left, right)
    assert not narrow.close()


def test_growing_and_shrinking_folds_and_unfolds_what_nobody_closed() -> None:
    found = panels(WIDE)
    found.resized(NARROW - 1)
    assert not found.left
    found.resized(NARROW)
    assert found.left
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
