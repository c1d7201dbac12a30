"""Modules bundled into one file: imports, exports, source maps and refusals."""

from __future__ import annotations

import json
import re

import pytest

from hubbub.web.bundle import BundleError, Bundles
from hubbub.web.site import STATIC

PAGE = {
    path.relative_to(STATIC).as_posix(): path.read_text(encoding="utf-8")
    for path in STATIC.rglob("*.js")
}
DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def body(text: str) -> tuple[str, str]:
    """The bundled lines and exports of a module `a/m.js`."""
    sources = {"a/m.js": text, "x.js": "", "a/y.js": "", "first.js": ""}
    script = Bundles("first.js", sources).script("a/m.js")
    runner = script[script.index('"a/m.js"') :].partition("{")[2]
    lines, _, end = runner.partition("\n})")[0].rpartition("\n")
    return lines.strip(), end.removesuffix(" },").removeprefix("Object.assign($exports, ")


def test_every_form_of_import_and_export_is_rewritten_in_place() -> None:
    for source, rewritten in (
        ('import { a, b as c } from "../x.js";', 'const { a, b: c } = $need("x.js");'),
        ('import {\n  a,\n} from "./y.js";', 'const {\n  a,\n} = $need("a/y.js");'),
        ('import{a as b}from"../x.js";let c', 'const {a: b} = $need("x.js");let c'),
        ('import d from "../x.js";', 'const { default: d,  } = $need("x.js");'),
        ('import d, { a } from "../x.js";', 'const { default: d, a } = $need("x.js");'),
        ('import * as all from "../x.js";', 'const all = $need("x.js");'),
        ('import "../x.js";', '$need("x.js");'),
        ('const later = () => import("../x.js");', 'const later = () => $load("x.js");'),
        ("new URL(import.meta.url);", "new URL($url);"),
        ("export default () => 1;", "$exports.default = () => 1;"),
        ("let a; // first\n  // nothing\nlet b;", "let a;\n\nlet b;"),
        ('t = "a; // b"; // it\'s', 't = "a; // b"; // it\'s'),
        ("let a;\n/**\n * @param b\n */\nlet b;", "let a;\n\n\n\nlet b;"),
        ("let a;\n/*! @license MIT */\nlet b;", "let a;\n/*! @license MIT */\nlet b;"),
        ('t = "import { a } and export what?";', 't = "import { a } and export what?";'),
    ):
        assert body(source)[0] == rewritten
    for source, exported in (
        ("export const a = 1;\nexport class B {}", "{ a: a, B: B });"),
        ("export function f() {}\nexport async function g() {}", "{ f: f, g: g });"),
        ("export default function f() {}", "{ default: f });"),
        ("let a, b;\nexport { a, b as c };", "{ a: a, c: b });"),
        ("let a;export{a as default};", "{ default: a });"),
        ('export { a as b } from "../x.js";', '{ b: $need("x.js").a });'),
        ("let a;", ""),
    ):
        assert body(source)[1] == exported


def test_unsupported_syntax_and_missing_modules_are_refused_with_the_reason() -> None:
    for source, reason in (
        ("export let a = 1;", "export let a"),
        ("export const { a } = b;", "export const {"),
        ('export * from "../x.js";', "export *"),
        ("let a = import.meta.env;", "import.meta.env"),
        ('import a from "package";', "import a"),
        ('import "./absent.js";', r"a/m.js imports a/absent.js, which does not exist"),
    ):
        with pytest.raises(BundleError, match=re.escape(reason)):
            body(source)
    cycle = {"first.js": 'import "./b.js";', "b.js": 'import "./first.js";'}
    with pytest.raises(BundleError, match=r"first.js imports itself by way of b.js"):
        Bundles("first.js", cycle)


def test_a_later_bundle_adds_missing_modules_after_their_imports() -> None:
    sources = {
        "first.js": 'import "./both.js";',
        "both.js": "",
        "more/later.js": 'import "./part.js";\nimport "../both.js";\nimport("./latest.js");',
        "more/part.js": "",
        "more/latest.js": "",
    }
    bundles = Bundles("first.js", sources)
    names = r'^"([^"]+)"\('
    assert re.findall(names, bundles.script("first.js"), re.M) == ["both.js", "first.js"]
    later = bundles.script("more/later.js")
    assert re.findall(names, later, re.M) == ["more/part.js", "more/later.js"]
    assert later.startswith('import { define } from "./../first.js";\n')


def mapped(source_map: str) -> list[tuple[str, int] | None]:
    """For each line of a bundle its source and its line there, from 0."""
    parsed = json.loads(source_map)
    lines: list[tuple[str, int] | None] = []
    source = line = 0
    for segment in parsed["mappings"].split(";"):
        if not segment:
            lines.append(None)
            continue
        numbers, number, shift = [], 0, 0
        for digit in map(DIGITS.index, segment):
            number |= (digit & 31) << shift
            shift += 5
            if not digit & 32:
                numbers.append(-(number >> 1) if number & 1 else number >> 1)
                number = shift = 0
        assert (numbers[0], numbers[3]) == (0, 0), "columns are 0"
        source, line = source + numbers[1], line + numbers[2]
        lines.append((parsed["sources"][source], line))
    return lines


def test_a_source_map_maps_every_line_to_its_source_file() -> None:
    bundles = Bundles("main.js", PAGE)
    sources = {name: text.rstrip().split("\n") for name, text in PAGE.items()}
    for entry, up in (("main.js", "../"), ("features/documents/document.js", "../../../")):
        script, covered = bundles.script(entry).split("\n"), set()
        for text, place in zip(script, mapped(bundles.source_map(entry)), strict=False):
            if place is not None:
                name = place[0].removeprefix(up)
                covered.add((name, place[1]))
                source = sources[name][place[1]]
                assert text in ("", source, source.partition(" // ")[0]) or re.search(
                    "import|export|^} from", source
                )
        names = {name for name, _ in covered}
        assert entry in names
        assert covered == {(name, n) for name in names for n in range(len(sources[name]))}


def test_every_module_of_the_page_can_be_bundled() -> None:
    bundles = Bundles("main.js", PAGE)
    first = bundles.script("main.js")
    for name in PAGE:
        if not name.startswith("vendor/highlight/languages/"):
            runner = f'"{name}"($exports'
            assert runner in first or runner in bundles.script(name)
