"""Rollouts for online training: who plays them, on which server, and what decides how they end."""

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pytest
import stages.online
from fake_game import Talker
from fault_server import completion
from learning_tiny import LORA, WORDS, made_up_game, tiny_model

from aria_dvc.arena.assignments import Lineups, assign
from aria_dvc.arena.evaluate import evaluate_category
from aria_dvc.arena.served import with_adapter
from aria_dvc.credit import chain
from aria_dvc.errors import AriaError
from aria_dvc.files import read_json
from aria_dvc.fingerprints import code_of
from aria_dvc.intentions.log import Log
from aria_dvc.models.fingerprint import fingerprint
from aria_dvc.models.lora import add_lora
from aria_dvc.models.source import ModelSource
from aria_dvc.params import load_params
from aria_dvc.pipeline import online as online_module
from aria_dvc.pipeline import paths
from aria_dvc.pipeline.online import OnlineGames
from aria_dvc.players.base import Request
from aria_dvc.players.dealt import DealtPlayer
from aria_dvc.players.registry import PlayerContext
from aria_dvc.settings.dialogues import LogSource
from aria_dvc.settings.machine import Endpoint
from aria_dvc.settings.online import OnlineCourse, dealt

PARAMS = load_params(Path(__file__).parent.parent / "params.yaml")


def changed(params=PARAMS, **blocks):
    """`params` with fields of its blocks replaced: block={field: value}."""
    update = {
        name: getattr(params, name).model_copy(update=fields) for name, fields in blocks.items()
    }
    return params.model_copy(update=update)


@pytest.fixture
def server():
    """A vLLM server's adapter routes, and a model that keeps half; `asked` has what it was sent."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.asked.append((self.path, body))
            name = body.get("lora_name")
            status, text = 200, "Success" if name else completion("I keep 50.")
            if name in server.loaded:
                status, text = 400, f"The lora adapter '{name}' has already been loaded."
            if server.complaint:
                status, text = 500, server.complaint
            if name:
                server.loaded.add(name)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.asked, server.loaded, server.complaint = [], set(), ""
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def games(server):
    endpoint = Endpoint(base_url=f"http://127.0.0.1:{server.server_port}/v1", model="base")
    params = changed(online={"rollouts": "endpoint:gpu"})
    params = params.model_copy(update={"endpoints": {"gpu": endpoint}})
    return OnlineGames(params, "adversarial")


def served(games, adapter):
    return with_adapter(games.params, games.params.online.servers, adapter)


def with_pools(params, players):
    """`params` with bargaining as its only log, played by these pools."""
    log = params.logs["bargaining"].model_copy(update={"players": players})
    return params.model_copy(update={"logs": {"bargaining": log}})


@pytest.fixture
def adapter(tmp_path):
    add_lora(tiny_model(), LORA, "policy").save_pretrained(tmp_path / "adapter")
    return tmp_path / "adapter"


def test_games_are_clustered_and_credited_anew(monkeypatch):
    def vectors(texts, *_):
        return np.array([[len(text), text.count("e")] for text in texts], np.float32)

    monkeypatch.setattr(online_module, "embed_texts", vectors)
    turns = made_up_game(episodes=12).turns
    turns["embedded"] = turns["text"]
    rewards = OnlineGames(PARAMS, "adversarial").aggregate({"bargaining": turns}, None)
    table = rewards["bargaining"]
    assert len(table) == int(turns["is_action"].sum())
    means = table.groupby("cell")["return"].transform("mean")
    np.testing.assert_allclose(table["reward"], means)
    assert table["cell_size"].max() > 1


def test_online_games_are_played_by_the_logs_pools_with_the_newest_policy_in_each(adapter):
    varied = "scripted:varied"
    pool = {"policy": 0.5, varied: 0.5}
    params = with_pools(changed(online={"repeats": 2}), {"alice": pool, "bob": pool})
    session = OnlineGames(params, "adversarial")._session("bargaining", 12, adapter, seed=3)
    assert (session.adapter, session.repeats, session.served_by) == (adapter, 2, ())
    lineups = Lineups(session.game, session.players, session.trained)
    wanted = assign(session.game, 40, 0, "glee48", session.repeats, lineups)
    pairs = {tuple(a.players.values()) for a in wanted}
    assert pairs == {("policy", "policy"), ("policy", varied), (varied, "policy")}


def test_the_base_model_is_no_learner_online(adapter):
    pool = {"policy": 0.5, "base": 0.5}
    params = with_pools(PARAMS, {"alice": pool, "bob": pool})
    session = OnlineGames(params, "adversarial")._session("bargaining", 2, adapter, seed=0)
    lineups = Lineups(session.game, session.players, session.trained)
    assert all("policy" in lineups.at(part / 40).values() for part in range(40))


def test_a_users_own_log_of_a_game_is_played_by_the_policy_with_itself(adapter):
    own = LogSource(source="l.jsonl", category="single_agent", players={"agent": "endpoint:gone"})
    params = PARAMS.model_copy(update={"logs": {"guess_my_city": own}})
    session = OnlineGames(params, "single_agent")._session("guess_my_city", 2, adapter, seed=0)
    assert session.players == {"agent": "policy", "oracle": "embedded"}


def test_a_served_policy_is_recorded_as_the_policy(games, adapter):
    session = games._session("bargaining", 2, adapter, seed=3)
    assert session.served_by == ("gpu",)
    players = session._players(served(games, adapter), ["policy", "scripted:varied"])
    assert players["policy"].name == "policy"
    assert players["policy"].model == f"policy-{fingerprint(adapter)[:16]}"
    assert players["policy"].endpoint == "endpoint:gpu"


@pytest.mark.parametrize(
    ("wanted", "counts"),
    [
        ((8, 1, [1, 1]), [4, 4]),
        ((7, 1, [1, 1]), [4, 3]),
        ((16, 4, [1, 1, 1]), [8, 4, 4]),
        ((10, 4, [1, 1]), [6, 4]),
        ((144, 4, [1, 1.5]), [56, 88]),
        ((10, 1, [1, 3]), [3, 7]),
        ((11, 4, [1, 3]), [4, 7]),
    ],
)
def test_games_are_dealt_by_weight_in_whole_groups(wanted, counts):
    assert dealt(*wanted) == counts
    assert sum(counts) == wanted[0]


@pytest.mark.parametrize("credit", ["aria", "shrinkage", "regression"])
def test_a_variants_own_method_credits_its_games(monkeypatch, credit):
    """Under the intentions that all variants share, whatever `aggregate.method` is."""
    rng = np.random.default_rng(0)
    of = dict(zip(WORDS, rng.normal(size=(len(WORDS), 4)).astype(np.float32), strict=True))

    def vectors(texts, *_):
        return np.stack([of[text] for text in texts])

    monkeypatch.setattr(online_module, "embed_texts", vectors)
    turns = made_up_game(episodes=12).turns
    turns["embedded"] = turns["text"]
    params = changed(aggregate={"method": "kernel", "further": ["aria", "shrinkage", "regression"]})
    log = Log.of(turns, vectors(turns["text"]), params.aggregate.gamma)
    expected, _ = chain.credit(chain.labelled(log, params), params)
    found = OnlineGames(params, "adversarial").aggregate({"bargaining": turns}, credit)
    np.testing.assert_allclose(found["bargaining"]["reward"], expected[f"credit_{credit}"])
    assert "credit_aria" not in found["bargaining"]


@pytest.mark.parametrize("credit", ["discounted", "terminal"])
def test_a_plain_return_embeds_nothing(monkeypatch, credit):
    def never(*_):
        raise AssertionError("embedded")

    monkeypatch.setattr(online_module, "embed_texts", never)
    game = made_up_game(episodes=6)
    rewards = OnlineGames(PARAMS, "adversarial").aggregate({"bargaining": game.turns}, credit)
    table = rewards["bargaining"]
    for column in ("episode_id", "position", "role", "turn"):
        assert table[column].tolist() == game.rewards[column].tolist()
    np.testing.assert_allclose(table["return"], game.rewards["return"])


def test_server_loads_an_adapter_under_the_name_of_its_weights(games, server, adapter):
    name = f"policy-{fingerprint(adapter)[:16]}"
    for _ in range(2):  # a resumed run asks for the same again
        assert served(games, adapter).endpoints["gpu"].model == name
    body = {"lora_name": name, "lora_path": str(adapter)}
    assert server.asked == [("/v1/load_lora_adapter", body)] * 2


def test_games_are_dealt_to_several_servers_that_all_load_the_adapter(games, server, adapter):
    endpoint = games.params.endpoints["gpu"]
    params = changed(games.params, online={"rollouts": ["endpoint:gpu", "endpoint:other"]})
    other = endpoint.model_copy(update={"max_concurrency": 3})
    params = params.model_copy(update={"endpoints": {"gpu": endpoint, "other": other}})
    both = OnlineGames(params, "adversarial")
    loaded = served(both, adapter)
    assert {e.model for e in loaded.endpoints.values()} == {f"policy-{fingerprint(adapter)[:16]}"}
    assert [path for path, _ in server.asked] == ["/v1/load_lora_adapter"] * 2
    context = PlayerContext(
        loaded.collect,
        loaded.pace,
        ModelSource("none"),
        endpoints=loaded.endpoints,
        served_by=both._session("bargaining", 2, adapter, seed=3).served_by,
    )
    player = context.player("policy")
    assert player.name == "policy"
    assert [one.server.max_concurrency for one in player.players] == [16, 3]


def test_a_game_stays_on_the_server_where_it_began():
    class Recorder(Talker):
        def finished(self, episode_id):
            over.append((self, episode_id))

    over, asked = [], []
    servers = [Recorder(lambda request: "x") for _ in range(2)]
    player = DealtPlayer("endpoint:a,b", servers)

    def ask(episode_id):
        request = Request(episode_id, "alice", [], None, 0)
        before = [len(server.asked) for server in servers]
        asyncio.run(player.reply(request))
        after = [len(server.asked) for server in servers]
        asked.append(next(i for i in range(2) if after[i] > before[i]))

    for episode in ("1", "2", "3", "2", "3", "1"):
        ask(episode)
    assert asked == [0, 1, 0, 1, 0, 0]
    player.finished("1")
    player.finished("3")
    assert over == [(servers[0], "1"), (servers[0], "3")]
    ask("4")
    assert asked[-1] == 0


@pytest.mark.parametrize("trained", [True, False])
def test_a_policy_is_judged_on_the_servers_that_play_it(games, server, adapter, trained):
    """Under the name of its adapter; the base model under its own."""
    games_of = {
        "bargaining": PARAMS.evaluate.games["bargaining"].model_copy(update={"episodes": 2})
    }
    params = changed(games.params, evaluate={"rollouts": "endpoint:gpu", "games": games_of})
    params = params.model_copy(update={"logs": {"bargaining": params.logs["bargaining"]}})
    table = evaluate_category(params, "a", "adversarial", adapter if trained else None)
    name = f"policy-{fingerprint(adapter)[:16]}"
    assert len(table) == 2 * 2 * 2  # roles, opponents
    loads = [body for path, body in server.asked if path == "/v1/load_lora_adapter"]
    assert [body["lora_name"] for body in loads] == [name] * trained
    chats = [body for path, body in server.asked if path == "/v1/chat/completions"]
    assert {body["model"] for body in chats} == {name if trained else "base"}
    assert (table["completion_tokens"] > 0).all()


def test_a_category_without_games_asks_no_server(games, server, tmp_path):
    params = changed(games.params, evaluate={"rollouts": "endpoint:gpu"})
    assert evaluate_category(params, "a", "support", tmp_path / "nothing").empty
    assert server.asked == []


def test_servers_complaint_is_passed_on_without_the_key(games, server, adapter, monkeypatch):
    monkeypatch.setenv("GPU_KEY", "sesame")
    endpoint = games.params.endpoints["gpu"].model_copy(
        update={"api_key_env": "GPU_KEY", "deadline_s": 0.3}
    )
    params = games.params.model_copy(update={"endpoints": {"gpu": endpoint}})
    server.complaint = "rank 64 is\ntoo high for sesame " + "x" * 300
    with pytest.raises(AriaError, match=r"HTTP 500 rank 64 is too high for \*{3} x+\)") as caught:
        served(OnlineGames(params, "adversarial"), adapter)
    assert "x" * 200 not in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        {"aggregate": {"gamma": 0.5}},
        {"embed": {"normalize": False}},
        {"select_k": {"tau": 3}},
        {"cluster": {"linkage": "average"}},
        {"prepare": {"decisions": "share"}},
    ],
)
def test_inputs_follow_how_games_are_credited(change):
    assert inputs(changed(**change)) != inputs(PARAMS)


def test_inputs_follow_how_games_are_played_but_not_how_fast():
    hot = changed(collect={"temperature": 0.1})
    slow = changed(pace={"in_flight": 1, "deadline_s": 1.0})
    assert inputs(hot) != inputs(PARAMS) == inputs(slow)
    endpoints = [Endpoint(base_url=url, model="m", options={"seed": n}) for url, n in URLS]
    served = PARAMS.online.model_copy(update={"rollouts": "endpoint:gpu"})
    first, moved, other = (
        inputs(PARAMS.model_copy(update={"online": served, "endpoints": {"gpu": endpoint}}))
        for endpoint in endpoints
    )
    assert first != moved != other != first  # another server may have another model of that name
    patient = endpoints[0].model_copy(update={"deadline_s": 1.0, "max_concurrency": 1})
    update = {"online": served, "endpoints": {"gpu": patient}}
    assert inputs(PARAMS.model_copy(update=update)) == first


def test_inputs_hold_nothing_that_changes_no_game():
    """Or one more variant, credit or endpoint would train all that there are anew."""
    more, dealt = {"report": Endpoint(base_url="http://c", model="m")}, PARAMS.online.weights
    for block, update in (
        ("online", {"variants": ["aria", "other"], "weights": {**dealt, "household": 9.0}}),
        ("aggregate", {"further": ["gae"]}),
    ):
        changed = getattr(PARAMS, block).model_copy(update=update)
        assert inputs(PARAMS.model_copy(update={block: changed})) == inputs(PARAMS)
    assert inputs(PARAMS.model_copy(update={"endpoints": more})) == inputs(PARAMS)
    dealt_otherwise = PARAMS.online.model_copy(update={"weights": {"negotiation": 9.0}})
    assert inputs(PARAMS.model_copy(update={"online": dealt_otherwise})) != inputs(PARAMS)


def test_inputs_follow_the_code_that_plays_and_credits(monkeypatch):
    needed = {"arena.collection", "games.bargaining", "intentions.log", "credit.chain"}
    assert {f"aria_dvc.{name}" for name in needed} <= code_of(online_module.__name__).keys()
    before = inputs(PARAMS)
    monkeypatch.setattr(online_module, "code_hash", lambda module: f"{module} changed")
    assert inputs(PARAMS) != before


URLS = [("http://a", 1), ("http://b", 1), ("http://a", 2)]


def inputs(params):
    return OnlineGames(params, "adversarial").inputs()


def test_only_a_category_with_playable_games_goes_online(monkeypatch, tmp_path):
    went = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "aria_dvc.learning.online.train_online", lambda *settings, **_: went.append(settings[-1])
    )
    own = LogSource(source="log.jsonl", category="single_agent")
    params = PARAMS.model_copy(
        update={"logs": {"bargaining": PARAMS.logs["bargaining"], "chats": own}}
    )
    for category in ("adversarial", "single_agent"):
        stages.online.main(params, "aria", category)
    assert went == [paths.online("aria", "adversarial")]
    assert read_json(paths.online("aria", "single_agent") / "metrics.json") == {
        "not_trained": "no log of the category is of a game that can be played"
    }


def test_a_category_has_its_own_numbers():
    course = {"single_agent": OnlineCourse(games=8, updates=2)}
    online = PARAMS.online.model_copy(update={"by_category": course})
    own, other = online.course_of("single_agent"), online.course_of("adversarial")
    assert (own.games, own.updates, own.iterations) == (8, 2, online.iterations)
    assert other == online.model_copy(update={"by_category": {}})
