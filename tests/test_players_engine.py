"""The engine against plain forward passes of the same model."""

from __future__ import annotations

import asyncio
import threading

import psutil
import pytest
import torch
from tests.tiny_models import tiny_model

from aria_dvc.errors import AriaError
from aria_dvc.players.base import PlayerFailure
from aria_dvc.players.engine import Engine
from aria_dvc.players.sampling import Sampling, choose, token_logprobs

END = 1


@pytest.fixture(scope="module")
def model():
    return tiny_model(vocabulary=64)


def prompt(index: int, length: int) -> list[int]:
    generator = torch.Generator().manual_seed(index)
    return torch.randint(2, 64, (length,), generator=generator).tolist()


def reference(model, ids: list[int], count: int) -> tuple[list[int], list[float]]:
    """Greedy decoding by whole forward passes; tokens and their log-probabilities."""
    ids, scores = list(ids), []
    for _ in range(count):
        logits = model(torch.tensor([ids])).logits[0, -1].float()
        token = int(logits.argmax())
        scores.append(float(logits.log_softmax(-1)[token]))
        ids.append(token)
        if token == END:
            break
    return ids[-len(scores) :], scores


def generate(engine: Engine, jobs):
    async def run():
        tasks = [engine.generate(*job) for job in jobs]
        return await asyncio.gather(*tasks)

    return asyncio.run(run())


def sampling(temperature=0.0, max_new_tokens=12, top_p=1.0, seed=0) -> Sampling:
    return Sampling(temperature, top_p, max_new_tokens, seed, logprobs=True)


def engine_of(model, slots=64, cache_bytes=4 << 30, **options) -> Engine:
    return Engine(model, [END], slots=slots, cache_bytes=cache_bytes, **options)


GREEDY = sampling()


@torch.inference_mode()
def test_many_rows_of_unlike_length_equal_plain_decoding(model):
    engine = engine_of(model, slots=4, prompt_tokens=16)
    prompts = [prompt(i, 3 + 7 * i) for i in range(24)]
    jobs = [((str(i), "a"), ids, GREEDY) for i, ids in enumerate(prompts)]
    for ids, got in zip(prompts, generate(engine, jobs), strict=True):
        tokens, scores = reference(model, ids, 12)
        assert got.token_ids == tokens
        assert got.logprobs == pytest.approx(scores, abs=1e-4)


@torch.inference_mode()
def test_later_turns_compute_only_what_is_new(model):
    engine = engine_of(model, slots=2)
    first = generate(engine, [(("0", "a"), prompt(0, 40), GREEDY)])[0]
    longer = prompt(0, 40) + first.token_ids + prompt(1, 5)
    second = generate(engine, [(("0", "a"), longer, GREEDY)])[0]
    assert second.computed_tokens == 5 + 1  # the last token of a reply was never fed back
    assert second.prompt_tokens == len(longer)
    assert second.token_ids == reference(model, longer, 12)[0]


@torch.inference_mode()
def test_a_changed_history_is_recomputed_from_the_change(model):
    engine = engine_of(model, slots=1)
    ids = prompt(0, 40)
    generate(engine, [(("0", "a"), ids, GREEDY)])
    changed = [*ids[:30], 2 if ids[30] != 2 else 3, *ids[31:]]
    again = generate(engine, [(("0", "a"), changed, GREEDY)])[0]
    assert again.computed_tokens == 10
    assert again.token_ids == reference(model, changed, 12)[0]


@torch.inference_mode()
def test_a_new_dialogue_borrows_a_shared_beginning(model):
    engine = engine_of(model, slots=4)
    system = prompt(0, 60)
    generate(engine, [(("0", "a"), system + prompt(1, 6), GREEDY)])
    other = system + prompt(2, 8)
    got = generate(engine, [(("1", "a"), other, GREEDY)])[0]
    assert got.computed_tokens <= 8
    assert got.token_ids == reference(model, other, 12)[0]


@torch.inference_mode()
def test_dialogues_that_start_together_compute_their_shared_beginning_once(model):
    engine = engine_of(model, slots=16, prompt_tokens=80)
    system = prompt(0, 60)
    prompts = [system + prompt(i, 8) for i in range(1, 17)]
    got = generate(engine, [((str(i), "a"), ids, GREEDY) for i, ids in enumerate(prompts)])
    for ids, result in zip(prompts, got, strict=True):
        assert result.token_ids == reference(model, ids, 12)[0]
    assert sum(result.computed_tokens for result in got) < 2 * 68 + 14 * 9


@torch.inference_mode()
def test_a_small_cache_forgets_idle_dialogues_and_stays_right(model):
    cell = engine_of(model).allocator.cache.shape.token_bytes
    engine = engine_of(model, slots=64, cache_bytes=3 * 256 * cell)
    jobs = [((str(i), "a"), prompt(i, 20 + i), GREEDY) for i in range(10)]
    got = generate(engine, jobs) + generate(engine, jobs[::-1])[::-1]
    for (_, ids, _), result in zip(jobs + jobs, got, strict=True):
        assert result.token_ids == reference(model, ids, 12)[0]
    assert engine.allocator.cache.slots * engine.allocator.cache.length <= 3 * 256
    long = prompt(0, 600)
    assert (
        generate(engine, [(("l", "a"), long, GREEDY)])[0].token_ids
        == (reference(model, long, 12)[0])
    )
    assert engine.allocator.cache.slots * engine.allocator.cache.length <= 3 * 256


def test_a_prompt_beyond_the_model_is_the_players_failure(model):
    engine = engine_of(model)
    with pytest.raises(PlayerFailure) as caught:
        generate(engine, [(("0", "a"), prompt(0, 2040), GREEDY)])
    assert caught.value.kind == "context_full"


def test_a_prompt_beyond_the_cache_is_a_mistake_in_the_settings(model):
    with pytest.raises(AriaError, match=r"raise pace\.cache_gib or lower max_new_tokens"):
        generate(engine_of(model, cache_bytes=1), [(("0", "a"), prompt(0, 250), GREEDY)])


@torch.inference_mode()
def test_a_rows_draws_depend_on_its_own_seed_only(model):
    def drawn(others: int) -> list[int]:
        engine = engine_of(model, slots=8)
        jobs = [
            ((str(i), "a"), prompt(i, 10), sampling(1.0, 20, 0.9, seed=i))
            for i in range(1 + others)
        ]
        return generate(engine, jobs)[0].token_ids

    assert drawn(0) == drawn(7)
    assert len(set(drawn(0))) > 3


@torch.inference_mode()
def test_freed_slots_are_used_again(model):
    engine = engine_of(model, slots=2)
    for i in range(12):
        generate(engine, [((str(i), "a"), prompt(i, 10), GREEDY)])
        engine.finished(str(i))
    assert engine.allocator.cache.slots == 4  # both roles of two games


@torch.inference_mode()
def test_room_that_is_not_used_takes_no_memory(model):
    before = psutil.Process().memory_info().rss
    engine = engine_of(model, slots=64, cache_bytes=2 << 30)
    generate(engine, [((str(i), "a"), prompt(i, 10), GREEDY) for i in range(128)])
    cache = engine.allocator.cache
    room = cache.slots * cache.length * cache.shape.token_bytes
    assert cache.slots == 128
    assert room > 1.7 * 2**30
    assert psutil.Process().memory_info().rss - before < room / 8


def test_steps_compute_in_the_thread_that_asks(model, monkeypatch):
    """OpenMP puts the threads of a second one to sleep after every operation."""
    forward, threads = model.forward, set()

    def noted(*args, **settings):
        threads.add(threading.current_thread())
        return forward(*args, **settings)

    monkeypatch.setattr(model, "forward", noted)
    generate(engine_of(model), [(("0", "a"), prompt(0, 9), GREEDY)])
    assert threads == {threading.current_thread()}


def test_closing_gives_up_what_is_under_way(model):
    engine = engine_of(model, slots=2)

    async def run() -> list:
        long = sampling(max_new_tokens=1000)
        tasks = [
            asyncio.create_task(engine.generate((str(i), "a"), prompt(i, 10), long))
            for i in range(4)
        ]
        await asyncio.sleep(0.05)
        await engine.close()
        return await asyncio.gather(*tasks, return_exceptions=True)

    assert all(isinstance(result, asyncio.CancelledError) for result in asyncio.run(run()))
    assert engine.allocator.cache.slots == 0


def test_an_error_of_the_model_reaches_every_game(model):
    engine = engine_of(model, slots=2)
    jobs = [((str(i), "a"), [70_000], GREEDY) for i in range(3)]  # no such token

    async def run() -> list:
        return await asyncio.gather(*[engine.generate(*j) for j in jobs], return_exceptions=True)

    assert all(isinstance(result, IndexError) for result in asyncio.run(run()))


def test_log_probabilities_are_at_temperature_one(model):
    hot = sampling(2.0, 16, 0.7, seed=3)
    ids = prompt(4, 9)
    got = generate(engine_of(model), [(("0", "a"), ids, hot)])[0]
    with torch.inference_mode():
        logits = model(torch.tensor([ids + got.token_ids])).logits[0].log_softmax(-1)
    places = range(len(ids) - 1, len(ids) - 1 + len(got.token_ids))
    expected = [float(logits[p, t]) for p, t in zip(places, got.token_ids, strict=True)]
    assert got.logprobs == pytest.approx(expected, abs=1e-4)


@torch.inference_mode()
def test_an_adapter_plays_and_training_attention_is_left_as_it_was(model):
    from peft import LoraConfig, get_peft_model

    adapted = get_peft_model(
        tiny_model(vocabulary=64),
        LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False),
    ).eval()
    before = adapted.config._attn_implementation
    got = generate(engine_of(adapted), [(("0", "a"), prompt(0, 30), GREEDY)])[0]
    assert got.token_ids == reference(adapted, prompt(0, 30), 12)[0]
    assert adapted.config._attn_implementation == before


def test_other_kinds_of_attention_are_refused():
    sliding = tiny_model(vocabulary=64)
    sliding.config.layer_types = ["sliding_attention", "full_attention"]
    with pytest.raises(AriaError, match="endpoint"):
        engine_of(sliding)


def exact_nucleus(logits: torch.Tensor, temperature: float, top_p: float) -> torch.Tensor:
    """Textbook distribution: sort, cut, renormalise."""
    p = (logits / temperature).softmax(-1)
    order = p.argsort(descending=True)
    kept, total = torch.zeros_like(p), 0.0
    for token in order.tolist():
        kept[token] = p[token]
        total += float(p[token])
        if total >= top_p:
            break
    return kept / kept.sum()


@pytest.mark.parametrize("top_p", [0.3, 0.9, 1.0])
@pytest.mark.parametrize("width", [20, 1000, 3000])
def test_draws_follow_the_cut_distribution(top_p, width):
    logits = torch.randn(width, generator=torch.Generator().manual_seed(0)) * 0.7
    count = 6_000
    uniform = ((torch.arange(count) + 0.5) / count).tolist()
    tokens = choose(logits.expand(count, -1), [1.3] * count, [top_p] * count, uniform)
    share = torch.bincount(tokens, minlength=width) / count
    assert float((share - exact_nucleus(logits, 1.3, top_p)).abs().max()) < 4e-4


def test_logprobs_of_chosen_tokens():
    logits = torch.tensor([[0.0, 1.0], [3.0, 0.0]])
    got = token_logprobs(logits, torch.tensor([1, 1]))
    assert got.tolist() == pytest.approx([-0.31326, -3.04859], abs=1e-4)
