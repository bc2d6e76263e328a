"""Who may ask, and what can be had by asking."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import pytest

import recordkit as rk
from recordkit import viewer
from recordkit.errors import MissingExtraError, StorageError
from tests.viewer import datasets

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from recordkit.viewer import Server

PAGE = b"<!doctype html><script>alert(1)</script>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("guard")
    rows = [{"id": i, "page": PAGE, "drawing": b"<svg xmlns='http://www.w3.org/2000/svg'/>"} for i in range(100)]
    rk.write(path / "a.tfrecord", rows)
    (path / "secret.txt").write_text("secret")
    return path


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    with viewer.start(folder / "a.tfrecord") as started:
        yield started


def ask(
    server: Server, path: str, headers: dict[str, str] | None = None, method: str = "GET", *, token: str | None = None
) -> tuple[int, dict[str, str], bytes]:
    """Ask for a path behind the token, exactly as it is written."""
    address = urlsplit(server.address)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=10)
    start = address.path if token is None else f"/{token}/"
    connection.putrequest(method, f"{start}{path}", skip_host="Host" in (headers or {}))
    for name, value in (headers or {}).items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, body


class TestWhoMayAsk:
    def test_the_page_is_for_those_who_know_the_token(self, server: Server) -> None:
        assert ask(server, "")[0] == 200

    def test_address_without_its_last_slash_leads_there(self, server: Server) -> None:
        address = urlsplit(server.address)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=10)
        connection.request("GET", address.path.rstrip("/"))

        answer = connection.getresponse()

        assert (answer.status, answer.headers["location"]) == (307, address.path)
        connection.close()

    @pytest.mark.parametrize("token", ["wrong", "", "..", "api", "%00"])
    @pytest.mark.parametrize("path", ["", "api/overview", "static/app.js"])
    def test_wrong_token_is_refused(self, server: Server, token: str, path: str) -> None:
        status, _, body = ask(server, path, token=token)

        assert status == 403
        assert b"recordkit" not in body

    @pytest.mark.parametrize("host", ["example.org", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.example.org", "", "[::1"])
    def test_wrong_host_is_refused(self, server: Server, host: str) -> None:
        assert ask(server, "api/overview", {"Host": host})[0] in (400, 421)

    def test_other_names_of_this_machine_are_fine(self, server: Server) -> None:
        assert ask(server, "api/overview", {"Host": f"localhost:{urlsplit(server.address).port}"})[0] == 200

    @pytest.mark.parametrize("origin", ["https://example.org", "null", "http://127.0.0.1:1", "https://127.0.0.1"])
    def test_other_origins_are_refused(self, server: Server, origin: str) -> None:
        assert ask(server, "api/overview", {"Origin": origin})[0] == 403

    def test_own_origin_is_fine(self, server: Server) -> None:
        origin = server.address.rsplit("/", 2)[0]

        assert ask(server, "api/verify", {"Origin": origin, "Content-Length": "0"}, "POST")[0] == 200

    @pytest.mark.parametrize("site", ["cross-site", "same-site"])
    def test_other_pages_cannot_embed_anything(self, server: Server, site: str) -> None:
        headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}

        assert ask(server, "api/record/0/value?field=page", headers)[0] == 403

    def test_a_link_from_elsewhere_opens_the_page(self, server: Server) -> None:
        assert ask(server, "", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})[0] == 200

    @pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
    def test_nothing_can_be_changed(self, server: Server, method: str) -> None:
        assert ask(server, "api/records", method=method)[0] == 405

    @pytest.mark.parametrize("path", ["api/scan?where=id", "api/verify", "api/statistics?field=id"])
    def test_work_is_not_started_by_a_link(self, server: Server, path: str) -> None:
        assert ask(server, path)[0] == 405


class TestWhatCanBeHad:
    @pytest.mark.parametrize(
        "path",
        [
            "../secret.txt",
            "static/../../../secret.txt",
            "static/..%2f..%2fsecret.txt",
            "static/%2e%2e/_app.py",
            "static//etc/passwd",
            "static/_app.py",
            "secret.txt",
            "static/app.js/",
            "static/app.js%00.html",
        ],
    )
    def test_only_files_of_the_page(self, server: Server, path: str) -> None:
        status, _, body = ask(server, path)

        assert status in (403, 404)
        assert b"secret\n" not in body
        assert b"import" not in body

    @pytest.mark.parametrize("path", ["", "static/app.js", "api/overview", "api/record/0/value?field=page", "nowhere"])
    def test_every_answer_is_guarded(self, server: Server, path: str) -> None:
        _, headers, _ = ask(server, path)

        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert "access-control-allow-origin" not in headers

    @pytest.mark.parametrize("field", ["page", "drawing"])
    def test_bytes_of_a_record_are_never_a_page(self, server: Server, field: str) -> None:
        status, headers, _ = ask(server, f"api/record/3/value?field={field}")

        assert status == 200
        assert headers["content-type"] == "application/octet-stream"
        assert headers["content-disposition"].startswith("attachment")
        assert headers["content-security-policy"] == "default-src 'none'; sandbox"

    @pytest.mark.parametrize(
        "path",
        [
            "api/record/100",
            "api/record/99999999999999999999",
            "api/record/0?at=-1",
            "api/record/0/value?field=none",
            "api/record/0/small?field=page",
            "api/records?count=99999999&at=99999999999999999999999",
            "api/records?field=none&field=&count=x",
            "api/records?scan=77",
            "api/record/0/bytes?at=999999999",
            f"api/records?seed={quote('🙂' * 100)}",
            "api/jobs/none",
            "api/fields?at=5000000&word=%ff",
            "api/files?at=9999",
        ],
    )
    def test_whatever_is_asked_is_answered(self, server: Server, path: str) -> None:
        status, _, body = ask(server, path)

        assert status in (200, 400, 404)
        json.loads(body)

    def test_looking_changes_nothing_on_the_disk(self, folder: Path, server: Server) -> None:
        def there() -> list[Any]:
            return sorted((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in folder.rglob("*"))

        before = there()
        for path in ("api/overview", "api/records?at=50", "api/record/99", "api/files", "api/fields"):
            ask(server, path)

        assert there() == before


class TestServing:
    def test_taken_port_is_said_in_words(self, tmp_path: Path) -> None:
        datasets.plain(tmp_path / "a.tfrecord")
        with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(StorageError, match="Choose another port="):
            viewer.start(tmp_path / "a.tfrecord", port=taken.getsockname()[1])

    def test_token_can_be_given(self, tmp_path: Path) -> None:
        with viewer.start(datasets.plain(tmp_path / "a.tfrecord"), token="known") as server:
            assert server.address.endswith("/known/")

    def test_missing_extra_is_said_politely(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "uvicorn", None)

        with pytest.raises(
            MissingExtraError, match=r"recordkit.viewer needs uvicorn: pip install 'recordkit\[viewer\]'"
        ):
            viewer.start(tmp_path)

    def test_importing_the_viewer_needs_neither(self) -> None:
        program = "import sys, recordkit.viewer; print({'uvicorn', 'starlette'} & set(sys.modules))"

        found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)

        assert found.stdout == "set()\n"

    def test_serving_ends_when_the_user_has_seen_enough(self, tmp_path: Path) -> None:
        path = str(datasets.plain(tmp_path / "a.tfrecord"))
        program = f"from recordkit import viewer; viewer.serve({path!r}, open_browser=False)"
        running = subprocess.Popen(
            [sys.executable, "-u", "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert running.stdout is not None
        address = running.stdout.readline()

        running.send_signal(2)
        _, errors = running.communicate(timeout=20)

        assert address.startswith("http://127.0.0.1:")
        assert (running.returncode, errors) == (0, "")
