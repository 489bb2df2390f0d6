// Dialogues, turn by turn; the colour is the credit less the mean of the role's turns of that index.
const STEP = 10;
let shownDialogues = STEP;
const asked = () => all("#dialogues .filters")[0].elements;

function matching(data) {
  const { find, role, outcome, label } = asked();
  const { said } = data;
  const text = find.value.trim().toLowerCase();
  const holds = (row) => (!text || data.found[said.text[row]].includes(text))
    && (role.value === "" || said.role[row] === Number(role.value))
    && (outcome.value === "" || outcomeOf(said.final[row]) === outcome.value)
    && (label.value === "" || said.label[row] === Number(label.value));
  const marked = new Set();
  const episodes = [];
  for (const [episode, rows] of data.byEpisode) {
    const mine = rows.filter(holds);
    if (mine.length) episodes.push(episode);
    if (text || label.value !== "") mine.forEach((row) => marked.add(row));
  }
  return { episodes, marked };
}

function listDialogues() {
  const data = block();
  const { episodes, marked } = matching(data);
  byId("list").replaceChildren(...episodes.slice(0, shownDialogues).map((episode) => dialogue(data, episode, marked)));
  const held = data.byEpisode.size;
  const missing = held < data.episodes ? ` (the page holds the first ${held.toLocaleString("en")} of ${data.episodes.toLocaleString("en")})` : "";
  asked().shown.textContent = `${episodes.length.toLocaleString("en")} of ${held.toLocaleString("en")} dialogues${missing}`;
  byId("further").hidden = episodes.length <= shownDialogues;
}

function dialogue(data, episode, marked) {
  const { said } = data;
  const rows = data.byEpisode.get(episode);
  const box = element("article", "", { class: "dialogue" });
  const rewards = new Map(rows.filter((row) => said.final[row] !== null).map((row) => [said.roles[said.role[row]], said.final[row]]));
  const outcome = [...rewards].map(([role, reward]) => `${role} ${reward}`).join(", ");
  box.append(element("h3", `${said.ids[episode]}${outcome ? `, reward: ${outcome}` : ""}`));
  box.append(...rows.map((row) => turn(data, row, marked.has(row))));
  return box;
}

function turn(data, row, isMarked) {
  const { said } = data;
  const over = said.over[row];
  const line = element("div", "", { class: "turn" });
  const text = element("span", "", { class: "said" });
  text.append(element(isMarked ? "mark" : "span", said.texts[said.text[row]]));
  if (over) {
    text.dataset.sign = over > 0 ? "plus" : "minus";
    text.style.setProperty("--w", `${Math.round(8 + 37 * Math.min(1, Math.abs(over) / data.scale))}%`);
  }
  const worth = element("span", signed(over), { class: "worth" });
  if (over !== null) worth.title = `credit ${number(said.credit[row])}; ${nameOf(data, said.label[row])}`;
  line.append(element("span", said.roles[said.role[row]], { class: "who" }), text, worth);
  return line;
}

function search() {
  shownDialogues = STEP;
  listDialogues();
}

function showIntention(label) {
  asked().label.value = label;
  search();
  byId("dialogues").scrollIntoView();
}
