"""The nginx that tests put before a hub: the machine's own, or Debian's unpacked into `.venv`.

`python -m tests.interaction.nginx` unpacks it, where that may be done without asking, and otherwise
says in one line how to get it. It installs nothing: a package that is installed starts a server.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import ssl
import subprocess
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.packages import apt_get

__all__ = ["MISSING", "Proxy", "find", "install", "running"]

MISSING = (
    "no nginx or openssl: install them (on Debian `apt-get install nginx openssl`); "
    "the tests behind a proxy are skipped"
)
_UNPACKED = Path(sys.prefix) / "nginx"
_TIMEOUT_S = 60


def find() -> str | None:
    """Path of an nginx that runs here, None if there is none."""
    places = f"{os.environ.get('PATH', '')}:/usr/sbin:{_UNPACKED / 'usr/sbin'}"
    nginx = shutil.which("nginx", path=places)
    works = nginx and not subprocess.run([nginx, "-v"], capture_output=True, check=False).returncode
    return nginx if works and shutil.which("openssl") else None


def install() -> None:
    """See to it that there is an nginx, if that can be done quietly."""
    if find() is None and shutil.which("apt-get") and shutil.which("dpkg-deb"):
        _UNPACKED.mkdir(exist_ok=True)
        if os.geteuid() == 0:
            apt_get("update", timeout=_TIMEOUT_S)
        apt_get("download", "nginx", timeout=_TIMEOUT_S, cwd=_UNPACKED)
        for package in _UNPACKED.glob("nginx_*.deb"):
            subprocess.run(["dpkg-deb", "-x", package, _UNPACKED], check=False)
    if find() is None:
        sys.stderr.write(f"{MISSING}\n")


class Proxy:
    """A running nginx with TLS for one name, on a socket in the file system: no port is taken."""

    def __init__(self, socket: Path, name: str, trust: ssl.SSLContext):
        self.socket, self.name, self.trust = socket, name, trust

    async def get(self, path: str) -> tuple[int, str]:
        """Status and body of a plain request as a browser sends it."""
        reader, writer = await asyncio.open_unix_connection(
            self.socket, ssl=self.trust, server_hostname=self.name
        )
        head = f"GET {path} HTTP/1.1\r\nHost: {self.name}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode())
        answer = (await reader.read()).decode()
        writer.close()
        return int(answer.split()[1]), answer.partition("\r\n\r\n")[2]


@asynccontextmanager
async def running(nginx: str, server: str, name: str, folder: Path) -> AsyncIterator[Proxy]:
    """nginx with the `server` block for `name`, in which `{socket}`, `{certificate}` and `{key}`
    stand for what it has to use."""
    socket, certificate, key = folder / "https.sock", folder / "cert.pem", folder / "key.pem"
    _certify(name, certificate, key)
    for place, path in (("socket", socket), ("certificate", certificate), ("key", key)):
        server = server.replace(f"{{{place}}}", str(path))
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    config = folder / "nginx.conf"
    config.write_text(
        f"daemon off; master_process off; pid {folder}/pid; error_log stderr notice;\n"
        f"events {{}}\nhttp {{ access_log off;\n{temporary}{server}\n}}\n"
    )
    process = await asyncio.create_subprocess_exec(
        nginx, "-p", str(folder), "-e", "stderr", "-c", str(config), stderr=PIPE
    )
    assert process.stderr is not None
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            said = b""
            while b" event method" not in said:  # the first that it says when it listens
                line = await process.stderr.readline()
                assert line, f"nginx did not start: {said.decode()}"
                said += line
        yield Proxy(socket, name, ssl.create_default_context(cafile=str(certificate)))
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def _certify(name: str, certificate: Path, key: Path) -> None:
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
         "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}",
         "-keyout", key, "-out", certificate],
        capture_output=True, check=True,
    )  # fmt: skip


if __name__ == "__main__":
    install()
