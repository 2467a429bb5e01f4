"use strict";
const D = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const STATUS = { 0: "new", 1: "moved" };
let kind = 0, tree = 0, position = -1, marked = -1;

// Small pieces.

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (key === "onclick") element.addEventListener("click", value);
    else if (value !== null && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}
const show = (id, ...children) => byId(id).replaceChildren(...children);
const count = (value) => Math.round(value).toLocaleString("en");
const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`.replace("leafs", "leaves");
function plain(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  const text = size.toFixed(size < 1 ? 3 : size < 10 ? 2 : size < 100 ? 1 : 0);
  return (value < 0 && Number(text) !== 0 ? "−" : "") + text;
}
const few = (value) => (Number.isInteger(value) ? String(value) : plain(value));
const signed = (value) => (value > 0 ? "+" : "") + plain(value);
// Parts of a value come in ten-thousandths: what is shown adds up exactly.
const fine = (units) => (units < 0 ? "−" : "+") + (Math.abs(units) / 10000).toFixed(4);
const percent = (share) => `${(100 * share).toFixed(1)}%`;
function bar(value, scale) {
  const length = scale > 0 ? (50 * Math.abs(value)) / scale : 0;
  const side = value < 0 ? "down" : "up";
  return make("span", { class: "bar" }, make("i", { class: side, style: `width:${length.toFixed(1)}%` }));
}
function fill(select, words) {
  select.replaceChildren(...words.map((text, i) => make("option", { value: i }, text)));
}
function table(id, head, rows) {
  const cells = (tag, row) => row.map((cell, i) =>
    make(tag === "td" && i === 0 ? "th" : tag, tag === "th" ? { scope: "col" } : i === 0 ? { scope: "row" } : {}, cell));
  show(id, make("thead", {}, make("tr", {}, ...cells("th", head))),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...cells("td", row)))));
}

// The tree.

// A kind is what a bag of trees is of: an action, or all actions of one type.
const bagOf = (k) => (D.kinds[k].bag === null ? null : D.bags[D.kinds[k].bag]);
const current = () => bagOf(kind)?.trees[tree];
const nameOf = (a) => D.actions[a][0];
const kindOf = (a) => D.actions[a][1];

/** What must hold to come from the parent to node k, which is the left child if it stands next. */
function condition(t, k, parent) {
  if (parent < 0) return "all positions";
  const sign = k === parent + 1 ? "≤" : ">";
  return `${D.features[t.feature[parent]]} ${sign}\u00a0${t.threshold[parent]}`;
}

function strip(t, k) {
  const [low, high] = t.limits, unit = 100 / Math.max(high - low, 1e-12);
  const at = (value) => Math.min(100, Math.max(0, unit * (value - low)));
  const from = at(t.mean[k] - t.deviation[k]), to = at(t.mean[k] + t.deviation[k]);
  return make("span", { class: "strip", "aria-hidden": "true" },
    make("i", { style: `left:${from.toFixed(1)}%;width:${(to - from).toFixed(1)}%` }),
    make("b", { style: `left:${at(t.mean[k]).toFixed(1)}%` }));
}

const COLUMNS = ["rows", "games", "mean", "RMSE"];
function stats(t, k) {
  const values = [count(t.rows[k]), count(t.games[k]), signed(t.mean[k]), plain(t.error[k])];
  const stat = (word, i) => make("span", { class: `stat ${word.toLowerCase()}` },
    make("span", { class: "unseen" }, `${word} `), values[i]);
  return [...COLUMNS.map(stat).filter((_, i) => i !== 1 || t.grouped), strip(t, k)];
}
function heading(t) {
  const words = COLUMNS.filter((_, i) => i !== 1 || t.grouped);
  return make("div", { class: "stub heading", "aria-hidden": "true" }, make("span", {}),
    ...words.map((word) => make("span", { class: `stat ${word.toLowerCase()}` }, word)), make("span", { class: "stat" }, "targets"));
}

function formula(leaf, scale) {
  const rows = leaf.terms.flatMap(([f, effect, coefficient, mean, deviation]) => {
    const words = `${coefficient} per unit; in the leaf: mean ${mean}, standard deviation ${deviation}`;
    return [make("span", { title: words }, D.features[f]), bar(effect, scale), make("span", {}, signed(effect))];
  });
  if (leaf.rest.length) {
    const names = leaf.rest.map((f) => D.features[f]).join(", ");
    rows.push(make("span", { class: "soft", title: names }, `and ${leaf.rest.length} more`),
      make("span", { class: "soft" }, `up to ±${plain(leaf.most)}`), make("span", {}));
  }
  if (!rows.length) rows.push(make("span", { class: "soft" }, "a constant"), make("span", {}), make("span", {}));
  return make("div", { class: "formula" }, ...rows);
}

function branch(t, k, parent, scale, few) {
  const label = make("span", { class: "when" }, condition(t, k, parent));
  const tag = (text) => label.append(make("span", { class: "tag" }, text));
  const status = parent >= 0 ? STATUS[t.status?.[parent]] : undefined;
  if (status) tag(`${status} test`);
  const wrap = (inside) => make("div", { class: "branch", "data-node": k,
    style: `--share:${t.share[k]}` }, inside);
  if (t.folded[k]) {
    tag(`${plural(t.folded[k], "leaf")} folded away`);
    return wrap(make("div", { class: "stub" }, label, ...stats(t, k)));
  }
  const leaf = t.leaf[k];
  if (leaf) {
    tag(`leaf ${signed(leaf.base)}`);
    if (leaf.shift !== undefined && leaf.shift !== null) tag(`moved ${signed(leaf.shift)}`);
    return wrap(make("details", { open: few }, make("summary", {}, label, ...stats(t, k)), formula(leaf, scale)));
  }
  return wrap(make("details", { open: true }, make("summary", {}, label, ...stats(t, k)),
    branch(t, k + 1, k, scale, few), branch(t, t.right[k], k, scale, few)));
}

function drawTree() {
  const t = current(), bag = bagOf(kind), about = D.kinds[kind];
  byId("treehead").textContent = `Trees of ${about.name}` + (about.pooled && bag ? " (pooled)" : "");
  for (const id of ["facts", "changes", "nodes", "used"]) show(id);
  if (!t) return void (byId("facts").textContent = "No trees: this was never learned; its value is 0.");
  const facts = [plural(bag.trees.length, "tree"), `${few(bag.leaves)} ${bag.leaves === 1 ? "leaf" : "leaves"} each`, `depth ${bag.depth}`];
  if (about.rows !== undefined) facts.unshift(plural(about.rows, "row"), plural(about.games, "game"));
  if (about.rmse_games !== undefined) facts.push(`RMSE ${plain(about.rmse_games)} on held-out games`);
  if (about.rmse_rows !== undefined) facts.push(`${plain(about.rmse_rows)} on held-out rows of games that taught`);
  const shared = about.pooled ? "Actions with few games share these trees. " : "";
  byId("facts").textContent = `${shared}${facts.join(" · ")}`;
  byId("changes").textContent = changeWords(bag.changes);
  const effects = Object.values(t.leaf).flatMap((leaf) => leaf.terms.map((term) => Math.abs(term[1])));
  const scale = Math.max(0, ...effects);
  byId("nodes").style.setProperty("--n", t.grouped ? 4 : 3);
  // Deep trees are indented less, so that the columns stay in place.
  byId("nodes").style.setProperty("--step", `${Math.max(5, Math.min(14, 150 / Math.max(bag.depth, 1))).toFixed(1)}px`);
  byId("nodes").style.setProperty("--m", t.grouped ? 2 : 1);
  show("nodes", heading(t), branch(t, 0, -1, scale, Object.keys(t.leaf).length <= 6));
  table("used", ["feature", "by tests", "by slopes", "rows routed"],
    bag.used.map(([f, splits, slopes, routed]) => [D.features[f], percent(splits), percent(slopes), percent(routed)]));
  markPath();
  markHits();
}

function changeWords(changes) {
  if (!changes) return "";
  const { kept, moved, new: fresh, gone, shift, rows } = changes;
  let text = `Since generation ${D.before}: `;
  text += kept + moved + fresh + gone === 0 ? "no tests, then or now." :
    `${plural(kept, "test")} kept, ${moved} moved to another threshold, ${fresh} on new features, ${gone} gone.`;
  if (shift === undefined || shift === null) return text;
  return `${text} Predictions at ${plural(rows, "position")} moved by ${plain(shift)} on average, leaves weighted by games.`;
}

const branches = () => byId("nodes").querySelectorAll(".branch");
function unfold(element) {
  for (let at = element.parentElement; at && at.id !== "nodes"; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
}
function setAll(open) {
  byId("nodes").querySelectorAll("details").forEach((each) => { each.open = open; });
}

// Search.

function uses(t, wanted) {
  const tests = [], leaves = [];
  t.feature.forEach((f, k) => { if (wanted.has(f)) tests.push(k); });
  for (const [k, leaf] of Object.entries(t.leaf)) {
    if (leaf.terms.some((term) => wanted.has(term[0])) || leaf.rest.some((f) => wanted.has(f))) leaves.push(Number(k));
  }
  return { tests, leaves };
}

function wantedFeatures() {
  const text = byId("find").value.trim().toLowerCase();
  if (!text) return new Set();
  const all = D.features.map((name, f) => [name.toLowerCase(), f]);
  const exact = all.filter(([name]) => name === text);
  return new Set((exact.length ? exact : all.filter(([name]) => name.includes(text))).map(([, f]) => f));
}

function markHits() {
  const wanted = wantedFeatures(), t = current();
  branches().forEach((each) => each.classList.remove("hit"));
  show("elsewhere");
  if (!byId("find").value.trim()) return void (byId("found").textContent = "");
  const words = (found) => `${plural(found.tests.length, "test")} and ${plural(found.leaves.length, "leaf")}`;
  if (t) {
    const found = uses(t, wanted), hits = new Set([...found.tests, ...found.leaves]);
    branches().forEach((each) => {
      if (!hits.has(Number(each.dataset.node))) return;
      each.classList.add("hit");
      unfold(each);
    });
    byId("found").textContent = `${plural(wanted.size, "feature")} found. In this tree: ${words(found)} use ` +
      (wanted.size === 1 ? "it." : "them.");
  }
  D.kinds.forEach((about, k) => {
    const found = { tests: [], leaves: [] };
    for (const each of bagOf(k)?.trees ?? []) {
      const more = uses(each, wanted);
      found.tests.push(...more.tests);
      found.leaves.push(...more.leaves);
    }
    if (found.tests.length + found.leaves.length) {
      byId("elsewhere").append(make("button", { type: "button", onclick: () => choose(k, 0) }, `${about.name}: ${words(found)}`));
    }
  });
}

// One position.

function reasonHere() {
  const here = D.positions[position]?.reasons.filter((reason) => kindOf(reason.action) === kind);
  return here?.find((reason) => reason.action === marked) ?? here?.[0];
}

function markPath() {
  const nodes = new Set(reasonHere()?.paths[tree]?.nodes ?? []);
  branches().forEach((each) => {
    const on = nodes.has(Number(each.dataset.node));
    each.classList.toggle("path", on);
    if (on) unfold(each);
  });
}

function sum(found, words) {
  const lines = [["at the mean of the leaf", found.base], ...found.parts.map(([f, amount]) => [D.features[f], amount])];
  if (found.rest) lines.push([found.count ? `${found.count} smaller terms` : "rounding", found.rest]);
  if (found.clipping) lines.push(["kept to the range of the targets", found.clipping]);
  const scale = Math.max(...lines.map(([, amount]) => Math.abs(amount)), 1);
  return make("div", { class: "formula" },
    ...lines.flatMap(([name, amount]) => [make("span", {}, name), bar(amount, scale), make("span", {}, fine(amount))]),
    ...[words, "", fine(found.value)].map((text) => make("span", { class: "total" }, text)));
}

function steps(reason) {
  const bag = bagOf(kindOf(reason.action));
  if (!bag || !reason.paths.length) return null;
  return make("ol", { class: "steps" }, ...reason.paths.map((path, i) => {
    const t = bag.trees[i], words = path.nodes.slice(0, -1).map((k, step) => {
      const sign = path.nodes[step + 1] === k + 1 ? "≤" : ">";
      return `${D.features[t.feature[k]]} = ${path.x[step]} ${sign} ${t.threshold[k]}`;
    });
    const hidden = path.x.length - words.length;
    if (hidden) words.push(`${plural(hidden, "test")} folded away`);
    return make("li", {}, words.join(", ") || "one leaf");
  }));
}

function drawPosition() {
  const entry = D.positions[position], name = nameOf;
  if (!entry) return void show("reading", make("p", {}, "This generation has no recorded games to take positions from."));
  const scale = Math.max(...entry.values.map(([, value]) => Math.abs(value)), 1e-9);
  const [best, second] = entry.reasons;
  const button = (a) => make("button", { type: "button", onclick: () => mark(a) }, `Path of ${name(a)} in the tree`);
  show("reading",
    make("pre", {}, entry.text),
    make("p", { class: "small soft" }, `In self-play player ${entry.player} played ${name(entry.played)} here and received ` +
      `${signed(entry.returned)} in the end.`),
    make("h3", {}, "Value of every legal action"),
    make("div", { class: "formula" }, ...entry.values.flatMap(([a, value], i) =>
      [make("span", {}, (i ? "" : "★ ") + name(a)), bar(value, scale), make("span", {}, signed(value))])),
    make("div", { class: "chips" }, button(best.action), second ? button(second.action) : null),
    make("h3", {}, `Why ${name(best.action)} is worth ${fine(best.value)}`), sum(best, name(best.action)), steps(best),
    ...(second ? [
      make("h3", {}, `Why ${name(best.action)} rather than ${name(second.action)}`),
      sum(entry.difference, "difference"),
      make("h3", {}, `Why ${name(second.action)} is worth ${fine(second.value)}`), sum(second, name(second.action)), steps(second),
    ] : []));
}

// What is chosen.

function choose(k, t) {
  kind = k;
  tree = Math.min(t, Math.max((bagOf(k)?.trees.length ?? 1) - 1, 0));
  fill(byId("tree"), (bagOf(k)?.trees ?? []).map((each, i, all) => `${i + 1} of ${all.length}, ${plural(each.leaves, "leaf")}`));
  byId("action").value = k;
  byId("tree").value = tree;
  byId("all").querySelectorAll("tbody tr").forEach((row, i) => row.classList.toggle("current", i === k));
  drawTree();
}

function mark(a) {
  marked = a;
  choose(kindOf(a), tree);
}

function look(index) {
  position = Math.max(0, Math.min(D.positions.length - 1, index));
  byId("position").value = position;
  drawPosition();
  if (D.positions[position]) mark(D.positions[position].reasons[0].action);
}

function start() {
  fill(byId("action"), D.kinds.map((about) => about.name));
  show("features", ...D.features.map((name) => make("option", { value: name })));
  fill(byId("position"), D.positions.map((entry) =>
    `ply ${entry.ply}: ${nameOf(entry.reasons[0].action)}, value ${fine(entry.reasons[0].value)}`));
  const head = ["action", "rows", "games", "trees", "leaves", "depth", "RMSE held-out games", "RMSE held-out rows"];
  const changed = D.before !== null;
  if (changed) head.push("tests kept", "moved", "new", "gone", "moved by");
  table("all", head, D.kinds.map((about, k) => {
    const bag = bagOf(k), c = bag?.changes;
    const cells = [make("button", { type: "button", onclick: () => choose(k, 0) }, about.name),
      about.rows === undefined ? "–" : count(about.rows), about.games === undefined ? "–" : count(about.games),
      bag ? `${bag.trees.length}${about.pooled ? " pooled" : ""}` : "–", few(bag?.leaves), bag ? String(bag.depth) : "–",
      plain(about.rmse_games), plain(about.rmse_rows)];
    if (changed) cells.push(...(c ? [c.kept, c.moved, c.new, c.gone].map(String) : ["–", "–", "–", "–"]), plain(c?.shift));
    return cells;
  }));
  byId("action").addEventListener("change", (event) => choose(Number(event.target.value), 0));
  byId("tree").addEventListener("change", (event) => choose(kind, Number(event.target.value)));
  byId("position").addEventListener("change", (event) => look(Number(event.target.value)));
  byId("back").addEventListener("click", () => look(position - 1));
  byId("next").addEventListener("click", () => look(position + 1));
  byId("unfold").addEventListener("click", () => setAll(true));
  byId("fold").addEventListener("click", () => setAll(false));
  byId("find").addEventListener("input", markHits);
  choose(Math.max(0, D.kinds.findIndex((about) => about.bag !== null)), 0);
  if (D.positions.length) look(Math.floor(D.positions.length / 2));
  else drawPosition();
}
start();
