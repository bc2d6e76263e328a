// Requests to the server. URLs are relative, so they contain the token of the page's URL.

export class Refusal extends Error {
  constructor(status, answer) {
    super(answer.words || `the server answered ${status}`);
    this.status = status;
    this.later = Boolean(answer.later);
  }
}

function address(path, query) {
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(query || {})) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined && each !== null && each !== "") asked.append(name, each);
    }
  }
  const text = asked.toString();
  return text ? `api/${path}?${text}` : `api/${path}`;
}

async function ask(method, path, query) {
  let response;
  try {
    response = await fetch(address(path, query), { method, cache: "no-store" });
  } catch {
    throw new Refusal(0, { words: "the viewer does not respond: was it stopped?" });
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok || answer.refused) throw new Refusal(answer.refused || response.status, answer);
  return answer;
}

export const get = (path, query) => ask("GET", path, query);
export const post = (path, query) => ask("POST", path, query);
export const valueAddress = (number, field, item, small) =>
  address(`record/${number}/${small ? "small" : "value"}`, { field, item });
export const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

// Repeats a request until the answer is known.
export async function patiently(asking, going) {
  for (;;) {
    try {
      return await asking();
    } catch (error) {
      if (!error.later || !going()) throw error;
      await pause(400);
    }
  }
}

// Follows a job to its end. `shown` gets each report; `going` tells whether the view is still open.
export async function follow(job, shown, going) {
  for (let wait = 60; going(); wait = 500) {
    const report = await get(`jobs/${job}`, { wait });
    if (!going()) return;
    shown(report);
    if (report.state !== "running") return;
  }
}
