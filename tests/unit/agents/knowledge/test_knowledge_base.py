"""Searching folders: what is found, what is read again, what is left out and said to be."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable
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
        write("shop/returns.md", RETURNS)
        found = docs.search("refund")
        text = "Send a photo; refunds are paid within three days."
        assert found.hits == (Hit("shop/returns.md", 7, "Returns > Damaged goods", text),)
        assert (found.matches, found.problems, found.titles) == (1, (), ())

    def test_what_matches_better_comes_first(self, docs: KnowledgeBase, write: Write) -> None:
        write("a.md", "# Lamps\nThey shine. Delivery takes days.")
        write("b.md", "# Delivery\nTwo days.")
        write("c.md", "# Chairs\nNothing else.")
        assert files(docs, "delivery") == ["b.md", "a.md"]
        assert files(docs, "how long is the delivery of lamps") == ["a.md", "b.md"]

    def test_the_name_of_a_file_counts(self, docs: KnowledgeBase, write: Write) -> None:
        write("warranty.md", "Two years.")
        assert files(docs, "warranty") == ["warranty.md"]

    def test_a_phrase_must_occur_and_other_words_only_rank(
        self, docs: KnowledgeBase, write: Write
    ) -> None:
        write("a.md", "money back soon, for everybody and everything")
        write("b.md", "back to money, with lamps")
        write("c.md", "money back for lamps")
        assert files(docs, '"money back" lamps') == ["c.md", "a.md"]

    def test_a_star_finds_beginnings(self, docs: KnowledgeBase, write: Write) -> None:
        write("a.md", "Lampenschirm")
        write("b.md", "Lamm")
        assert files(docs, "lamp*") == ["a.md"]

    def test_where_nothing_is_found_beginnings_of_words_are_looked_for(
        self, docs: KnowledgeBase, write: Write
    ) -> None:
        write("a.md", "Lampenschirme und Kabel")
        write("b.md", "Lamm")
        assert files(docs, "Lampen") == ["a.md"]
        write("c.md", "Lampen und Kabel")
        assert files(docs, "Lampen") == ["c.md"]

    def test_case_and_accents_do_not_matter(self, docs: KnowledgeBase, write: Write) -> None:
        write("a.md", "Café Größe")
        assert files(docs, "CAFE") == files(docs, "große") == files(docs, "cafe\u0301") == ["a.md"]

    def test_scripts_without_spaces_are_searched_and_shown_as_they_are(
        self, docs: KnowledgeBase, write: Write
    ) -> None:
        write("a.md", "# 営業時間\n東京駅の近くです。")
        write("b.md", "京の東")
        (hit,) = docs.search("東京").hits
        assert (hit.heading, hit.text) == ("営業時間", "東京駅の近くです。")

    def test_no_hit_tells_what_there_is(self, docs: KnowledgeBase, write: Write) -> None:
        write("a.md", "# Opening hours\nNine to five.")
        write("b.md", "plain")
        found = docs.search("xyzzy")
        assert (found.hits, found.matches) == ((), 0)
        assert found.titles == ("Opening hours (a.md)", "untitled (b.md)")

    def test_a_search_is_bounded(self, docs: KnowledgeBase, write: Write) -> None:
        for n in range(30):
            write(f"{n}.md", "the same words")
        found = docs.search("words", 3)
        assert (len(found.hits), found.matches) == (3, 30)
        for limit in (0, 21):
            with pytest.raises(ValueError, match="expected 1 to 20"):
                docs.search("words", limit)

    def test_equal_passages_come_in_the_order_of_their_files(
        self, docs: KnowledgeBase, write: Write
    ) -> None:
        for name in ("b.md", "c.md", "a.md"):
            write(name, "the same words")
        assert files(docs, "words") == ["a.md", "b.md", "c.md"]

    def test_an_empty_folder_has_nothing(self, docs: KnowledgeBase) -> None:
        assert docs.search("anything") == ((), 0, (), ())

    def test_threads_share_it(self, docs: KnowledgeBase, write: Write) -> None:
        for n in range(20):
            write(f"{n}.md", "the same words")
        found: list[int] = []
        threads = [
            threading.Thread(target=lambda: found.append(docs.search("words").matches))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [20] * 8


class TestSeveralFolders:
    def test_their_names_stand_before_the_files(self, tmp_path: Path) -> None:
        for name in ("shop/docs", "faq", "desk/docs"):
            (tmp_path / name).mkdir(parents=True)
            (tmp_path / name / "a.md").write_text("words")
        base = KnowledgeBase([tmp_path / "shop/docs", tmp_path / "faq", tmp_path / "desk/docs"])
        assert sorted(files(base, "words")) == ["docs-2/a.md", "docs/a.md", "faq/a.md"]

    def test_a_file_that_lies_below_two_of_them_is_found_once(
        self, tmp_path: Path, write: Write
    ) -> None:
        write("api/a.md", "words")
        docs = tmp_path / "docs"
        assert files(KnowledgeBase([docs, docs / "api"]), "words") == ["docs/api/a.md"]
        assert files(KnowledgeBase([docs, docs]), "words") == ["api/a.md"]

    def test_a_folder_that_does_not_exist_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="nowhere: this folder does not exist"):
            KnowledgeBase([tmp_path / "nowhere"])


class TestChanges:
    @pytest.mark.behaviour("E-2")
    def test_new_changed_and_removed_files_are_noticed(
        self, docs: KnowledgeBase, write: Write
    ) -> None:
        path = write("a.md", "old words")
        assert files(docs, "words") == ["a.md"]
        write("a.md", "new text", age_s=1800)
        write("sub/b.md", "more words")
        assert files(docs, "words") == ["sub/b.md"]
        assert files(docs, "text") == ["a.md"]
        path.unlink()
        assert files(docs, "text") == []

    @pytest.mark.behaviour("E-2")
    def test_a_renamed_file_is_found_under_its_new_name(
        self, docs: KnowledgeBase, write: Write
    ) -> None:
        path = write("a.md", "words")
        assert files(docs, "words") == ["a.md"]
        path.rename(path.with_name("b.md"))
        assert files(docs, "words") == ["b.md"]

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

    def test_a_change_within_one_tick_of_the_clock_is_noticed(
        self, docs: KnowledgeBase, write: Write
    ) -> None:
        path = write("a.md", "cats", age_s=0)
        moment = path.stat()
        assert files(docs, "cats") == ["a.md"]
        path.write_text("dogs")
        os.utime(path, ns=(moment.st_atime_ns, moment.st_mtime_ns))
        assert (files(docs, "cats"), files(docs, "dogs")) == ([], ["a.md"])

    def test_a_file_with_the_same_time_and_size_is_not_read_again(
        self, docs: KnowledgeBase, write: Write
    ) -> None:
        path = write("a.md", "cats")
        moment = path.stat()
        assert files(docs, "cats") == ["a.md"]
        path.write_text("dogs")
        os.utime(path, ns=(moment.st_atime_ns, moment.st_mtime_ns))
        assert (files(docs, "cats"), files(docs, "dogs")) == (["a.md"], [])
        os.utime(path, ns=(moment.st_atime_ns, moment.st_mtime_ns + 1))
        assert (files(docs, "cats"), files(docs, "dogs")) == ([], ["a.md"])

    def test_a_file_that_is_broken_and_mended_is_found_again(
        self, docs: KnowledgeBase, write: Write
    ) -> None:
        for text, expected in (("words", ["a.md"]), (b"words\xff", []), ("words", ["a.md"])):
            write("a.md", text, age_s=0)
            assert files(docs, "words") == expected

    def test_a_folder_that_goes_and_comes_back(
        self, tmp_path: Path, docs: KnowledgeBase, write: Write
    ) -> None:
        write("a.md", "words")
        assert files(docs, "words") == ["a.md"]
        (tmp_path / "docs").rename(tmp_path / "away")
        found = docs.search("words")
        assert (found.hits, found.problems) == ((), ("docs: No such file or directory",))
        (tmp_path / "away").rename(tmp_path / "docs")
        assert files(docs, "words") == ["a.md"]


class TestLeftOut:
    def test_only_markdown_that_is_not_hidden_counts(
        self, docs: KnowledgeBase, write: Write
    ) -> None:
        for name in ("a.md", "B.MARKDOWN", "c.txt", ".d.md", ".git/e.md", "f.md~", "g.mdx"):
            write(name, "words")
        assert files(docs, "words") == ["B.MARKDOWN", "a.md"]

    @pytest.mark.behaviour("E-3")
    def test_links_that_lead_elsewhere_are_not_followed(
        self, tmp_path: Path, docs: KnowledgeBase, write: Write
    ) -> None:
        secret = tmp_path / "secret"
        secret.mkdir()
        (secret / "a.md").write_text("words")
        (tmp_path / "docs-other").mkdir()  # a name that begins like the folder's
        (tmp_path / "docs-other" / "a.md").write_text("words")
        write("real.txt", "words of a file with another name")
        folder = tmp_path / "docs"
        (folder / "file.md").symlink_to(secret / "a.md")
        (folder / "near.md").symlink_to(tmp_path / "docs-other" / "a.md")
        (folder / "folder").symlink_to(secret)
        (folder / "folder.md").symlink_to(secret)
        (folder / "loop").symlink_to(folder)
        (folder / "gone.md").symlink_to(folder / "nothing.md")
        (folder / "self.md").symlink_to(folder / "self.md")
        (folder / "inside.md").symlink_to(folder / "real.txt")
        assert files(docs, "words") == ["inside.md"]

    def test_a_link_to_a_file_that_is_searched_does_not_count_twice(
        self, tmp_path: Path, docs: KnowledgeBase, write: Write
    ) -> None:
        (tmp_path / "docs" / "a-link.md").symlink_to(write("b.md", "words"))
        assert files(docs, "words") == ["b.md"]

    def test_the_folder_itself_may_be_a_link(self, tmp_path: Path, write: Write) -> None:
        write("a.md", "words")
        (tmp_path / "link").symlink_to(tmp_path / "docs")
        assert files(KnowledgeBase([tmp_path / "link"]), "words") == ["a.md"]

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

    def test_a_pipe_holds_up_nothing(
        self, tmp_path: Path, docs: KnowledgeBase, write: Write
    ) -> None:
        write("a.md", "words")
        os.mkfifo(tmp_path / "docs" / "pipe.md")
        assert files(docs, "words") == ["a.md"]

    @pytest.mark.behaviour("E-4")
    @pytest.mark.parametrize(
        ("data", "problem"),
        [
            (b"one\ntwo\xff", "a.md: not UTF-8 text (line 2)"),
            ("words".encode("utf-16"), "a.md: not UTF-8 text (line 1)"),
            (b"a\0b", "a.md: not text: it has a NUL character"),
            (b"x" * 101, "a.md: larger than 100 bytes (max_file)"),
        ],
    )
    def test_a_file_that_cannot_be_searched_is_told(
        self, tmp_path: Path, write: Write, data: bytes, problem: str
    ) -> None:
        base = KnowledgeBase([tmp_path / "docs"], Limits(max_file=100))
        write("a.md", "words")
        assert files(base, "words") == ["a.md"]
        write("a.md", data, age_s=60)
        write("b.md", "words")
        for _ in range(2):  # told every time, not only when it is read
            found = base.search("words")
            assert [hit.file for hit in found.hits] == ["b.md"]
            assert found.problems == (problem,)
        write("a.md", "words again", age_s=30)
        assert files(base, "words") == ["b.md", "a.md"]

    def test_a_mark_at_the_beginning_is_no_text(self, docs: KnowledgeBase, write: Write) -> None:
        write("a.md", "\ufeff# Title\nwords")
        assert docs.search("words").hits[0].heading == "Title"

    @pytest.mark.parametrize("limits", [Limits(max_files=2), Limits(max_size=10)])
    @pytest.mark.behaviour("E-4")
    def test_too_many_files_are_left_out(
        self, tmp_path: Path, write: Write, limits: Limits
    ) -> None:
        for n in range(5):
            write(f"{n}.md", "words")
        found = KnowledgeBase([tmp_path / "docs"], limits).search("words")
        assert [hit.file for hit in found.hits] == ["0.md", "1.md"]
        (problem,) = found.problems
        assert problem.startswith("3 further files: there are more than ")

    def test_names_that_are_no_text_are_shown_anyway(
        self, tmp_path: Path, docs: KnowledgeBase
    ) -> None:
        (Path(os.fsdecode(bytes(tmp_path / "docs") + b"/\xff.md"))).write_text("words")
        assert files(docs, "words") == ["\\xff.md"]


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
