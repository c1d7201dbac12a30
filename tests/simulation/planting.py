"""Plants faults: applies a patch of `tests/mutants` to a module as it is imported.

`make simulate-mutants` reports for each whether the simulation detects it, and at which seed.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import NamedTuple

__all__ = ["MUTANTS", "Mutant", "detected_by", "plant"]

MUTANTS = Path(__file__).parent.parent / "mutants"
ROOT = MUTANTS.parent.parent
MOST_SEEDS = 200
"""A fault that needs more counts as undetected."""


class Mutant(NamedTuple):
    """A change at one place in one module."""

    module: str
    before: str
    after: str

    @classmethod
    def read(cls, patch: Path) -> Mutant:
        """Reads a `git diff`; the text before the first `---` describes the fault."""
        lines = patch.read_text(encoding="utf-8").splitlines(keepends=True)
        (file,) = (line[6:].strip() for line in lines if line.startswith("+++ b/"))
        begin = next(n for n, line in enumerate(lines) if line.startswith("@@")) + 1
        body = [line if line.strip("\n") else " \n" for line in lines[begin:]]
        before = "".join(line[1:] for line in body if line[0] in " -")
        after = "".join(line[1:] for line in body if line[0] in " +")
        return cls(file.removesuffix(".py").replace("/", "."), before, after)

    def fits(self) -> bool:
        """Whether the module has the replaced text exactly once."""
        source = Path(*self.module.split(".")).with_suffix(".py")
        return (ROOT / source).read_text(encoding="utf-8").count(self.before) == 1


class _Loader(SourceFileLoader):
    mutant: Mutant

    def get_code(self, fullname: str) -> CodeType:
        source = self.get_data(self.path).decode()
        if source.count(self.mutant.before) != 1:
            raise ImportError(f"{fullname} has changed: rewrite its patch in tests/mutants")
        return compile(source.replace(self.mutant.before, self.mutant.after), self.path, "exec")


class _Finder(MetaPathFinder):
    def __init__(self, mutant: Mutant):
        self._mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._mutant.module:
            return None
        spec = PathFinder.find_spec(fullname, path)
        assert spec is not None
        assert spec.origin is not None
        loader = spec.loader = _Loader(fullname, spec.origin)
        loader.mutant = self._mutant
        return spec


def plant(patch: Path) -> None:
    """Applies it in this process, which must not have imported the module yet."""
    mutant = Mutant.read(patch)
    assert mutant.module not in sys.modules
    sys.meta_path.insert(0, _Finder(mutant))


def detected_by(patch: Path, seeds: int = MOST_SEEDS) -> str | None:
    """The simulation's line for the first seed that detects the fault, None if none does."""
    command = [sys.executable, "-m", "tests.simulation", str(seeds), "--plant", str(patch)]
    done = subprocess.run(command, capture_output=True, text=True)
    line = re.search(r"^seed .*", done.stdout, re.MULTILINE)
    assert line or not done.returncode, done.stdout + done.stderr
    assert not line or " NameError: " not in line[0], f"{patch.name} does not run: {line[0]}"
    return line and line[0]


def _outcome(patch: Path) -> str | None:
    return detected_by(patch) if Mutant.read(patch).fits() else "does not fit: rewrite it"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.planting")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("patches", nargs="*", type=Path, default=sorted(MUTANTS.glob("*.patch")))
    args = parser.parse_args()
    missed = 0
    with ThreadPoolExecutor(args.jobs) as pool:
        for patch, line in zip(args.patches, pool.map(_outcome, args.patches), strict=True):
            print(f"{patch.stem:30} {(line or 'NOT DETECTED')[:150]}", flush=True)
            missed += not (line or "").startswith("seed")
    print(f"{len(args.patches)} faults, {missed} not detected")
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main())
