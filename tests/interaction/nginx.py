"""An nginx in front of a hub: the machine's own, or Debian's, unpacked into `.venv`.

`python -m tests.interaction.nginx` unpacks it, or prints a line about how to install it. It
installs no package, as an installed nginx starts a server.
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
    """The path of an nginx that runs on this machine, or None."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:{_UNPACKED / 'usr/sbin'}"
    nginx = shutil.which("nginx", path=path)
    works = nginx and not subprocess.run([nginx, "-v"], capture_output=True, check=False).returncode
    return nginx if works and shutil.which("openssl") else None


def install() -> None:
    """Unpack an nginx if there is none."""
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
    """A running nginx with TLS for one name, on a Unix socket instead of a port."""

    def __init__(self, socket: Path, name: str, trust: ssl.SSLContext):
        self.socket, self.name, self.trust = socket, name, trust

    async def get(self, path: str) -> tuple[int, str]:
        """Send a plain request like a browser's. Returns the status and the body."""
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
    """nginx with this `server` block, in which `{socket}`, `{certificate}` and `{key}` are
    replaced by paths."""
    socket, certificate, key = folder / "https.sock", folder / "cert.pem", folder / "key.pem"
    _certify(name, certificate, key)
    for field, path in (("socket", socket), ("certificate", certificate), ("key", key)):
        server = server.replace(f"{{{field}}}", str(path))
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
            output = b""
            while b" event method" not in output:  # its first message once it listens
                line = await process.stderr.readline()
                assert line, f"nginx did not start: {output.decode()}"
                output += line
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
