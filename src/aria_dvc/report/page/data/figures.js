// One function a figure; each gets its place and the block of the log that is looked at.
const SHAPES = ["circle", "square", "triangle-up", "diamond", "x"];
const faint = (colour) => `${colour}33`;

function drawTree(node, data) {
  const { tree } = data;
  const scale = Math.max(1e-9, ...tree.over.filter((v) => v !== null).map(Math.abs));
  const text = tree.name.map((name, row) => plain(shortened(tree.intentions[row] > 2 ? `${name} …` : name, 60)));
  const told = tree.id.map((_, row) => `${tree.size[row].toLocaleString("en")} utterances, ${tree.intentions[row]} intentions<br>`
    + `appears at k = ${tree.k[row]}; credit over its turn ${signed(tree.over[row]) || "none"}`);
  const trace = {
    type: "icicle", ids: tree.id, parents: tree.parent, values: tree.size, labels: text, text: told,
    branchvalues: "total", sort: false, maxdepth: 7, tiling: { orientation: "v" }, textinfo: "label",
    hovertemplate: "%{label}<br>%{text}<extra></extra>",
    marker: { colors: tree.over.map((v) => v ?? 0), colorscale: scaleOfCredit(), cmin: -scale, cmax: scale, line: { color: style("--bg"), width: 1 },
      showscale: innerWidth > 600, colorbar: { title: { text: "over its turn", side: "right" }, thickness: 10, len: 0.6 } },
  };
  caption(node, captionOf(data, "Every split from one cluster down; select one to go in. Colour: mean credit over that of the turn."));
  // What would be smaller than that is left to the hover text.
  const uniformtext = { minsize: 10, mode: "hide" };
  return show(node, [trace], { uniformtext, margin: { l: 8, r: 8, t: 8, b: 8 } }, "tree");
}

const scaleOfCredit = () => [[0, style("--minus")], [0.5, style("--soft")], [1, style("--plus")]];

function drawCurve(node, data, name) {
  const { columns, chosen } = data.curve;
  if (!columns[name]?.some((v) => v !== null)) return nothing(node, `${shared.curves[name]}: not computed.`);
  const line = { x: columns.k, y: columns[name], mode: "lines", line: { color: colour(0) }, name: shared.curves[name], showlegend: false };
  const used = columns.k.indexOf(data.k);
  const rest = [...grouped(chosen.map(({ k }) => k))].map(([k, places], place) => takenBy(
    places.map((one) => words(chosen[one].method)), k, columns[name][columns.k.indexOf(k)] ?? null, place));
  const shapes = used < 0 ? [] : [{ type: "line", x0: data.k, x1: data.k, yref: "paper", y0: 0, y1: 1, line: { color: style("--muted"), dash: "dot", width: 1 } }];
  caption(node, captionOf(data, "Line: k in use; marks: what each method takes."));
  const legend = { orientation: "h", yref: "container", y: 0, yanchor: "bottom", x: 0, xanchor: "left", font: { size: 11 }, itemclick: false, itemdoubleclick: false };
  const margin = { l: 50, r: 14, t: 32, b: 44 };
  return show(node, [line, ...rest], { title: titled(shared.curves[name]), xaxis: { title: { text: "k" } }, shapes, legend, margin }, `k-${name}`);
}

// One mark a k, since methods that take the same one would hide each other; each has its own shape.
function takenBy(methods, k, y, place) {
  return {
    x: [k], y: [y], mode: "markers", name: `k = ${k}: ${twoALine(methods.map(plain))}`, showlegend: true,
    marker: { color: colour(place + 1), symbol: SHAPES[place % SHAPES.length], size: 10 },
    hovertemplate: `k = ${k}: ${twoALine(methods.map(plain))}<extra></extra>`,
  };
}

// A legend breaks no lines of its own, and a phone is narrow.
const twoALine = (names) => names.map((one, place) => (place ? (place % 2 ? ", " : ",<br>") : "") + one).join("");

function listChosen(data) {
  const said = data.curve.chosen.map(({ method, k }, place) =>
    element("li", `${words(method)}: k = ${k}${place ? "" : data.curve.overridden ? " (overridden in params.yaml)" : " (in use)"}`));
  all("#k .chosen")[0].replaceChildren(...said);
}

function drawByTurn(node, data) {
  const table = data.by_turn;
  const traces = [...grouped(table.role)].flatMap(([role, rows], place) => {
    const of = (name) => rows.map((row) => table[name][row]);
    const color = colour(place);
    const band = { x: [...of("turn"), ...of("turn").reverse()], y: [...of("high"), ...of("low").reverse()], fill: "toself", fillcolor: faint(color), line: { width: 0 }, hoverinfo: "skip", showlegend: false, mode: "lines" };
    const told = of("actions").map((n) => `${n} actions`);
    return [band, { x: of("turn"), y: of("mean"), text: told, mode: "lines+markers", name: plain(role), line: { color }, marker: mark(place) }];
  });
  caption(node, captionOf(data, "Mean and the middle four fifths by own turn."));
  return show(node, traces, { title: titled("credit by turn"), xaxis: { title: { text: "own turn" } } }, "credit-by-turn");
}

function drawByIntention(node, data) {
  const rows = data.intentions.filter((row) => row.above_turn !== null).slice(0, 15).reverse();
  if (!rows.length) return nothing(node, "No intention has a credit.");
  const trace = {
    x: rows.map((row) => row.above_turn), y: rows.map((_, place) => place), mode: "markers", marker: { color: colour(0), size: 8 },
    error_x: interval(rows.map((row) => row.above_turn), rows.map((row) => row.above_turn_low), rows.map((row) => row.above_turn_high)), showlegend: false,
    text: rows.map((row) => plain(row.name)), hovertemplate: "%{text}: %{x:+.3f}<extra></extra>",
  };
  const ticks = { tickvals: rows.map((_, place) => place), ticktext: rows.map((row) => plain(shortened(row.name, 26))) };
  caption(node, captionOf(data, "The 15 largest intentions; 95 % intervals, dialogues of one configuration drawn together."));
  return show(node, [trace], { title: titled("credit over its turn, by intention"), yaxis: ticks, margin: { l: 60, r: 14, t: 34, b: 30 } }, "credit-by-intention");
}

function drawCells(node, data) {
  const { size, cells, share } = data.cells;
  const trace = {
    type: "bar", x: size, y: share, marker: { color: colour(0) }, showlegend: false,
    text: cells.map((count) => `${count.toLocaleString("en")} cells`), textposition: "outside", cliponaxis: false,
    hovertemplate: "%{text} of %{x} actions: %{y:.1%} of all actions<extra></extra>",
  };
  const title = titled("share of the actions by the size of their cell");
  caption(node, captionOf(data, "In a cell of one the credit is the return itself."));
  return show(node, [trace], { title, xaxis: { type: "category", nticks: 0, title: { text: "actions in the cell" } }, yaxis: { tickformat: ".0%" } }, "cells");
}

function drawOnline(node, data, name) {
  const all = Object.entries(data.learning.online);
  const courses = all.filter(([, columns]) => columns.games.length > 1);
  if (all.length && !courses.length) return nothing(node, `${shared.learning[name]}: one iteration is no curve.`);
  const played = courses.flatMap(([, columns]) => columns.episodes).reduce((a, b) => a + b, 0);
  const own = `${name === "win_rate" ? "95 % intervals, e" : "E"}very role alike. ${words(logName())}, n = ${played.toLocaleString("en")} games`;
  const traces = trainingLines(Object.fromEntries(courses), name, "games", "lines+markers");
  return drawTraining(node, traces, name, "games learned from", ["win_rate", "mean_reward"].includes(name) ? own : ofCategory(data));
}

function drawOffline(node, data, name) {
  return drawTraining(node, trainingLines(data.learning.offline, name, "step", "lines"), name, "step", ofCategory(data));
}

const ofCategory = (data) => `Policies of the category ${words(data.learning.category)}, trained on all of its logs`;

function drawTraining(node, traces, name, axis, what) {
  if (!traces.length) return nothing(node, `${shared.learning[name]}: no training recorded it.`);
  caption(node, `${what}, seed ${shared.seed}, run ${shared.run}.`);
  return show(node, traces, { title: titled(shared.learning[name]), xaxis: { title: { text: axis } } }, `learning-${name}`);
}

function trainingLines(series, name, axis, mode) {
  const known = Object.entries(series).filter(([, columns]) => columns[name]?.some((v) => v !== null));
  return known.map(([variant, columns], place) => ({
    x: columns[axis], y: columns[name], mode, name: plain(variant), marker: mark(place), line: { color: colour(place) },
    ...(name === "win_rate" ? { error_y: interval(columns.win_rate, columns.low, columns.high) } : {}),
  }));
}

const interval = (mean, low, high) => ({
  type: "data", symmetric: false, thickness: 1.5,
  array: mean.map((v, row) => (high[row] ?? v) - v), arrayminus: mean.map((v, row) => v - (low[row] ?? v)),
});

function tellRewardModel(data) {
  const { not_trained: why, r2, r2_low: low, r2_high: high, mse, mse_of_baseline: base } = data.learning.reward_model;
  const between = low === null || low === undefined ? "" : ` (${low.toFixed(3)} to ${high.toFixed(3)})`;
  const explained = r2 === null ? "all held-out returns are equal: nothing to explain" : `R2 ${r2?.toFixed(3)}${between}`;
  const text = why !== undefined ? `not trained: ${why}` : r2 === undefined ? "none" : `${explained}; squared error ${mse.toPrecision(3)}, of the mean by role and turn ${base.toPrecision(3)}`;
  byId("reward-model").textContent = `Reward model, on held-out episodes: ${text}.`;
}

function drawRates(node) {
  const rows = shared.rates.filter((row) => row.rate !== null);
  if (!rows.length) return nothing(node, "Nothing was evaluated.");
  return dots(node, rows, (row) => `${words(row.game)}, ${row.role}`, (row) => [row.rate, row.low, row.high], "win or success rate", [0, 1]);
}

function drawDifferences(node) {
  const rows = shared.results.filter((row) => row.difference && row.difference.mean !== null);
  if (!rows.length) return nothing(node, "No variant was compared with vanilla.");
  return dots(node, rows, (row) => words(row.game), ({ difference: d }) => [d.mean, d.low, d.high], "paired difference to vanilla", null);
}

function dots(node, rows, labelled, measured, title, range) {
  const labels = [...new Set(rows.map(labelled))].reverse();
  const variants = [...grouped(rows.map((row) => row.variant))];
  const traces = variants.map(([variant, places], turn) => {
    const mine = places.map((place) => rows[place]);
    const [mean, low, high] = [0, 1, 2].map((part) => mine.map((row) => measured(row)[part]));
    const y = mine.map((row) => labels.indexOf(labelled(row)) + (0.5 * (turn + 0.5)) / variants.length - 0.25);
    return { x: mean, y, mode: "markers", name: plain(variant), marker: { ...mark(turn), size: 9 }, error_x: interval(mean, low, high), text: mine.map((row) => plain(labelled(row))), hovertemplate: "%{text}: %{x:.3f}" };
  });
  const yaxis = { tickvals: labels.map((_, place) => place), ticktext: labels.map(plain) };
  caption(node, `95 % intervals; seed ${shared.seed}, run ${shared.run}; games: ${rows.map((row) => row.episodes).reduce((a, b) => a + b, 0).toLocaleString("en")}.`);
  return show(node, traces, { title: titled(title), yaxis, xaxis: range ? { range } : { zeroline: true, zerolinewidth: 2 } }, title);
}
