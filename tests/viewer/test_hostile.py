"""Datasets that mean harm, or that are merely enormous, in a real browser."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
from playwright.sync_api import expect

import recordkit as rk
from recordkit import images

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from recordkit.viewer import Server
    from tests.viewer.conftest import Tab

    Tabs = Callable[..., Tab]
    Serve = Callable[..., Server]

SCRIPT = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"
pytestmark = pytest.mark.slow  # a browser takes its time

VIEWS = ("records?as=cards", "records?as=table", "record/0", "fields", "files")


class TestScripts:
    def test_nothing_in_a_record_runs(self, tab: Tabs, serve: Serve, tmp_path: Path) -> None:
        folder = tmp_path / "<b onclick=hacked>"
        folder.mkdir()
        name = '"><img src=x onerror=hacked()>'
        drawing = b"<svg xmlns='http://www.w3.org/2000/svg' onload='window.hacked=1'/>"
        rows = [
            {
                "text": SCRIPT,
                name: "javascript:window.hacked = 1",
                "drawing": drawing,
                "list": [SCRIPT, "</td></table>"],
            }
            for _ in range(5)
        ]
        rk.write(folder / "a.tfrecord", rows)
        hostile = tab(serve(folder / "a.tfrecord"))

        for view in VIEWS:
            page = hostile.show(view)
            page.wait_for_load_state("networkidle")
            assert page.evaluate("window.hacked") is None
            assert page.locator("main script, main img, main iframe, main b").count() == 0

    def test_they_are_shown_as_what_they_are(self, tab: Tabs, serve: Serve, tmp_path: Path) -> None:
        rk.write(tmp_path / "a.tfrecord", [{"text": SCRIPT}])
        page = tab(serve(tmp_path / "a.tfrecord")).show("record/0")

        expect(page.locator("pre.text")).to_have_text(SCRIPT)

    def test_markup_cannot_be_made_of_text_at_all(self, tab: Tabs, serve: Serve, tmp_path: Path) -> None:
        rk.write(tmp_path / "a.tfrecord", [{"id": 1}])
        looked = tab(serve(tmp_path / "a.tfrecord"))
        page = looked.show("records")

        refused = page.evaluate("() => { try { document.body.innerHTML = '<i>x</i>'; } catch (e) { return e.name; } }")

        assert refused == "TypeError"
        assert all("TrustedHTML" in problem or "Trusted Type" in problem for problem in looked.problems)
        looked.problems.clear()


class TestNumbers:
    def test_nan_and_the_like_are_written_and_drawn(self, tab: Tabs, serve: Serve, tmp_path: Path) -> None:
        odd = np.array([np.nan, np.inf, -np.inf, 1e38, -0.0, *[np.nan] * 60], np.float32)
        rows = [
            {"x": np.float32(np.nan), "big": 2**63 - 1, "odd": odd, "none": np.full((9, 9), np.nan), "far": -np.inf}
            for _ in range(9)
        ]
        rk.write(tmp_path / "a.tfrecord", rows)
        looked = tab(serve(tmp_path / "a.tfrecord"))

        page = looked.show("records?as=table")
        row = page.locator("tbody tr").first
        expect(row).to_contain_text("NaN")
        expect(row).to_contain_text("9223372036854775807")
        expect(row).to_contain_text("-∞")
        page = looked.show("fields")
        expect(page.locator(".field-card").first).to_contain_text("9 (100%)")


class TestSizes:
    def test_ten_thousand_fields(self, tab: Tabs, serve: Serve, tmp_path: Path) -> None:
        schema = rk.Schema({f"field {i:04}": "int64" for i in range(10_000)})
        packed = schema.encode({name: [1, 2, 3] for name in schema.names})
        (tmp_path / "a.tfrecord").write_bytes(bytes(memoryview(packed)))
        looked = tab(serve(tmp_path / "a.tfrecord"))

        page = looked.show("records")
        expect(page.get_by_role("columnheader")).to_have_count(9)
        page = looked.show("fields?word=field+9")
        expect(page.locator(".field-card")).to_have_count(32)
        expect(page.get_by_role("button", name="Show more of 1,000 fields")).to_be_visible()
        page = looked.show("record/2")
        expect(page.locator(".value")).to_have_count(200)
        page.get_by_role("button", name="Show more of 10,000 fields").click()
        expect(page.locator(".value")).to_have_count(400)

    def test_picture_of_fifty_megabytes(self, tab: Tabs, serve: Serve, tmp_path: Path) -> None:
        picture = images.encode(np.full((60, 80, 3), 90, np.uint8), "jpeg")
        vast = picture.replace(b"\x00\x3c\x00\x50", b"\xff\x00\xff\x00", 1)
        rk.write(tmp_path / "a.tfrecord", [{"image": picture + bytes(50 << 20)}, {"image": vast + bytes(50 << 20)}])
        looked = tab(serve(tmp_path / "a.tfrecord"))

        page = looked.show("records")
        expect(page.locator("img").first).to_have_js_property("naturalWidth", 80)
        expect(page.locator(".no-picture")).to_have_text(re.compile("65280 . 65280, 52.4 MB"))
        page = looked.show("record/1")
        expect(page.get_by_role("button", name=re.compile("Show the picture: 65280 . 65280, 52.4 MB"))).to_be_visible()
        expect(page.locator(".dump-line").first).to_be_visible()

    def test_text_of_a_million_letters(self, tab: Tabs, serve: Serve, tmp_path: Path) -> None:
        rk.write(tmp_path / "a.tfrecord", [{"text": "word " * 200_000}])
        looked = tab(serve(tmp_path / "a.tfrecord"))

        page = looked.show("record/0")

        expect(page.locator(".value")).to_contain_text("the first of 1,000,000 characters")


@pytest.mark.parametrize("text", ["\u202egnp.exe", "\x00\x07\x1b[31m", "🙂" * 500, "\u0627" * 300])
def test_odd_letters_do_no_harm(tab: Tabs, serve: Serve, tmp_path: Path, text: str) -> None:
    rk.write(tmp_path / "a.tfrecord", [{"text": text}])
    page = tab(serve(tmp_path / "a.tfrecord")).show("records?as=cards")

    expect(page.locator(".card")).to_have_count(1)
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
