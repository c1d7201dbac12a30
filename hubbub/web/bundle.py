"""Joins ES modules into one file, so that a page of a hundred modules loads with one request.

Each module becomes a function with the lines of its source: imports and exports are rewritten in
place, comments are left out, and a source map maps every line to its file. `loader.js` runs
the functions.
The first bundle has the modules that the page imports at the start. A module loaded with `import()`
gets its own bundle, without the modules of the first.

Only plain forms of `import` and `export` are supported, at the beginning of a line or as minifiers
write them. Forms that would need a parser are refused, as are cycles, so that a bundle never
differs silently from its modules.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping
from pathlib import Path

__all__ = ["BundleError", "Bundles"]

_LOADER = Path(__file__).with_name("loader.js")
_IMPORT = re.compile(
    r"""import(?<=[\s;}]import)\s*(?:(?P<default>\w+)?\s*,?\s*"""
    r"""(?P<names>{[^}]*}|\*\s*as\s+\w+)?\s*from\s*)?["'](?P<path>\.[^"']+)["'];?"""
)
_EXPORT = re.compile(
    r"""export(?<=[\s;}]export)(?:"""
    r"""\s*(?P<list>{[^}]*})(?:\s*from\s*["'](?P<path>\.[^"']+)["'])?;?"""
    r"""|(?<=\nexport) (?P<is_default>default )?"""
    r"""(?=(?:async )?(?:function\*?|class|const) (?P<name>\w+))"""
    r"""|(?P<value> default\b))"""
)
_COMMENT = re.compile(
    r"\n[ \t]*(?://[^\n]*|/\*(?!\*/)(?!!|[^/]*?Copyright)(?:[^*]|\*(?!/))*\*/[ \t]*)(?=\n)"
)
"""Whole lines, except licence notices. (A template literal must have no line that looks like one.)
"""
_REMARK = re.compile(r"(?<=[;{},(]) // [^\n\"'`/]*(?=\n)")
"""At the end of a line; one with a quote could be part of a string, and stays."""
_LOAD = re.compile(r"""import\(\s*["'](?P<path>\.[^"']+)["']\s*\)""")
_UNSUPPORTED = re.compile(r"\n(?:import\b(?!\()|export\b).*|import\.meta.*")
# Each of these begins with a fixed word, which the regex engine finds fast.
_AS = re.compile(r"([\w$]+)\s+as\s+([\w$]+)")
_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


class BundleError(ValueError):
    """A module cannot be bundled: it is missing, imports itself, or has an unsupported form."""


class Bundles:
    """The bundles of one page, in the folder `bundles/` beside its modules."""

    def __init__(self, first: str, sources: Mapping[str, str]):
        """`first` is the page's entry module; `sources` has the text of every module by path.
        Raises BundleError."""
        self._first, self._sources = first, sources
        self._at_start = self.imported(first)

    def imported(self, entry: str) -> list[str]:
        """The modules that `entry` imports, directly or not, and itself, in dependency order.

        Raises BundleError.
        """
        visited: dict[str, bool] = {}  # name -> whether all its imports were visited

        def visit(name: str, by: str) -> None:
            if not visited.get(name, True):
                raise BundleError(f"{name} imports itself by way of {by}")
            if name in visited:
                return
            if name not in self._sources:
                raise BundleError(f"{by} imports {name}, which does not exist")
            visited[name] = False
            for path in _paths(self._sources[name]):
                visit(_resolve(name, path), name)
            del visited[name]
            visited[name] = True  # now in dependency order

        visit(entry, entry)
        return list(visited)

    def script(self, entry: str) -> str:
        """The bundle of `entry`. Raises BundleError."""
        names = self._members(entry)
        bodies = "\n".join(_runner(name, self._sources[name]) for name in names)
        start = f'\nneed("{entry}");' if entry == self._first else ""
        mapping = f"//# sourceMappingURL={posixpath.basename(entry)}.map"
        return f"{self._head(entry)}define({{\n{bodies}\n}});{start}\n{mapping}\n"

    def source_map(self, entry: str) -> str:
        """The source map of that bundle, as JSON. Raises BundleError."""
        names, up = self._members(entry), "../" * (entry.count("/") + 1)
        lines = [""] * (self._head(entry).count("\n") + 1)
        last = 0  # the source line of the previous mapping
        for n, name in enumerate(names):
            count = self._sources[name].rstrip().count("\n") + 1
            first_line = f"A{_digits(min(n, 1))}{_digits(-last)}A"
            lines += ["", first_line, *["AACA"] * (count - 1), ""]
            last = count - 1
        source_map = {"version": 3, "sources": [up + name for name in names], "names": []}
        return json.dumps({**source_map, "mappings": ";".join(lines)})

    def _members(self, entry: str) -> list[str]:
        if entry == self._first:
            return self._at_start
        loaded = set(self._at_start)
        return [name for name in self.imported(entry) if name not in loaded]

    def _head(self, entry: str) -> str:
        if entry == self._first:
            return _LOADER.read_text(encoding="utf-8")
        return f'import {{ define }} from "./{"../" * entry.count("/")}{self._first}";\n'


def _paths(text: str) -> list[str]:
    """A module's static imports."""
    text = f"\n{text}"
    paths = [match["path"] for form in (_IMPORT, _EXPORT) for match in form.finditer(text)]
    return [path for path in paths if path]


def _resolve(name: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), path))


def _runner(name: str, text: str) -> str:
    """A module as a function, with as many lines as its source."""
    exported: dict[str, str] = {}

    def need(path: str) -> str:
        return f'$need("{_resolve(name, path)}")'

    def rewrite_import(match: re.Match[str]) -> str:
        names = match["names"] or ""
        if names.startswith("*"):
            names = names.split()[-1]
        elif match["default"]:
            names = f"{{ default: {match['default']}, {names.strip('{ }')} }}"
        names = _AS.sub(r"\1: \2", names)
        return f"const {names} = {need(match['path'])};" if names else f"{need(match['path'])};"

    def rewrite_export(match: re.Match[str]) -> str:
        if match["value"]:
            return "$exports.default ="
        if match["name"]:
            exported["default" if match["is_default"] else match["name"]] = match["name"]
            return ""
        source = f"{need(match['path'])}." if match["path"] else ""
        for item in filter(None, map(str.strip, match["list"].strip("{}").split(","))):
            inner, _, outer = item.partition(" as ")
            exported[outer or inner] = f"{source}{inner}"
        return "\n" * match[0].count("\n")

    text = _COMMENT.sub(lambda match: "\n" * match[0].count("\n"), f"\n{text.rstrip()}")
    text = _REMARK.sub("", text)
    text = _EXPORT.sub(rewrite_export, _IMPORT.sub(rewrite_import, text))
    text = _LOAD.sub(lambda match: f'$load("{_resolve(name, match["path"])}")', text)
    text = text.replace("import.meta.url", "$url")
    if unsupported := _UNSUPPORTED.search(text):
        raise BundleError(f"{name}: cannot bundle {unsupported[0].strip()!r}")
    pairs = ", ".join(f"{outer}: {inner}" for outer, inner in exported.items())
    end = f"Object.assign($exports, {{ {pairs} }});" if pairs else ""
    return f'"{name}"($exports, $need, $load, $url) {{{text}\n{end} }},'


def _digits(number: int) -> str:
    """A number as a base64 VLQ: 5 bits per digit, lowest first, the sign in the lowest bit."""
    rest, digits = (-number << 1) | 1 if number < 0 else number << 1, ""
    while True:
        rest, digit = rest >> 5, rest & 31
        digits += _DIGITS[digit | 32 if rest else digit]
        if not rest:
            return digits
