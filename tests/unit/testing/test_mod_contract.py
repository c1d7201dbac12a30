"""The contract of mods: good mods satisfy it, and each fault is reported."""

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

HOOK = {
    "name": "audit",
    "url": "http://127.0.0.1:9/x",
    "secret": "correct horse battery",
    "threads": ["channel_none"],
}
SETTINGS: Mapping[str, dict[str, Any]] = {
    "moderation": {"words": ["darn"], "rules": [{"rate": {"messages": 9, "per": "1m"}}]},
    "tasks": {"announce": True, "release_after": "1h"},
    "webhooks": {"hooks": [HOOK]},
}


@pytest.mark.slow
@pytest.mark.behaviour("M-34")
@pytest.mark.parametrize("name", BUILT_IN)
def test_each_built_in_mod_satisfies_the_contract(name: str) -> None:
    kind = find_mod(name).kind
    mod_contract(kind, SETTINGS.get(name), [find_mod(other).kind for other in kind.requires])()


class NoArguments(Input):
    """No arguments."""


class Undescribed(Input):
    what: str


class Described(Input):
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
    """Has an invalid name."""

    name = "Not A Name"


class Impostor(Good):
    """Has the name of a built-in mod."""

    name = "moderation"


class UndescribedSetting(Good):
    """Has a setting without a description."""

    class Config(ModConfig):
        limit: int = 3


class Demanding(Good):
    """Requires a setting."""

    class Config(ModConfig):
        key: str
        """The key."""


class Careless(Good):
    """Accepts unknown settings."""

    class Config(ModConfig):
        model_config: ClassVar = {"extra": "ignore"}


class Usurper(Good):
    """Redefines an operation of the hub."""

    @operation(name="reply")
    def answer(self, call: Calling, args: NoArguments) -> Answer:
        """Answer."""
        return Answer(text="")


class BadOperationName(Good):
    """Has an operation whose name model endpoints refuse."""

    @operation(name="un speakable")
    def answer(self, call: Calling, args: NoArguments) -> Answer:
        """Answer."""
        return Answer(text="")


class UndescribedArgument(Good):
    """Has an argument without a description."""

    @operation()
    def good_answer(self, call: Calling, args: Undescribed) -> Answer:
        """Answer."""
        return Answer(text=args.what)


class Raising(Good):
    """Fails on messages."""

    def on_stored(self, message: Message) -> Sequence[Statement]:
        raise ValueError("no idea")


class Leaving(Good):
    """Fails when a participant leaves."""

    def on_leave(self, participant: str) -> None:
        raise ValueError("gone")


class Trusting(Good):
    """Converts any text to a number."""

    @operation()
    def good_number(self, call: Calling, args: Number) -> Answer:
        """Answer."""
        return Answer(text=str(1 // int(args.number)))


class Slow(Good):
    """Blocks for too long."""

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
    ("kind", "message"),
    [
        (Nameless, "must start with a letter"),
        (Impostor, "is the name of a built-in mod"),
        (UndescribedSetting, "Config.limit needs a docstring"),
        (Demanding, "Config.key has no default"),
        (Careless, "accepts unknown settings"),
        (Usurper, "reply: the hub has an operation"),
        (BadOperationName, "model endpoints refuse"),
        (UndescribedArgument, "the argument what needs a docstring"),
        (Raising, "on_stored.*no idea"),
        (Leaving, "on_leave.*gone"),
        (Trusting, r"good_number \{.*internal: the mod good failed"),
        (Slow, "on_message.*longer than 0.05 s"),
    ],
)
def test_the_contract_reports_each_fault(kind: type[Mod], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        mod_contract(kind, max_hook_s=0.05 if kind is Slow else 30)()


@pytest.mark.behaviour("M-70")
def test_operations_are_called_with_extreme_arguments() -> None:
    arguments: list[JsonValue] = []

    class Recording(Good):
        """Records all arguments."""

        Config = Demanding.Config

        @operation()
        def good_numbers(self, call: Calling, args: Many) -> Answer:
            """Answer."""
            arguments.extend(each.number for each in args.which)
            return Answer(text=str(len(args.which)))

        @operation()
        def good_word(self, call: Calling, args: Described) -> Answer:
            """Answer."""
            arguments.append(args.what)
            return Answer(text=args.what)

    mod_contract(Recording, {"key": "open"})()
    assert {"", "m1", "broadcast", "../../etc/passwd", 0, -1} <= {*arguments}
    assert max(len(each) for each in arguments if isinstance(each, str)) > 50_000


def test_the_contract_refuses_tables_without_the_mods_prefix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "0001_x.sql").write_text("CREATE TABLE IF NOT EXISTS other (x TEXT);")
    monkeypatch.setattr(Good, "migrations", str(tmp_path))
    with pytest.raises(AssertionError, match="'other' must begin with 'good_'"):
        mod_contract(Good)()
