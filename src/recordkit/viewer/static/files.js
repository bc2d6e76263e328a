// Files: the files of the dataset and their damage.

import { follow, get, post } from "./api.js";
import { bytes, count, h, plural, say } from "./dom.js";

let verified = ""; // the last job, to show its findings again

export async function show(app, main, query, going) {
  const status = h("div", { class: "scan-line" });
  const found = h("div", { class: "findings" });
  const table = h("tbody", null);
  const more = h("button", { type: "button", hidden: true });
  main.replaceChildren(
    h("h2", { class: "unseen", tabindex: -1 }, "Files"),
    about(app.overview),
    status,
    found,
    h(
      "div",
      { class: "table-box", tabindex: 0, role: "region", "aria-label": "Files" },
      h(
        "table",
        { class: "files" },
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            ["file", "records", "first", "size", "damage"].map((each) => h("th", { scope: "col" }, each)),
          ),
        ),
        table,
      ),
    ),
    more,
  );
  const check = h("button", { type: "button", id: "verify", click: () => start() }, "Verify every byte");
  const idle = () =>
    status.replaceChildren(
      h(
        "span",
        null,
        app.overview.damaged ? `${plural(app.overview.damaged, "damaged place")} known so far` : "Not verified yet",
      ),
      check,
    );
  const watch = () =>
    follow(
      verified,
      async (report) => {
        if (report.state === "running")
          status.replaceChildren(
            h("progress", {
              max: 1,
              value: report.total ? report.done / report.total : 0,
              "aria-label": "Progress",
            }),
            h("span", null, `Verifying: ${bytes(report.done)}${report.total ? ` of ${bytes(report.total)}` : ""}`),
            h("button", { type: "button", id: "stop", click: () => post(`jobs/${verified}/stop`) }, "Stop"),
          );
        else {
          const words =
            report.state === "done"
              ? report.headline
              : report.state === "failed"
                ? report.words
                : "Verification was stopped";
          status.replaceChildren(
            h("span", { class: report.state === "done" ? (report.ok ? "fine" : "failed") : null }, words),
            check,
          );
          say(words);
          await app.refresh();
          if (going()) {
            damage(report);
            await list(true);
          }
        }
      },
      going,
    );
  const start = async () => {
    verified = (await post("verify")).job;
    await watch();
  };
  const damage = (report = {}) => {
    const all = app.overview.damage;
    found.replaceChildren(
      ...(all.length
        ? [
            h("h3", null, "Damage"),
            h(
              "ul",
              { class: "damage" },
              all.map((each) =>
                h(
                  "li",
                  null,
                  h("strong", null, each.file),
                  " ",
                  each.at === null
                    ? h("span", { class: "muted" }, each.where)
                    : h("a", { href: `#/records?at=${Math.max(0, each.at - 2)}` }, each.where),
                  h("br"),
                  each.words,
                ),
              ),
            ),
          ]
        : []),
    );
    found.append(
      ...(report.problems || []).map((words) => h("p", { class: "failed" }, words)),
      ...(report.notes || []).map((words) => h("p", { class: "muted" }, words)),
    );
    if (app.overview.damaged > all.length)
      found.append(h("p", { class: "muted" }, `and ${count(app.overview.damaged - all.length)} more`));
  };
  let at = 0;
  const list = async (anew) => {
    if (anew) {
      at = 0;
      table.replaceChildren();
    }
    const part = await get("files", { at });
    if (!going()) return;
    table.append(...part.files.map(row));
    at += part.files.length;
    more.hidden = at >= part.total;
    more.textContent = `Show more of ${plural(part.total, "file")}`;
  };
  more.addEventListener("click", () => list(false));
  damage();
  try {
    await list(true);
    if (verified) await watch();
    else idle();
  } catch {
    verified = "";
    if (going()) idle();
  }
}

function row(file) {
  return h(
    "tr",
    { class: file.damage ? "damaged" : null },
    h("th", { scope: "row" }, file.name),
    h("td", { class: "number" }, file.records === null ? "…" : count(file.records)),
    h(
      "td",
      { class: "number" },
      file.first === null || !file.records ? "" : h("a", { href: `#/records?at=${file.first}` }, count(file.first)),
    ),
    h("td", { class: "number" }, bytes(file.bytes)),
    h(
      "td",
      null,
      file.damage ? h("span", { class: "failed" }, plural(file.damage, "place")) : "",
      file.walked ? h("small", null, " broken framing: bytes without a valid header have no record number") : "",
    ),
  );
}

function about(overview) {
  const lines = [];
  const splits = Object.entries(overview.splits);
  if (splits.length > 1)
    lines.push(["splits", splits.map(([name, files]) => `${name} (${plural(files, "file")})`).join(", ")]);
  if (overview.lineage.length) lines.push(["made by", overview.lineage.join(", then ")]);
  const left = overview.left_out.filter((each) => each.name !== "_recordkit");
  if (left.length) lines.push(["left out", left.map((each) => `${each.name} (${each.reason})`).join(", ")]);
  return h(
    "dl",
    { class: "about" },
    lines.map(([name, text]) => h("div", null, h("dt", null, name), h("dd", null, text))),
  );
}
