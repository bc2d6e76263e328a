// Cells: one value as an element, small in a list of records or large on the page of one record.

import { valueAddress } from "./api.js";
import { bytes, count, h, short } from "./dom.js";
import * as draw from "./draw.js";

const shapeWords = (cell) => `${cell.dtype || ""}[${(cell.shape || []).join(",")}]`;

function range(cell) {
  if (cell.min === undefined) return cell.nan ? `${count(cell.nan)} NaN` : "";
  const nan = cell.nan ? `, ${count(cell.nan)} NaN` : "";
  return `${short(cell.min, 4)} to ${short(cell.max, 4)}${nan}`;
}

// Whether a value is the picture of a card: a picture, or an array that is one according to its colours or name.
export const isPicture = (cell, field) =>
  cell.k === "picture" ||
  (cell.k === "grid" &&
    (cell.c === 3 || (cell.h > 7 && cell.w > 7 && /image|img|picture|pixels|photo|frame/i.test(field))));

export function pictureOf(cell, number, field, { large = false, item, boxes, order } = {}) {
  if (cell.k === "grid")
    return h("span", { class: "picture" }, draw.grid(cell, `${field} of record ${count(number)}, ${shapeWords(cell)}`));
  const size = cell.h ? `${cell.w} × ${cell.h}` : bytes(cell.bytes);
  const frame = h("span", { class: `picture ${large ? "large" : ""}` });
  const about = `${field} of record ${count(number)}, ${cell.h ? `${cell.w} by ${cell.h} pixels` : bytes(cell.bytes)}`;
  const show = (small) => {
    const image = h("img", {
      src: valueAddress(number, field, item, small),
      alt: about,
      loading: "lazy",
      decoding: "async",
    });
    image.addEventListener("error", () =>
      frame.replaceChildren(h("span", { class: "no-picture" }, `this picture is damaged (${bytes(cell.bytes)})`)),
    );
    const over = boxes && cell.h ? draw.boxes(boxes, cell.w, cell.h, { order, large }) : null;
    frame.replaceChildren(...[image, over].filter(Boolean));
    if (large && cell.h) frame.style.aspectRatio = `${cell.w} / ${cell.h}`;
  };
  if (cell.small || (large && cell.bytes < 4e6)) show(!large);
  else if (large) {
    frame.append(
      h("button", { type: "button", click: () => show(false) }, `Show the picture: ${size}, ${bytes(cell.bytes)}`),
    );
  } else frame.append(h("span", { class: "no-picture" }, `${size}, ${bytes(cell.bytes)}`));
  return frame;
}

function sound(number, field, item, words) {
  const audio = h("audio", {
    controls: true,
    preload: "none",
    src: valueAddress(number, field, item),
    "aria-label": `${field} of record ${number}`,
  });
  return h("span", { class: "sound" }, audio, words ? h("small", null, words) : null);
}

function list(cell, number, field, options) {
  const shown = cell.items.map((each, i) => {
    const inside = cell.ragged ? undefined : i;
    return h(
      "li",
      null,
      each.k === "picture"
        ? pictureOf(each, number, field, { ...options, item: inside })
        : cellOf(each, number, field, { ...options, item: inside }),
    );
  });
  const more = cell.count - cell.items.length;
  return h(
    "ol",
    { class: `values ${options.large ? "large" : ""}` },
    shown,
    more > 0 ? h("li", { class: "more" }, `and ${count(more)} more`) : null,
  );
}

const makers = {
  missing: () => h("i", { class: "missing" }, "missing"),
  failed: (cell) => h("span", { class: "failed" }, cell.text),
  number: (cell) => h("span", { class: "number" }, cell.text),
  bool: (cell) => h("span", { class: `bool ${cell.text}` }, cell.text),
  time: (cell) => h("span", { class: "number" }, cell.text),
  text: (cell, number, field, { large }) => [
    cell.text === ""
      ? h("i", { class: "missing" }, "empty text")
      : h(large ? "pre" : "span", { class: "text", dir: "auto" }, cell.text + (cell.chars && !large ? "…" : "")),
    cell.chars && large ? h("small", null, `the first of ${count(cell.chars)} characters`) : null,
  ],
  picture: (cell, number, field, options) => pictureOf(cell, number, field, options),
  sound: (cell, number, field, { item }) => sound(number, field, item, `${cell.type.slice(6)}, ${bytes(cell.bytes)}`),
  bytes: (cell, number, field, { large, item }) => [
    h("small", null, bytes(cell.bytes)),
    " ",
    cell.text !== undefined
      ? h(large ? "pre" : "span", { class: "text", dir: "auto" }, cell.text)
      : h("code", { class: "hex" }, cell.hex, cell.bytes > (cell.hex.length + 1) / 3 ? " …" : ""),
    large ? h("a", { class: "save", href: valueAddress(number, field, item), download: "value.bin" }, "Save") : null,
  ],
  numbers: (cell) => [
    h("span", { class: "number" }, cell.items.length ? cell.items.join(", ") : "no values"),
    cell.shape.length > 1 ? h("small", null, ` ${shapeWords(cell)}`) : null,
  ],
  matrix: (cell) => [
    h(
      "table",
      { class: "matrix" },
      h(
        "tbody",
        null,
        cell.rows.map((row) =>
          h(
            "tr",
            null,
            row.map((each) => h("td", null, each)),
          ),
        ),
      ),
    ),
    h("small", null, `${shapeWords(cell)} · ${range(cell)}`),
  ],
  line: (cell, number, field, { large }) => [
    draw.line(cell, `${field}: ${shapeWords(cell)}, ${range(cell)}`),
    h("small", null, `${shapeWords(cell)} · ${range(cell)}`),
    large && cell.sound ? sound(number, field) : null,
    large && cell.items.length
      ? h(
          "code",
          { class: "start" },
          `${cell.items.join(", ")}${cell.items.length < cell.shape.reduce((a, b) => a * b, 1) ? ", …" : ""}`,
        )
      : null,
  ],
  grid: (cell, number, field) => [
    draw.grid(cell, `${field}: ${shapeWords(cell)}, ${range(cell)}`),
    h("small", null, `${shapeWords(cell)} · ${range(cell)}${cell.first ? " · first entry shown" : ""}`),
  ],
  list: (cell, number, field, options) =>
    cell.count ? list(cell, number, field, options) : h("i", { class: "missing" }, "no values"),
};

export function cellOf(cell, number, field, options = {}) {
  const made = (makers[cell.k] || makers.failed)(cell, number, field, options);
  return h("span", { class: `cell ${cell.k}` }, made);
}
