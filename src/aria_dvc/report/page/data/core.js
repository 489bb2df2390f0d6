"use strict";
// The page's state: which log is looked at, which figures are drawn, and how texts are set.
const byId = (id) => document.getElementById(id);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const shared = JSON.parse(byId("shared").textContent);
const parsed = new Map();
const drawn = new Set();
// Colours that colour-blind readers tell apart (Okabe and Ito's, but for yellow), then other marks.
const ON_LIGHT = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"];
const ON_DARK = ["#4aa8e8", "#f0b63c", "#2cc79a", "#e39cc4", "#9ad6fb", "#f08a3c"];
const MARKS = ["circle", "diamond", "x"];
const OUTCOMES = [
  ["above", "R above 0.5", (r) => r !== null && r > 0.5],
  ["half", "R = 0.5", (r) => r === 0.5],
  ["below", "R below 0.5", (r) => r !== null && r < 0.5],
  ["none", "no reward", (r) => r === null],
];

const logName = () => byId("log")?.value;

function block() {
  const name = logName();
  if (name === undefined) return null;
  if (!parsed.has(name)) {
    const source = all("script[data-block]").find((one) => one.dataset.block === name);
    parsed.set(name, prepared(JSON.parse(source.textContent)));
  }
  return parsed.get(name);
}

// Adds what figures and dialogues look up: names by label, utterances by point and by episode.
function prepared(data) {
  data.names = new Map(data.intentions.map((row) => [row.intention, row.name]));
  data.found = data.said.texts.map((text) => text.toLowerCase());
  data.byEpisode = grouped(data.said.episode);
  data.byPoint = grouped(data.said.point);
  const sizes = data.said.over.filter((v) => v !== null).map(Math.abs).sort((a, b) => a - b);
  data.scale = sizes[Math.floor(0.95 * sizes.length)] || sizes.at(-1) || 1;
  return data;
}

function grouped(codes) {
  const groups = new Map();
  codes.forEach((code, row) => {
    if (!groups.has(code)) groups.set(code, []);
    groups.get(code).push(row);
  });
  return groups;
}

const nameOf = (data, label) => data.names.get(label) ?? `intention ${label}`;
const outcomeOf = (reward) => OUTCOMES.find(([, , holds]) => holds(reward))[0];
const signed = (value) => (value === null ? "" : (value < 0 ? "" : "+") + value.toFixed(3));
const number = (value) => (value === null ? "none" : value.toFixed(3));
const words = (name) => String(name).replaceAll("_", " ");
// Plotly reads tags in texts; as entities they are the characters again.
const plain = (text) => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
const shortened = (text, length = 42) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

function element(tag, text = "", attributes = {}) {
  const made = document.createElement(tag);
  made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function setOptions(select, pairs) {
  const before = select.value;
  select.replaceChildren(...pairs.map(([value, text]) => element("option", text, { value })));
  if (pairs.some(([value]) => String(value) === before)) select.value = before;
}

// Under a finger a figure stays as it is, so that the page can be scrolled over it.
const finger = () => matchMedia("(pointer: coarse)").matches;
const dark = () => matchMedia("(prefers-color-scheme: dark)").matches;
const colour = (place) => (dark() ? ON_DARK : ON_LIGHT)[place % ON_LIGHT.length];
const mark = (place) => ({ color: colour(place), symbol: MARKS[Math.floor(place / ON_LIGHT.length) % MARKS.length] });
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function layout(more = {}) {
  const axis = { gridcolor: style("--grid"), zerolinecolor: style("--line"), automargin: true, nticks: 6, fixedrange: finger() };
  const { xaxis = {}, yaxis = {}, ...rest } = more;
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: style("--fg"), size: 12 },
    margin: { l: 50, r: 14, t: 52, b: 44 }, hoverlabel: { namelength: -1 }, legend: { orientation: "h", y: 1, yanchor: "bottom", x: 1, xanchor: "right", font: { size: 11 } },
    title: { text: "" }, showlegend: true,
    xaxis: { ...axis, ...xaxis }, yaxis: { ...axis, ...yaxis }, ...rest, ...(finger() ? { dragmode: false } : {}),
  };
}

const titled = (text) => ({ text: plain(text), font: { size: 13 }, x: 0.02, xanchor: "left", y: 0.99, yanchor: "top" });

const config = (name) => ({
  displaylogo: false, responsive: true, displayModeBar: finger() ? false : "hover",
  toImageButtonOptions: { format: "svg", filename: `${logName()}-${name}-${shared.run}` },
});

function caption(node, text) {
  node.closest("figure").querySelector("figcaption").textContent = text;
}

function captionOf(data, what, utterances = data.utterances) {
  const counted = `k = ${data.k}, n = ${utterances.toLocaleString("en")} utterances`;
  return `${what} ${words(logName())}, ${counted}, seed ${shared.seed}, run ${shared.run}.`;
}

function nothing(node, why) {
  Plotly.purge(node);
  node.classList.add("none");
  node.textContent = why;
  caption(node, "");
}

function show(node, traces, wanted, name) {
  if (node.classList.contains("none")) node.replaceChildren();
  node.classList.remove("none");
  const legend = traces.some((one) => one.showlegend !== false);
  const room = legend ? {} : { margin: { l: 50, r: 14, t: 32, b: 44 } };
  return Plotly.react(node, traces, layout({ ...room, ...wanted }), config(name));
}
