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
    """A mod with the given hook."""

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


def test_a_draft_passes_unchanged_without_hooks() -> None:
    assert Pipeline().run(DRAFT) is DRAFT
    assert Pipeline([Silent(ModConfig())]).run(DRAFT) is DRAFT


def test_each_mod_receives_the_draft_of_the_mod_before() -> None:
    mods = [Hook(shout), Hook(lambda draft: PASS), Hook(shout)]
    assert Pipeline(mods).run(DRAFT).content == "hello!!"
    assert [mod.seen[0].content for mod in mods] == ["hello", "hello!", "hello!"]


class Watcher(Hook):
    """Watches only drafts with mentions."""

    def watches(self, draft: Draft) -> bool:
        return len(draft.mentions) > 0


def test_a_mod_receives_only_drafts_that_it_watches() -> None:
    failures: list[str] = []
    mod, broken = Watcher(shout), Hook(shout)
    broken.watches = None  # type: ignore[assignment,method-assign]  # as third-party code can do
    pipeline = Pipeline([mod, broken], lambda mod, hook, error: failures.append(hook))
    assert pipeline.run(DRAFT).content == "hello!"
    assert (mod.seen, failures) == ([], ["watches"])
    assert pipeline.run(DRAFT.replace(mentions=("bob",))).content == "hello!!"


def test_a_rejection_skips_later_mods_and_reports_its_reason() -> None:
    after = Hook(shout)
    with pytest.raises(OperationError) as caught:
        Pipeline([Hook(lambda draft: Reject("not today")), after]).run(DRAFT)
    assert caught.value.code == ErrorCode.REJECTED
    assert caught.value.message == "hook: not today"
    assert caught.value.details == {"mod": "hook"}
    assert after.seen == []


def test_a_replacement_with_a_forged_sender_or_invalid_content_is_ignored() -> None:
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
    for forged, reason in changes:
        failures: list[tuple[str, str]] = []
        pipeline = Pipeline(
            [Hook(lambda draft, forged=forged: Replace(forged))],  # type: ignore[misc]
            lambda mod, hook, error, to=failures: to.append((hook, str(error))),  # type: ignore[misc]
        )
        assert pipeline.run(DRAFT) is DRAFT
        [(hook, error)] = failures
        assert (hook, reason in error) == ("on_message", True), forged


def test_a_mod_can_mark_a_draft_untrusted_but_not_remove_the_mark() -> None:
    failures: list[str] = []
    marked = DRAFT.replace(untrusted=True)

    def verdict(draft: Draft) -> Verdict:
        return Replace(draft.replace(untrusted=not draft.untrusted))

    pipeline = Pipeline([Hook(verdict)], lambda mod, hook, error: failures.append(hook))
    assert pipeline.run(DRAFT) == marked
    assert failures == []
    assert pipeline.run(marked) is marked
    assert failures == ["on_message"]


def test_a_mod_passes_drafts_and_has_no_operations_by_default() -> None:
    mod = Silent(ModConfig())
    assert mod.on_message(DRAFT) is PASS
    assert list(mod.operations()) == []
