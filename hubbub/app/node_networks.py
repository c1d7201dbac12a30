"""The networks that a node is given: YAML files that must get along with each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from hubbub.app.preflight import check_models, check_programs, load_valid
from hubbub.config.loader import LoadedConfig
from hubbub.config.paths import POSTGRES, shown_store
from hubbub.config.problems import shown_path
from hubbub.config.units import ListenAddress
from hubbub.errors import UserError

__all__ = ["load_networks"]

_SERVER = ("host", "hostaddr", "port", "user")
"""What of a URL says which server it is, and who asks there: only a role's own sessions show when
they were last heard."""


def load_networks(
    paths: Sequence[Path], cluster: str, host: str = ""
) -> Mapping[str, LoadedConfig]:
    """The networks of these files, or of all YAML in these folders, by the names of their
    databases. They listen on `host`, if one is given, at their own ports.

    Raises UserError for a network that cannot run in the `cluster`, or not beside another one.
    """
    found = dict[str, LoadedConfig]()
    server = _database(cluster, "the cluster")
    for path in _files(paths):
        config = load_valid(path)
        check_models(config)
        check_programs(config)
        store, where = config.file.network.store, shown_path(path)
        if not store.startswith(POSTGRES):
            raise UserError(
                f"{where}: a node runs networks whose store is in Postgres, and this one's is "
                f"{store}: move it with `hubbub network migrate`"
            )
        database = _database(store, where)
        if [database.get(key) for key in _SERVER] != [server.get(key) for key in _SERVER]:
            raise UserError(
                f"{where}: its store, {shown_store(store)}, is not on the cluster's server: name "
                "host, port and user as in --cluster"
            )
        name = database.get("dbname") or database.get("user") or ""
        for other in found.values():
            _check_beside(config, other, same_store=found.get(name) is other)
        found[name] = _listening(config, host) if host else config
    return found


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.is_dir():
            yield path
        elif files := sorted((*path.glob("*.yaml"), *path.glob("*.yml"))):
            yield from files
        else:
            raise UserError(f"there is no YAML file in {shown_path(path)}")


def _database(url: str, where: str) -> Mapping[str, str]:
    try:
        if not url.startswith(POSTGRES):
            raise ProgrammingError("it begins with postgresql://")
        return {key: str(value) for key, value in conninfo_to_dict(url).items()}
    except ProgrammingError as error:
        raise UserError(f"{where}: {shown_store(url)} is no URL of Postgres: {error}") from error


def _check_beside(config: LoadedConfig, other: LoadedConfig, *, same_store: bool) -> None:
    same: dict[str, Callable[[LoadedConfig], object]] = {
        "name": lambda each: each.file.network.name,
        "port": lambda each: each.address.port,
    }
    what = next((key for key, of in same.items() if of(config) == of(other)), None)
    if what is not None or same_store:
        raise UserError(
            f"{shown_path(config.path)} and {shown_path(other.path)} have the same "
            f"{what or 'store'}: a node needs another one for each network"
        )


def _listening(config: LoadedConfig, host: str) -> LoadedConfig:
    listen = str(ListenAddress(host, config.address.port))
    network = config.file.network.model_copy(update={"listen": listen})
    return replace(config, file=config.file.model_copy(update={"network": network}))
