"""Searching folders: what is found, what is read again, what is left out and said to be."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from hubbub.agents.knowledge import Hit, KnowledgeBase, Limits
from hubbub.agents.knowledge.files import Unreadable, read_text, scan
from hubbub.errors import ConfigError
from tests.examples import examples

RETURNS = """\
# Returns

We take goods back within 30 days.

## Damaged goods

Send a photo; refunds are paid within three days.
"""

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file below the folder `docs`."""

    def write(name: str, text: str | bytes, *, age_s: float = 3600) -> Path:
        path = tmp_path / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        before = path.stat().st_mtime - age_s
        os.utime(path, (before, before))
        return path

    (tmp_path / "docs").mkdir()
    return write


@pytest.fixture
def docs(tmp_path: Path, write: Write) -> KnowledgeBase:
    return KnowledgeBase([tmp_path / "docs"])


def files(base: KnowledgeBase, query: str, limit: int = 20) -> list[str]:
    return [hit.file for hit in base.search(query, limit).hits]


class TestFinding:
    @pytest.mark.behaviour("E-1")
    def test_a_hit_names_its_file_line_and_headings(
        self, docs: KnowledgeBase, write: Write
    ) -> None:
        write("shop/returns.md", "\ufeff" + RETURNS)
        found = docs.search("refund")
        text = "Send a photo; refunds are paid within three days."
        assert found.hits == (Hit("shop/returns.md", 7, "Returns > Damaged goods", text),)
        assert (found.matches, found.problems, found.titles) == (1, (), ())

    def test_what_matches_better_comes_first_names_of_files_count_and_phrases_must_occur(
        self, docs: KnowledgeBase, write: Write
    ) -> None:
        write("a.md", "# Lamps\nThey shine. Delivery takes days.")
        write("b.md", "# Delivery\nTwo days.")
        write("warranty.md", "# Chairs\nNothing else.")
        assert files(docs, "delivery") == ["b.md", "a.md"]
        assert files(docs, "how long is the delivery of lamps") == ["a.md", "b.md"]
        assert files(docs, "warranty") == ["warranty.md"]
        write("c.md", "money back soon, for everybody and everything")
        write("d.md", "back to money, with lamps")
        write("e.md", "money back for lamps")
        assert files(docs, '"money back" lamps') == ["e.md", "c.md"]

    def test_beginnings_are_found_with_a_star_or_where_nothing_else_is(
        self, docs: KnowledgeBase, write: Write
    ) -> None:
        write("a.md", "Lampenschirme und Kabel")
        write("b.md", "Lamm")
        assert files(docs, "lamp*") == files(docs, "Lampen") == ["a.md"]
        write("c.md", "Lampen und Kabel")
        assert files(docs, "Lampen") == ["c.md"]

    def test_case_accents_and_scripts_without_spaces_are_no_hindrance(
        self, docs: KnowledgeBase, write: Write
    ) -> None:
        write("a.md", "Café Größe")
        assert files(docs, "CAFE") == files(docs, "große") == files(docs, "cafe\u0301") == ["a.md"]
        write("c.md", "# 営業時間\n東京駅の近くです。")
        write("b.md", "京の東")
        (hit,) = docs.search("東京").hits
        assert (hit.heading, hit.text) == ("営業時間", "東京駅の近くです。")

    def test_no_hit_tells_what_there_is(self, docs: KnowledgeBase, write: Write) -> None:
        assert docs.search("anything") == ((), 0, (), ())
        write("a.md", "# Opening hours\nNine to five.")
        write("b.md", "plain")
        found = docs.search("xyzzy")
        assert (found.hits, found.matches) == ((), 0)
        assert found.titles == ("Opening hours (a.md)", "untitled (b.md)")

    def test_a_search_is_bounded_ordered_and_shared_by_threads(
        self, docs: KnowledgeBase, write: Write
    ) -> None:
        for n in range(29, 9, -1):
            write(f"{n}.md", "the same words")
        found = docs.search("words", 3)
        assert ([hit.file for hit in found.hits], found.matches) == (
            ["10.md", "11.md", "12.md"],
            20,
        )
        for limit in (0, 21):
            with pytest.raises(ValueError, match="expected 1 to 20"):
                docs.search("words", limit)
        with ThreadPoolExecutor(4) as threads:
            matches = threads.map(lambda _: docs.search("words").matches, range(8))
            assert list(matches) == [20] * 8

    def test_names_of_several_folders_stand_before_the_files(
        self, tmp_path: Path, write: Write
    ) -> None:
        for name in ("shop/docs", "faq", "desk/docs"):
            (tmp_path / name).mkdir(parents=True)
            (tmp_path / name / "a.md").write_text("words")
        base = KnowledgeBase([tmp_path / "shop/docs", tmp_path / "faq", tmp_path / "desk/docs"])
        assert sorted(files(base, "words")) == ["docs-2/a.md", "docs/a.md", "faq/a.md"]
        write("api/a.md", "words")
        docs = tmp_path / "docs"
        assert files(KnowledgeBase([docs, docs / "api"]), "words") == ["docs/api/a.md"]
        with pytest.raises(ConfigError, match="nowhere: this folder does not exist"):
            KnowledgeBase([tmp_path / "nowhere"])


class TestChanges:
    @pytest.mark.behaviour("E-2")
    def test_new_changed_removed_and_renamed_files_are_noticed(
        self, tmp_path: Path, docs: KnowledgeBase, write: Write
    ) -> None:
        path = write("a.md", "old words")
        assert files(docs, "words") == ["a.md"]
        write("a.md", "new text", age_s=1800)
        write("sub/b.md", "more words")
        assert files(docs, "words") == ["sub/b.md"]
        assert files(docs, "text") == ["a.md"]
        path.rename(path.with_name("b.md"))
        assert files(docs, "text") == ["b.md"]
        path.with_name("b.md").unlink()
        assert files(docs, "text") == []
        (tmp_path / "docs").rename(tmp_path / "away")
        found = docs.search("words")
        assert (found.hits, found.problems) == ((), ("docs: No such file or directory",))
        (tmp_path / "away").rename(tmp_path / "docs")
        assert files(docs, "words") == ["sub/b.md"]

    def test_two_files_that_change_their_names_are_not_mixed_up(
        self, docs: KnowledgeBase, write: Write
    ) -> None:
        a, b = write("a.md", "cats!"), write("b.md", "dogs!")
        moment = a.stat().st_mtime
        os.utime(b, (moment, moment))
        assert files(docs, "cats") == ["a.md"]
        a.rename(a.with_name("c.tmp"))
        b.rename(a)
        a.with_name("c.tmp").rename(b)
        assert (files(docs, "cats"), files(docs, "dogs")) == (["b.md"], ["a.md"])

    @pytest.mark.parametrize(("age_s", "noticed"), [(0, True), (3600, False)])
    def test_a_change_of_the_same_time_and_size_is_noticed_within_one_tick_of_the_clock_only(
        self, docs: KnowledgeBase, write: Write, age_s: float, noticed: bool
    ) -> None:
        path = write("a.md", "cats", age_s=age_s)
        moment = path.stat()
        assert files(docs, "cats") == ["a.md"]
        path.write_text("dogs")
        os.utime(path, ns=(moment.st_atime_ns, moment.st_mtime_ns))
        assert files(docs, "dogs") == (["a.md"] if noticed else [])
        os.utime(path, ns=(moment.st_atime_ns, moment.st_mtime_ns + 1))
        assert (files(docs, "cats"), files(docs, "dogs")) == ([], ["a.md"])


class TestLeftOut:
    @pytest.mark.behaviour("E-3")
    def test_only_markdown_counts_that_is_not_hidden_or_linked_from_elsewhere(
        self, tmp_path: Path, docs: KnowledgeBase, write: Write
    ) -> None:
        for name in ("a.md", "B.MARKDOWN", "c.txt", ".d.md", ".git/e.md", "f.md~", "g.mdx"):
            write(name, "words")
        folder, secret = tmp_path / "docs", tmp_path / "docs-other"  # a name that begins alike
        secret.mkdir()
        (secret / "a.md").write_text("words")
        for link, to in (
            *(("file.md", secret / "a.md"), ("folder", secret), ("folder.md", secret)),
            *(
                ("loop", folder),
                ("gone.md", folder / "nothing.md"),
                ("self.md", folder / "self.md"),
            ),
            *(("inside.md", folder / "c.txt"), ("again.md", folder / "a.md")),
        ):
            (folder / link).symlink_to(to)
        os.mkfifo(folder / "pipe.md")
        (Path(os.fsdecode(bytes(folder) + b"/\xff.md"))).write_text("words")
        assert files(docs, "words") == ["B.MARKDOWN", "\\xff.md", "a.md", "inside.md"]
        (tmp_path / "link").symlink_to(folder)
        assert len(files(KnowledgeBase([tmp_path / "link"]), "words")) == 4

    @pytest.mark.behaviour("E-3")
    def test_what_takes_a_files_place_after_the_look_is_not_read(
        self, tmp_path: Path, write: Write
    ) -> None:
        path = write("a.md", "words")
        (tmp_path / "secret").write_text("secret words")
        (found,) = scan({"": tmp_path / "docs"}, Limits()).files
        assert read_text(found, Limits()) == "words"
        path.rename(tmp_path / "moved")
        path.symlink_to(tmp_path / "secret")
        with pytest.raises(Unreadable):
            read_text(found, Limits())
        path.unlink()
        os.mkfifo(path)
        with pytest.raises(Unreadable, match="replaced"):
            read_text(found, Limits())
        path.unlink()
        (tmp_path / "secret").rename(path)
        with pytest.raises(Unreadable, match="replaced"):
            read_text(found, Limits())

    @pytest.mark.behaviour("E-4")
    def test_a_file_that_cannot_be_searched_is_told_until_it_is_mended(
        self, tmp_path: Path, write: Write
    ) -> None:
        base = KnowledgeBase([tmp_path / "docs"], Limits(max_file=100))
        write("b.md", "words")
        cases = [
            (b"one\ntwo\xff", "a.md: not UTF-8 text (line 2)"),
            ("words".encode("utf-16"), "a.md: not UTF-8 text (line 1)"),
            (b"a\0b", "a.md: not text: it has a NUL character"),
            (b"x" * 101, "a.md: larger than 100 bytes (max_file)"),
        ]
        for n, (data, problem) in enumerate(cases, 1):
            write("a.md", f"words {n}", age_s=1000 / n)
            assert files(base, "words") == ["b.md", "a.md"]
            write("a.md", data, age_s=1000 / n - 60)
            for _ in range(2):  # told every time, not only when it is read
                found = base.search("words")
                assert [hit.file for hit in found.hits] == ["b.md"]
                assert found.problems == (problem,)

    @pytest.mark.behaviour("E-4")
    def test_too_many_files_are_left_out(self, tmp_path: Path, write: Write) -> None:
        for n in range(5):
            write(f"{n}.md", "words")
        for limits in (Limits(max_files=2), Limits(max_size=10)):
            found = KnowledgeBase([tmp_path / "docs"], limits).search("words")
            assert [hit.file for hit in found.hits] == ["0.md", "1.md"]
            (problem,) = found.problems
            assert problem.startswith("3 further files: there are more than ")


def test_an_index_that_nobody_has_any_more_is_closed(write: Write, tmp_path: Path) -> None:
    write("a.md", "words")
    base = KnowledgeBase([tmp_path / "docs"])
    base.search("words")
    assert base._index is not None
    db = base._index._db
    del base
    gc.collect()
    with pytest.raises(Exception, match="closed"):
        db.execute("SELECT 1")


class Folder(RuleBasedStateMachine):
    """What is found is what lies in the folder, whatever was done to it between two searches."""

    names = st.sampled_from(["a.md", "b.md", "sub/c.md"])
    words = st.sampled_from(["cats", "dogs", "mice"])

    def __init__(self) -> None:
        super().__init__()
        import tempfile

        self._place = tempfile.TemporaryDirectory()
        self.folder = Path(self._place.name)
        (self.folder / "sub").mkdir()
        self.base = KnowledgeBase([self.folder])
        self.there: dict[str, str] = {}

    @rule(name=names, word=words)
    def write(self, name: str, word: str) -> None:
        (self.folder / name).write_text(f"# {word}")
        self.there[name] = word

    @rule(name=names)
    def remove(self, name: str) -> None:
        (self.folder / name).unlink(missing_ok=True)
        self.there.pop(name, None)

    @rule(old=names, new=names)
    def rename(self, old: str, new: str) -> None:
        if old in self.there:
            (self.folder / old).rename(self.folder / new)
            self.there[new] = self.there.pop(old)

    @invariant()
    def all_that_is_there_is_found(self) -> None:
        for word in ("cats", "dogs", "mice"):
            expected = sorted(name for name, said in self.there.items() if said == word)
            assert sorted(files(self.base, word)) == expected

    def teardown(self) -> None:
        self._place.cleanup()


TestFolder = Folder.TestCase
TestFolder.settings = settings(max_examples=examples(30), stateful_step_count=15)
