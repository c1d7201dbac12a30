"""Runs mutants (`make mutants`) and says which of them no test has noticed, module by module.

`python scripts/mutants.py JOBS PATTERN...` runs those whose names match, anew; without a pattern
all that have no result yet. tests/survivors.toml lists those that may live, under the reason why.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import NamedTuple

from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.stats import status_by_exit_code
from mutmut.utils.file_utils import walk_mutatable_files

LISTED = Path("tests/survivors.toml")
NOTICED = {"killed", "timeout"}
GOAL = 90


class Mutant(NamedTuple):
    function: str
    """Where it is: `hubbub.network.wakes.decide`, `hubbub.client.stream.Stream.ack`."""
    status: str
    name: str
    path: Path

    def change(self) -> tuple[str, str]:
        """The code that it changes, and what it makes of that."""
        lines = get_diff_for_mutant(self.name, path=self.path).splitlines()[2:]
        before, after = (
            " ".join(line[1:].strip() for line in lines if line.startswith(sign)) for sign in "-+"
        )
        return before, after


def main(jobs: str, *patterns: str) -> int:
    if not run(jobs, patterns):
        return 2
    by_module: dict[str, list[Mutant]] = {}
    for mutant in mutants():
        by_module.setdefault(str(mutant.path), []).append(mutant)
    reasons = listed()
    print(f"\n{'':42}mutants  killed       %  listed  open")
    worst, open_ones = 100.0, []
    for module, made in by_module.items():
        alive = [mutant for mutant in made if mutant.status not in NOTICED]
        unlisted = [m for m in alive if (m.function, m.change()[1]) not in reasons]
        open_ones += unlisted
        percent = 100 * (len(made) - len(alive)) / len(made)
        worst = min(worst, percent)
        told = f"{len(made):7}{len(made) - len(alive):8}{percent:8.1f}"
        print(f"{module:42}{told}{len(alive) - len(unlisted):8}{len(unlisted):6}")
    for mutant in open_ones:
        before, after = mutant.change()
        print(f"\n{mutant.name}: {mutant.status}\n  - {before}\n  + {after}")
    return 0 if worst >= GOAL else 1


def run(jobs: str, patterns: Sequence[str]) -> bool:
    """Let mutmut run them, without its list of all names in the end."""
    shutil.rmtree("mutants/tests", ignore_errors=True)  # copied anew, without those that are gone
    mutmut = str(Path(sys.executable).with_name("mutmut"))
    command = [mutmut, "run", "--max-children", jobs, *patterns]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        wanted = True
        for line in TextIOWrapper(process.stdout, newline=""):  # "\r" is left as it is
            wanted = wanted and not line.startswith("Mutant results")
            if wanted:
                print(line, end="", flush=True)
    return process.returncode == 0


def mutants() -> Iterator[Mutant]:
    """All that have been run, by file and name."""
    for path in sorted(walk_mutatable_files()):
        data = SourceFileMutationData(path=path)
        data.load()
        for name, code in data.exit_code_by_key.items():
            if code is not None:
                function = name.rpartition("__mutmut_")[0].replace("xǁ", "").replace("ǁ", ".")
                yield Mutant(function.replace(".x_", "."), status_by_exit_code[code], name, path)


def listed() -> dict[tuple[str, str], str]:
    """Why a mutant may live, by its function and what it makes of a line."""
    return {
        (function, change): reason
        for reason, functions in tomllib.loads(LISTED.read_text()).items()
        for function, changes in functions.items()
        for change in changes
    }


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
