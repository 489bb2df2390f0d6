"""From collected games to a better policy: everything that plays and trains is real, and tiny."""

from pathlib import Path

import numpy as np
import pandas as pd
from fake_game import CountingGame, CountingMatch, Talker, collect_episodes
from learning_tiny import LORA, online_params, policy_params, reward_params
from settings import pace, play_settings
from tiny_models import tiny_model, tiny_tokenizer

from aria_dvc.arena.assignments import assign
from aria_dvc.games.base import Outcome
from aria_dvc.learning.examples import LogFrames
from aria_dvc.learning.online import train_online
from aria_dvc.learning.policy import train_policy
from aria_dvc.models.source import ModelSource
from aria_dvc.params import load_params
from aria_dvc.pipeline.online import OnlineGames
from aria_dvc.players import policy
from aria_dvc.players.registry import PlayerContext
from aria_dvc.records.tables import episodes_table, turns_table

PARAMS = load_params(Path(__file__).parent.parent / "params.yaml")
PACE = pace(in_flight=64, tokens_per_batch=8192)
PLAY = play_settings(max_new_tokens=2, max_reasks=0)
STRONG = LORA.model_copy(
    update={"rank": 8, "alpha": 16, "target_modules": ["q_proj", "v_proj", "o_proj", "down_proj"]}
)
POLICY = policy_params(
    credit="discounted", advantage="centred", epochs=1, lora=STRONG, learning_rate=1e-3
)
ONLINE = online_params(
    variants=["discounted"], iterations=5, games=64, updates=4, batch_size=64, learning_rate=2e-2
)


class LetterMatch(CountingMatch):
    """Alice says a word, Bob answers: she wins if it begins with a letter of the alphabet."""

    game = "letters"

    def play(self, text):
        super().play(text)
        if self.outcome:
            own = float(self.lines[0][1][0].isalpha())
            self.outcome = Outcome({"alice": own}, "done", {"alice": own, "bob": 0.5}, {})


class LetterGame(CountingGame):
    name = "letters"

    def start(self, config, reward="win"):
        return LetterMatch(config)


GAME = LetterGame(rounds=2)


def play(base, adapter, episodes, seed):
    context = PlayerContext(PLAY, PACE, base, adapter=adapter)
    players = {"alice": context.player("policy"), "bob": Talker(lambda request: "ok")}
    return collect_episodes(GAME, assign(GAME, episodes, seed), players, PLAY, PACE)


def wins(episodes):
    return np.mean([episode.rewards["alice"] for episode in episodes])


def test_collected_games_and_online_training_make_a_policy_that_wins(tmp_path):
    tiny_model(seed=1).save_pretrained(tmp_path / "base")
    tiny_tokenizer().save_pretrained(tmp_path / "base")
    base, credit = ModelSource(tmp_path / "base"), OnlineGames(PARAMS, "adversarial").aggregate
    collected = play(base, None, 64, 0)
    turns = turns_table(collected)
    rewards = credit({"letters": turns}, "discounted")["letters"]
    frames = LogFrames("letters", turns, episodes_table(collected), rewards)
    cached = {"seed": 0, "cache": tmp_path / "cache"}
    train_policy(POLICY, PACE, [frames], base, tmp_path / "offline", **cached)
    metrics = train_online(
        POLICY, ONLINE, reward_params(), PACE, base, tmp_path / "offline", tmp_path / "none",
        tmp_path / "online", aggregate=credit, **cached,
        rollout=lambda adapter, iteration, seed: play(base, adapter, ONLINE.games, seed),
    )  # fmt: skip
    before, after = (wins(play(base, path, 300, 1)) for path in (None, tmp_path / "online"))
    noise = np.sqrt((before * (1 - before) + after * (1 - after)) / 300)
    assert after - before > 4 * noise
    assert len(metrics["curve"]["letters"]["alice"]["win_rate"]) == 2
    moved = pd.read_csv(tmp_path / "online" / "online.csv")["kl_per_action"]
    assert 0 < moved.iloc[0] < moved.iloc[-1]


def test_games_that_share_a_loaded_model_are_the_games_of_their_own(tmp_path, monkeypatch):
    tiny_model(seed=1).save_pretrained(tmp_path / "base")
    tiny_tokenizer().save_pretrained(tmp_path / "base")
    base, loaded = ModelSource(tmp_path / "base"), []

    def counted(*what, inner=policy.load_for_play):
        loaded.append(what)
        return inner(*what)

    def texts():
        return [
            [u.text for e in play(base, None, 8, seed) for u in e.utterances] for seed in (1, 2)
        ]

    monkeypatch.setattr(policy, "load_for_play", counted)
    with policy.shared_engines():
        shared = texts()
    assert len(loaded) == 1
    assert texts() == shared
    assert len(loaded) == 3
