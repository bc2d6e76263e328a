// Drawings: histograms, lines, pictures of arrays, boxes over pictures.

import { count, h, short, svg } from "./dom.js";

// From dark blue over green to yellow, in even steps of lightness that colour-blind people can tell apart.
const STOPS = [
  [35, 23, 61],
  [49, 62, 116],
  [44, 106, 134],
  [46, 148, 132],
  [110, 188, 104],
  [198, 217, 75],
  [253, 240, 120],
];

function colour(level) {
  const at = ((level - 1) / 254) * (STOPS.length - 1);
  const low = Math.min(Math.floor(at), STOPS.length - 2);
  return STOPS[low].map((part, i) => part + (STOPS[low + 1][i] - part) * (at - low));
}
const COLOURS = Array.from({ length: 256 }, (_, level) => (level ? colour(level) : [0, 0, 0]));

export function grid(cell, label) {
  const canvas = h("canvas", {
    class: "grid-picture",
    width: cell.w,
    height: cell.h,
    role: "img",
    "aria-label": label,
  });
  const raw = atob(cell.data);
  const image = new ImageData(cell.w, cell.h);
  for (let i = 0; i < cell.w * cell.h; i += 1) {
    const level = raw.charCodeAt(i * cell.c);
    const shown = cell.c === 3 ? [level, raw.charCodeAt(i * 3 + 1), raw.charCodeAt(i * 3 + 2)] : COLOURS[level];
    image.data.set([...shown, cell.c === 3 || level ? 255 : 0], i * 4);
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
  canvas.style.aspectRatio = `${cell.w} / ${cell.h}`;
  if (cell.w <= 64 && cell.h <= 64) canvas.classList.add("coarse");
  return canvas;
}

// The band between the lows and highs of an array, with gaps at NaN.
export function line(cell, label) {
  const width = cell.lows.length;
  const pieces = [];
  let piece = [];
  for (let i = 0; i <= width; i += 1) {
    if (i < width && cell.lows[i] !== null) piece.push(i);
    else if (piece.length) {
      pieces.push(piece);
      piece = [];
    }
  }
  const y = (value) => (1000 - value) * 0.94 + 30;
  const shapes = pieces.map((places) => {
    const up = places.map((i) => `${i + 0.5},${y(cell.highs[i])}`);
    const back = places.map((i) => `${i + 0.5},${y(cell.lows[i])}`).reverse();
    return svg("polygon", { points: [...up, ...back].join(" "), "vector-effect": "non-scaling-stroke" });
  });
  const box = { class: "line-picture", viewBox: `0 0 ${Math.max(width, 1)} 1000`, preserveAspectRatio: "none" };
  return svg("svg", { ...box, role: "img", "aria-label": label }, shapes);
}

export function histogram(found, label, words = (value) => short(value)) {
  const { edges, counts } = found;
  const most = Math.max(...counts, 1);
  const bars = counts.map((number, i) => {
    const height = number ? Math.max(2, (number / most) * 100) : 0;
    const bar = svg("rect", { x: i + 0.04, width: 0.92, y: 100 - height, height });
    const whole = svg("rect", { class: "target", x: i, width: 1, y: 0, height: 100 });
    const title = svg("title", null, `${words(edges[i])} to ${words(edges[i + 1])}: ${count(number)}`);
    return svg("g", null, bar, whole, title);
  });
  const drawing = svg(
    "svg",
    {
      class: "histogram",
      viewBox: `0 0 ${counts.length} 100`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": label,
    },
    bars,
  );
  const ends = h("div", { class: "ends" }, h("span", null, words(edges[0])), h("span", null, words(edges.at(-1))));
  return h("div", { class: "histogram-box" }, drawing, ends);
}

export const BOX_ORDERS = { yxyx: "ymin xmin ymax xmax", xyxy: "xmin ymin xmax ymax", xywh: "x y width height" };

function corners(box, order, width, height) {
  const scale = Math.max(...box.map(Math.abs)) <= 1.5 ? [width, height] : [1, 1];
  const [x0, y0, x1, y1] =
    order === "yxyx"
      ? [box[1], box[0], box[3], box[2]]
      : order === "xywh"
        ? [box[0], box[1], box[0] + box[2], box[1] + box[3]]
        : box;
  return [x0 * scale[0], y0 * scale[1], (x1 - x0) * scale[0], (y1 - y0) * scale[1]];
}

export function boxes(found, width, height, { order, large }) {
  const size = Math.max(width, height) * (large ? 0.6 : 1);
  const drawn = found.boxes.flatMap((box, i) => {
    const [x, y, w, tall] = corners(box, order || found.order, width, height);
    if (!(w >= 0) || !(tall >= 0)) return [];
    const hue = `hue-${i % 6}`;
    const frame = svg("rect", {
      class: `box ${hue}`,
      x,
      y,
      width: w,
      height: tall,
      "vector-effect": "non-scaling-stroke",
    });
    const words = found.labels[i];
    if (!words) return [frame];
    const text = svg(
      "text",
      {
        class: `box-label ${hue}`,
        x: x + size * 0.012,
        y: Math.max(y + size * 0.055, size * 0.05),
        "font-size": size * 0.045,
      },
      words,
    );
    return [frame, text];
  });
  const view = { class: "boxes", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "xMidYMid meet" };
  return svg("svg", { ...view, "aria-hidden": "true" }, drawn);
}
