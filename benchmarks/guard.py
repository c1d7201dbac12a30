"""`python -m benchmarks.guard`, or `make bench-guard`: has anything become dearer?

A glance at what `make bench` measures at length: the CPU time of `hubbub up`, of an agent's turn
and of a command, each as a ratio to the relay's CPU per message in the same round, so that neither
the machine nor who else works on it counts for much. What takes over a fifth more than in
`baseline.json` is named. It is a hint, and nothing fails by it: the exit code is always 0.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

__all__ = ["compared", "main"]

BASELINE = Path(__file__).with_name("baseline.json")
RESULTS = Path(__file__).with_name("results")
MOST_GROWTH = 1.2
"""A ratio that has grown by more is named."""
RUNS_FOR_BASELINE = 5
"""Of which the medians are kept: one run may be off by a third."""
Ratios = Mapping[str, float]


def compared(found: Ratios, baseline: Ratios) -> tuple[list[str], list[str]]:
    """A line for each ratio, and the names of those that have grown by more than a fifth."""
    lines, grown = [], []
    for name in {**baseline, **found}:
        before, now = baseline.get(name), found.get(name)
        line = f"  {name:<22}"
        line += "  not measured" if now is None else f"{now:10,.2f}"
        if now is not None and before:
            line += f"   was {before:10,.2f}   {now / before - 1:+5.0%}"
            if now > before * MOST_GROWTH:
                grown.append(name)
                line += "   GROWN"
        lines.append(line)
    return lines, grown


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and compare; with `--update` keep the medians of several runs as the
    baseline."""
    try:
        _guard(update="--update" in arguments)
    except KeyboardInterrupt:
        print("interrupted")
    except Exception as error:  # noqa: BLE001  a hint: nobody's work ends with it
        print(f"the guard could not measure: {type(error).__name__}: {error}")


def _guard(*, update: bool) -> None:
    # Here, so that code which cannot even be imported is told as anything else.
    from rich.console import Console

    from benchmarks.bench import Bench
    from benchmarks.rounds import measured
    from hubbub.app.process import run_loop

    RESULTS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="guard-", dir=RESULTS) as scratch:
        bench = Bench(Path(scratch), Console(), quick=True)
        runs = [run_loop(measured(bench)) for _ in range(RUNS_FOR_BASELINE if update else 1)]
    found = {name: median(run[name] for run in runs if name in run) for name in runs[0]}
    baseline = json.loads(BASELINE.read_text(encoding="utf-8")) if BASELINE.exists() else {}
    lines, grown = compared(found, baseline)
    print("CPU, in messages of a relay that does nothing else (less is better):", *lines, sep="\n")
    for note in bench.notes:
        print(f"note: {note}")
    if grown:
        print(f"By more than a fifth has grown: {'; '.join(grown)}.")
        print("If it stays so when the machine is quiet: `make bench` has the figures in full.")
    if update:
        kept = {**baseline, **{name: round(ratio, 2) for name, ratio in found.items()}}
        BASELINE.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
        print(f"written to {BASELINE.name}")


if __name__ == "__main__":
    main(sys.argv[1:])
