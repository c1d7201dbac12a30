"""The contract of mods: good mods pass it, and each fault is found and told."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel, JsonValue

from hubbub.mods.api import PASS, Mod, ModConfig, Verdict
from hubbub.mods.loader import BUILT_IN, find_mod
from hubbub.mods.operation import Calling, Statement, operation
from hubbub.protocol.messages import Draft, Message
from hubbub.protocol.operations import Input
from hubbub.testing.mod_contract import mod_contract

SETTINGS: Mapping[str, dict[str, Any]] = {
    "moderation": {"words": ["darn"], "rules": [{"rate": {"messages": 9, "per": "1m"}}]},
    "tasks": {"announce": True, "release_after": "1h"},
    "webhooks": {
        "hooks": [
            {
                "name": "audit",
                "url": "http://127.0.0.1:9/x",
                "secret": "correct horse battery",
                "threads": ["channel_none"],
            }
        ]
    },
}


@pytest.mark.slow
@pytest.mark.behaviour("M-34")
@pytest.mark.parametrize("name", BUILT_IN)
def test_the_mods_that_come_with_hubbub_keep_it(name: str) -> None:
    kind = find_mod(name).kind
    mod_contract(kind, SETTINGS.get(name), [find_mod(other).kind for other in kind.requires])()


class Nothing(Input):
    """Nothing to say."""


class Silent(Input):
    what: str


class Told(Input):
    what: str
    """Any text."""


class Number(Input):
    number: int | str
    """Any number."""


class Many(Input):
    which: tuple[Number, ...] = ()
    """Some of them."""


class Answer(BaseModel):
    text: str


class Good(Mod):
    """Does nothing."""

    name = "good"


class Nameless(Good):
    """Has a name that is none."""

    name = "Not A Name"


class Impostor(Good):
    """Has the name of another."""

    name = "moderation"


class Undescribed(Good):
    """Has a setting without a word."""

    class Config(ModConfig):
        limit: int = 3


class Demanding(Good):
    """Wants a setting."""

    class Config(ModConfig):
        key: str
        """What opens it."""


class Careless(Good):
    """Takes every setting."""

    class Config(ModConfig):
        model_config: ClassVar = {"extra": "ignore"}


class Usurper(Good):
    """Takes an operation of the hub's."""

    @operation(name="reply")
    def answer(self, call: Calling, args: Nothing) -> Answer:
        """Answer."""
        return Answer(text="")


class Unspeakable(Good):
    """Has an operation that no endpoint takes."""

    @operation(name="un speakable")
    def answer(self, call: Calling, args: Nothing) -> Answer:
        """Answer."""
        return Answer(text="")


class Untold(Good):
    """Has an argument without a word."""

    @operation()
    def good_answer(self, call: Calling, args: Silent) -> Answer:
        """Answer."""
        return Answer(text=args.what)


class Raising(Good):
    """Fails at messages."""

    def on_stored(self, message: Message) -> Sequence[Statement]:
        raise ValueError("no idea")


class Leaving(Good):
    """Fails when somebody leaves."""

    def on_leave(self, participant: str) -> None:
        raise ValueError("gone")


class Trusting(Good):
    """Takes all texts for numbers."""

    @operation()
    def good_number(self, call: Calling, args: Number) -> Answer:
        """Answer."""
        return Answer(text=str(1 // int(args.number)))


class Slow(Good):
    """Thinks for as long as it likes."""

    class Config(ModConfig):
        time_limit: float = 60.0
        """Seconds."""

    def on_message(self, draft: Draft) -> Verdict:
        until = time.monotonic() + 0.06
        while time.monotonic() < until:
            pass
        return PASS


@pytest.mark.behaviour("M-34")
@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (Nameless, "is not made of lower-case letters"),
        (Impostor, "is a built-in mod's"),
        (Undescribed, "Config.limit needs a text"),
        (Demanding, "Config.key has no default"),
        (Careless, "takes settings that it does not know"),
        (Usurper, "reply: the hub itself has this"),
        (Unspeakable, "endpoints of models refuse"),
        (Untold, "the argument what needs a text"),
        (Raising, "on_stored.*no idea"),
        (Leaving, "on_leave.*gone"),
        (Trusting, r"good_number \{.*internal: the mod good failed"),
        (Slow, "on_message.*longer than 0.05 s"),
    ],
)
def test_each_fault_is_found_and_told(kind: type[Mod], says: str) -> None:
    with pytest.raises(AssertionError, match=says):
        mod_contract(kind, most_s=0.05 if kind is Slow else 30)()


@pytest.mark.behaviour("M-70")
def test_operations_are_called_with_what_nobody_should_send() -> None:
    seen: list[JsonValue] = []

    class Listening(Good):
        """Takes everything."""

        Config = Demanding.Config

        @operation()
        def good_numbers(self, call: Calling, args: Many) -> Answer:
            """Answer."""
            seen.extend(each.number for each in args.which)
            return Answer(text=str(len(args.which)))

        @operation()
        def good_word(self, call: Calling, args: Told) -> Answer:
            """Answer."""
            seen.append(args.what)
            return Answer(text=args.what)

    mod_contract(Listening, {"key": "open"})()
    assert {"", "m1", "broadcast", "../../etc/passwd", 0, -1} <= {*seen}
    assert max(len(each) for each in seen if isinstance(each, str)) > 50_000


def test_names_of_tables_begin_with_the_mods_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "0001_x.sql").write_text("CREATE TABLE IF NOT EXISTS other (x TEXT);")
    monkeypatch.setattr(Good, "migrations", str(tmp_path))
    with pytest.raises(AssertionError, match="'other' must begin with 'good_'"):
        mod_contract(Good)()
