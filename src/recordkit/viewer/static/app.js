// The page: the current view, the ruler of files, keys and the theme. The URL holds the whole state.

import { get, pause } from "./api.js";
import { isPicture } from "./cells.js";
import { $, bytes, count, h, plural, say } from "./dom.js";
import * as fields from "./fields.js";
import * as files from "./files.js";
import * as record from "./record.js";
import * as records from "./records.js";

const main = $("main");
let shown = 0; // counts views, so that late answers to an older one are dropped
let waiting = 0;
let marked = []; // on the ruler

// --- URLs

function parsed() {
  const [path, text] = location.hash.replace(/^#\/?/, "").split("?");
  const [view, number] = (path || "records").split("/");
  const query = {};
  for (const [name, value] of new URLSearchParams(text || "")) {
    if (name === "field") (query.field ||= []).push(value);
    else query[name] = value;
  }
  return { view, number: Number(number) || 0, query };
}

function addressOf(view, query) {
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (name === "as" && value === (app.hasPictures ? "cards" : "table")) continue;
    for (const each of Array.isArray(value) ? value : [value])
      if (each !== "" && each !== undefined && each !== 0) asked.append(name, each);
  }
  const text = asked.toString();
  return `#/${view}${text ? `?${text}` : ""}`;
}

const app = {
  overview: null,
  fieldNames: [],
  hasPictures: false,
  go(query) {
    const next = addressOf(parsed().view, query);
    if (next === location.hash) show();
    else location.hash = next;
  },
  again: () => show(),
  jump(number) {
    const { view, query } = parsed();
    if (app.overview.records !== null) number = Math.max(0, Math.min(number, app.overview.records - 1));
    if (view === "record") location.hash = `#/record/${number}`;
    else location.hash = addressOf("records", { as: query.as, field: query.field, at: number });
  },
  later(work) {
    clearTimeout(waiting);
    waiting = setTimeout(work, 250);
  },
  mark,
  async refresh() {
    app.overview = await get("overview");
    head();
  },
};

async function show() {
  const { view, number, query } = parsed();
  shown += 1;
  const mine = shown;
  const going = () => mine === shown;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === (view === "record" ? "records" : view)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (view === "records") {
    records.state.last = location.hash || "#/records";
    records.state.sampled = Boolean(query.seed);
  }
  main.setAttribute("aria-busy", "true");
  document.title = `${view === "record" ? `Record ${count(number)}` : view} – ${app.overview.title}`;
  if (view === "record") await record.show(app, main, number, going);
  else if (view === "fields") await fields.show(app, main, query, going);
  else if (view === "files") await files.show(app, main, query, going);
  else await records.show(app, main, query, going);
  if (!going()) return;
  main.setAttribute("aria-busy", "false");
  main.dataset.shows = location.hash;
}

// --- The head

function head() {
  const { overview } = app;
  $("title").textContent = overview.title;
  $("path").textContent = overview.name === overview.title ? "" : overview.name;
  const known = overview.records !== null;
  const parts = [
    known ? plural(overview.records, "record") : `counting: ${count(overview.counted)} records so far`,
    bytes(overview.bytes),
    plural(overview.files, "file"),
  ];
  if (overview.compression !== "plain") parts.push(overview.compression);
  if (overview.fields !== null) parts.push(plural(overview.fields, "field"));
  $("facts").replaceChildren(
    ...parts.map((part) => h("span", null, part)),
    ...(overview.damaged
      ? [h("a", { class: "failed", href: "#/files" }, plural(overview.damaged, "damaged place"))]
      : []),
  );
  ruler();
}

function ruler() {
  const { bars, bytes: whole, records: total } = app.overview;
  const segments = bars.map((bar) => {
    const words = `${bar.files > 1 ? `${count(bar.files)} files from ${bar.name}` : bar.name}: ${bytes(bar.bytes)}${bar.records === null ? "" : `, ${plural(bar.records, "record")} from ${count(bar.first)}`}${bar.damage ? `, ${plural(bar.damage, "damaged place")}` : ""}`;
    const segment = h("a", {
      class: `segment ${bar.damage ? "damaged" : ""}`,
      href: `#/records?at=${bar.first}`,
      title: words,
      "aria-label": words,
      tabindex: bars.length > 40 ? -1 : null,
    });
    for (const spot of bar.spots) {
      const tick = h("span", { class: "spot" });
      tick.style.left = `${100 * spot}%`;
      segment.append(tick);
    }
    segment.style.flexGrow = String(Math.max(bar.bytes, whole / 2000, 1));
    // A click jumps to that place of the file.
    segment.addEventListener("click", (event) => {
      if (bar.records === null || !event.detail) return;
      event.preventDefault();
      const room = segment.getBoundingClientRect();
      app.jump(bar.first + Math.floor(((event.clientX - room.left) / room.width) * Math.max(0, bar.records - 1)));
    });
    return segment;
  });
  const marks = h("div", { class: "marks", "aria-hidden": "true" });
  $("ruler").replaceChildren(
    h(
      "div",
      {
        class: "segments",
        role: "group",
        "aria-label": `${plural(app.overview.files, "file")} by size${total === null ? "" : `, ${plural(total, "record")}`}`,
      },
      segments,
    ),
    marks,
  );
  mark(marked);
}

// Marks the visible records on the ruler: ranges of numbers, each from a first up to a last.
function mark(spots) {
  marked = spots;
  const { bars, bytes: whole } = app.overview;
  const at = (number) => {
    let before = 0;
    for (const bar of bars) {
      if (bar.records === null) return null;
      if (number < bar.first + bar.records)
        return (before + (bar.bytes * (number - bar.first)) / Math.max(1, bar.records)) / whole;
      before += bar.bytes;
    }
    return 1;
  };
  $("ruler")
    .querySelector(".marks")
    .replaceChildren(
      ...spots.flatMap(([from, to]) => {
        const left = at(from),
          right = at(to);
        if (left === null || right === null || !whole) return [];
        const spot = h("span", { class: "mark" });
        spot.style.left = `${100 * left}%`;
        spot.style.width = `${100 * Math.max(0, right - left)}%`;
        return [spot];
      }),
    );
}

async function untilCounted() {
  if (app.overview.records !== null) return;
  for (let wait = 150; app.overview.records === null; wait = Math.min(2000, wait * 1.5)) {
    await pause(wait);
    await app.refresh();
  }
  if (parsed().view === "records" && records.state.page && records.state.page.total === null) show();
}

// --- Light and dark

function turnTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try {
    localStorage.setItem("recordkit-theme", root.dataset.theme);
  } catch {
    // The theme then lasts for this page only.
  }
  say(`${root.dataset.theme} theme`);
}

// --- Keys

function focusCard(by) {
  const links = [...main.querySelectorAll("a.open")];
  if (!links.length) return;
  const at = links.indexOf(document.activeElement?.closest("a.open"));
  links[Math.max(0, Math.min(links.length - 1, at + by))].focus();
}

const press = (id) => {
  const button = $(id);
  if (button && !button.disabled) button.click();
};
const reach = (id) => {
  const input = $(id);
  if (input) {
    input.focus();
    input.select();
  }
};
const KEYS = {
  "/": () => reach("filter"),
  g: () => reach("jump"),
  r: () => press("random"),
  n: () => press("next"),
  ArrowRight: () => press("next"),
  p: () => press("previous"),
  ArrowLeft: () => press("previous"),
  j: () => focusCard(1),
  k: () => focusCard(-1),
  c: () => main.querySelector(".switch [aria-pressed=false]")?.click(),
  t: turnTheme,
  1: () => {
    location.hash = "#/records";
  },
  2: () => {
    location.hash = "#/fields";
  },
  3: () => {
    location.hash = "#/files";
  },
  "?": () => $("keys").showModal(),
  Escape: () => record.back(),
};

function typed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open) return;
  const inside = event.target.closest("input, select, textarea, audio, [contenteditable]");
  if (inside) {
    if (event.key === "Escape") inside.blur();
    return;
  }
  const scrolls = event.target.closest(".table-box, .dump, .layout-box");
  if (scrolls && event.key.startsWith("Arrow") && scrolls.scrollWidth > scrolls.clientWidth) return;
  if (KEYS[event.key]) {
    event.preventDefault();
    KEYS[event.key]();
  }
}

async function begin() {
  try {
    const [overview, first, names] = await Promise.all([
      get("overview"),
      get("records", { count: 1 }).catch(() => null),
      get("fields"),
    ]);
    app.overview = overview;
    app.hasPictures = Boolean(
      first && first.rows.some((row) => row.cells && row.cells.some((cell, i) => isPicture(cell, first.fields[i]))),
    );
    app.fieldNames = names.fields.map((field) => field.name);
    head();
  } catch (error) {
    main.replaceChildren(h("p", { class: "notice failed" }, error.message));
    return;
  }
  addEventListener("hashchange", show);
  addEventListener("keydown", typed);
  document.addEventListener("click", (event) => {
    for (const open of document.querySelectorAll("details.chooser[open]"))
      if (!open.contains(event.target)) open.open = false;
  });
  $("theme").addEventListener("click", turnTheme);
  $("help").addEventListener("click", () => $("keys").showModal());
  $("skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  await Promise.all([show(), untilCounted()]);
}

begin();
