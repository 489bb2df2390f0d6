"""The adapters of trainers that are not installed here, on stand-ins of the documented classes."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import pytest
import torch
from tests.test_exports import log_file
from tests.test_serve import chat, fit

from aria_dvc.adapters import rllm, skyrl
from aria_dvc.adapters.credits import credits_of
from aria_dvc.errors import AriaError


@dataclass
class Step:
    """Of rllm/types.py at 9beb6e0f: the fields that a rollout fills and the trainer reads."""

    id: str = "step"
    prompt_ids: list[int] = field(default_factory=list)
    response_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    chat_completions: list[dict] = field(default_factory=list)
    reward: float = 0.0
    advantage: list[float] | float | None = None


@dataclass
class Trajectory:
    """Same file; `is_cumulative` as documented: every chat begins with the chat before it."""

    steps: list[Step]
    name: str = "solver"
    reward: float | None = None

    def is_cumulative(self) -> bool:
        chats = [step.chat_completions for step in self.steps]
        return all(b[: len(a)] == a for a, b in pairwise(chats))


@dataclass
class TrajectoryGroup:
    """Same file."""

    trajectories: list[Trajectory]
    group_id: str = "task:solver"
    metadata: list[dict] = field(default_factory=list)


def steps(*chats: list[dict]) -> Trajectory:
    return Trajectory([Step(response_ids=[7, 8], chat_completions=c) for c in chats])


def advantages(group: TrajectoryGroup) -> list[list[float]]:
    return [[step.advantage for step in t.steps] for t in group.trajectories]


def test_rllm_s_steps_get_their_credit_less_the_group_s_mean():
    asked: list[list[dict]] = []

    def credits(chats):
        asked.extend(chats)
        return [[float(len(m["content"])) for m in c if m["role"] == "assistant"] for c in chats]

    grows = steps(chat("a"), chat("a", "x", "abc"))
    forgets = steps(chat("ab"), [{"role": "user", "content": "summary"}, *chat("abcdef")])
    groups = [TrajectoryGroup([grows, forgets]), TrajectoryGroup([steps(chat("abcd")), steps()])]
    hook = rllm.with_turn_credits(lambda episodes, transform, filtering: episodes, credits)
    assert hook(groups, None, None) is groups
    assert [len(c) for c in asked] == [3, 1, 2, 1]  # the growing chat is asked once
    assert advantages(groups[0]) == [[-2.0, 0.0], [-1.0, 3.0]]
    assert advantages(groups[1]) == [[0.0], []]
    assert type(grows.steps[0].advantage) is float  # rLLM refuses other numbers


def test_rllm_s_steps_are_credited_by_a_fit(tmp_path):
    credits = credits_of(fit(log_file(tmp_path)), "alice")
    long = chat("hello", "60?", "I take it")
    long[-1]["reasoning"] = "as `Step.from_model_output` writes it"
    group = TrajectoryGroup([steps(long[:1], long), steps(chat("no"))])
    rllm.credit_groups([group], credits)
    first, last = credits([long])[0]
    ((only,),) = credits([chat("no")])
    mean = (first + last + only) / 3
    found = [value for row in advantages(group) for value in row]
    assert found == pytest.approx([first - mean, last - mean, only - mean])


@pytest.mark.parametrize("said", [[], chat("hello", "60?")])
def test_a_step_without_its_reply_is_an_error(said):
    with pytest.raises(AriaError, match="step step: its chat_completions must end with the reply"):
        rllm.credit_groups([TrajectoryGroup([steps(said)])], lambda chats: [[1.0]])


class Env:
    """Of skyrl_gym/envs/base_text_env.py, 0.4.0: `init` and `step`, whose reward is the outcome."""

    def __init__(self, turns: int = 2, postprocessed: str | None = None) -> None:
        self.turns, self.postprocessed = turns, postprocessed

    def init(self, prompt):
        return prompt, {}

    def step(self, action):
        self.turns -= 1
        done = self.turns == 0
        return {
            "observations": [] if done else [{"role": "user", "content": "60?"}],
            "reward": float(done),
            "done": done,
            "metadata": {},
            "postprocessed_action": self.postprocessed,
        }


PROMPT = [{"role": "user", "content": "begin"}]


def test_a_step_in_skyrl_s_environment_is_paid_by_its_credit(tmp_path):
    credits = credits_of(fit(log_file(tmp_path)), "alice")
    env = skyrl.with_turn_credits(Env, credits)()
    assert env.init(PROMPT) == (PROMPT, {})
    found = [env.step("hello"), env.step("I take it")]
    expected = credits([[*PROMPT, *chat("hello", "60?", "I take it")]])[0]
    assert [one["reward"] for one in found] == pytest.approx(expected)
    assert [one["done"] for one in found] == [False, True]
    assert len(PROMPT) == 1


def test_the_message_that_skyrl_keeps_is_the_one_that_is_credited():
    asked = []
    credits = lambda chats: asked.extend(list(c) for c in chats) or [[0.0]]  # noqa: E731
    env = skyrl.with_turn_credits(Env, credits)(postprocessed="cut")
    env.init(PROMPT)
    assert env.step("cut here")["reward"] == skyrl.NOUGHT
    assert asked == [[*PROMPT, {"role": "assistant", "content": "cut"}]]


def test_the_real_environment_of_skyrl_gym_is_wrapped():
    gym = pytest.importorskip("skyrl_gym.envs.base_text_env")

    class Echo(gym.BaseTextEnv):
        def step(self, action):
            return gym.BaseTextEnvStepOutput(
                observations=[], reward=1.0, done=True, metadata={}, postprocessed_action=None
            )

    import skyrl_gym

    paid = skyrl.with_turn_credits(Echo, lambda chats: [[0.25]])
    skyrl_gym.register(id="aria_echo", entry_point=lambda **_: paid())
    env = skyrl_gym.make("aria_echo")
    env.init(PROMPT)
    assert env.step("hello")["reward"] == 0.25


def output(**more) -> dict:
    """A GeneratorOutput of skyrl/train/generators/base.py: two responses, of two turns and one."""
    return {
        "prompt_token_ids": [[1], [1]],
        "response_ids": [[5, 6, 7, 8, 9], [5, 6, 7]],
        "rewards": [1.0, 0.0],
        "loss_masks": [[1, 1, 0, 1, 1], [1, 1, 1]],
        "stop_reasons": ["stop", "stop"],
        "rollout_metrics": None,
        "rollout_logprobs": None,
        "trajectory_ids": None,
        "is_last_step": None,
        **more,
    }


CHATS = [chat("given", "x", "a", "y", "b"), chat("c")]


def credited() -> dict:
    made = output()
    skyrl.credit_output(made, CHATS, lambda chats: [[9.0, 0.5, 0.0], [2.0]])
    return made


def test_skyrl_s_output_gets_rewards_at_the_ends_of_its_turns():
    made = credited()
    zero = pytest.approx(skyrl.NOUGHT, rel=1e-6)
    assert made["rewards"] == [[0.0, 0.5, 0.0, 0.0, zero], [0.0, 0.0, 2.0]]
    assert {k: v for k, v in made.items() if k != "rewards"} == {
        k: v for k, v in output().items() if k != "rewards"
    }


def test_skyrl_s_output_that_cannot_hold_the_credits_is_refused():
    with pytest.raises(AriaError, match="set step_wise_trajectories=false"):
        skyrl.credit_output(output(is_last_step=[True, True]), CHATS, lambda chats: [])
    with pytest.raises(AriaError, match="response 0 has 2 turns but 1 credits"):
        skyrl.credit_output(output(), CHATS, lambda chats: [[1.0], [2.0]])


def batch() -> dict:
    """As SkyRL's trainer makes it: right-aligned, its mask 1 at every token of the response."""
    rows = credited()["rewards"]
    longest = max(map(len, rows))
    right = lambda row: [0.0] * (longest - len(row)) + row  # noqa: E731
    return {
        "token_level_rewards": torch.tensor([right(row) for row in rows]),
        "response_mask": torch.tensor([right([1.0] * len(row)) for row in rows]),
        "index": ["p", "p"],
        "values": None,
        "grpo_norm_by_std": True,
        "gamma": 1.0,
        "lambd": 1.0,
    }


def test_skyrl_s_estimator_keeps_the_turns_even_with_a_credit_of_nought():
    advantages, returns = skyrl.estimate(**batch())
    mean = 2.5 / 3
    expected = [[0.5] * 2 + [0.0] * 3, [0.0, 0.0] + [2.0] * 3]
    torch.testing.assert_close(returns, torch.tensor(expected))
    torch.testing.assert_close(
        advantages, (torch.tensor(expected) - mean) * batch()["response_mask"]
    )


def test_skyrl_s_tokens_that_lead_to_no_reward_have_no_advantage():
    rewards = torch.tensor([[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    advantages, _ = skyrl.estimate(rewards, torch.ones(2, 4), ["p", "q"])
    assert advantages.abs().sum() == 0  # one turn alone is its own mean
    advantages, _ = skyrl.estimate(torch.tensor([[1.0, 3.0, 0.0]]), torch.ones(1, 3), ["p"])
    assert advantages.tolist() == [[-1.0, 1.0, 0.0]]


def test_skyrl_s_penalty_in_the_reward_is_refused():
    @dataclass
    class AlgorithmConfig:
        use_kl_in_reward: bool = True

    with pytest.raises(AriaError, match="set use_kl_loss=true"):
        skyrl.estimate(**batch(), config=AlgorithmConfig())


def test_skyrl_calls_the_estimator():
    ppo = pytest.importorskip("skyrl.backends.skyrl_train.utils.ppo_utils", exc_type=ImportError)
    skyrl.register()
    skyrl.register()
    options = {**batch(), "adv_estimator": skyrl.NAME, "config": None}
    advantages, _ = ppo.compute_advantages_and_returns(**options)
    torch.testing.assert_close(advantages, skyrl.estimate(**batch())[0])
