"""npm packages that tests run with their own Node, in folders of `.venv`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["NpmPackages"]

_NODE = "node@22"
_TIMEOUT_S = 300


@dataclass(frozen=True, slots=True)
class NpmPackages:
    name: str
    """Of their folder."""
    packages: tuple[str, ...]
    """With their versions."""

    @property
    def folder(self) -> Path:
        return Path(sys.prefix) / self.name

    @property
    def modules(self) -> Path:
        return self.folder / "node_modules"

    @property
    def node(self) -> Path:
        return self.modules / "node" / "bin" / "node"

    @property
    def missing(self) -> str:
        """The reason for skipping tests where they are not installed."""
        return f"no {self.name}: it needs npm; the tests with it are skipped"

    def there(self) -> bool:
        last = self.modules / ".package-lock.json"  # written when all packages are there
        return self.node.exists() and last.exists()

    def install(self) -> None:
        """Installs them if npm is available."""
        if not self.there() and (npm := shutil.which("npm")):
            self.folder.mkdir(exist_ok=True)
            # Some versions of npm do not run package scripts by default; one of them fetches Node.
            words = ["install", "--silent", "--no-fund", "--foreground-scripts", "--prefix"]
            try:
                subprocess.run(
                    [npm, *words, str(self.folder), *self.packages, _NODE],
                    timeout=_TIMEOUT_S, stdin=subprocess.DEVNULL, check=False,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                sys.stderr.write(f"npm install took over {_TIMEOUT_S} s\n")
        if not self.there():
            sys.stderr.write(f"{self.missing}\n")
