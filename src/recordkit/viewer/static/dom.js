// Elements and texts. Text never becomes markup: every string is a text node or a plain attribute.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, props, kids) {
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else if (name === "value") element.value = value;
    else if (name.startsWith("on") || name === "style") throw new Error(`attribute not allowed: ${name}`);
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const kid of kids.flat(Infinity)) {
    if (kid !== null && kid !== undefined && kid !== false) element.append(kid instanceof Node ? kid : String(kid));
  }
  return element;
}

export const h = (tag, props, ...kids) => fill(document.createElement(tag), props, kids);
export const svg = (tag, props, ...kids) => fill(document.createElementNS(SVG, tag), props, kids);
export const $ = (id) => document.getElementById(id);

export const count = (number) => Number(number).toLocaleString("en");
export const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;

export function bytes(size) {
  for (const [unit, name] of [
    [1e12, "TB"],
    [1e9, "GB"],
    [1e6, "MB"],
    [1e3, "KB"],
  ]) {
    if (size >= unit) return `${Number((size / unit).toPrecision(3))} ${name}`;
  }
  return plural(size, "byte");
}

// A number for people: a few digits, integers with commas. Exact numbers are texts, and unchanged.
export function short(value, digits = 5) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return count(value);
  const size = Math.abs(value);
  if (size >= 1e4 && size < 1e9) return count(Math.round(value));
  return size !== 0 && (size < 1e-4 || size >= 1e9)
    ? value.toExponential(2)
    : String(Number(value.toPrecision(digits)));
}

export const share = (part, whole) => {
  const percent = whole ? (100 * part) / whole : 0;
  return percent === 0 || percent === 100 ? `${percent}%` : percent < 0.1 ? "<0.1%" : `${percent.toFixed(1)}%`;
};

// Announced by screen readers.
export function say(words) {
  if ($("said").textContent !== words) $("said").textContent = words;
}
