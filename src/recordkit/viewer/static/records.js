// Records: one page of records, as cards or a table; filtered, sorted or sampled.

import { follow, get, patiently, post } from "./api.js";
import { cellOf, isPicture, pictureOf } from "./cells.js";
import { $, count, h, plural, say } from "./dom.js";

const CARDS = 24;
const ROWS = 40;
const scans = new Map(); // the job of each filter and order, so that paging does not restart it

export const state = { page: null, last: "#/records" };

function pageSize(query) {
  return query.as === "table" ? ROWS : CARDS;
}

async function scanOf(query) {
  const key = JSON.stringify([query.where || "", query.sort || "", query.order || ""]);
  if (!scans.has(key)) {
    const { job } = await post("scan", { where: query.where, sort: query.sort, order: query.order });
    scans.set(key, job);
  }
  return { key, job: scans.get(key) };
}

// --- The toolbar

function toolbar(app, query) {
  const { go, overview } = app;
  const filter = h("input", {
    id: "filter",
    type: "search",
    value: query.where || "",
    placeholder: "label == 3 and height > 200",
    spellcheck: "false",
    autocomplete: "off",
    autocapitalize: "off",
    "aria-label": "Filter records by an expression",
    "aria-describedby": "filter-error",
  });
  const form = h(
    "form",
    {
      class: "filter",
      role: "search",
      submit: (event) => {
        event.preventDefault();
        go({ ...query, where: filter.value.trim(), at: 0, seed: "" });
      },
    },
    filter,
    h("button", { type: "submit" }, "Filter"),
  );
  const jump = h("input", {
    id: "jump",
    inputmode: "numeric",
    pattern: "[0-9., ]*",
    size: 9,
    placeholder: "number",
    "aria-label": "Go to the record with this number",
  });
  const jumping = h(
    "form",
    {
      class: "jump",
      submit: (event) => {
        event.preventDefault();
        const number = Number(jump.value.replace(/[^0-9]/g, ""));
        if (jump.value.trim()) app.jump(number);
      },
    },
    jump,
    h("button", { type: "submit" }, "Go"),
  );
  const random = h(
    "button",
    {
      type: "button",
      id: "random",
      title: "A random sample (r)",
      click: () =>
        go({ ...query, where: "", sort: "", order: "", at: 0, seed: String(Math.floor(Math.random() * 1e9)) }),
    },
    "Random",
  );
  const as = query.as;
  const shape = h(
    "div",
    { class: "switch", role: "group", "aria-label": "Layout" },
    ["cards", "table"].map((each) =>
      h(
        "button",
        {
          type: "button",
          "aria-pressed": String(as === each),
          click: () => go({ ...query, as: each, at: query.at || 0 }),
        },
        each === "cards" ? "Cards" : "Table",
      ),
    ),
  );
  const fields = overview.fields === null ? [] : [sorting(app, query), chooser(app, query)];
  return h(
    "div",
    { class: "toolbar" },
    overview.fields === null ? null : form,
    fields,
    jumping,
    random,
    shape,
    h("p", { id: "filter-error", class: "error", role: "alert", hidden: true }),
  );
}

function sorting(app, query) {
  const select = h(
    "select",
    {
      id: "sort",
      "aria-label": "Sort by a field",
      change: () => app.go({ ...query, sort: select.value, at: 0, seed: "" }),
    },
    h("option", { value: "" }, "Dataset order"),
    app.fieldNames.map((name) => h("option", { value: name, selected: query.sort === name }, `By ${name}`)),
  );
  const down = query.order === "descending";
  const turn = h(
    "button",
    {
      type: "button",
      class: "quiet",
      hidden: !query.sort,
      title: down ? "Largest first" : "Smallest first",
      "aria-label": down ? "Largest first; reverse" : "Smallest first; reverse",
      click: () => app.go({ ...query, order: down ? "" : "descending", at: 0 }),
    },
    down ? "↓" : "↑",
  );
  return h("span", { class: "sorting" }, select, turn);
}

function chooser(app, query) {
  const shown = new Set(state.page ? state.page.fields : query.field || []);
  const boxes = app.fieldNames.map((name) =>
    h("label", null, h("input", { type: "checkbox", value: name, checked: shown.has(name) }), " ", name),
  );
  const word = h("input", {
    type: "search",
    placeholder: "find a field",
    "aria-label": "Find a field",
    input: () => {
      for (const box of boxes) box.hidden = !box.textContent.toLowerCase().includes(word.value.toLowerCase());
    },
  });
  const details = h(
    "details",
    { class: "chooser" },
    // Before it opens: once open, boxes may be clicked at once.
    h("summary", { click: () => details.open || check() }, "Fields"),
    h(
      "form",
      {
        submit: (event) => {
          event.preventDefault();
          details.open = false;
          app.go({
            ...query,
            field: boxes
              .map((box) => box.querySelector("input"))
              .filter((box) => box.checked)
              .map((box) => box.value)
              .slice(0, 64),
          });
        },
      },
      boxes.length > 10 ? word : null,
      h("div", { class: "choices" }, boxes),
      app.overview.fields > app.fieldNames.length
        ? h("small", null, `the first ${count(app.fieldNames.length)} of ${count(app.overview.fields)}`)
        : null,
      h("button", { type: "submit" }, "Show these"),
    ),
  );
  const check = () => {
    const now = new Set(state.page ? state.page.fields : []);
    for (const box of boxes) box.querySelector("input").checked = now.has(box.querySelector("input").value);
  };
  return details;
}

// --- Records

function card(row, fields) {
  if (row.error !== undefined) return broken(row);
  const at = row.cells.findIndex((cell, i) => isPicture(cell, fields[i]));
  const picture = at < 0 ? null : pictureOf(row.cells[at], row.number, fields[at], { boxes: row.boxes[fields[at]] });
  const rest = fields.map((field, i) => [field, row.cells[i]]).filter((_, i) => i !== at);
  return h(
    "li",
    { class: "card" },
    h(
      "a",
      { class: "open", href: `#/record/${row.number}`, "aria-label": `Record ${count(row.number)}` },
      picture,
      h("span", { class: "record-number" }, count(row.number)),
    ),
    h(
      "dl",
      null,
      rest.map(([field, cell]) =>
        h("div", null, h("dt", { title: field }, field), h("dd", null, cellOf(cell, row.number, field))),
      ),
    ),
  );
}

function broken(row) {
  return h(
    "li",
    { class: "card broken" },
    h("a", { class: "open", href: `#/record/${row.number}` }, h("span", { class: "record-number" }, count(row.number))),
    h("p", { class: "failed" }, row.error),
  );
}

function table(page) {
  const head = h(
    "tr",
    null,
    h("th", { scope: "col" }, "record"),
    page.fields.map((field) => h("th", { scope: "col" }, field)),
  );
  const rows = page.rows.map((row) =>
    h(
      "tr",
      { class: row.error === undefined ? null : "broken" },
      h("th", { scope: "row" }, h("a", { class: "open", href: `#/record/${row.number}` }, count(row.number))),
      row.error === undefined
        ? row.cells.map((cell, i) =>
            h(
              "td",
              null,
              cell.k === "picture"
                ? pictureOf(cell, row.number, page.fields[i], { boxes: row.boxes[page.fields[i]] })
                : cellOf(cell, row.number, page.fields[i]),
            ),
          )
        : h("td", { colspan: page.fields.length, class: "failed" }, row.error),
    ),
  );
  return h(
    "div",
    { class: "table-box", tabindex: 0, role: "region", "aria-label": "Records" },
    h("table", { class: "records" }, h("thead", null, head), h("tbody", null, rows)),
  );
}

function list(page, query) {
  if (!page.rows.length)
    return h(
      "p",
      { class: "notice" },
      page.scan
        ? page.scan.state === "running"
          ? "Nothing found so far."
          : "No record matches."
        : "There are no records.",
    );
  return query.as === "table"
    ? table(page)
    : h(
        "ul",
        { class: "cards" },
        page.rows.map((row) => card(row, page.fields)),
      );
}

// --- Position and progress

function shownWords(page, query) {
  const first = query.at || 0;
  if (query.seed)
    return `A random sample of ${count(page.rows.length)}${page.total === null ? "" : ` from ${plural(page.total, "record")}`}`;
  const total = page.scan ? page.scan.shown : page.total;
  if (!page.rows.length) return "";
  const of = total === null ? "" : ` of ${count(total)}`;
  return `${page.scan ? "Found" : "Records"} ${count(first)} to ${count(first + page.rows.length - 1)}${of}`;
}

function scanLine(app, page, query, job) {
  const { scan } = page;
  const done = scan.total ? scan.done / scan.total : 0;
  const words =
    scan.state === "failed"
      ? scan.words
      : `${plural(scan.found, "record")} ${query.where ? "found" : "sorted"}${scan.state === "done" ? "" : ` in the first ${count(scan.done)}${scan.total === null ? "" : ` of ${count(scan.total)}`}`}`;
  const cut = scan.found > scan.shown ? ` · the first ${count(scan.shown)} can be shown` : "";
  const button =
    scan.state === "running"
      ? h(
          "button",
          {
            type: "button",
            id: "stop",
            click: async () => {
              await post(`jobs/${job}/stop`);
            },
          },
          "Stop",
        )
      : scan.state === "paused" || scan.state === "stopped"
        ? h(
            "button",
            {
              type: "button",
              id: "more",
              click: async () => {
                await post(`jobs/${job}/more`);
                app.again();
              },
            },
            "Continue",
          )
        : null;
  const clear = h(
    "button",
    { type: "button", class: "quiet", click: () => app.go({ ...query, where: "", sort: "", order: "", at: 0 }) },
    "Clear",
  );
  const ended = { running: "", done: "", paused: " · paused", stopped: " · stopped", failed: "" }[scan.state];
  return [
    h("progress", {
      max: 1,
      value: scan.state === "done" ? 1 : done,
      "aria-label": "Progress",
    }),
    h("span", { class: scan.state === "failed" ? "failed" : null }, words + cut + ended),
    button,
    clear,
  ];
}

function pager(app, page, query) {
  const size = pageSize(query);
  const at = query.at || 0;
  const total = page.scan ? page.scan.shown : page.total;
  const last = total === null ? Infinity : Math.max(0, Math.floor((total - 1) / size) * size);
  const step = (to, words, key, off) =>
    h(
      "button",
      { type: "button", id: key, disabled: off, click: () => app.go({ ...query, at: Math.max(0, to) }) },
      words,
    );
  if (query.seed)
    return h(
      "div",
      { class: "pager" },
      h("button", { type: "button", click: () => $("random").click() }, "Another sample"),
    );
  return h(
    "div",
    { class: "pager", role: "group", "aria-label": "Pages" },
    step(0, "First", "first", at === 0),
    step(at - size, "← Previous", "previous", at === 0),
    h("span", { class: "shown" }, shownWords(page, query)),
    step(at + size, "Next →", "next", at + size > last + size - 1 || at >= last || !page.rows.length),
    step(last, "Last", "last", !Number.isFinite(last) || at >= last),
  );
}

export async function show(app, main, query, going) {
  query = { as: app.hasPictures ? "cards" : "table", ...query, at: Number(query.at) || 0 };
  const focused = document.activeElement?.id; // it is about to be redrawn
  const status = h("div", { class: "scan-line", hidden: true });
  const body = h("div", { class: "records-body", "aria-busy": "true" });
  const foot = h("div", { class: "foot" });
  main.replaceChildren(h("h2", { class: "unseen", tabindex: -1 }, "Records"), toolbar(app, query), status, body, foot);
  const ask = { at: query.at, count: pageSize(query), field: query.field, seed: query.seed };
  let before = "";
  const draw = (page, job) => {
    state.page = page;
    const key = JSON.stringify(page.rows.map((row) => row.number));
    if (key !== before) body.replaceChildren(list(page, query));
    before = key;
    body.setAttribute("aria-busy", String(Boolean(page.scan && page.scan.state === "running")));
    status.hidden = !page.scan;
    if (page.scan) status.replaceChildren(...scanLine(app, page, query, job).filter(Boolean));
    foot.replaceChildren(pager(app, page, query));
    app.mark(
      query.seed || page.scan
        ? page.rows.map((row) => [row.number, row.number + 1])
        : [[query.at, query.at + page.rows.length]],
    );
    if (focused && document.activeElement === document.body) $(focused)?.focus({ preventScroll: true });
    if (!app.overview.damaged && page.rows.some((row) => row.error !== undefined)) app.refresh();
    say(shownWords(page, query));
  };
  try {
    if (query.where || query.sort) await scanned(query, ask, draw, going);
    else
      draw(
        await patiently(
          () => get("records", ask),
          () => {
            body.replaceChildren(h("p", { class: "notice" }, "The records are being counted…"));
            return going();
          },
        ),
      );
  } catch (error) {
    if (!going()) return;
    if (error.status === 400 && query.where) complain(error.message);
    else body.replaceChildren(h("p", { class: "notice failed" }, error.message));
    body.setAttribute("aria-busy", "false");
  }
}

async function scanned(query, ask, draw, going) {
  const { key, job } = await scanOf(query);
  const load = async () => {
    const page = await get("records", { ...ask, scan: job });
    if (going()) draw(page, job);
  };
  try {
    let shown = 0;
    await load();
    await follow(
      job,
      async () => {
        if (Date.now() - shown > 300) {
          shown = Date.now();
          await load();
        }
      },
      going,
    );
    if (going()) await load();
  } catch (error) {
    scans.delete(key);
    throw error;
  }
}

function complain(words) {
  const place = $("filter-error");
  place.replaceChildren(h("pre", null, words));
  place.hidden = false;
  $("filter").setAttribute("aria-invalid", "true");
  $("filter").focus();
}
