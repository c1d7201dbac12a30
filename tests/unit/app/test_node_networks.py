"""The networks of a node must fit each other and their cluster."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hubbub.app import postgres_server
from hubbub.app.node import load_networks
from hubbub.app.postgres_server import PostgresServer
from hubbub.errors import UserError

SERVER = "postgresql://hubbub@db.example.org"
CLUSTER = f"{SERVER}/cluster"
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes the YAML file of a network."""

    def write(name: str, port: int, store: str | None = None, file: str | None = None) -> Path:
        store = store or f"{SERVER}/{name}"
        network = {"name": name, "listen": f"127.0.0.1:{port}", "store": store}
        path = tmp_path / f"{file or name}.yaml"
        path.write_text(json.dumps({"network": network}))
        return path

    return write


def test_the_networks_of_a_folder_listen_at_their_ports_on_the_nodes_host(
    write: Write, tmp_path: Path
) -> None:
    write("news", 4820)
    write("shop", 4821)
    networks = load_networks([tmp_path], CLUSTER, "10.0.0.7")
    loaded = {name: (each.file.network.name, str(each.address)) for name, each in networks.items()}
    assert loaded == {"news": ("news", "10.0.0.7:4820"), "shop": ("shop", "10.0.0.7:4821")}
    (own,) = load_networks([tmp_path / "news.yaml"], CLUSTER).values()
    assert str(own.address) == "127.0.0.1:4820"


@pytest.mark.parametrize(
    ("name", "port", "store", "reason"),
    [
        ("shop", 4820, None, "news.yaml have the same port"),
        ("news", 4821, f"{SERVER}/shop", "news.yaml have the same name"),
        ("shop", 4821, f"{SERVER}/news", "news.yaml have the same store"),
        ("shop", 4821, "sqlite:shop.db", "move it with `hubbub network migrate`"),
        ("shop", 4821, "postgresql://hubbub@other/shop", "not on the cluster's server"),
        ("shop", 4821, "postgresql://ann@db.example.org/shop", "not on the cluster's server"),
    ],
)
def test_a_network_that_cannot_run_in_the_cluster_is_refused_with_its_file(
    write: Write, tmp_path: Path, name: str, port: int, store: str | None, reason: str
) -> None:
    write("news", 4820)
    write(name, port, store, file="other")
    with pytest.raises(UserError) as refused:
        load_networks([tmp_path], CLUSTER)
    assert "other.yaml" in str(refused.value)
    assert reason in str(refused.value)


def test_an_invalid_cluster_or_an_empty_folder_is_refused(write: Write, tmp_path: Path) -> None:
    write("news", 4820)
    for cluster in ("sqlite:cluster.db", "postgresql://hub bub@/cluster"):
        with pytest.raises(UserError, match=r"the cluster: .* is not a Postgres URL"):
            load_networks([tmp_path], cluster)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"there is no YAML file in .*empty"):
        load_networks([tmp_path / "empty"], CLUSTER)


def test_the_error_without_postgres_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_server, "DEBIAN", tmp_path / "nowhere")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="Postgres is not installed on this machine: install it"):
        PostgresServer(tmp_path)
