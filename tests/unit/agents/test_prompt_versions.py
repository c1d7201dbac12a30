"""Versioned prompts: order, variables, fingerprints, errors and rollouts."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.agents.prompt.system import position, version_for
from hubbub.agents.prompt.versions import PromptLibrary, PromptVersion, compile_prompt, latest
from hubbub.config.prompting import RolloutConfig
from hubbub.errors import ConfigError

ORDERED = [
    *("draft", "1.0.dev1", "1.0a1", "1.0-alpha.2", "1.0-beta", "1.0b2", "1.0-rc.1", "1.0rc2"),
    *("1.0-rc.10", "1.0", "1.0.post1", "1.1", "1.2", "1.2.1", "1.9", "1.10-rc.1", "1.10"),
    *("2.9", "2.10-draft", "2.10", "v3", "10"),
]


@pytest.mark.behaviour("Q-5")
class TestOrder:
    def test_versions_are_ordered_by_their_parts(self) -> None:
        versions = [PromptVersion(text) for text in ORDERED]
        backwards = versions[::-1]
        assert [v.text for v in sorted(backwards)] == ORDERED
        for lower, higher in pairwise(versions):
            assert lower < higher
            assert lower != higher

    def test_the_latest_is_the_highest_release(self) -> None:
        assert latest(["2.9", "2.10", "2.1"]) == "2.10"
        assert latest(["1.0", "2.0-rc.1", "draft"]) == "1.0"
        assert latest(["1.0-beta", "1.0-rc.2", "1.0-rc.10", "draft"]) == "1.0-rc.10"
        assert latest(["draft", "try"]) is None
        assert latest([]) is None
        assert PromptVersion("1.0") != PromptVersion("1.0.0")
        assert latest(["1.0.0", "1.0"]) == latest(["1.0", "1.0.0"])

    @given(st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=4), min_size=1))
    def test_numeric_parts_are_compared_one_by_one(self, numbers: list[list[int]]) -> None:
        version = latest(".".join(map(str, parts)) for parts in numbers)
        assert version is not None

        def trimmed(parts: list[int]) -> list[int]:
            return trimmed(parts[:-1]) if parts and parts[-1] == 0 else parts

        highest = max(trimmed(parts) for parts in numbers)
        assert trimmed([int(part) for part in version.split(".")]) == highest


def write(folder: Path, name: str, version: str, text: str) -> Path:
    path = folder / name / f"{version}.j2"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_library_lists_names_and_versions_and_reports_unknown_ones(tmp_path: Path) -> None:
    for version in ("2.10", "2.9", "3.0-rc.1"):
        write(tmp_path, "triage", version, "x")
    write(tmp_path, "answer", "1", "x")
    (tmp_path / "empty").mkdir()
    library = PromptLibrary(tmp_path)
    assert library.names() == ("answer", "triage")
    assert library.versions("triage") == ("2.9", "2.10", "3.0-rc.1")
    assert library.load("triage").version == "2.10"
    assert library.load("triage", "3.0-rc.1").version == "3.0-rc.1"
    assert PromptLibrary(tmp_path / "gone").names() == ()
    write(tmp_path, "drafts", "draft", "x")
    with pytest.raises(ConfigError, match="has no numbered version: name one of draft"):
        library.load("drafts")
    write(tmp_path, "drafts", "latest", "x")
    assert library.versions("drafts") == ("draft",), "it is no name of a version"
    write(tmp_path, "new", "latest", "x")
    with pytest.raises(
        ConfigError, match=r"no version: rename latest\.j2, for example to 1\.0\.j2"
    ):
        library.load("new")
    with pytest.raises(ConfigError, match="no prompt 'triag'; did you mean 'triage'"):
        PromptLibrary(tmp_path).load("triag")
    with pytest.raises(ConfigError, match="there are no prompts in it"):
        PromptLibrary(tmp_path / "gone").load("triage")
    with pytest.raises(ConfigError, match=r"no version '1\.11'; versions: 2\.9, 2\.10, 3"):
        PromptLibrary(tmp_path).load("triage", "1.11")


@pytest.mark.behaviour("Q-4")
class TestTemplate:
    def test_variables_are_filled_in_and_missing_ones_reported_by_name(
        self, tmp_path: Path
    ) -> None:
        list_ = "{{ shop }}{% for x in list %} {{ x }}{% endfor %}"
        template = compile_prompt(write(tmp_path, "a", "1", list_))
        assert template.required == {"shop", "list"}
        assert template.render({"shop": "A & B", "list": [1, 2]}) == "A & B 1 2"
        path = write(tmp_path, "a", "1", "hello\n{{ shop }}")
        needs = "a@1 needs the variable 'shop'; did you mean 'shopp'"
        with pytest.raises(ConfigError, match=needs):
            compile_prompt(path).render({"shopp": "x"})
        with pytest.raises(ConfigError, match=r"1\.j2:2: .* needs the variable 'shop'$"):
            compile_prompt(path).check(["other"])
        text = "{{ a | default('x') }}{% if b is defined %}{{ b }}{% endif %}{% set c = 1 %}{{ c }}"
        template = compile_prompt(write(tmp_path, "a", "1", text))
        assert (sorted(template.required), sorted(template.optional)) == ([], ["a", "b"])
        assert template.render({}) == "x1"
        assert template.render({"a": "y", "b": "z"}) == "yz1"

    def test_a_fingerprint_identifies_prompt_version_and_text(self, tmp_path: Path) -> None:
        path = write(tmp_path, "triage", "1.2", "one")
        first = compile_prompt(path).fingerprint
        assert first.startswith("triage@1.2#")
        assert compile_prompt(path).fingerprint == first
        path.write_text("two", encoding="utf-8")
        assert compile_prompt(path).fingerprint != first

    def test_an_error_is_reported_with_file_and_line(self, tmp_path: Path) -> None:
        for text, line, reason in [
            ("fine\n{% if %}", 2, "does not parse"),
            ("fine\n{% include 'other' %}", 2, "stands alone"),
            ("{% extends 'other' %}", 1, "stands alone"),
            ("{% import 'x' as x %}", 1, "stands alone"),
            ("fine\n\n{{ thing | shout }}", 3, "shout"),
            ("{{ thing.__class__.__mro__ }}", 1, "unsafe"),
            ("fine\n{{ 1 / 0 }}", 2, "division by zero"), ("a\n{{ thing.nothing }}", 2, "nothing"),
            ("{{ many.append(1) }}", 1, "unsafe"), ("{{ 'x' * (10 ** 9) ** 9 }}", 1, "fails"),
        ]:  # fmt: skip
            path = write(tmp_path, "a", "1", text)
            with pytest.raises(ConfigError, match=reason) as caught:
                compile_prompt(path).render({"thing": "x", "many": []})
            assert (str(caught.value.path), caught.value.line) == (str(path), line)
        path.write_bytes(b"\xff\xfe")
        with pytest.raises(ConfigError, match="cannot be read"):
            compile_prompt(path)


THREADS = [f"dm.bot.person{n}" for n in range(2000)]


def versions(rollout: RolloutConfig | None) -> list[str]:
    return [version_for("1", rollout, "bot", thread, "p") for thread in THREADS]


@pytest.mark.behaviour("Q-5")
def test_a_rollout_reaches_about_its_share_of_the_threads() -> None:
    assert set(versions(None)) == set(versions(RolloutConfig(version="2", share=0.0))) == {"1"}
    assert set(versions(RolloutConfig(version="2", share=1.0))) == {"2"}
    assert 150 < versions(RolloutConfig(version="2", share=0.1)).count("2") < 250
    assert position("a", "t", "p") == position("a", "t", "p")
    assert len({position("a", "t", "p"), position("b", "t", "p"), position("a", "t", "q")}) == 3


@pytest.mark.behaviour("Q-5")
@given(st.text(), st.text(), st.floats(0, 1), st.floats(0, 1))
def test_a_thread_keeps_the_new_version_as_the_share_grows(
    agent: str, thread: str, share: float, more: float
) -> None:
    rollouts = [RolloutConfig(version="2", share=each) for each in sorted((share, more))]
    before, after = (version_for("1", each, agent, thread, "p") for each in rollouts)
    assert (before, after) in (("1", "1"), ("1", "2"), ("2", "2"))
    assert 0 <= position(agent, thread, "p") < 1
