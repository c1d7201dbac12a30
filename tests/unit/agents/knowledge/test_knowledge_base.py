"""Searching folders: hits, files that change, and files that are left out and reported."""

from __future__ import annotations

import gc
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from hubbub.agents.knowledge import Hit, KnowledgeBase
from hubbub.agents.knowledge.base import UnreadableFile, read_text, scan
from hubbub.config.knowledge import KnowledgeConfig
from hubbub.errors import ConfigError
from tests.examples import examples

RETURNS = """\
# Returns

We take goods back within 30 days.

## Damaged goods

Send a photo; refunds are paid within three days.
"""


class Docs:
    """A folder `docs` and its knowledge base."""

    def __init__(self, place: Path):
        self.folder = place / "docs"
        self.folder.mkdir()
        self.base = KnowledgeBase([self.folder])

    def write(self, name: str, text: str | bytes, *, age_s: float = 3600) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        before = path.stat().st_mtime - age_s
        os.utime(path, (before, before))
        return path

    def files(self, query: str) -> list[str]:
        return files(self.base, query)


@pytest.fixture
def docs(tmp_path: Path) -> Docs:
    return Docs(tmp_path)


def files(base: KnowledgeBase, query: str, limit: int = 20) -> list[str]:
    return [hit.file for hit in base.search(query, limit).hits]


@pytest.mark.behaviour("E-1")
def test_a_hit_names_its_file_line_and_headings(docs: Docs) -> None:
    docs.write("shop/returns.md", "\ufeff" + RETURNS)
    result = docs.base.search("refund")
    text = "Send a photo; refunds are paid within three days."
    assert result.hits == (Hit("shop/returns.md", 7, "Returns > Damaged goods", text),)
    assert (result.matches, result.problems, result.titles) == (1, (), ())


def test_better_matches_come_first_and_quoted_phrases_must_occur(docs: Docs) -> None:
    docs.write("a.md", "# Lamps\nThey shine. Delivery takes days.")
    docs.write("b.md", "# Delivery\nTwo days.")
    docs.write("warranty.md", "# Chairs\nNothing else.")
    assert docs.files("delivery") == ["b.md", "a.md"]
    assert docs.files("how long is the delivery of lamps") == ["a.md", "b.md"]
    assert docs.files("warranty") == ["warranty.md"]
    docs.write("c.md", "money back soon, for everybody and everything")
    docs.write("d.md", "back to money, with lamps")
    docs.write("e.md", "money back for lamps")
    assert docs.files('"money back" lamps') == ["e.md", "c.md"]


def test_prefixes_match_with_a_star_or_when_nothing_else_matches(docs: Docs) -> None:
    docs.write("a.md", "Lampenschirme und Kabel")
    docs.write("b.md", "Lamm")
    assert docs.files("lamp*") == docs.files("Lampen") == ["a.md"]
    docs.write("c.md", "Lampen und Kabel")
    assert docs.files("Lampen") == ["c.md"]


def test_search_ignores_case_and_accents_and_handles_scripts_without_spaces(docs: Docs) -> None:
    docs.write("a.md", "Café Größe")
    assert docs.files("CAFE") == docs.files("große") == docs.files("cafe\u0301") == ["a.md"]
    docs.write("c.md", "# 営業時間\n東京駅の近くです。")
    docs.write("b.md", "京の東")
    (hit,) = docs.base.search("東京").hits
    assert (hit.heading, hit.text) == ("営業時間", "東京駅の近くです。")


def test_a_search_without_hits_lists_the_documents(docs: Docs) -> None:
    assert docs.base.search("anything") == ((), 0, (), ())
    docs.write("a.md", "# Opening hours\nNine to five.")
    docs.write("b.md", "plain")
    result = docs.base.search("xyzzy")
    assert (result.hits, result.matches) == ((), 0)
    assert result.titles == ("Opening hours (a.md)", "untitled (b.md)")


def test_a_search_is_limited_and_ordered_and_can_run_in_several_threads(docs: Docs) -> None:
    for n in range(29, 9, -1):
        docs.write(f"{n}.md", "the same words")
    result = docs.base.search("words", 3)
    assert ([hit.file for hit in result.hits], result.matches) == (["10.md", "11.md", "12.md"], 20)
    for limit in (0, 21):
        with pytest.raises(ValueError, match="expected 1 to 20"):
            docs.base.search("words", limit)
    with ThreadPoolExecutor(4) as threads:
        matches = threads.map(lambda _: docs.base.search("words").matches, range(8))
        assert list(matches) == [20] * 8


def test_files_of_several_folders_are_prefixed_with_distinct_folder_names(
    tmp_path: Path, docs: Docs
) -> None:
    for name in ("shop/docs", "faq", "desk/docs"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "a.md").write_text("words")
    base = KnowledgeBase([tmp_path / "shop/docs", tmp_path / "faq", tmp_path / "desk/docs"])
    assert sorted(files(base, "words")) == ["docs-2/a.md", "docs/a.md", "faq/a.md"]
    docs.write("api/a.md", "words")
    both = [docs.folder, docs.folder / "api"]
    assert files(KnowledgeBase(both), "words") == ["docs/api/a.md"]
    with pytest.raises(ConfigError, match="nowhere: this folder does not exist"):
        KnowledgeBase([tmp_path / "nowhere"])


@pytest.mark.behaviour("E-2")
def test_new_changed_removed_and_renamed_files_are_noticed(tmp_path: Path, docs: Docs) -> None:
    path = docs.write("a.md", "old words")
    assert docs.files("words") == ["a.md"]
    docs.write("a.md", "new text", age_s=1800)
    docs.write("sub/b.md", "more words")
    assert docs.files("words") == ["sub/b.md"]
    assert docs.files("text") == ["a.md"]
    path.rename(path.with_name("b.md"))
    assert docs.files("text") == ["b.md"]
    path.with_name("b.md").unlink()
    assert docs.files("text") == []
    docs.folder.rename(tmp_path / "away")
    result = docs.base.search("words")
    assert (result.hits, result.problems) == ((), ("docs: No such file or directory",))
    (tmp_path / "away").rename(docs.folder)
    assert docs.files("words") == ["sub/b.md"]


def test_two_files_that_swap_names_are_not_mixed_up(docs: Docs) -> None:
    a, b = docs.write("a.md", "cats!"), docs.write("b.md", "dogs!")
    moment = a.stat().st_mtime
    os.utime(b, (moment, moment))
    assert docs.files("cats") == ["a.md"]
    a.rename(a.with_name("c.tmp"))
    b.rename(a)
    a.with_name("c.tmp").rename(b)
    assert (docs.files("cats"), docs.files("dogs")) == (["b.md"], ["a.md"])


@pytest.mark.parametrize(("age_s", "noticed"), [(0, True), (3600, False)])
def test_a_change_with_equal_time_and_size_is_noticed_only_in_a_recent_file(
    docs: Docs, age_s: float, noticed: bool
) -> None:
    path = docs.write("a.md", "cats", age_s=age_s)
    moment = path.stat()
    assert docs.files("cats") == ["a.md"]
    path.write_text("dogs")
    os.utime(path, ns=(moment.st_atime_ns, moment.st_mtime_ns))
    assert docs.files("dogs") == (["a.md"] if noticed else [])
    os.utime(path, ns=(moment.st_atime_ns, moment.st_mtime_ns + 1))
    assert (docs.files("cats"), docs.files("dogs")) == ([], ["a.md"])


@pytest.mark.behaviour("E-3")
def test_only_visible_markdown_files_inside_the_folder_are_searched(
    tmp_path: Path, docs: Docs
) -> None:
    for name in ("a.md", "B.MARKDOWN", "c.txt", ".d.md", ".git/e.md", "f.md~", "g.mdx"):
        docs.write(name, "words")
    folder, secret = docs.folder, tmp_path / "docs-other"  # a name that begins alike
    secret.mkdir()
    (secret / "a.md").write_text("words")
    for link, target in (
        *(("file.md", secret / "a.md"), ("folder", secret), ("folder.md", secret)),
        *(("loop", folder), ("gone.md", folder / "nothing.md"), ("self.md", folder / "self.md")),
        *(("inside.md", folder / "c.txt"), ("again.md", folder / "a.md")),
    ):
        (folder / link).symlink_to(target)
    os.mkfifo(folder / "pipe.md")
    (Path(os.fsdecode(bytes(folder) + b"/\xff.md"))).write_text("words")
    assert docs.files("words") == ["B.MARKDOWN", "\\xff.md", "a.md", "inside.md"]
    (tmp_path / "link").symlink_to(folder)
    assert len(files(KnowledgeBase([tmp_path / "link"]), "words")) == 4


@pytest.mark.behaviour("E-3")
def test_a_file_replaced_between_scan_and_read_is_not_read(tmp_path: Path, docs: Docs) -> None:
    path = docs.write("a.md", "words")
    (tmp_path / "secret").write_text("secret words")
    (file,) = scan({"": docs.folder}, KnowledgeConfig()).files
    assert read_text(file, KnowledgeConfig()) == "words"
    path.rename(tmp_path / "moved")
    path.symlink_to(tmp_path / "secret")
    with pytest.raises(UnreadableFile):
        read_text(file, KnowledgeConfig())
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(UnreadableFile, match="replaced"):
        read_text(file, KnowledgeConfig())
    path.unlink()
    (tmp_path / "secret").rename(path)
    with pytest.raises(UnreadableFile, match="replaced"):
        read_text(file, KnowledgeConfig())


@pytest.mark.behaviour("E-4")
def test_an_unsearchable_file_is_reported_until_it_is_fixed(tmp_path: Path, docs: Docs) -> None:
    base = KnowledgeBase([docs.folder], KnowledgeConfig(max_file=100))
    docs.write("b.md", "words")
    cases = [
        (b"one\ntwo\xff", "a.md: not UTF-8 text (line 2)"),
        ("words".encode("utf-16"), "a.md: not UTF-8 text (line 1)"),
        (b"a\0b", "a.md: not text: it contains a NUL character"),
        (b"x" * 101, "a.md: larger than 100 bytes (max_file)"),
    ]
    for n, (data, problem) in enumerate(cases, 1):
        docs.write("a.md", f"words {n}", age_s=1000 / n)
        assert files(base, "words") == ["b.md", "a.md"]
        docs.write("a.md", data, age_s=1000 / n - 60)
        for _ in range(2):  # reported every time, not only when the file is read
            result = base.search("words")
            assert [hit.file for hit in result.hits] == ["b.md"]
            assert result.problems == (problem,)
        assert base.search("xyzzy").titles == ("untitled (b.md)",)


@pytest.mark.behaviour("E-4")
def test_files_over_the_limits_are_left_out_and_counted(tmp_path: Path, docs: Docs) -> None:
    for n in range(5):
        docs.write(f"{n}.md", "words")
    for limits in (KnowledgeConfig(max_files=2), KnowledgeConfig(max_size=10)):
        result = KnowledgeBase([docs.folder], limits).search("words")
        assert [hit.file for hit in result.hits] == ["0.md", "1.md"]
        (problem,) = result.problems
        assert problem.startswith("3 further files: there are more than ")


def test_an_unreferenced_index_is_closed(tmp_path: Path, docs: Docs) -> None:
    docs.write("a.md", "words")
    base = KnowledgeBase([docs.folder])
    base.search("words")
    assert base._index is not None
    db = base._index._db
    del base
    gc.collect()
    with pytest.raises(Exception, match="closed"):
        db.execute("SELECT 1")


class Folder(RuleBasedStateMachine):
    """A search finds the current files, whatever changed in the folder since the last one."""

    names = st.sampled_from(["a.md", "b.md", "sub/c.md"])
    words = st.sampled_from(["cats", "dogs", "mice"])

    def __init__(self) -> None:
        super().__init__()
        import tempfile

        self._temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self._temporary.name)
        (self.folder / "sub").mkdir()
        self.base = KnowledgeBase([self.folder])
        self.contents: dict[str, str] = {}

    @rule(name=names, word=words)
    def write(self, name: str, word: str) -> None:
        (self.folder / name).write_text(f"# {word}")
        self.contents[name] = word

    @rule(name=names)
    def remove(self, name: str) -> None:
        (self.folder / name).unlink(missing_ok=True)
        self.contents.pop(name, None)

    @rule(old=names, new=names)
    def rename(self, old: str, new: str) -> None:
        if old in self.contents:
            (self.folder / old).rename(self.folder / new)
            self.contents[new] = self.contents.pop(old)

    @invariant()
    def a_search_finds_the_current_files(self) -> None:
        for word in ("cats", "dogs", "mice"):
            expected = sorted(name for name, text in self.contents.items() if text == word)
            assert sorted(files(self.base, word)) == expected

    def teardown(self) -> None:
        self._temporary.cleanup()


TestFolder = Folder.TestCase
TestFolder.settings = settings(max_examples=examples(30), stateful_step_count=15)
