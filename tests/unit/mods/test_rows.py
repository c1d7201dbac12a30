from __future__ import annotations

from hubbub.mods.rows import AT_ONCE, marks, parts


def test_names_are_asked_about_in_few_different_statements() -> None:
    sizes = {len(part) for count in range(1, AT_ONCE + 1) for part in parts(range(count))}
    assert sizes == {1 << n for n in range(AT_ONCE.bit_length())}
    assert marks(parts("abc")[0]) == "?, ?, ?, ?"


def test_no_name_is_left_out_and_none_added() -> None:
    names = list(range(2 * AT_ONCE + 3))
    found = parts(names)
    assert [len(part) for part in found] == [AT_ONCE, AT_ONCE, 4]
    assert {name for part in found for name in part} == set(names)
    assert not parts([])
