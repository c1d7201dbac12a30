"""Fetches the page's libraries anew: `python scripts/vendor.py` (needs npm).

What to take, and in which version, is the table below; what came of it is in
`hubbub/web/static/vendor`, with a README that lists versions and licences. Imports of packages by
name become imports of the files beside them, so that browsers need no import map and no build.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

VENDOR = Path(__file__).parents[1] / "hubbub" / "web" / "static" / "vendor"


@dataclass(frozen=True)
class Package:
    """One package: which of its files are taken (path in the package: name here)."""

    name: str
    version: str
    files: dict[str, str]
    why: str


HIGHLIGHTED = (
    *("bash", "c", "css", "csv", "diff", "docker", "go", "html", "ini", "java", "js", "jsdoc"),
    *("json", "log", "make", "md", "plain", "py", "regex", "rs", "sql", "todo", "toml", "ts"),
    *("uri", "xml", "yaml"),
)
"""Languages of code blocks, loaded when one is shown; those that others build on included."""

FONT_PARTS = ("latin", "latin-ext")
"""Browsers fetch the second one when a text has letters of it."""

PACKAGES = (
    Package("preact", "11.2.0", {"dist/preact.mjs": "preact.js"}, "draws the page"),
    Package("preact", "11.2.0", {"hooks/dist/hooks.mjs": "preact-hooks.js"}, "state of its parts"),
    Package(
        "@preact/signals-core", "1.14.5", {"dist/signals-core.mjs": "signals-core.js"}, "state"
    ),
    Package("@preact/signals", "2.11.4", {"dist/signals.mjs": "signals.js"}, "state that draws"),
    Package("htm", "3.1.1", {"dist/htm.mjs": "htm.js"}, "markup without a compiler"),
    Package("marked", "18.2.1", {"lib/marked.esm.js": "marked.js"}, "Markdown to HTML"),
    Package("dompurify", "3.4.18", {"dist/purify.es.mjs": "purify.js"}, "makes that HTML harmless"),
    Package(
        "@tanstack/virtual-core",
        "3.19.11",
        {
            f"dist/esm/{name}.js": f"virtual/{name}.js"
            for name in ("index", "utils", "lazy-measurements", "scroll-classifier", "ios-gesture")
        },
        "long lists",
    ),
    Package(
        "@speed-highlight/core",
        "2.1.0",
        {"dist/index.js": "highlight/index.js"}
        | {f"dist/languages/{name}.js": f"highlight/languages/{name}.js" for name in HIGHLIGHTED},
        "colours code",
    ),
    Package(
        "@fontsource-variable/figtree",
        "5.3.0",
        {f"files/figtree-{part}-wght-normal.woff2": f"figtree/{part}.woff2" for part in FONT_PARTS},
        "the font",
    ),
)

NEIGHBOURS = {
    "preact": "preact.js",
    "preact/hooks": "preact-hooks.js",
    "@preact/signals-core": "signals-core.js",
}
"""Where imports by name are found."""

README = """# Libraries of the page

Fetched by `python scripts/vendor.py`, which has the versions; not edited by hand. The only changes
are that imports by name point to the files here, and that `process.env.NODE_ENV` is filled in. The
licences are in `licences/`.

| package | version | licence | for |
|---|---|---|---|
{rows}
"""


def main() -> None:
    rows: list[str] = []
    for package in PACKAGES:
        licence = fetch(package)
        rows.append(f"| {package.name} | {package.version} | {licence} | {package.why} |")
        sys.stdout.write(f"{package.name} {package.version}\n")
    (VENDOR / "README.md").write_text(README.format(rows="\n".join(rows)), encoding="utf-8")


def fetch(package: Package) -> str:
    """Take the package's files; returns its licence's name."""
    with tempfile.TemporaryDirectory() as folder:
        spec = f"{package.name}@{package.version}"
        done = subprocess.run(
            ["npm", "pack", spec, "--silent"],
            cwd=folder,
            check=True,
            capture_output=True,
            text=True,
        )
        with tarfile.open(Path(folder) / done.stdout.strip().splitlines()[-1]) as archive:
            archive.extractall(folder, filter="data")
        root = Path(folder) / "package"
        for source, target in package.files.items():
            path = VENDOR / target
            path.parent.mkdir(parents=True, exist_ok=True)
            content = (root / source).read_bytes()
            if path.suffix == ".js":
                content = localised(content.decode()).encode()
            path.write_bytes(content)
        licence = VENDOR / "licences" / f"{package.name.replace('/', '-').removeprefix('@')}.txt"
        licence.parent.mkdir(parents=True, exist_ok=True)
        licence.write_text((root / "LICENSE").read_text(encoding="utf-8"), encoding="utf-8")
        found = json.loads((root / "package.json").read_text(encoding="utf-8"))["license"]
        return str(found)


def localised(text: str) -> str:
    """Imports by name as imports of files, and what a bundler would have filled in; no references
    to source maps, which are not here."""
    text = text.replace("process.env.NODE_ENV", '"production"')
    for name, file in NEIGHBOURS.items():
        text = re.sub(rf"(from\s*|import\s*)([\"']){re.escape(name)}\2", rf"\1\2./{file}\2", text)
    return re.sub(r"\n?//# sourceMappingURL=.*", "", text)


if __name__ == "__main__":
    main()
