"""Serves the page of a growing run to the browsers of this machine, from the run's files alone.

Only the loopback address listens, and only one path answers: a random token, so that other users of
the machine and pages of other sites cannot guess it. The page is read-only. It loads itself again
every few seconds while the run goes on, and is made again only when the run's files have changed.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock

from pulsar_ml.campaign.store.store import waves_of
from pulsar_ml.errors import BadRecordError, UsageError

HOST = "127.0.0.1"
REFRESH_SECONDS = 10
IDLE_SECONDS = 10.0  # of a connection without a request
Stamp = tuple[object, ...]


class LivePage:
    """The page of a run, kept until its files change."""

    def __init__(self, run: Path, make: Callable[[], tuple[str, bool]]) -> None:
        """``make`` returns the page, and True while the run goes on."""
        self._run = run
        self._make = make
        self._lock = Lock()
        self._stamp: Stamp | None = None
        self._page = b""
        self._grows = True

    def content(self) -> tuple[bytes, bool]:
        """The page as of now, and True while it may change.

        A run that cannot be read at the moment keeps its last page.
        """
        with self._lock:
            stamp = stamp_of(self._run)  # before reading: what is newer shows next time
            if stamp != self._stamp:
                try:
                    text, self._grows = self._make()
                    self._page, self._stamp = text.encode(errors="replace"), stamp
                except (BadRecordError, UsageError, OSError):
                    if not self._page:
                        raise
            return self._page, self._grows


def stamp_of(run: Path) -> Stamp:
    """Differs when waves were added or the state of the run has changed; () without a run."""
    try:
        state = (run / "run.json").stat()
    except OSError:
        return ()
    return (state.st_mtime_ns, state.st_size, state.st_ino, *waves_of(run))


def live_server(page: LivePage, port: int = 0) -> tuple[ThreadingHTTPServer, str]:
    """A server that is bound and does not serve yet, and the address of its one page."""
    path = f"/{secrets.token_urlsafe(24)}/"

    class Handler(BaseHTTPRequestHandler):
        timeout = IDLE_SECONDS
        server_version = "pulsar_ml"
        sys_version = ""

        def do_GET(self) -> None:
            self.answer(with_body=True)

        def do_HEAD(self) -> None:
            self.answer(with_body=False)

        def answer(self, *, with_body: bool) -> None:
            # A page of another site that leads a name to this address has another Host.
            hosts = {f"{name}:{port_of(server)}" for name in (HOST, "localhost")}
            known = secrets.compare_digest(self.path.encode(), path.encode())
            if not known or self.headers.get("Host") not in hosts:
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            try:
                content, grows = page.content()
            except (BadRecordError, UsageError, OSError):
                self.send_error(HTTPStatus.SERVICE_UNAVAILABLE)
                return
            self.send_response(HTTPStatus.OK)
            for name, value in {
                "Content-Type": "text/html; charset=utf-8",
                "Content-Length": str(len(content)),
                "Cache-Control": "no-store",
                "Referrer-Policy": "no-referrer",
                "X-Content-Type-Options": "nosniff",
                "X-Frame-Options": "DENY",
                **({"Refresh": str(REFRESH_SECONDS)} if grows else {}),
            }.items():
                self.send_header(name, value)
            self.end_headers()
            if with_body:
                self.wfile.write(content)

        def log_message(self, format: str, *values: object) -> None:
            """Print nothing: the terminal shows the address."""

    try:
        server = ThreadingHTTPServer((HOST, port), Handler)
    except OSError as error:
        raise UsageError(
            f"port {port} cannot be used: {error.strerror or error}; leave --port out for a free one"
        ) from None
    server.daemon_threads = True
    return server, f"http://{HOST}:{port_of(server)}{path}"


def port_of(server: ThreadingHTTPServer) -> int:
    return int(server.server_address[1])
