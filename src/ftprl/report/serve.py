"""The live report of a run: a small server for this machine only, which reads one events file."""

from __future__ import annotations

import json
import os
import secrets
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, final
from urllib.parse import parse_qs, urlsplit

from ftprl.data.files import shown
from ftprl.errors import FtprlError, InvalidInput
from ftprl.report.html import esc, tag
from ftprl.report.page import PARTS, frame, parts
from ftprl.runlog.events import read_events
from ftprl.runlog.reader import RunLog

HOST = "127.0.0.1"
_TIMEOUT = 10.0  # seconds for a request to arrive


@final
class LivePage:
    """The sections of the page, rebuilt when the file has changed."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._lock = threading.Lock()  # one drawing serves all requests
        self._drawn_version: object = None
        self._content: dict[str, Any] = {}
        self._count = 0
        self._pictures: dict[str, tuple[str, str]] = {}
        self._session = secrets.token_hex(4)

    def content(self) -> dict[str, Any]:
        """Return the current content of the page, with a `version` that changes when the content does."""
        with self._lock:
            version = self._file_version()
            if version != self._drawn_version or not self._content:
                self._count += 1
                self._content = {"version": f"{self._session}-{self._count}", **self._draw()}
                self._drawn_version = version
            return self._content

    def _file_version(self) -> object:
        """Return a value that changes when the file does."""
        try:
            stat = os.stat(self.path)
        except OSError:
            return "absent"
        return stat.st_ino, stat.st_size, stat.st_mtime_ns

    def _draw(self) -> dict[str, Any]:
        """Read the file and build the sections."""
        name = os.path.basename(self.path)
        problem = ""
        try:
            events = read_events(self.path)
        except FileNotFoundError:
            events = []
        except (FtprlError, OSError) as error:
            events, problem = [], str(error)
        log = RunLog.from_events(events)
        if events:
            sections = parts(log, name, self._pictures)
            note = " at the last event; progress is logged at growing intervals" if log.status == "running" else ""
            status = f"Live: {log.status}, {log.rows:,} rows{note}."
        else:
            waits = problem or f"Waiting for {self.path}: the page fills as soon as a run writes its events there."
            sections = dict.fromkeys(PARTS, "") | {
                "head": tag("h1", esc(name), " ", tag("span", "waiting", class_="badge waiting")) + tag("p", esc(waits))
            }
            status = "Live: waiting."
        return {"title": f"{shown(name)} · ftprl", "parts": sections, "status": status, "failed": bool(problem)}


class _Server(ThreadingHTTPServer):
    """The HTTP server of one page."""

    daemon_threads = True
    page: LivePage

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors of a connection, such as a browser that closed it."""


class _Handler(BaseHTTPRequestHandler):
    """The handler of one request."""

    server: _Server
    server_version, sys_version = "ftprl", ""
    timeout = _TIMEOUT

    def do_GET(self) -> None:
        """Send the page, its updates, or an error."""
        if not self._is_for_us():
            self._send(HTTPStatus.FORBIDDEN, "text/plain", b"this server answers to its own address only\n")
            return
        url = urlsplit(self.path)
        if url.path == "/" and not url.scheme and not url.netloc:
            self._page()
        elif url.path == "/data" and not url.scheme and not url.netloc:
            self._data(parse_qs(url.query).get("since", [""])[0])
        else:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", b"there is / and nothing else\n")

    def _is_for_us(self) -> bool:
        """Return True if the request is for this server's own address.

        A page of another site whose name points here (DNS rebinding) still sends its own name.
        """
        port = self.server.server_address[1]
        return self.headers.get_all("Host", []) in ([f"{HOST}:{port}"], [f"localhost:{port}"])

    def _page(self) -> None:
        """Send the page."""
        nonce = secrets.token_urlsafe(16)
        sections = self.server.page.content()["parts"]
        inside = "".join(tag("section", html, id=key) for key, html in sections.items())
        body = frame(inside, os.path.basename(self.server.page.path), nonce).encode("utf-8")
        policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-{nonce}'; connect-src 'self'"
        self._send(
            HTTPStatus.OK,
            "text/html; charset=utf-8",
            body,
            ("Content-Security-Policy", f"{policy}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
        )

    def _data(self, since: str) -> None:
        """Send the content if it is newer than `since`."""
        content = self.server.page.content()
        if since == content["version"]:
            self._send(HTTPStatus.NO_CONTENT, "application/json", b"")
        else:
            self._send(HTTPStatus.OK, "application/json", json.dumps(content).replace("<", "\\u003c").encode("ascii"))

    def _send(self, status: HTTPStatus, kind: str, body: bytes, *more: tuple[str, str]) -> None:
        """Send a response."""
        self.send_response(status)
        for name, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("X-Frame-Options", "DENY"),
            ("Referrer-Policy", "no-referrer"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            *more,
        ):
            if body or name != "Content-Length":
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: the server has one user."""


@final
class Watch:
    """A server that shows the run of an events file; `url` is its address, `run` serves until it is interrupted."""

    def __init__(self, path: str | os.PathLike[str], port: int = 0) -> None:
        if os.path.isdir(path):
            raise InvalidInput(f"watch needs a file of events, got the folder {os.fspath(path)!r}; name a file in it.")
        if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65_535:
            raise InvalidInput(f"port needs a number from 0 to 65535, got {port!r}; 0 takes a free one.")
        try:
            self._server = _Server((HOST, port), _Handler)
        except OSError as error:
            raise InvalidInput(f"port {port} cannot be used: {error.strerror}; pass 0 for a free one.") from None
        self._server.page = LivePage(path)

    @property
    def url(self) -> str:
        """Return the address of the page."""
        return f"http://{HOST}:{self._server.server_address[1]}/"

    def run(self) -> None:
        """Serve until `stop` is called, or until an interrupt."""
        try:
            self._server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            pass
        finally:
            self._server.server_close()

    def stop(self) -> None:
        """End `run` from another thread."""
        self._server.shutdown()
