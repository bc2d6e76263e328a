"""The page in a real browser: each view, keys and mouse, light and dark, wide and narrow."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

import recordkit as rk
from recordkit.viewer import _app
from tests.viewer import datasets
from tests.viewer.conftest import NARROW

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

    from recordkit.viewer import Server
    from tests.viewer.conftest import Tab

    Tabs = Callable[..., Tab]
    Serve = Callable[..., Server]

pytestmark = pytest.mark.slow  # a browser takes its time

VIEWS = ("records", "records?as=table", "record/7", "fields", "files")


def numbers(page: Page) -> list[int]:
    """Return the numbers of the records that are shown."""
    shown = page.locator("#main .record-number, #main th a.open").all_inner_texts()
    return [int(text.replace(",", "")) for text in shown]


def loaded(page: Page) -> None:
    """Wait until what the address says is there."""
    expect(page.locator("#main[aria-busy=false]")).to_have_attribute("data-shows", page.evaluate("location.hash"))


class TestHead:
    def test_says_what_the_dataset_is(self, tab: Tabs, shown: Server) -> None:
        page = tab(shown).show("records")

        expect(page.get_by_role("heading", level=1)).to_have_text("evening")
        expect(page.locator("#facts")).to_contain_text("60 records")
        expect(page.locator("#facts")).to_contain_text("11 fields")

    def test_files_are_bars_as_wide_as_they_are_large(self, tab: Tabs, shown: Server, evening: Path) -> None:
        page = tab(shown).show("records")
        sizes = [path.stat().st_size for path in sorted(evening.glob("*.tfrecord"))]

        widths = page.locator(".segment").evaluate_all("all => all.map(each => each.getBoundingClientRect().width)")

        assert len(widths) == len(sizes)
        assert [width / sum(widths) for width in widths] == pytest.approx([s / sum(sizes) for s in sizes], abs=0.01)

    def test_click_on_a_bar_goes_there(self, tab: Tabs, shown: Server) -> None:
        page = tab(shown).show("records")
        loaded(page)

        page.locator(".segment").last.click()
        expect(page).to_have_url(re.compile(r"at=\d\d"))
        loaded(page)

        assert numbers(page)[0] > 30


class TestRecords:
    def test_cards_have_pictures_with_boxes(self, tab: Tabs, shown: Server) -> None:
        page = tab(shown).show("records")
        image = page.locator(".card img").first
        expect(image).to_have_attribute("alt", "image of record 0, 240 by 180 pixels")

        expect(image).to_have_js_property("naturalWidth", 240)

        boxes = len(datasets.row(0)["objects/bbox"])
        expect(page.locator(".card").first.locator("rect.box")).to_have_count(boxes)
        assert numbers(page) == list(range(24))

    def test_box_stands_where_the_thing_is(self, tab: Tabs, shown: Server) -> None:
        page = tab(shown).show("records")
        y0, x0, y1, x1 = datasets.row(0)["objects/bbox"][0].tolist()

        box = page.locator(".card").first.locator("rect.box").first
        found = [float(box.get_attribute(name) or "") for name in ("x", "y", "width", "height")]

        assert found == pytest.approx([x0 * 240, y0 * 180, (x1 - x0) * 240, (y1 - y0) * 180], abs=0.01)

    def test_values_are_drawn_by_their_kind(self, tab: Tabs, shown: Server) -> None:
        page = tab(shown).show("records?field=caption&field=score&field=note&field=embedding&field=heat")
        card = page.locator(".card, .records tbody tr").nth(1)

        expect(card).to_contain_text(datasets.row(1)["caption"])
        expect(card.locator("i.missing")).to_have_text("missing")
        expect(card.locator("svg.line-picture")).to_have_count(1)
        expect(card.locator("canvas.grid-picture")).to_have_count(1)

    def test_pages_by_buttons_and_keys(self, tab: Tabs, shown: Server) -> None:
        page = tab(shown).show("records")
        loaded(page)

        page.get_by_role("button", name="Next →").click()
        expect(page.locator(".shown")).to_have_text("Records 24 to 47 of 60")
        page.keyboard.press("n")
        expect(page.locator(".shown")).to_have_text("Records 48 to 59 of 60")
        expect(page.get_by_role("button", name="Next →")).to_be_disabled()
        page.keyboard.press("ArrowLeft")
        expect(page.locator(".shown")).to_have_text("Records 24 to 47 of 60")
        page.go_back()
        expect(page.locator(".shown")).to_have_text("Records 48 to 59 of 60")

    def test_jump_by_number(self, tab: Tabs, shown: Server) -> None:
        page = tab(shown).show("records")
        loaded(page)

        page.keyboard.press("g")
        page.keyboard.type("42")
        page.keyboard.press("Enter")
        expect(page.locator(".shown")).to_have_text("Records 42 to 59 of 60")

        assert numbers(page)[0] == 42

    def test_random_sample_has_an_address_that_shows_it_again(self, tab: Tabs, shown: Server) -> None:
        page = tab(shown).show("records")
        loaded(page)
        page.keyboard.press("r")
        expect(page.locator(".pager")).to_contain_text("Another sample")
        loaded(page)
        sample = numbers(page)

        page.reload()
        loaded(page)

        assert len(sample) == 24
        assert sample != list(range(24))
        assert numbers(page) == sample

    def test_table_has_a_column_for_each_field(self, tab: Tabs, shown: Server) -> None:
        page = tab(shown).show("records?field=label&field=score")
        loaded(page)

        page.keyboard.press("c")

        expect(page.get_by_role("columnheader")).to_have_text(["record", "label", "score"])
        expect(page.locator("tbody tr").nth(3).locator("td").first).to_have_text(str(datasets.row(3)["label"]))

    def test_fields_can_be_chosen(self, tab: Tabs, shown: Server) -> None:
        page = tab(shown).show("records?as=table")
        loaded(page)

        page.get_by_text("Fields", exact=True).last.click()
        for name in ("image", "embedding", "heat", "tokens", "note", "taken", "caption"):
            page.locator(".choices").get_by_label(name, exact=True).uncheck()
        page.get_by_role("button", name="Show these").click()

        expect(page.get_by_role("columnheader")).to_have_text(["record", "label", "score"])

    def test_keys_go_from_record_to_record(self, tab: Tabs, shown: Server) -> None:
        page = tab(shown).show("records")
        loaded(page)

        for key in ("j", "j", "j", "k", "Enter"):
            page.keyboard.press(key)

        expect(page.get_by_role("heading", level=2)).to_have_text("Record 1")


class TestFilterAndSort:
    def test_filter_finds_what_python_finds(self, tab: Tabs, shown: Server) -> None:
        page = tab(shown).show("records")
        loaded(page)

        page.keyboard.press("/")
        page.keyboard.type('label == 2 and "ring" in caption')
        page.keyboard.press("Enter")
        rows = [datasets.row(i) for i in range(60)]
        expected = [i for i, row in enumerate(rows) if row["label"] == 2 and "ring" in row["caption"]]
        expect(page.locator(".scan-line")).to_contain_text(f"{len(expected)} records found")
        loaded(page)

        assert numbers(page) == expected[:24]

    def test_wrong_filter_shows_the_place(self, tab: Tabs, shown: Server) -> None:
        page = tab(shown).show("records")
        loaded(page)

        page.locator("#filter").fill("lable == 2")
        page.get_by_role("button", name="Filter").click()

        expect(page.get_by_role("alert")).to_contain_text("Did you mean 'label'?")
        expect(page.locator("#filter")).to_be_focused()
        expect(page.locator("#filter")).to_have_attribute("aria-invalid", "true")

    def test_sort_and_turn_around(self, tab: Tabs, shown: Server) -> None:
        page = tab(shown).show("records")
        loaded(page)
        scores = {i: datasets.row(i)["score"] for i in range(60)}

        page.get_by_label("Sort by a field").select_option("score")
        expect(page.locator(".scan-line")).to_contain_text("60 records sorted")
        loaded(page)
        least = numbers(page)
        page.get_by_role("button", name="Smallest first; reverse").click()
        expect(page.get_by_role("button", name="Largest first; reverse")).to_be_visible()
        loaded(page)

        assert least == sorted(scores, key=scores.__getitem__)[:24]
        assert numbers(page) == sorted(scores, key=scores.__getitem__, reverse=True)[:24]

    def test_nothing_found_is_said(self, tab: Tabs, shown: Server) -> None:
        page = tab(shown).show("records?where=label+%3E+99")

        expect(page.locator(".records-body")).to_have_text("No record matches.")

    def test_budget_is_kept_and_can_be_renewed(
        self, tab: Tabs, serve: Serve, evening: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(_app, "_BUDGET", -1.0)  # so that every step uses it up
        page = tab(serve(evening)).show("records?where=label+%3E+0")
        line = page.locator(".scan-line")
        expect(line).to_contain_text("paused")

        while "paused" in line.inner_text():
            with page.expect_response(re.compile("api/records")):
                page.get_by_role("button", name="Continue").click()
            expect(page.locator("#main")).to_have_attribute("aria-busy", "false")

        expect(line).to_contain_text("60 records found")

    def test_next_record_of_a_filter_is_the_next_that_fits(self, tab: Tabs, shown: Server) -> None:
        page = tab(shown).show("records?where=label+%3D%3D+3")
        loaded(page)
        found = numbers(page)

        page.locator("a.open").first.click()
        page.get_by_role("link", name="Next →").click()

        expect(page.get_by_role("heading", level=2)).to_have_text(f"Record {found[1]}")


class TestOneRecord:
    def test_tells_where_it_stands(self, tab: Tabs, shown: Server, evening: Path) -> None:
        file = rk.open(evening).shards[0]
        page = tab(shown).show("record/7")

        place = page.locator(".place").first

        expect(place).to_contain_text("evening-00000-of-")
        expect(place).to_contain_text(f"byte {file.fetch_one(7).file_offset:,}")

    def test_shows_every_field(self, tab: Tabs, shown: Server) -> None:
        page = tab(shown).show("record/7")

        expect(page.locator(".value")).to_have_count(11)
        expect(page.locator(".value", has_text="caption")).to_contain_text(datasets.row(7)["caption"])
        expect(page.locator(".value", has_text="taken")).to_contain_text("2024-05-01T19:53:59")

    def test_bytes_are_those_of_the_file(self, tab: Tabs, shown: Server, evening: Path) -> None:
        frame = bytes(memoryview(rk.open(evening).shards[0].fetch_one(7)))
        page = tab(shown).show("record/7")
        first = page.locator(".dump-line").first
        expect(first).to_contain_text("73 ")

        line = first.inner_text().split()

        assert line[:17] == ["0", *frame[:16].hex(" ").split()]

    def test_part_of_the_layout_leads_to_its_bytes(self, tab: Tabs, shown: Server, evening: Path) -> None:
        page = tab(shown).show("record/7")
        expect(page.locator("table.layout tbody tr")).to_have_count(15)

        page.get_by_role("button", name="caption", exact=True).click()
        chosen = page.locator(".dump .chosen")
        expect(chosen.first).to_be_visible()

        found = bytes.fromhex("".join(chosen.all_inner_texts()))
        assert datasets.row(7)["caption"].encode() in found

    def test_keys_step_and_lead_back(self, tab: Tabs, shown: Server) -> None:
        page = tab(shown).show("record/7")
        expect(page.get_by_role("heading", level=2)).to_be_focused()

        page.keyboard.press("ArrowRight")
        expect(page.get_by_role("heading", level=2)).to_have_text("Record 8")
        page.keyboard.press("p")
        expect(page.get_by_role("heading", level=2)).to_have_text("Record 7")
        page.keyboard.press("Escape")

        expect(page.locator(".cards")).to_be_visible()

    def test_boxes_can_be_read_another_way(self, tab: Tabs, shown: Server) -> None:
        page = tab(shown).show("record/7")
        before = page.locator("rect.box").first.get_attribute("x")

        page.get_by_label("Order of the four numbers of a box").select_option("xyxy")

        assert page.locator("rect.box").first.get_attribute("x") != before

    def test_no_such_record_is_said(self, tab: Tabs, shown: Server) -> None:
        page = tab(shown).show("record/60")

        expect(page.locator("#main")).to_contain_text("There is no record 60.")


class TestFields:
    def test_each_field_has_its_statistics(self, tab: Tabs, shown: Server) -> None:
        page = tab(shown).show("fields")
        expect(page.locator(".field-card")).to_have_count(11)
        card = page.locator(".field-card", has=page.get_by_role("heading", name=re.compile("^score")))

        expect(card.get_by_role("img")).to_have_attribute("aria-label", re.compile("Histogram of values, -?0"))
        expect(card).to_contain_text("float32")
        expect(page.locator(".field-card", has_text="string?")).to_contain_text("51 (85.0%)")

    def test_all_records_are_looked_at_when_asked(self, tab: Tabs, serve: Serve, tmp_path: Path) -> None:
        page = tab(serve(datasets.plain(tmp_path / "a.tfrecord", 9000))).show("fields")
        expect(page.locator("#main")).to_contain_text("From a sample of 4,096 records")

        page.get_by_role("button", name="Read all records").click()

        expect(page.locator("#main")).to_contain_text("From 9,000 of 9,000 records")
        expect(page.locator(".field-card").first).to_contain_text("8,999")

    def test_fields_are_found_by_their_names(self, tab: Tabs, shown: Server) -> None:
        page = tab(shown).show("fields")
        expect(page.locator(".field-card")).to_have_count(11)

        page.get_by_label("Find a field").fill("objects")

        expect(page.locator(".field-card")).to_have_count(2)


class TestFiles:
    def test_verifying_says_that_all_is_sound(self, tab: Tabs, shown: Server) -> None:
        page = tab(shown).show("files")

        page.get_by_role("button", name="Verify every byte").click()

        expect(page.locator(".scan-line")).to_contain_text("60 sound records")
        expect(page.locator(".scan-line .fine")).to_contain_text("no damage found")

    def test_damage_is_found_and_marked(self, tab: Tabs, serve: Serve, tmp_path: Path) -> None:
        page = tab(serve(datasets.damaged(tmp_path / "a.tfrecord", lengths=False))).show("files")
        expect(page.locator(".segment.damaged")).to_have_count(0)

        page.get_by_role("button", name="Verify every byte").click()

        expect(page.locator(".damage li")).to_have_text(
            [re.compile("record 50.*payload or its checksum is damaged", re.S)]
        )
        expect(page.locator(".segment.damaged .spot")).to_have_count(1)
        expect(page.locator("#facts")).to_contain_text("1 damaged place")


class TestOtherDatasets:
    def test_damaged_record_is_a_card_that_says_so(self, tab: Tabs, serve: Serve, tmp_path: Path) -> None:
        server = serve(datasets.damaged(tmp_path / "a.tfrecord", lengths=False))
        page = tab(server).show("records?at=48&as=cards")

        expect(page.locator(".card.broken")).to_have_count(1)
        expect(page.locator(".card.broken")).to_contain_text("the payload's checksum does not match")
        expect(page.locator("#facts")).to_contain_text("1 damaged place")
        page.locator(".card.broken a").click()
        expect(page.locator("#main pre.failed")).to_contain_text("record 50 at byte")
        expect(page.locator(".wire")).to_contain_text("these are its raw bytes")
        expect(page.locator(".dump-line").first).to_be_visible()

    def test_broken_framing_shows_the_rest(self, tab: Tabs, serve: Serve, tmp_path: Path) -> None:
        page = tab(serve(datasets.damaged(tmp_path / "a.tfrecord"))).show("records?at=990&as=table")

        expect(page.locator("#facts")).to_contain_text("999 records")
        expect(page.locator("tbody tr").last).to_contain_text("number 999")
        expect(page.locator(".segment .spot")).to_have_count(2)

    def test_gzip_is_like_any_other(self, tab: Tabs, serve: Serve, tmp_path: Path) -> None:
        rk.write(tmp_path / "a.tfrecord.gz", [{"id": i} for i in range(3000)], compression="gzip")
        page = tab(serve(tmp_path / "a.tfrecord.gz")).show("records?at=2990")

        expect(page.locator("tbody tr").last).to_contain_text("2999")
        expect(page.locator("#facts")).to_contain_text("gzip")

    def test_other_payloads_are_shown_as_bytes(self, tab: Tabs, serve: Serve, tmp_path: Path) -> None:
        (tmp_path / "a.tfrecord").write_bytes(rk.records.pack(b"\xff\xfe\x00raw") + rk.records.pack(b"plain words"))
        page = tab(serve(tmp_path / "a.tfrecord")).show("records")

        expect(page.locator("tbody tr").first).to_contain_text("ff fe 00 72 61 77")
        expect(page.locator("tbody tr").last).to_contain_text("plain words")
        expect(page.locator("#filter")).to_have_count(0)

    def test_sound_can_be_played(self, tab: Tabs, serve: Serve, tmp_path: Path) -> None:
        rows = [{"audio": datasets.tone(), "sample_rate": 8000}]
        rk.write(tmp_path / "a.tfrecord", rows)
        page = tab(serve(tmp_path / "a.tfrecord")).show("record/0")

        page.locator("audio").evaluate("audio => { audio.preload = 'auto'; audio.load(); }")

        expect(page.locator("audio")).to_have_js_property("duration", 1)

    def test_sound_has_room_for_its_button_in_a_table(self, tab: Tabs, serve: Serve, tmp_path: Path) -> None:
        sound = b"RIFF" + (36).to_bytes(4, "little") + b"WAVEfmt " + bytes(28)
        rk.write(tmp_path / "a.tfrecord", [{"id": 1, "sound": sound, "text": "long " * 20, "x": list(range(99))}])
        page = tab(serve(tmp_path / "a.tfrecord"), viewport=NARROW).show("records")

        box = page.locator("td audio").bounding_box()

        assert box is not None
        assert box["width"] >= 200
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]

    def test_no_records_is_said(self, tab: Tabs, serve: Serve, tmp_path: Path) -> None:
        (tmp_path / "a.tfrecord").write_bytes(b"")
        page = tab(serve(tmp_path / "a.tfrecord")).show("records")

        expect(page.locator("#main")).to_contain_text("There are no records.")


class TestForEveryone:
    def test_fits_a_narrow_screen(self, tab: Tabs, shown: Server) -> None:
        narrow = tab(shown, viewport=NARROW)

        for view in VIEWS:
            page = narrow.show(view)
            page.wait_for_load_state("networkidle")
            assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"], view

    def test_everything_one_can_use_has_a_name(self, tab: Tabs, shown: Server) -> None:
        wide = tab(shown)

        for view in VIEWS:
            page = wide.show(view)
            page.wait_for_load_state("networkidle")
            assert page.evaluate(NAMELESS) == [], view
            for role in ("banner", "navigation", "main"):
                expect(page.get_by_role(role)).to_have_count(1)

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_words_stand_out_from_the_paper(self, tab: Tabs, shown: Server, scheme: Any) -> None:
        page = tab(shown, color_scheme=scheme).show("records")

        ratios = page.evaluate(CONTRASTS)

        assert {name: ratio for name, ratio in ratios.items() if ratio < 4.5} == {}

    def test_theme_can_be_turned_and_is_kept(self, tab: Tabs, shown: Server) -> None:
        page = tab(shown, color_scheme="light").show("records")
        paper = "getComputedStyle(document.body).backgroundColor"
        light = page.evaluate(paper)

        page.get_by_role("button", name="Light or dark").click()
        dark = page.evaluate(paper)
        page.reload()

        assert light != dark
        assert page.evaluate(paper) == dark

    def test_keys_are_explained(self, tab: Tabs, shown: Server) -> None:
        page = tab(shown).show("records")
        loaded(page)

        page.keyboard.press("?")
        expect(page.get_by_role("dialog")).to_contain_text("go to a record by number")
        page.keyboard.press("Escape")

        expect(page.get_by_role("dialog")).to_have_count(0)

    def test_what_changes_is_said(self, tab: Tabs, shown: Server) -> None:
        page = tab(shown).show("records")

        expect(page.get_by_role("status")).to_have_text("Records 0 to 23 of 60")


NAMELESS = """() =>
  [...document.querySelectorAll('a, button, input, select, summary, audio, canvas, img, svg[role=img]')]
    .filter(e => !e.closest('dialog'))
    .filter(e => !(e.getAttribute('aria-label') || e.alt || e.labels?.length || e.textContent.trim()))
    .map(e => e.outerHTML.slice(0, 120))"""
CONTRASTS = """() => {
  const probe = document.body.appendChild(document.createElement('span'));
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const light = (name) => {
    probe.style.color = `var(${name})`;
    canvas.fillStyle = getComputedStyle(probe).color;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map(v => v / 255)
      .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratios = {};
  for (const ink of ['--ink', '--soft', '--accent', '--rust', '--moss']) {
    for (const paper of ['--paper', '--sheet']) {
      const [a, b] = [light(ink), light(paper)].sort((x, y) => y - x);
      ratios[`${ink} on ${paper}`] = (a + 0.05) / (b + 0.05);
    }
  }
  return ratios;
}"""
