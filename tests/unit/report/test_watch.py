"""The live page over real HTTP: for this machine, for one file, and for browsers that come and go."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from ftprl.cli.app import run
from ftprl.errors import InvalidInput
from ftprl.report import Watch
from oracles.events import HOSTILE, start


def point(rows: int) -> dict[str, Any]:
    """Return a progress event with little to draw."""
    return {"event": "progress", "rows": rows, "pass": 1, "seconds": rows / 100, "loss": 0.5}


def text(*events: dict[str, Any]) -> str:
    return "".join(json.dumps(event) + "\n" for event in events)


class Client:
    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.port = int(watch.url.rstrip("/").rpartition(":")[2])

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read().decode("utf-8")
        finally:
            connection.close()

    def updates(self, since: str = "") -> dict[str, Any] | None:
        status, _, body = self.ask(f"/data?since={since}")
        assert status == (200 if body else 204)
        actual: dict[str, Any] | None = json.loads(body) if body else None
        return actual

    def raw(self, request: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            actual = b""
            while chunk := connection.recv(65_536):
                actual += chunk
            return actual


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


@pytest.fixture
def client(path: Path) -> Iterator[Client]:
    watch = Watch(path)
    thread = threading.Thread(target=watch.run)
    thread.start()
    yield Client(watch)
    watch.stop()
    thread.join(30)
    assert not thread.is_alive()


def test_waits_for_the_file_and_follows_it(client: Client, path: Path) -> None:
    first = client.updates()
    assert first is not None
    assert "Waiting for" in first["parts"]["head"]
    assert client.updates(first["version"]) is None, "nothing has changed"

    whole = text(start(), point(8))
    path.write_text(whole[:-30])  # a line that is still being written
    second = client.updates(first["version"])
    assert second is not None
    assert "running" in second["parts"]["head"]
    assert "<svg" not in second["parts"]["figures"]

    path.write_text(whole)
    third = client.updates(second["version"])
    assert third is not None
    assert third["parts"]["figures"].count("<svg") == 1

    with path.open("a") as file:
        file.write(text({"event": "end", "rows": 8}))
    fourth = client.updates(third["version"])
    assert fourth is not None
    assert "finished" in fourth["parts"]["head"]
    assert fourth["parts"]["figures"] == third["parts"]["figures"]

    path.write_text(text(start()))  # a new run in the same file
    fifth = client.updates(fourth["version"])
    assert fifth is not None
    assert "running" in fifth["parts"]["head"]
    path.unlink()
    sixth = client.updates(fifth["version"])
    assert sixth is not None
    assert "Waiting for" in sixth["parts"]["head"]


def test_a_file_that_is_none_of_ours_is_reported_on_the_page(client: Client, path: Path) -> None:
    path.write_text("hello\n")
    content = client.updates()
    assert content is not None
    assert content["failed"] is True
    assert "expected an event in JSON" in content["parts"]["head"]


def test_the_page_has_a_script_of_its_own_and_nothing_else(client: Client, path: Path) -> None:
    path.write_text(text(start(data={"files": [HOSTILE]}), {"event": "error", "rows": 1, "message": HOSTILE}))
    pages = [client.ask("/") for _ in range(2)]
    nonces = set()
    for status, headers, body in pages:
        assert status == 200
        policy = headers["content-security-policy"]
        nonce = policy.partition("'nonce-")[2].partition("'")[0]
        nonces.add(nonce)
        assert len(nonce) >= 16
        assert body.count("<script") == 1
        assert f'<script nonce="{nonce}">' in body
        assert policy.startswith("default-src 'none'")
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in headers
    assert len(nonces) == 2
    _, headers, body = client.ask("/data")
    assert headers["content-type"] == "application/json"
    assert "<" not in body


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "", "[::1]:{port}"]
)
def test_another_host_is_refused(client: Client, path: Path, host: str) -> None:
    path.write_text(text(start(version="secret")))
    for target in ("/", "/data"):
        status, _, body = client.ask(target, Host=host.format(port=client.port))
        assert status == 403
        assert "secret" not in body


def test_no_host_and_two_hosts_are_refused(client: Client) -> None:
    port = client.port
    assert b" 403 " in client.raw(b"GET / HTTP/1.0\r\n\r\n").partition(b"\r\n")[0]
    two = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: evil.example\r\n\r\n"
    assert b" 403 " in client.raw(two.encode()).partition(b"\r\n")[0]
    assert client.ask("/data", Host=f"localhost:{port}")[0] == 200


@pytest.mark.parametrize(
    "target",
    [
        "/run.jsonl",
        "/../run.jsonl",
        "/..%2frun.jsonl",
        "/data/../../etc/passwd",
        "//etc/passwd",
        "/data/",
        "/index.html",
        "http://evil.example/",
        "*",
    ],
)
def test_no_files_are_served(client: Client, path: Path, target: str) -> None:
    path.write_text(text(start(version="secret")))
    request = f"GET {target} HTTP/1.0\r\nHost: 127.0.0.1:{client.port}\r\n\r\n"
    answer = client.raw(request.encode())
    assert answer.split(b" ", 2)[1] == b"404"
    assert b"secret" not in answer


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS", "TRACE", "PATCH", "CONNECT"])
def test_other_methods_are_refused(client: Client, method: str) -> None:
    assert client.ask("/", method)[0] in (405, 501)


@pytest.mark.parametrize(
    "request_", [b"", b"\r\n\r\n", b"GET\r\n\r\n", b"\x00\xff\xfe\r\n\r\n", b"GET / HTTP/9\r\n\r\n"]
)
def test_nonsense_does_no_harm(client: Client, request_: bytes) -> None:
    assert b" 200 " not in client.raw(request_)
    assert client.ask("/data")[0] == 200


def test_two_readers_and_a_slow_writer(client: Client, path: Path) -> None:
    actual: list[list[int]] = [[], []]

    def look(seen: list[int]) -> None:
        version, rows = "", -1
        while rows < 64:
            content = client.updates(version)
            if content is not None:
                version = content["version"]
                shown_rows = content["status"].partition(", ")[2].partition(" rows")[0]
                rows = int(shown_rows) if shown_rows else 0
                seen.append(rows)
            time.sleep(0.01)

    readers = [threading.Thread(target=look, args=(seen,)) for seen in actual]
    for reader in readers:
        reader.start()
    with path.open("w") as file:
        for text_part in (text(start()), *(text(point(4**k)) for k in range(4))):
            for half in (text_part[:25], text_part[25:]):
                file.write(half)
                file.flush()
                time.sleep(0.02)
    for reader in readers:
        reader.join(60)
    for seen in actual:
        assert seen == sorted(seen)
        assert seen[-1] == 64


def _interruptible() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_the_command_prints_its_address_once_and_ends_on_an_interrupt(path: Path) -> None:
    path.write_text(text(start(), {"event": "end", "rows": 0}))
    command = [sys.executable, "-m", "ftprl", "watch", str(path), "--port", "0"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    # Tests in a shell's background ignore interrupts, and so would the processes they start.
    with subprocess.Popen(command, preexec_fn=_interruptible, **pipes) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:")
        port = int(url.rstrip("/").rpartition(":")[2])
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/")
        assert b"finished" in connection.getresponse().read()
        connection.close()
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "", "")


def test_bad_input(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InvalidInput, match="from 0 to 65535, got -1"):
        Watch(path, -1)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert run(["watch", str(path), "--port", str(port)]) == 2
    assert f"port {port} cannot be used" in capsys.readouterr().err
    assert run(["watch", str(path.parent)]) == 2
    assert "got the folder" in capsys.readouterr().err
