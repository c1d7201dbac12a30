from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from hubbub.errors import OperationError
from hubbub.mods.api import PASS, Mod, ModConfig, Reject, Replace, Verdict
from hubbub.mods.pipeline import Pipeline
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Draft

pytestmark = pytest.mark.behaviour("M-1")

DRAFT = Draft("ann", "human", "dm.ann.bob", "direct", "hello", recipients=("bob",))


class Hook(Mod):
    """A mod whose hook a test gives."""

    name = "hook"

    def __init__(self, decide: Callable[[Draft], Verdict]):
        super().__init__(ModConfig())
        self.decide = decide
        self.seen: list[Draft] = []

    def on_message(self, draft: Draft) -> Verdict:
        self.seen.append(draft)
        return self.decide(draft)


class Silent(Mod):
    name = "silent"


def shout(draft: Draft) -> Verdict:
    return Replace(replace(draft, content=f"{draft.content}!"))


def test_without_mods_a_draft_goes_through_untouched() -> None:
    assert Pipeline().run(DRAFT) is DRAFT
    assert Pipeline([Silent(ModConfig())]).run(DRAFT) is DRAFT


def test_each_mod_sees_what_the_one_before_made_of_it() -> None:
    mods = [Hook(shout), Hook(lambda draft: PASS), Hook(shout)]
    assert Pipeline(mods).run(DRAFT).content == "hello!!"
    assert [mod.seen[0].content for mod in mods] == ["hello", "hello!", "hello!"]


def test_a_rejected_message_goes_no_further_and_the_reason_is_told() -> None:
    after = Hook(shout)
    with pytest.raises(OperationError) as caught:
        Pipeline([Hook(lambda draft: Reject("not today")), after]).run(DRAFT)
    assert caught.value.code == ErrorCode.REJECTED
    assert caught.value.message == "hook: not today"
    assert caught.value.details == {"mod": "hook"}
    assert after.seen == []


@pytest.mark.parametrize(
    "forged",
    [
        replace(DRAFT, sender_id="bob"),
        replace(DRAFT, sender_kind="system"),
        replace(DRAFT, thread_id="broadcast"),
        replace(DRAFT, type="broadcast"),
        replace(DRAFT, recipients=("bob", "carol")),
    ],
)
def test_a_mod_cannot_change_who_speaks_or_where(forged: Draft) -> None:
    with pytest.raises(OperationError) as caught:
        Pipeline([Hook(lambda draft: Replace(forged))]).run(DRAFT)
    assert caught.value.code == ErrorCode.INTERNAL


def test_a_mod_that_passes_has_no_operations_by_default() -> None:
    mod = Silent(ModConfig())
    assert mod.on_message(DRAFT) is PASS
    assert mod.operations() == ()
