"""`tokens add | show | list | revoke`: tokens, which prove a participant's identity."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.connection import AddressOption, NetworkTarget, ask, run_async
from hubbub.cli.output import DEFAULT_CONFIG, JsonFlag, emit_json, help_if_alone, table
from hubbub.errors import UserError
from hubbub.protocol.admin import NewToken, TokenCounts
from hubbub.protocol.thread_ids import ID_RULE, is_participant_id
from hubbub.wording import did_you_mean

if TYPE_CHECKING:
    from hubbub.client.runfile import RunFile
    from hubbub.config.loader import LoadedConfig

__all__ = ["register"]

OptionalConfig = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="The network's YAML file. Default: the network running on this machine, else "
        "hubbub.yaml.",
        show_default=False,
    ),
]
ParticipantArgument = Annotated[str, typer.Argument(help="The participant's name.")]

group = typer.Typer(
    help="Create, list and revoke tokens.", invoke_without_command=True, callback=help_if_alone
)


def register(app: typer.Typer, word: str) -> None:
    app.add_typer(group, name=word)


@group.command()
def add(
    participant: ParticipantArgument,
    config: OptionalConfig = None,
    address: AddressOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Create a token for a participant and print it. It cannot be printed again."""
    _check_name(participant)
    target = _running(config, address)
    if target is not None:
        value = run_async(ask(target, "add_token", participant=participant))
        token = NewToken.model_validate(value).token
    else:
        token = _add_offline(_config(config), participant)
    about = (
        " and is not shown again. Pass it with --token, or set HUBBUB_TOKEN. From now on, "
        f"{participant} can join only with a token."
    )
    _print(participant, token, about, as_json)


@group.command()
def show(
    participant: ParticipantArgument,
    address: AddressOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Print a participant's token for a network that you run."""
    _check_name(participant)
    token = _of_this_run(participant, address)
    about = " until the network stops. Enter it on the page, or pass it with --token."
    _print(participant, token, about, as_json)


@group.command(name="list")
def list_(
    config: OptionalConfig = None, address: AddressOption = None, as_json: JsonFlag = False
) -> None:
    """Show how many tokens each participant has. The tokens themselves are not stored."""
    counts = _counts(_running(config, address), config)
    if as_json:
        emit_json([{"participant": name, "tokens": count} for name, count in counts.items()])
        return
    table(("NAME", "TOKENS"), ((name, str(count)) for name, count in counts.items()))


@group.command()
def revoke(
    participant: ParticipantArgument,
    config: OptionalConfig = None,
    address: AddressOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Revoke all tokens of a participant and close its connections."""
    _check_name(participant)
    target = _running(config, address)
    run = None if target is None else _run_file(target.address)
    people = set(run.humans) & set(run.tokens) if run is not None else set[str]()
    names = {*_counts(target, config), *people}
    if participant not in names:
        raise UserError(f"{participant} has no tokens{did_you_mean(participant, names)}")
    if target is not None:
        run_async(ask(target, "revoke_tokens", participant=participant))
        if run is not None and participant in people:
            _forget(run, participant)
    else:
        _revoke_offline(_config(config), participant)
    if as_json:
        emit_json({"participant": participant, "revoked": True})
    else:
        typer.echo(f"revoked the tokens of {participant}")


def _print(participant: str, token: str, about: str, as_json: bool) -> None:
    if as_json:
        emit_json({"participant": participant, "token": token})
    else:
        typer.echo(token)
        typer.echo(f"This token identifies {participant}{about}", err=True)


def _check_name(participant: str) -> None:
    if not is_participant_id(participant):
        raise UserError(f"'{participant}' is not a valid name: use {ID_RULE}, and no reserved word")


def _of_this_run(participant: str, address: str | None) -> str:
    """The token in the run file, which only its user can read. Raises `UserError`."""
    from hubbub.client.runfile import find_network

    run = _run_file(address)
    if run is None:
        raise UserError(
            f"you do not run the network at {find_network(address).url}, and only the user who "
            f"does can see its tokens; that user can create one with `hubbub tokens add "
            f"{participant}`"
        )
    if participant in run.tokens:
        return run.tokens[participant]
    if run.auth == "open":
        raise UserError(f"{run.network} is open: people join it without a token")
    raise UserError(
        f"{run.network} has no token for {participant}; create one with `hubbub tokens add "
        f"{participant}`{did_you_mean(participant, run.tokens)}"
    )


def _run_file(address: str | None) -> RunFile | None:
    """The run file of the network at the address, if this user runs it."""
    from hubbub.client.runfile import find_network, find_run_files

    url = find_network(address).url
    return next((run for run in find_run_files() if run.url == url), None)


def _forget(run: RunFile, participant: str) -> None:
    """Remove a revoked token from the run file."""
    from hubbub.client.runfile import write_run_file

    tokens = {name: token for name, token in run.tokens.items() if name != participant}
    write_run_file(run.model_copy(update={"tokens": tokens}))


def _counts(target: NetworkTarget | None, config: Path | None) -> Mapping[str, int]:
    """The number of tokens by participant, without those that have none."""
    if target is not None:
        counts = TokenCounts.model_validate(run_async(ask(target, "list_tokens")))
        return {entry.participant: entry.tokens for entry in counts.participants}
    from hubbub.network.store import list_tokens_offline

    return run_async(list_tokens_offline(_config(config).file.network.store))


def _add_offline(config: LoadedConfig, participant: str) -> str:
    from hubbub.network.auth import new_token, token_hash
    from hubbub.network.store import add_token_offline

    token = new_token()
    run_async(add_token_offline(config.file.network.store, token_hash(token), participant))
    return token


def _revoke_offline(config: LoadedConfig, participant: str) -> None:
    from hubbub.config.paths import POSTGRES
    from hubbub.network.store import hub_runs_on, revoke_tokens_offline

    store = config.file.network.store
    runs = hub_runs_on(store)
    if runs and not store.startswith(POSTGRES):
        raise UserError(
            f"the network is running, but not on {config.address}: name its address with "
            f"--address, so that the connections of {participant} are closed"
        )
    run_async(revoke_tokens_offline(store, participant))
    if runs:  # its address is not known here, and a leaked token cannot wait for it
        text = f"the hub runs elsewhere: connections of {participant} stay open until it restarts"
        typer.echo(f"hubbub: {text}", err=True)


def _running(config: Path | None, address: str | None) -> NetworkTarget | None:
    """The running network to call; None if the store has to be written directly."""
    from hubbub.client.runfile import find_run_files

    if address is not None:
        return NetworkTarget(address)
    running = find_run_files()
    if config is None:
        return NetworkTarget() if running else None
    listen = f"ws://{_config(config).address}"
    return NetworkTarget(listen) if any(run.url == listen for run in running) else None


def _config(path: Path | None) -> LoadedConfig:
    from hubbub.config.loader import load

    return load(path or DEFAULT_CONFIG)
