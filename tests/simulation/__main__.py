"""`make simulate SEEDS=1000`: tries a history per seed; prints each failure as a test."""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from pprint import pformat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.histories import Failure

# The simulated code is imported after a fault has been planted in it.


def try_seed(seed: int) -> Failure | None:
    from tests.simulation.histories import failure, history, weather

    return failure(seed, weather(seed), history(seed))


def as_test(seed: int, first: Failure) -> str:
    """The shortest history that fails in the same way, as a test to paste."""
    from tests.simulation.histories import failure, history, shortest, weather

    rough = weather(seed)
    ops = shortest(seed, rough, history(seed))
    found = failure(seed, rough, ops) or first
    lines = pformat(ops, width=90).replace("\n", "\n    ")
    return (
        "from tests.simulation.histories import replay\n"
        "from tests.simulation.loop import Weather\n\n\n"
        f"def test_seed_{seed}() -> None:  # {found.kind}: {found.text}\n"
        f"    history = {lines}\n    replay({seed}, {rough}, history)\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("seeds", type=int, help="number of seeds")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    parser.add_argument("--plant", type=Path, help="a fault: print the first seed that detects it")
    args = parser.parse_args()
    if args.plant is not None:
        from tests.simulation.planting import plant

        plant(args.plant)
    seeds, failed = range(args.first, args.first + args.seeds), 0
    with ProcessPoolExecutor(args.jobs) as pool:
        tried = map(try_seed, seeds) if args.jobs == 1 else pool.map(try_seed, seeds, chunksize=10)
        for seed, found in zip(seeds, tried, strict=False):
            if found is None:
                continue
            failed += 1
            print(f"seed {seed}: {found.kind}: {found.text}\n", flush=True)
            if args.plant is not None:
                return 1
            print(as_test(seed, found), flush=True)
    print(f"{len(seeds)} seeds from {args.first}, {failed} failed")
    return min(failed, 1)


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # a history depends on the order of sets
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]])
    sys.exit(main())
