"""`test`: run test cases for prompts, agents and whole networks several times each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.output import DEFAULT_CONFIG, ConfigArgument, JsonFlag, console, counted, emit_json
from hubbub.config.problems import shown_path
from hubbub.errors import UserError
from hubbub.people.text import visible

if TYPE_CHECKING:
    from hubbub.config.loader import LoadedConfig
    from hubbub.lab.cases import PlacedCase
    from hubbub.lab.prompt_tests import CaseReport, CasesReport, Run

__all__ = ["register"]


def register(app: typer.Typer, word: str) -> None:
    app.command(word)(run_tests)


def run_tests(
    config: ConfigArgument = DEFAULT_CONFIG,
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Files of cases. Default: those in prompts/NAME/cases."),
    ] = None,
    runs: Annotated[int, typer.Option("--runs", "-n", min=1, help="Runs of each case.")] = 5,
    bar: Annotated[
        float, typer.Option("--bar", min=0.0, max=1.0, help="The fraction of runs that must pass.")
    ] = 0.9,
    concurrency: Annotated[
        int, typer.Option("--concurrency", min=1, max=64, help="Concurrent runs.")
    ] = 4,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Use this model of the config in all cases.")
    ] = None,
    only: Annotated[
        str | None, typer.Option("--only", "-k", help="Run only cases whose names contain this.")
    ] = None,
    record: Annotated[
        bool, typer.Option("--record", help="Call the models and rewrite the cassettes.")
    ] = False,
    junit: Annotated[
        Path | None, typer.Option("--junit", help="Write a JUnit report, for CI servers.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Run test cases for prompts, agents and the network. Exits with code 1 if a case falls below
    the bar."""
    from hubbub.app.preflight import load_valid
    from hubbub.app.process import run_loop
    from hubbub.lab.cases import missing_servers
    from hubbub.lab.prompt_tests import run_cases

    loaded = load_valid(config)
    cases = _chosen(loaded, files, only)
    for line in missing_servers(loaded, cases):
        typer.echo(line, err=True)
    if junit is not None and not junit.absolute().parent.is_dir():
        raise UserError(f"--junit: there is no folder {shown_path(junit.absolute().parent)}")
    with _progress(sum(placed.case.runs or runs for placed in cases)) as advance:
        report = run_loop(
            run_cases(
                loaded,
                cases,
                runs=runs,
                bar=bar,
                concurrency=concurrency,
                model=model,
                on_run=advance,
                record=record,
            )
        )
    if junit is not None:
        _write_junit(junit, report)
    if as_json:
        emit_json(_as_json(report))
    else:
        _print(report)
    if not report.passed:
        raise typer.Exit(1)


def _chosen(
    loaded: LoadedConfig, files: Sequence[Path] | None, only: str | None
) -> list[PlacedCase]:
    from hubbub.lab.cases import find_cases, load_cases

    cases = load_cases(loaded, files or find_cases(loaded))
    if only is None:
        return cases
    matches = [placed for placed in cases if only.casefold() in placed.case.name.casefold()]
    if not matches:
        raise UserError(f"no case has '{only}' in its name")
    return matches


@contextmanager
def _progress(runs: int) -> Iterator[Callable[[PlacedCase, Run], None]]:
    """A progress bar on a terminal; nothing elsewhere."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    screen = console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task("running", total=runs)

        def advance(placed: PlacedCase, run: Run) -> None:
            name = visible(placed.case.name).replace("[", r"\[")
            bar.update(task, advance=1, description=name[:40])

        yield advance


# Reports -----------------------------------------------------------------------------------------

_STYLES = {"passed": "green", "failed": "red", "error": "yellow"}


def _print(report: CasesReport) -> None:
    from rich.text import Text

    screen = console()
    for case in report.cases:
        word = Text(f"{case.status:6}", style=_STYLES[case.status])
        screen.print(Text.assemble(word, f"  {_figures(case)}  {visible(case.placed.case.name)}"))
        for line in [*_trend(case), *_reasons(case)]:
            screen.print(Text(f"        {visible(line)}", style="dim"))
    passed = sum(case.status == "passed" for case in report.cases)
    summary = f"{passed} of {counted(len(report.cases), 'case', 'cases')} passed"
    tokens = sum(run.tokens_in + run.tokens_out for case in report.cases for run in case.runs)
    screen.print(f"{summary}, {tokens} tokens, {report.seconds:.1f} s")


def _figures(case: CaseReport) -> str:
    """`4/5   80 % (38-96 %)`"""
    if case.rate is None:
        return f"{0:>3}/{0:<3} no answer    "
    low, high = case.interval
    share = f"{100 * case.rate:3.0f} % ({100 * low:.0f}-{100 * high:.0f} %)"
    return f"{case.count('passed'):>3}/{case.answered:<3} {share:<16}"


def _trend(case: CaseReport) -> list[str]:
    if case.trend is None or case.before is None:
        return []
    passed, answered = case.before
    trend = "within chance" if case.trend == "changed" else case.trend
    return [f"last time {passed}/{answered}: {trend}"]


def _reasons(case: CaseReport) -> list[str]:
    """Why runs failed or had no answer, most frequent first."""
    failed = Counter(failure for run in case.runs for failure in run.failures)
    errors = Counter(run.error for run in case.runs if run.error is not None)
    lines = [f"{times} x {failure}" for failure, times in failed.most_common()]
    return lines + [f"{times} x no answer: {error}" for error, times in errors.most_common()]


def _as_json(report: CasesReport) -> dict[str, object]:
    return {
        "passed": report.passed,
        "seconds": round(report.seconds, 3),
        "cases": [_case_json(case) for case in report.cases],
    }


def _case_json(case: CaseReport) -> dict[str, object]:
    low, high = case.interval
    return {
        "name": case.placed.case.name,
        "path": shown_path(case.placed.path),
        "line": case.placed.line,
        "status": case.status,
        "bar": case.bar,
        "rate": case.rate,
        "interval": [round(low, 4), round(high, 4)],
        "before": case.before,
        "trend": case.trend,
        "passed": case.count("passed"),
        "failed": case.count("failed"),
        "errors": case.count("error"),
        "runs": [
            {
                "status": run.status,
                "failures": list(run.failures),
                "error": run.error,
                "seconds": round(run.seconds, 3),
                "tokens_in": run.tokens_in,
                "tokens_out": run.tokens_out,
            }
            for run in case.runs
        ],
    }


def _write_junit(path: Path, report: CasesReport) -> None:
    from hubbub.lab.reports import CaseVerdict, Suite, write_junit

    suites: dict[str, Suite] = {}
    for case in report.cases:
        file = shown_path(case.placed.path)
        suite = suites.setdefault(file, Suite(file))
        figures = f"{' '.join(_figures(case).split())}, bar {100 * case.bar:g} %"
        seconds = sum(run.seconds for run in case.runs)
        reasons = "\n".join(_reasons(case))
        verdict = CaseVerdict(case.placed.case.name, case.status, figures, reasons, seconds)
        suite.verdicts.append(verdict)
    try:
        write_junit(path, list(suites.values()))
    except OSError as exc:
        raise UserError(f"cannot write {shown_path(path)}: {exc.strerror}") from exc
