from __future__ import annotations

from collections.abc import Callable

import pytest

from hubbub.errors import OperationError
from hubbub.mods.api import PASS, Mod, ModConfig, Reject, Replace, Verdict
from hubbub.mods.pipeline import Pipeline
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Draft

pytestmark = pytest.mark.behaviour("M-1", "M-50")

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
    return Replace(draft.replace(content=f"{draft.content}!"))


def test_without_mods_a_draft_goes_through_untouched() -> None:
    assert Pipeline().run(DRAFT) is DRAFT
    assert Pipeline([Silent(ModConfig())]).run(DRAFT) is DRAFT


def test_each_mod_sees_what_the_one_before_made_of_it() -> None:
    mods = [Hook(shout), Hook(lambda draft: PASS), Hook(shout)]
    assert Pipeline(mods).run(DRAFT).content == "hello!!"
    assert [mod.seen[0].content for mod in mods] == ["hello", "hello!", "hello!"]


class Watcher(Hook):
    """Looks only at what mentions somebody."""

    def watches(self, draft: Draft) -> bool:
        return len(draft.mentions) > 0


def test_a_mod_that_does_not_watch_a_message_is_not_asked_about_it() -> None:
    failures: list[str] = []
    mod, broken = Watcher(shout), Hook(shout)
    broken.watches = None  # type: ignore[assignment,method-assign]  # as code of others may be
    pipeline = Pipeline([mod, broken], lambda mod, hook, error: failures.append(hook))
    assert pipeline.run(DRAFT).content == "hello!"
    assert (mod.seen, failures) == ([], ["watches"])
    assert pipeline.run(DRAFT.replace(mentions=("bob",))).content == "hello!!"


def test_a_rejected_message_goes_no_further_and_the_reason_is_told() -> None:
    after = Hook(shout)
    with pytest.raises(OperationError) as caught:
        Pipeline([Hook(lambda draft: Reject("not today")), after]).run(DRAFT)
    assert caught.value.code == ErrorCode.REJECTED
    assert caught.value.message == "hook: not today"
    assert caught.value.details == {"mod": "hook"}
    assert after.seen == []


def test_what_forges_who_speaks_or_could_not_be_kept_is_no_replacement() -> None:
    changes: list[tuple[object, str]] = [
        *(
            (DRAFT.replace(**{name: value}), "sender, thread or recipients")
            for name, value in (
                ("sender_id", "bob"),
                ("sender_kind", "system"),
                ("thread_id", "broadcast"),
                ("type", "broadcast"),
                ("recipients", ("bob", "carol")),
                ("untrusted", 1),
            )
        ),
        ("a text", ""),
        *(
            (DRAFT.replace(**{name: value}), "")
            for name, value in (
                ("content", object()),
                ("content", "\ud800"),
                ("text_representation", 1),
                ("mentions", ["bob"]),
                ("mentions", (1,)),
                ("attachments", ("a file",)),
                ("quote", "words"),
            )
        ),
    ]
    for forged, says in changes:
        failures: list[tuple[str, str]] = []
        pipeline = Pipeline(
            [Hook(lambda draft, forged=forged: Replace(forged))],  # type: ignore[misc]
            lambda mod, hook, error, told=failures: told.append((hook, str(error))),  # type: ignore[misc]
        )
        assert pipeline.run(DRAFT) is DRAFT
        [(hook, why)] = failures
        assert (hook, says in why) == ("on_message", True), forged


def test_a_mod_may_mark_a_message_as_from_outside_and_not_take_the_mark_away() -> None:
    failures: list[str] = []
    marked = DRAFT.replace(untrusted=True)

    def verdict(draft: Draft) -> Verdict:
        return Replace(draft.replace(untrusted=not draft.untrusted))

    pipeline = Pipeline([Hook(verdict)], lambda mod, hook, error: failures.append(hook))
    assert pipeline.run(DRAFT) == marked
    assert failures == []
    assert pipeline.run(marked) is marked
    assert failures == ["on_message"]


def test_a_mod_that_passes_has_no_operations_by_default() -> None:
    mod = Silent(ModConfig())
    assert mod.on_message(DRAFT) is PASS
    assert list(mod.operations()) == []
