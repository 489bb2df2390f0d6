// Start: tables are there already; dialogues come at once, figures when they come into view.
const FIGURES = {
  map: drawMap, tree: drawTree, "by-turn": drawByTurn, "by-intention": drawByIntention, cells: drawCells,
  rates: drawRates, differences: drawDifferences,
};

function draw(node) {
  const name = node.dataset.plot;
  drawn.add(node);
  const part = (prefix) => name.slice(prefix.length);
  if (name.startsWith("curve-")) return drawCurve(node, block(), part("curve-"));
  if (name.startsWith("online-")) return drawOnline(node, block(), part("online-"));
  if (name.startsWith("offline-")) return drawOffline(node, block(), part("offline-"));
  return FIGURES[name](node, block());
}

function changeLog() {
  const data = block();
  if (!data) return;
  all(".per-log").forEach((one) => { one.hidden = one.dataset.log !== logName(); });
  const roles = [["", "all"], ...data.said.roles.map((role, place) => [place, role])];
  const known = new Set(data.said.final.map(outcomeOf));
  const outcomes = [["", "all"], ...OUTCOMES.filter(([name]) => known.has(name))];
  for (const form of [filters(), asked()]) {
    setOptions(form.role, roles);
    setOptions(form.outcome, outcomes);
  }
  setOptions(asked().label, [["", "all"], ...data.intentions.map((row) => [row.intention, shortened(row.name, 60)])]);
  byId("hover").replaceChildren(element("span", "Select a point to keep what it says here.", { class: "range" }));
  listChosen(data);
  tellRewardModel(data);
  search();
}

function redraw() {
  if (window.Plotly) drawn.forEach(draw);
}

function startPlotly() {
  const script = document.createElement("script");
  script.textContent = byId("plotly").textContent;
  document.head.append(script);
  const figures = all("[data-plot]");
  const watcher = new IntersectionObserver((seen) => {
    for (const { isIntersecting, target } of seen) {
      if (isIntersecting) { watcher.unobserve(target); draw(target); }
    }
  }, { rootMargin: "300px" });
  figures.forEach((node) => watcher.observe(node));
  addEventListener("beforeprint", () => figures.filter((node) => !drawn.has(node)).forEach(draw));
}

function listenToAll() {
  byId("log").addEventListener("change", () => { changeLog(); redraw(); });
  all("#map .filters select").forEach((one) => one.addEventListener("change", () => draw(all('[data-plot="map"]')[0])));
  all("#dialogues .filters select").forEach((one) => one.addEventListener("change", search));
  let waiting = 0;
  asked().find.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(search, 150); });
  all(".filters").forEach((form) => form.addEventListener("submit", (event) => event.preventDefault()));
  byId("further").addEventListener("click", () => { shownDialogues += STEP; listDialogues(); });
  all("[data-intention]").forEach((one) => one.addEventListener("click", () => showIntention(one.dataset.intention)));
  all("[data-all]").forEach((one) => one.addEventListener("click", () => {
    all("tr[hidden]", one.closest(".per-log")).forEach((row) => { row.hidden = false; });
    one.hidden = true;
  }));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}

addEventListener("load", () => requestAnimationFrame(() => setTimeout(() => {
  if (!byId("log")) return;
  changeLog();
  listenToAll();
  startPlotly();
  document.documentElement.dataset.ready = "yes";
})));
