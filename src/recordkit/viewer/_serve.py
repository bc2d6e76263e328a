"""Serve: the web server of the page, on this machine."""

from __future__ import annotations

import os
import secrets
import socket
import sys
import threading
import webbrowser
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from recordkit.errors import MissingExtraError, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
_PATIENCE: Final = 10.0


class Server:
    """A viewer that runs in a thread of its own until it is closed. `start` makes one.

    Attributes:
        address: The URL to open. Anyone who knows it can see the data.
    """

    def __init__(self, where: Any, *, host: str, port: int, token: str | None, split: str | None, hosts: Sequence[str]):
        uvicorn = _uvicorn()
        from ._app import viewer_app
        from ._dataset_view import DatasetView
        from ._jobs import Jobs

        view = DatasetView(where, split=split)
        token = token or secrets.token_urlsafe(18)
        self._jobs = Jobs()
        self._socket = _listening(host, port)
        named = f"[{host}]" if ":" in host else host
        app = viewer_app(view, token, hosts=(*_LOOPBACK, named, *hosts), jobs=self._jobs)
        self.address = f"http://{named}:{self._socket.getsockname()[1]}/{token}/"
        config = uvicorn.Config(
            app,
            log_level="error",
            timeout_graceful_shutdown=3,
            access_log=False,
            server_header=False,
            lifespan="off",
            ws="none",
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="recordkit-viewer", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self._server.run(sockets=[self._socket])

    def wait(self) -> None:
        """Wait until it ends."""
        while self._thread.is_alive():
            self._thread.join(0.2)  # in short waits, so that Ctrl-C gets through

    def close(self) -> None:
        """Stop it and its background jobs."""
        self._jobs.close()
        self._server.should_exit = True
        self._thread.join(_PATIENCE)
        self._socket.close()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def start(
    where: Any,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
    split: str | None = None,
    hosts: Sequence[str] = (),
) -> Server:
    """Serve a page that shows a dataset, and return at once: for notebooks.

    Args:
        where: What `recordkit.open` takes, but for pipes.
        host: The address to listen on. Only this machine can reach the default.
        port: The port; 0 for any free one.
        token: The secret part of the URL; by default a new one each time.
        split: Only this split of a folder that has several.
        hosts: More host names that requests may use.

    Raises:
        MissingExtraError: Starlette or uvicorn is not installed.
        StorageError: Nothing is there, or the port is taken.

    >>> import tempfile, urllib.request, recordkit as rk
    >>> path = tempfile.mkdtemp() + "/numbers.tfrecord"
    >>> _ = rk.write(path, [{"id": i, "square": i * i} for i in range(10)])
    >>> with start(path) as server:
    ...     print(urllib.request.urlopen(server.address).status)
    200
    """
    return Server(where, host=host, port=port, token=token, split=split, hosts=hosts)


def serve(
    where: Any,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
    split: str | None = None,
    hosts: Sequence[str] = (),
    open_browser: bool = True,
    ready: Callable[[str], object] = print,
) -> None:
    """Serve a page that shows a dataset until Ctrl-C.

    Args:
        where: What `recordkit.open` takes, but for pipes.
        host: As for `start`.
        port: As for `start`.
        token: As for `start`.
        split: As for `start`.
        hosts: As for `start`.
        open_browser: Whether to open the page.
        ready: Called with the URL once the page can be opened.
    """
    with (
        suppress(KeyboardInterrupt),
        start(where, host=host, port=port, token=token, split=split, hosts=hosts) as server,
    ):
        ready(server.address)
        if open_browser and _has_screen():
            webbrowser.open(server.address)
        server.wait()


def _has_screen() -> bool:
    """Tell whether the browser opens a window; a text browser would take over the terminal."""
    return sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


def _uvicorn() -> Any:
    try:
        import starlette  # noqa: F401 - is it installed?
        import uvicorn
    except ImportError as error:
        what = "recordkit.viewer"
        raise MissingExtraError(what, error.name or "uvicorn", "viewer") from None
    return uvicorn


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        message = f"{host}:{port}: cannot listen here: {error.strerror}\n  Choose another port=, or 0 for any."
        raise StorageError(message, errno=error.errno) from None
