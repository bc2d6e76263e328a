// One whole record: its values, its place in its file, its layout and its bytes.

import { get, patiently } from "./api.js";
import { cellOf, pictureOf } from "./cells.js";
import { $, bytes, count, h, plural, say } from "./dom.js";
import { BOX_ORDERS } from "./draw.js";
import { state as list } from "./records.js";

const LINE = 16;
let order = ""; // of the numbers of a box, as chosen by the user

export function step(by) {
  const page = list.page;
  const at = page ? page.rows.findIndex((row) => row.number === list.open) : -1;
  const inPage = at >= 0 && page.rows[at + by] && (page.scan || list.sampled);
  return inPage ? page.rows[at + by].number : list.open + by;
}

export async function show(app, main, number, going) {
  main.replaceChildren(h("p", { class: "notice" }, "…"));
  let record;
  try {
    record = await patiently(() => get(`record/${number}`), going);
  } catch (error) {
    if (going())
      main.replaceChildren(
        h(
          "p",
          { class: "notice failed" },
          error.status === 404 ? `There is no record ${count(number)}.` : error.message,
        ),
        h("a", { href: list.last }, "Back to the records"),
      );
    return;
  }
  if (!going()) return;
  list.open = number;
  if (record.error !== undefined && !app.overview.damaged) app.refresh();
  app.mark([[number, number + 1]]);
  const heading = h("h2", { tabindex: -1 }, `Record ${count(number)}`);
  main.replaceChildren(
    h("div", { class: "record-head" }, heading, steps(record, number)),
    h(
      "div",
      { class: "record" },
      h("section", { class: "fields", "aria-label": "Values" }, place(record), values(app, record, number)),
      record.layout ? h("section", { class: "wire", "aria-label": "Bytes" }, wire(record, number)) : null,
    ),
  );
  heading.focus({ preventScroll: true });
  say(`Record ${count(number)}`);
}

function steps(record, number) {
  const last = record.total !== null && number >= record.total - 1;
  const link = (to, words, key, off) =>
    off
      ? h("span", { class: "button off", "aria-disabled": "true" }, words)
      : h("a", { class: "button", id: key, href: `#/record/${to}` }, words);
  return h(
    "div",
    { class: "steps" },
    h("a", { class: "button", id: "back", href: list.last }, "All records"),
    link(step(-1), "← Previous", "previous", number === 0),
    link(step(1), "Next →", "next", last),
  );
}

function place(record) {
  const parts = [record.file, `record ${count(record.inside)} in this file`];
  if (record.offset !== undefined)
    parts.push(
      `${record.compression ? "uncompressed byte" : "byte"} ${count(record.offset)}`,
      `${bytes(record.bytes)} with framing`,
    );
  return h("p", { class: "place" }, parts.join(" · "));
}

function values(app, record, number) {
  if (record.error !== undefined) return h("pre", { class: "notice failed" }, record.error);
  const box = h("dl", { class: "values-list" });
  const add = (part) => part.fields.forEach((field, i) => box.append(valueOf(app, part, field, part.cells[i], number)));
  add(record);
  const more = h("button", { type: "button" });
  let shown = record.fields.length;
  const name = () => {
    more.hidden = shown >= record.total_fields;
    more.textContent = `Show more of ${plural(record.total_fields, "field")}`;
  };
  more.addEventListener("click", async () => {
    const part = await get(`record/${number}`, { at: shown });
    add(part);
    shown += part.fields.length;
    name();
  });
  name();
  return [box, more];
}

function valueOf(app, record, field, cell, number) {
  const boxes = record.boxes[field.name];
  const content = h("dd", null);
  const fill = () =>
    content.replaceChildren(
      cell.k === "picture"
        ? pictureOf(cell, number, field.name, { large: true, boxes, order })
        : cellOf(cell, number, field.name, { large: true }),
      ...(boxes ? [orders(boxes, fill)] : []),
      ...facts(cell),
    );
  fill();
  return h(
    "div",
    { class: `value is-${cell.k}` },
    h("dt", null, field.name, " ", h("small", null, field.type || "", field.steps ? " per step" : "")),
    content,
  );
}

const facts = (cell) =>
  cell.k === "picture"
    ? [
        h(
          "small",
          null,
          [cell.h ? `${cell.w} × ${cell.h}` : "", cell.type.slice(6), bytes(cell.bytes)].filter(Boolean).join(" · "),
        ),
      ]
    : [];

function orders(boxes, fill) {
  const select = h(
    "select",
    {
      "aria-label": "Order of the four numbers of a box",
      change: () => {
        order = select.value;
        fill();
      },
    },
    h("option", { value: "" }, `${plural(boxes.count, "box").replace("boxs", "boxes")}: ${BOX_ORDERS[boxes.order]}`),
    Object.entries(BOX_ORDERS)
      .filter(([key]) => key !== boxes.order)
      .map(([key, words]) => h("option", { value: key, selected: order === key }, `as ${words}`)),
  );
  return h("p", { class: "box-orders" }, select);
}

// --- Bytes

function wire(record, number) {
  const { layout } = record;
  const features = layout.features;
  const sound = layout.message !== "damaged";
  const parts = [
    { name: "length", from: 0, to: 8, about: sound ? count(record.payload) : "" },
    { name: "length checksum", from: 8, to: 12 },
    ...features.map((each, i) => ({
      name: each.name,
      from: 12 + each.byte,
      to: 12 + each.byte + each.bytes,
      tint: i % 6,
      about: about(each),
    })),
    ...(sound ? [{ name: "payload checksum", from: 12 + record.payload, to: 16 + record.payload }] : []),
  ];
  const dump = h("pre", {
    class: "dump",
    tabindex: 0,
    role: "group",
    "aria-label": "Bytes of the record, in hexadecimal",
  });
  const foot = h("p", { class: "dump-foot" });
  const load = async (at, chosen) => {
    const found = await get(`record/${number}/bytes`, { at: at - (at % LINE) });
    dump.replaceChildren(...lines(found, parts, chosen));
    foot.replaceChildren(...walk(found, load));
    dump.scrollTop = 0;
  };
  const row = (part) =>
    h(
      "tr",
      null,
      h(
        "th",
        { scope: "row" },
        h(
          "button",
          {
            type: "button",
            class: "part",
            "data-tint": part.tint,
            click: (event) => {
              choose(event.currentTarget);
              load(part.from, part);
            },
          },
          part.name,
        ),
      ),
      h("td", null, part.about || ""),
      h("td", { class: "number" }, count(part.from)),
      h("td", { class: "number" }, count(part.to - part.from)),
    );
  const shown = parts.length > 400 ? [...parts.slice(0, 399), parts.at(-1)] : parts;
  const table = h(
    "table",
    { class: "layout" },
    h(
      "thead",
      null,
      h(
        "tr",
        null,
        ["part", "content", "offset", "bytes"].map((each) => h("th", { scope: "col" }, each)),
      ),
    ),
    h("tbody", null, shown.map(row)),
  );
  load(0, null).catch((error) => dump.replaceChildren(error.message));
  const message = !sound
    ? "The record is damaged; these are its raw bytes"
    : layout.message === "other"
      ? "The payload is not an Example"
      : `The payload is ${layout.message === "Example" ? "an Example" : "a SequenceExample"}`;
  return [
    h("h3", null, "Bytes"),
    h(
      "p",
      { class: "place" },
      `${message}${sound ? ` of ${bytes(record.payload)}` : ""}${features.length ? `, ${plural(features.length, "feature")}` : ""}.`,
    ),
    layout.problem ? h("p", { class: "failed" }, layout.problem) : null,
    (layout.notes || []).map((note) => h("p", { class: "failed" }, note)),
    h("div", { class: "layout-box", tabindex: 0, role: "region", "aria-label": "Parts of the record" }, table),
    dump,
    foot,
  ];
}

function about(feature) {
  const each = feature.steps ? `${plural(feature.steps, "step")}, ` : "";
  return feature.kind ? `${each}${feature.kind}${feature.count === 1 ? "" : ` × ${count(feature.count)}`}` : "";
}

function choose(button) {
  for (const other of document.querySelectorAll("button.part[aria-pressed]")) other.removeAttribute("aria-pressed");
  button.setAttribute("aria-pressed", "true");
}

function lines(found, parts, chosen) {
  const data = found.hex.match(/../g) || [];
  const made = [];
  let part = 0;
  for (let start = 0; start < data.length; start += LINE) {
    const line = h(
      "span",
      { class: "dump-line" },
      h("span", { class: "dump-at" }, String(found.at + start).padStart(8, " ")),
    );
    let text = "";
    for (let i = start; i < Math.min(start + LINE, data.length); i += 1) {
      const at = found.at + i;
      while (part < parts.length && at >= parts[part].to) part += 1;
      const of = part < parts.length && at >= parts[part].from ? parts[part] : null;
      const on = chosen && at >= chosen.from && at < chosen.to;
      line.append(
        " ",
        h(
          "span",
          {
            class: on ? "chosen" : null,
            "data-tint": of ? (of.tint === undefined ? "frame" : of.tint) : null,
            title: of ? of.name : null,
          },
          data[i],
        ),
      );
      const code = parseInt(data[i], 16);
      text += code >= 32 && code < 127 ? String.fromCharCode(code) : "·";
    }
    line.append(
      "   ".repeat(LINE - Math.min(LINE, data.length - start)),
      "  ",
      h("span", { class: "dump-text", "aria-hidden": "true" }, text),
      "\n",
    );
    made.push(line);
  }
  return made;
}

function walk(found, load) {
  const end = found.at + found.hex.length / 2;
  const button = (to, words, off) => h("button", { type: "button", disabled: off, click: () => load(to, null) }, words);
  const words = h(
    "span",
    null,
    `bytes ${count(found.at)} to ${count(Math.max(found.at, end - 1))} of ${count(found.total)}`,
  );
  return found.total <= 4096
    ? [words]
    : [button(Math.max(0, found.at - 4096), "←", found.at === 0), words, button(end, "→", end >= found.total)];
}

export const back = () => {
  const link = $("back");
  if (link) link.click();
};
