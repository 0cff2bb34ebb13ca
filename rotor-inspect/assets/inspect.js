"use strict";
// What is shown comes from peers: it is put into the page as text, never as HTML.
const shown = { loop: null, sort: "held", page: 0, machine: null, state: null, token: null };
let changes = false;
let before = {};

const by = (id) => document.getElementById(id);

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined && text !== null) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function table(heads, rows) {
  const made = element("table");
  const head = made.appendChild(element("thead")).appendChild(element("tr"));
  heads.forEach(([text, isNumber, sort]) => {
    const cell = element("th", text, isNumber ? "number" : "");
    if (sort) {
      cell.classList.add("sortable");
      cell.dataset.sort = sort;
      cell.onclick = () => { shown.sort = sort; shown.page = 0; refresh(); };
    }
    head.appendChild(cell);
  });
  const body = made.appendChild(element("tbody"));
  rows.forEach((cells) => {
    const row = body.appendChild(element("tr"));
    if (cells.className) row.className = cells.className;
    cells.forEach((cell, at) => {
      const place = element("td", cell instanceof Node ? null : cell, heads[at][1] ? "number" : "name");
      if (cell instanceof Node) place.appendChild(cell);
      row.appendChild(place);
    });
  });
  return made;
}

function link(text, go) {
  const made = element("a", text);
  made.onclick = go;
  return made;
}

function button(text, go) {
  const made = element("button", text);
  made.onclick = go;
  return made;
}

function seconds(time) {
  if (time === null || time === undefined) return "";
  if (time === 0) return "0";
  if (time < 0.001) return (time * 1e6).toFixed(0) + " µs";
  if (time < 1) return (time * 1e3).toFixed(time < 0.01 ? 1 : 0) + " ms";
  if (time < 120) return time.toFixed(time < 10 ? 1 : 0) + " s";
  if (time < 7200) return (time / 60).toFixed(0) + " min";
  return (time / 3600).toFixed(0) + " h";
}

function bytes(count) {
  if (count < 10240) return count + " B";
  if (count < 10 * 1048576) return (count / 1024).toFixed(0) + " KiB";
  return (count / 1048576).toFixed(0) + " MiB";
}

// Two dozen bars, of powers of two of microseconds; a title says which.
function bars(counts) {
  const space = "http://www.w3.org/2000/svg";
  const made = document.createElementNS(space, "svg");
  const most = Math.max(1, ...counts);
  made.setAttribute("width", counts.length * 5);
  made.setAttribute("height", 24);
  counts.forEach((count, at) => {
    const bar = document.createElementNS(space, "rect");
    const height = count ? Math.max(1, 24 * Math.log1p(count) / Math.log1p(most)) : 0;
    bar.setAttribute("x", at * 5);
    bar.setAttribute("width", 4);
    bar.setAttribute("y", 24 - height);
    bar.setAttribute("height", height);
    const title = document.createElementNS(space, "title");
    title.textContent = count + (at === counts.length - 1 ? " longer" : " below " + seconds(2 ** at / 1e6));
    bar.appendChild(title);
    made.appendChild(bar);
  });
  return made;
}

function quantile(counts, share) {
  const all = counts.reduce((sum, count) => sum + count, 0);
  let below = 0;
  for (let at = 0; at < counts.length; at++) {
    below += counts[at];
    if (all && below >= share * all) {
      // The last one has no upper bound.
      const isLast = at === counts.length - 1;
      return (isLast ? "≥ " : "< ") + seconds(2 ** (isLast ? at - 1 : at) / 1e6);
    }
  }
  return "";
}

// Of the time since the page has looked last; before that, of all time.
function utilisation(one) {
  const last = before[one.name] || { busy: 0, waited: 0 };
  const busy = one.busy - last.busy + (one.blocked_for || 0);
  const all = busy + one.waited - last.waited + (one.blocked_for === null ? one.idle_for : 0);
  return all > 0 ? busy / all : 0;
}

function showLoops(all) {
  changes = all.changes;
  by("refused").textContent = all.refused ? "requests refused: " + all.refused : "";
  const heads = [["loop"], ["state"], ["busy"], ["turns", true], ["turn times"], ["p99", true], ["deadlines late", true],
    ["machines", true], ["slots", true], ["longest turn", true], ["stuck", true], ["failed", true], [""]];
  const rows = all.loops.map((one) => {
    const meter = element("meter");
    meter.value = utilisation(one);
    meter.title = Math.round(100 * meter.value) + " %";
    const name = link(one.name, () => choose(one.name));
    name.id = "loop-" + one.name;
    const drain = changes ? button("drain", () => change("/api/drain?loop=" + encodeURIComponent(one.name))) : "";
    const state = one.blocked_for === null ? "turns" : "blocked for " + seconds(one.blocked_for);
    const row = [name, state, meter, one.turns, bars(one.turn_times), quantile(one.turn_times, 0.99),
      quantile(one.lag, 0.99), one.machines, one.slots, seconds(one.longest_turn), one.stuck,
      one.failed + one.panicked, drain];
    row.className = one.blocked_for !== null ? "blocked" : one.name === shown.loop ? "chosen" : "";
    return row;
  });
  by("loops").replaceChildren(table(heads, rows));
  shown.handlers = Object.fromEntries(all.loops.map((one) => [one.name, one.handlers]));
  before = Object.fromEntries(all.loops.map((one) => [one.name, one]));
  const classes = ["1xx", "2xx", "3xx", "4xx", "5xx", "none"];
  by("servers").replaceChildren(table(
    [["server"], ["connections", true], ["under way", true], ["requests", true],
      ...classes.map((name) => [name, true]), ["in", true], ["out", true]],
    all.servers.map((one) => [one.name, one.connections_open, one.requests_open, one.requests,
      ...classes.map((name) => one[name]), bytes(one.received_bytes), bytes(one.sent_bytes)])));
}

function showMachines(all) {
  by("of-loop").hidden = false;
  by("loop-name").textContent = "Loop " + all.loop + " (" + all.phase + ")";
  const handlers = (shown.handlers || {})[all.loop] || [];
  const time = handlers.reduce((sum, one) => sum + one.seconds, 0);
  const share = (machine) => {
    const own = handlers.find((one) => one.machine === machine);
    return own && time > 0 ? Math.round(100 * own.seconds / time) + " %" : "";
  };
  const kinds = all.kinds.map((one) => {
    const row = [link(one.machine, () => filter(one.machine, null)), link(one.state || "–", () => filter(one.machine, one.state)),
      one.count, bytes(one.held), one.messages, seconds(one.oldest), share(one.machine)];
    row.className = one.machine === shown.machine && (shown.state === null || one.state === shown.state) ? "chosen" : "";
    return row;
  });
  by("kinds").replaceChildren(table([["machine"], ["state"], ["count", true], ["held", true], ["messages", true],
    ["oldest", true], ["share of time", true]], kinds));
  by("rows").replaceChildren(machineTable(all.rows));
  const pages = by("pages");
  pages.replaceChildren(document.createTextNode(
    all.matched + " machines, page " + (all.page + 1) + " of " + Math.max(1, all.pages) + " "));
  if (all.page > 0) pages.appendChild(button("before", () => turn(-1)));
  if (all.page + 1 < all.pages) pages.appendChild(button("next", () => turn(1)));
  if (shown.machine !== null) pages.appendChild(button("all types", () => filter(null, null)));
}

function machineTable(rows) {
  return table([["token"], ["machine"], ["state"], ["peer"], ["age", true, "age"], ["deadline in", true, "deadline"],
    ["held", true, "held"], ["messages", true, "messages"], [""]],
    rows.map((one) => [link(one.token, () => { shown.token = one.token; refresh(); }), one.machine, one.state, one.peer,
      seconds(one.age), seconds(one.deadline_in), bytes(one.held), one.messages, acts(one.token)]));
}

function acts(token) {
  const made = element("span");
  if (!changes) return made;
  for (const act of ["wake", "expire", "drain", "end"]) {
    const one = button(act, () => change("/api/decide?do=" + act + "&token=" + token + "&loop=" + encodeURIComponent(shown.loop)));
    one.dataset.act = act;
    one.dataset.token = token;
    made.appendChild(one);
  }
  return made;
}

function choose(name) { Object.assign(shown, { loop: name, page: 0, machine: null, state: null, token: null }); refresh(); }
function filter(machine, state) { Object.assign(shown, { machine, state, page: 0 }); refresh(); }
function turn(pages) { shown.page += pages; refresh(); }

function say(text) { by("said").textContent = text; }

async function get(path) {
  const answer = await fetch(path);
  if (answer.status === 504) return { blocked: (await answer.json()).blocked };
  if (!answer.ok) throw new Error((await answer.text()).trim());
  return answer.json();
}

async function change(path) {
  const answer = await fetch(path, { method: "POST", headers: { "X-Rotor-Inspect": "1" } });
  const isLate = answer.status === 504;
  const refused = answer.ok ? "" : isLate ? "the loop does not answer: nothing was changed" : (await answer.text()).trim();
  await refresh();
  if (refused) say(refused);
}

// One at a time: a loop walks for one of them. What is clicked meanwhile is looked at after it.
let underWay = null;
let isDue = false;

async function refresh() {
  isDue = true;
  underWay = underWay || (async () => {
    while (isDue) {
      isDue = false;
      await look();
    }
    underWay = null;
  })();
  await underWay;
}

async function look() {
  try {
    const all = await get("/api/loops");
    showLoops(all);
    if (shown.loop === null && all.loops.length > 0) shown.loop = all.loops[0].name;
    if (shown.loop !== null) {
      let path = "/api/machines?loop=" + encodeURIComponent(shown.loop) + "&sort=" + shown.sort + "&page=" + shown.page;
      for (const name of ["machine", "state"]) {
        if (shown[name] !== null) path += "&" + name + "=" + encodeURIComponent(shown[name]);
      }
      const machines = await get(path);
      const isHeldUp = machines.blocked && machines.blocked.blocked_for !== null;
      say(machines.blocked ? "loop " + shown.loop + (isHeldUp ? " does not answer: it is blocked" : " has too much to do to answer") : "");
      if (!machines.blocked) showMachines(machines);
      by("one").hidden = shown.token === null;
      if (shown.token !== null && !machines.blocked) {
        const one = await get("/api/machines?loop=" + encodeURIComponent(shown.loop) + "&token=" + shown.token);
        by("one-machine").replaceChildren(one.rows.length ? machineTable(one.rows) : element("p", "It has ended."));
      }
    }
    const failures = await get("/api/failures");
    by("failures").replaceChildren(table([["ago", true], ["machine"], ["what"]],
      failures.map((one) => [seconds(one.ago), one.machine, one.text])));
    document.body.dataset.shown = (Number(document.body.dataset.shown) || 0) + 1;
  } catch (error) {
    say(String(error.message || error));
  }
}

async function goOn() {
  await refresh();
  setTimeout(goOn, 2000);
}

goOn();
