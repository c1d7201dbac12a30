"""`webhook list | deliveries | retry | serve`: programs elsewhere, told of what happens here, and
the other way round (mod `webhooks`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.desk import day_time
from hubbub.cli.joining import AddressOption, Target, TokenOption, ask, run_async
from hubbub.cli.output import JsonFlag, emit_json, help_if_alone, table

if TYPE_CHECKING:
    from hubbub.mods.webhooks.schemas import Delivery

__all__ = ["group", "register"]

group = typer.Typer(
    help="See webhooks, and take those that come in (mod webhooks).",
    invoke_without_command=True,
    callback=help_if_alone,
)


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="webhook")


@group.command("list")
def list_(
    address: AddressOption = None, token: TokenOption = None, as_json: JsonFlag = False
) -> None:
    """List the programs that are told what happens, and what waits for them."""
    from hubbub.mods.webhooks.schemas import Webhooks

    answer = run_async(ask(Target(address, token), "list_webhooks"))
    hooks = Webhooks.model_validate(answer).webhooks
    if as_json:
        emit_json(hooks)
        return
    table(
        ("WEBHOOK", "ADDRESS", "EVENTS", "WAITING", "FAILED", "NEXT", "LAST OUTCOME"),
        [
            (
                each.name,
                each.url,
                ", ".join(each.events),
                str(each.waiting),
                str(each.failed),
                day_time(each.next_attempt),
                each.outcome,
            )
            for each in hooks
        ],
    )


@group.command()
def deliveries(
    hook: Annotated[str, typer.Argument(help="The webhook.")],
    state: Annotated[
        str | None,
        typer.Option("--state", help="Only waiting, sent, failed or dropped.", show_default=False),
    ] = None,
    before: Annotated[
        int | None,
        typer.Option("--before", help="Only those before this number.", show_default=False),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=200)] = 50,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """List the events that were sent to a webhook or wait for that, latest first."""
    from hubbub.mods.webhooks.schemas import DeliveryPage

    target = Target(address, token)
    asked = ask(
        target, "webhook_deliveries", None, hook=hook, state=state, before=before, limit=limit
    )
    answer = run_async(asked)
    page = DeliveryPage.model_validate(answer)
    if as_json:
        emit_json(page)
        return
    table(
        ("NO", "ID", "AT", "EVENT", "STATE", "TRIES", "LAST OUTCOME"),
        [_row(each) for each in page.deliveries],
    )
    if page.more:
        typer.echo(f"there are earlier ones: --before {page.deliveries[-1].number}")


def _row(each: Delivery) -> Sequence[str]:
    event = f"{each.event} {each.message_id}" if each.message_id else each.event
    return (
        str(each.number),
        each.id,
        day_time(each.at),
        event,
        each.state,
        str(each.attempts),
        each.outcome,
    )


@group.command()
def retry(
    id: Annotated[str, typer.Argument(help="The delivery's id.")],
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Send an event once more that was given up or dropped."""
    from hubbub.mods.webhooks.schemas import Delivery

    answer = run_async(ask(Target(address, token), "retry_webhook", id=id))
    told = Delivery.model_validate(answer)
    if as_json:
        emit_json(told)
        return
    typer.echo(f"{told.id} is {told.state} again")


@group.command()
def serve(
    config: Annotated[Path, typer.Option("--config", "-c", help="The network's YAML file.")] = Path(
        "hubbub.yaml"
    ),
    address: AddressOption = None,
    token: TokenOption = None,
) -> None:
    """Take webhooks from programs elsewhere and post them in the network, until Ctrl-C. The YAML
    says where: mods.webhooks.inbound."""
    from hubbub.app.inbound.process import job_of, run

    def announce(addresses: Sequence[str]) -> None:
        for each in addresses:
            typer.echo(f"POST {each}")
        typer.echo("webhooks are taken here; Ctrl-C stops")

    run(job_of(config, address, token), announce)
