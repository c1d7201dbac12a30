"""YAML is parsed as data with the place of each value."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.config.source import YamlDocument, parse
from hubbub.errors import ConfigError
from tests.examples import examples
from tests.unit.conftest import Write


def messages(document: YamlDocument) -> list[str]:
    return [str(problem) for problem in document.problems]


def test_every_key_and_item_has_its_line(write: Write) -> None:
    path = write(
        "a.yaml",
        """
        network:
          name: n

        mods:
          - one
          - two: {x: 1}
        """,
    )
    document = parse(path, {})
    lines = {loc: place.line for loc, place in document.places.items()}
    assert lines[("network",)] == 1
    assert lines[("network", "name")] == 2
    assert lines[("mods",)] == 4
    assert lines[("mods", 0)] == 5
    assert lines[("mods", 1, "two", "x")] == 6
    assert {place.file for place in document.places.values()} == {path}


def test_scalars_follow_the_yaml_core_schema(write: Write) -> None:
    path = write(
        "a.yaml",
        """
        texts: [no, on, yes, 1:30, 2024-01-01, "5", 'true', 1_000, .inf]
        numbers: [5, -5, 1.5, 1e3, 0x1F, 0o17, .5]
        others: [true, False, null, ~, ]
        """,
    )
    assert parse(path, {}).data == {
        "texts": ["no", "on", "yes", "1:30", "2024-01-01", "5", "true", "1_000", ".inf"],
        "numbers": [5, -5, 1.5, 1000.0, 31, 15, 0.5],
        "others": [True, False, None, None],
    }


def test_a_duplicate_key_or_a_missing_variable_is_reported_with_its_line(write: Write) -> None:
    document = parse(write("a.yaml", "agents:\n  bob: {}\n  ann: {}\n  bob: {x: 1}\n"), {})
    assert messages(document) == ["a.yaml:4: duplicate key 'bob' (first in line 2)"]
    assert document.data == {"agents": {"bob": {}, "ann": {}}}
    document = parse(write("a.yaml", "x: 1\nkey: ${SECRET}\n"), {})
    (message,) = messages(document)
    assert message.startswith("a.yaml:2: the environment variable SECRET is not set")
    assert document.broken == {("key",)}


def test_merge_keys_add_missing_keys_only(write: Write) -> None:
    path = write(
        "a.yaml",
        """
        base: &base {a: 1, b: 2}
        other: &other {b: 7, c: 3}
        one: {<<: *base, b: 5}
        both: {<<: [*base, *other]}
        """,
    )
    data = parse(path, {}).data
    assert data["one"] == {"a": 1, "b": 5}
    assert data["both"] == {"a": 1, "b": 2, "c": 3}


def test_invalid_yaml_is_refused_with_its_line(write: Write) -> None:
    for text, expected in {
        "a: [1, 2\n": "a.yaml:2: is not valid YAML",
        "a:\n\tb: 1\n": "a.yaml:2: is not valid YAML: .*indent with spaces",
        "a:\n  b:1\n  c: 2\n": "a.yaml:3: is not valid YAML: .*space after the colon",
        "a: b: c\n": "a.yaml:1: is not valid YAML: .*quote texts with ': '",
        "a: {b: ${X}}\n": 'a.yaml:1: is not valid YAML: .*quote "\\$\\{…\\}"',
        "a: 1\n---\nb: 2\n": "a.yaml:2: is not valid YAML",
        "a: *nothing\n": "a.yaml:1: is not valid YAML: .*alias",
        "a: &a [*a]\n": "nested too deeply",
        f"a: {'[' * 3000}{']' * 3000}\n": "a.yaml: is nested too deeply",
        "a: &a {<<: *a}\n": "merges itself",
        "\x07: 1\n": "a.yaml: is not valid YAML",
    }.items():
        with pytest.raises(ConfigError, match=expected):
            parse(write("a.yaml", text), {})


def test_valid_yaml_with_no_meaning_in_a_config_is_reported(write: Write) -> None:
    for text, expected in {
        "- a\n- b\n": "a.yaml:1: expected keys such as network:, agents:, channels:",
        "hello\n": "a.yaml:1: expected keys such as network:, agents:, channels:",
        "? [1]\n: 2\n": "a.yaml:1: a key must be text",
        "a: !!python/name:os.system x\n": "a.yaml:1: unknown tag tag:yaml.org,2002:python/name:",
        "a: !thing 5\n": "a.yaml:1: unknown tag !thing",
        "a: {<<: 5}\n": "a.yaml:1: '<<' needs a map, or a list of maps",
        "a: 1e999\n": "a.yaml:1: the number is too large",
        f"a: 1{'0' * 5000}\n": "a.yaml:1: the number is too large",
    }.items():
        assert messages(parse(write("a.yaml", text), {}))[0].startswith(expected)
    for text in ("", "# nothing\n", "null\n", "---\n"):
        empty = parse(write("a.yaml", text), {})
        assert (empty.data, empty.problems) == ({}, [])


def test_aliases_that_expand_to_too_many_values_are_refused(write: Write) -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 7)]
    with pytest.raises(ConfigError, match="nested too deeply or expands to too many values"):
        parse(write("a.yaml", "\n".join(rows)), {})


def test_an_unreadable_file_is_refused_with_the_reason(write: Write, tmp_path: Path) -> None:
    write("a.yaml", "")
    with pytest.raises(ConfigError, match=r"gone.yaml: cannot be read: No such file"):
        parse(tmp_path / "gone.yaml", {})
    with pytest.raises(ConfigError, match="is a folder"):
        parse(tmp_path, {})
    (tmp_path / "b.yaml").write_bytes(b"a: \xff\n")
    with pytest.raises(ConfigError, match=r"b.yaml: is not UTF-8 text \(byte 3\)"):
        parse(tmp_path / "b.yaml", {})


texts = st.text(st.characters(codec="utf-8", exclude_characters="$"), max_size=10)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=examples(60), deadline=None)
@given(st.dictionaries(texts, values, max_size=4))
def test_data_dumped_by_pyyaml_is_read_back_unchanged(
    tmp_path_factory: pytest.TempPathFactory, data: dict[str, object]
) -> None:
    path = tmp_path_factory.mktemp("yaml") / "a.yaml"
    text = yaml.safe_dump(data, default_style='"', allow_unicode=False)
    path.write_text(text, encoding="utf-8")
    document = parse(path, {})
    assert document.data == data
    assert document.problems == []


@settings(max_examples=examples(60), deadline=None)
@given(st.text(alphabet="ab:-[]{}&*!#|>'\" \n${}<?,~", max_size=40))
def test_any_text_yields_a_document_or_a_config_error(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.mktemp("yaml") / "a.yaml"
    path.write_text(text, encoding="utf-8")
    try:
        document = parse(path, {})
    except ConfigError as error:
        assert "\n" not in str(error)  # noqa: PT017  either outcome is right
    else:
        assert () in document.places
