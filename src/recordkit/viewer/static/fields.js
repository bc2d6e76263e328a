// Fields: statistics of each field, from a sample first and from all records on request.

import { follow, get, post } from "./api.js";
import { bytes, count, h, plural, say, share, short } from "./dom.js";
import { histogram } from "./draw.js";

const AT_ONCE = 32;

export async function show(app, main, query, going) {
  const body = h("div", { class: "field-cards" });
  const status = h("div", { class: "scan-line" });
  const more = h("button", { type: "button", hidden: true }, "Show more");
  const word = h("input", {
    type: "search",
    value: query.word || "",
    placeholder: "find a field",
    "aria-label": "Find a field",
    input: () => app.later(() => app.go({ ...query, word: word.value })),
  });
  const many = app.overview.fields > 8;
  main.replaceChildren(
    h("h2", { class: "unseen", tabindex: -1 }, "Fields"),
    h("div", { class: "toolbar" }, many ? word : null, status),
    body,
    more,
  );
  if (query.word) {
    word.focus();
    word.setSelectionRange(word.value.length, word.value.length);
  }
  if (app.overview.fields === null) {
    body.replaceChildren(
      h("p", { class: "notice" }, app.overview.problem || "These payloads are not Examples, so they have no fields."),
    );
    return;
  }
  let at = 0;
  const next = async () => {
    const found = await get("fields", { word: query.word, at });
    if (!going()) return;
    const shown = found.fields.slice(0, AT_ONCE);
    const cards = new Map(
      shown.map((field) => [
        field.name,
        h("article", { class: "field-card" }, heading(field), h("p", { class: "muted" }, "…")),
      ]),
    );
    body.append(...cards.values());
    at += shown.length;
    more.hidden = at >= found.total;
    more.textContent = `Show more of ${plural(found.total, "field")}`;
    if (!shown.length) body.replaceChildren(h("p", { class: "notice" }, "No field name contains this."));
    else await look(app, shown, cards, false, status, going);
  };
  more.addEventListener("click", next);
  try {
    await next();
  } catch (error) {
    if (going()) body.replaceChildren(h("p", { class: "notice failed" }, error.message));
  }
}

const heading = (field) => h("h3", null, field.name, " ", h("small", null, field.type, field.steps ? " per step" : ""));

async function look(app, fields, cards, whole, status, going) {
  const { job } = await post("statistics", { field: fields.map((field) => field.name), whole: whole ? "yes" : "" });
  await follow(
    job,
    (report) => {
      for (const field of fields) fill(cards.get(field.name), field, report);
      const all = report.rows < app.overview.records ? () => look(app, fields, cards, true, status, going) : null;
      status.replaceChildren(...statusOf(report, job, all, () => resume(job, fields, cards, status, going)));
      say(status.firstChild ? status.textContent : "");
    },
    going,
  );
}

async function resume(job, fields, cards, status, going) {
  await post(`jobs/${job}/more`);
  await follow(
    job,
    (report) => {
      for (const field of fields) fill(cards.get(field.name), field, report);
      status.replaceChildren(...statusOf(report, job, null, () => resume(job, fields, cards, status, going)));
    },
    going,
  );
}

function statusOf(report, job, all, more) {
  const of = report.whole && report.total ? ` of ${count(report.total)}` : "";
  const words =
    report.state === "failed"
      ? report.words
      : report.whole
        ? `From ${count(report.rows)}${of} records`
        : all
          ? `From a sample of ${plural(report.rows, "record")}`
          : `From all ${plural(report.rows, "record")}`;
  const parts = [h("span", { class: report.state === "failed" ? "failed" : null }, words)];
  if (report.whole && report.state === "running")
    parts.unshift(
      h("progress", {
        max: 1,
        value: report.total ? report.done / report.total : 0,
        "aria-label": "Progress",
      }),
    );
  if (report.state === "running" && report.whole)
    parts.push(h("button", { type: "button", id: "stop", click: () => post(`jobs/${job}/stop`) }, "Stop"));
  else if (report.whole && (report.state === "paused" || report.state === "stopped"))
    parts.push(h("button", { type: "button", click: more }, "Continue"));
  else if (!report.whole && report.state === "done" && all)
    parts.push(h("button", { type: "button", id: "all", click: all }, "Read all records"));
  return parts;
}

// --- One field

function fill(card, field, report) {
  const found = report.fields[field.name];
  if (report.failed[field.name])
    card.replaceChildren(heading(field), h("p", { class: "failed" }, report.failed[field.name]));
  else if (found) card.replaceChildren(heading(field), facts(found, !report.whole && report.total > report.rows), ...charts(found));
}

function facts(found, sampled) {
  const pairs = [
    ["missing", found.missing ? `${count(found.missing)} (${share(found.missing, found.records)})` : "none"],
  ];
  if (found.distinct !== null)
    pairs.push([
      "distinct",
      `${found.distinct_exact ? "" : "about "}${count(found.distinct)}${sampled ? " in the sample" : ""}`,
    ]);
  if (found.nan) pairs.push(["NaN", `${count(found.nan)} (${share(found.nan, found.values)})`]);
  if (found.inf) pairs.push(["infinite", count(found.inf)]);
  if (found.zeros) pairs.push(["zeros", share(found.zeros, found.values)]);
  if (found.bad_pictures) pairs.push(["not a picture", count(found.bad_pictures)]);
  if (found.min !== null && found.min !== undefined)
    pairs.push(
      ["min", short(found.min)],
      ["median", short(found.quantiles["0.5"])],
      ["mean", short(found.mean)],
      ["max", short(found.max)],
      ["std", short(found.std)],
    );
  return h(
    "dl",
    { class: "facts-list" },
    pairs.map(([name, value]) =>
      h(
        "div",
        { class: name === "missing" && found.missing ? "warn" : null },
        h("dt", null, name),
        h("dd", null, value),
      ),
    ),
  );
}

function charts(found) {
  const made = [];
  const few = found.distinct !== null && found.distinct <= 12 && found.top.length;
  if (found.histogram && !few)
    made.push(chart("values", histogram(found.histogram, described("values", found.histogram))));
  if (found.top.length && (few || worth(found)))
    made.push(chart("most common", top(found.top, found.values, found.top_exact, found)));
  else if (found.samples.length)
    made.push(
      chart(
        "examples",
        h(
          "ul",
          { class: "samples" },
          found.samples.map((text) => h("li", { dir: "auto" }, text)),
        ),
      ),
    );
  if (found.shapes.length)
    made.push(
      chart(
        found.sizes ? "picture sizes" : "shapes",
        top(
          found.shapes.map((each) => ({ ...each, value: each.value.join(" × ") })),
          found.sizes ? found.values : found.records - found.missing,
          found.shapes_exact,
        ),
      ),
    );
  if (found.lengths && found.lengths.histogram && found.lengths.min !== found.lengths.max)
    made.push(
      chart("values per record", histogram(found.lengths.histogram, described("lengths", found.lengths.histogram))),
    );
  if (found.sizes && found.sizes.histogram && found.sizes.min !== found.sizes.max)
    made.push(
      chart(
        "bytes per value",
        histogram(found.sizes.histogram, described("sizes", found.sizes.histogram, bytes), (size) =>
          bytes(Math.round(size)),
        ),
      ),
    );
  return made;
}

const worth = (found) => found.top[0].count > 1 && found.top[0].count * 500 >= found.values;
const chart = (title, content) => h("figure", null, h("figcaption", null, title), content);

function described(what, { edges, counts }, words = (value) => short(value)) {
  const at = counts.indexOf(Math.max(...counts));
  return `Histogram of ${what}, ${words(edges[0])} to ${words(edges.at(-1))}; most are between ${words(edges[at])} and ${words(edges[at + 1])}`;
}

function top(values, whole, exact) {
  const most = Math.max(...values.map((each) => each.count), 1);
  return h(
    "table",
    { class: "top" },
    h(
      "tbody",
      null,
      values.slice(0, 10).map((each) => {
        const bar = h("span", { class: "bar" });
        bar.style.width = `${(100 * each.count) / most}%`;
        return h(
          "tr",
          null,
          h(
            "th",
            { scope: "row", dir: "auto", title: String(each.value) },
            each.value === ""
              ? h("i", null, "empty")
              : typeof each.value === "number"
                ? short(each.value)
                : String(each.value),
          ),
          h("td", { class: "bar-box" }, bar),
          h("td", { class: "number" }, `${exact ? "" : "≥"}${share(each.count, whole)}`),
        );
      }),
    ),
  );
}
