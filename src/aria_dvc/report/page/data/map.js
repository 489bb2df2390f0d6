// The map: a point is one distinct utterance, its size how often it passes the filters.
const TOP = 10;
const MOST_SVG = 4000;
const filters = () => all("#map .filters")[0].elements;

function canDrawFast() {
  const canvas = document.createElement("canvas");
  return Boolean(canvas.getContext("webgl2") || canvas.getContext("webgl"));
}

// Points and how many of their utterances have the role and outcome.
function passing(data) {
  const { role, outcome } = filters();
  const { said } = data;
  const found = [];
  for (const [point, rows] of data.byPoint) {
    if (point < 0) continue;
    const count = rows.filter((row) => (role.value === "" || said.role[row] === Number(role.value))
      && (outcome.value === "" || outcomeOf(said.final[row]) === outcome.value)).length;
    if (count) found.push([point, count]);
  }
  return found;
}

function drawMap(node, data) {
  if (!data.map.x.length) return nothing(node, "No map was drawn (report.umap in params.yaml).");
  const found = passing(data);
  const type = canDrawFast() ? "scattergl" : "scatter";
  const kept = type === "scatter" ? found.slice(0, MOST_SVG) : found;
  const groups = filters().colour.value === "over" ? [byCredit(data, kept)] : byIntention(data, kept);
  const traces = groups.map(({ points, ...look }) => ({
    type, mode: "markers", hoverinfo: "none", customdata: points.map(([point]) => point),
    x: points.map(([point]) => data.map.x[point]), y: points.map(([point]) => data.map.y[point]), ...look,
  }));
  const total = kept.reduce((sum, [, count]) => sum + count, 0);
  filters().shown.textContent = `${kept.length.toLocaleString("en")} of ${data.map.distinct.toLocaleString("en")} different embedded texts, said ${total.toLocaleString("en")} times`;
  const bare = { showgrid: false, zeroline: false, showticklabels: false };
  const less = kept.length < found.length ? ` This browser has no WebGL: only ${MOST_SVG.toLocaleString("en")} are drawn.` : "";
  caption(node, captionOf(data, `UMAP, for looking only; the larger a point, the more often it was said.${less}`, data.clustered));
  const drawing = show(node, traces, { xaxis: bare, yaxis: bare, margin: { l: 8, r: 8, t: 8, b: 8 }, legend: { orientation: "h", y: -0.02 }, hovermode: "closest", dragmode: "pan", uirevision: logName() }, "map");
  return drawing.then(() => listen(node));
}

const edge = () => ({ line: { width: 0.5, color: style("--bg") } });
const sizes = (points) => points.map(([, count]) => 5 + Math.min(9, 2 * Math.log2(count)));

function byIntention(data, points) {
  const top = data.intentions.map((row) => row.intention);
  const places = new Map(top.map((label, place) => [label, place]));
  const drawnLabels = new Set(data.map.label);
  const named = top.filter((label) => drawnLabels.has(label)).slice(0, TOP);
  const of = grouped(points.map(([point]) => (named.includes(data.map.label[point]) ? data.map.label[point] : -1)));
  const others = { points: (of.get(-1) ?? []).map((row) => points[row]), name: "others", marker: { ...edge(), color: style("--muted"), opacity: 0.45 } };
  others.marker.size = sizes(others.points);
  const groups = named.filter((label) => of.has(label)).map((label) => {
    const mine = of.get(label).map((row) => points[row]);
    return { points: mine, name: plain(shortened(nameOf(data, label), 34)), marker: { ...edge(), ...mark(named.indexOf(label)), size: sizes(mine), opacity: 0.85 }, legendrank: places.get(label) };
  });
  return others.points.length ? [{ ...others, legendrank: 9999 }, ...groups] : groups;
}

function byCredit(data, points) {
  const mean = points.map(([point]) => {
    const known = data.byPoint.get(point).map((row) => data.said.over[row]).filter((v) => v !== null);
    return known.length ? known.reduce((a, b) => a + b, 0) / known.length : null;
  });
  const marker = { color: mean, colorscale: scaleOfCredit(), cmin: -data.scale, cmax: data.scale, size: sizes(points), line: { width: 0.5, color: style("--muted") }, showscale: true, colorbar: { title: { text: "over its turn", side: "right" }, thickness: 10 } };
  return { points, name: "utterances", showlegend: false, marker };
}

function listen(node) {
  if (node.dataset.listens) return;
  node.dataset.listens = "yes";
  node.on("plotly_hover", ({ points, event }) => tip(points[0].customdata, event));
  node.on("plotly_click", ({ points }) => hold(points[0].customdata));
  node.on("plotly_unhover", () => { byId("tip").hidden = true; });
}

function told(point) {
  const data = block();
  const rows = data.byPoint.get(point);
  const { said } = data;
  const mean = (column) => {
    const known = rows.map((row) => column[row]).filter((v) => v !== null);
    return known.length ? known.reduce((a, b) => a + b, 0) / known.length : null;
  };
  const roles = [...new Set(rows.map((row) => said.roles[said.role[row]]))].join(", ");
  const times = rows.length === 1 ? "once" : `${rows.length} times`;
  const worth = mean(said.credit) === null ? "no credit" : `credit ${number(mean(said.credit))}, over its turn ${signed(mean(said.over))}`;
  return [element("q", shortened(said.texts[said.text[rows[0]]], 300)),
    element("div", `${nameOf(data, data.map.label[point])}; ${roles}; ${times}; ${worth}`, { class: "range" })];
}

function tip(point, event) {
  const box = byId("tip");
  box.replaceChildren(...told(point));
  box.hidden = false;
  const { width, height } = box.getBoundingClientRect();
  box.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 4))}px`;
  box.style.top = `${event.clientY + 14 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 14}px`;
}

const hold = (point) => byId("hover").replaceChildren(...told(point));
