"""The REINFORCE objective on whole dialogues: sum over t of log pi(a_t | h_t) A_t (sec. 3.5)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from aria_dvc.learning.examples import PLAIN, Example, SampledAt
from aria_dvc.learning.packing import Laying, model_inputs
from aria_dvc.learning.tree_attention import use_tree_attention
from aria_dvc.models.hooks import hooked
from aria_dvc.models.nucleus import nuclei

Tensors = dict[str, torch.Tensor]
# Where the logits of a trained token are, and how it was drawn from them.
_DRAWN = np.dtype([("place", np.int64), ("temperature", np.float32), ("top_p", np.float32)])


@dataclass(frozen=True)
class PolicyCollate(Laying):
    """The collator of (example, weights of its actions).

    Every micro-batch has, for U places whose next tokens are trained and N trained tokens:
    input_ids, attention_mask and position_ids (see `Layout`); rows (U,) int64, the places; at
    (N,) int64, which of them predicts a trained token; targets (N,) int64; weights (N,) float32;
    temperature and top_p (U,) float32, unless all are 1; count, the actions of the global batch;
    spoken, the actions of the micro-batch that have trained tokens; and the scores of the examples,
    (N,) float32 each, by their names.

    keep_zero: train tokens of weight 0 too (a KL term needs them).
    """

    keep_zero: bool = False

    def __call__(self, members: Sequence[Any], count: int) -> Tensors:
        sequences = [example for example, _ in members]
        layout = self.lay_out(sequences)
        trained = [self._trained(example, values) for example, values in members]
        tokens = [found for found, _ in trained]
        drawn = np.concatenate(list(map(_drawn, sequences, layout.places, tokens)))
        rows, at = np.unique(drawn, return_inverse=True)
        per_token = {
            "targets": [e.input_ids[t] for e, t in zip(sequences, tokens, strict=True)],
            "weights": [weights for _, weights in trained],
            **{
                name: [e.scores[name][t] for e, t in zip(sequences, tokens, strict=True)]
                for name in sequences[0].scores
            },
        }
        inputs = {
            **layout.inputs,
            "rows": torch.from_numpy(rows["place"].copy()),
            "at": torch.from_numpy(at.reshape(-1)),
            **{name: torch.from_numpy(np.concatenate(a)) for name, a in per_token.items()},
            "count": torch.tensor(float(count)),
            "spoken": torch.tensor(float(sum(map(_spoken, sequences, tokens)))),
        }
        if any(example.sampled != PLAIN for example in sequences):
            for name in SampledAt._fields:
                inputs[name] = torch.from_numpy(rows[name].copy())
        return inputs

    def _trained(self, example: Example, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(n,) the example's trained tokens, and their weights."""
        tokens = np.flatnonzero(example.action >= 0)
        weights = values[example.action[tokens]].astype(np.float32)
        live = ~np.isnan(weights) & (self.keep_zero | (weights != 0.0))
        return tokens[live], weights[live]


def _spoken(example: Example, tokens: np.ndarray) -> int:
    """How many actions the tokens belong to."""
    return len(np.unique(example.action[tokens]))


def _drawn(example: Example, places: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """(n,) _DRAWN of an example's tokens: each is drawn at the place before its own."""
    drawn = np.empty(len(tokens), dtype=_DRAWN)
    drawn["place"] = places[tokens - 1]
    drawn["temperature"], drawn["top_p"] = example.sampled
    return drawn


def policy_collate(pad_id: int, keep_zero: bool = False, *, model: Any = None) -> PolicyCollate:
    """The collator for `model`: as prefix trees if its attention can take them.

    Args:
        model: gets tree attention; None stands for one that cannot.
    """
    packed = model is not None and use_tree_attention(model)
    return PolicyCollate(pad_id, packed, keep_zero)


def only_at(head: torch.nn.Module, rows: torch.Tensor) -> AbstractContextManager[None]:
    """Make the output head see only the places in `rows`: (B, L, H) becomes (U, H).

    A hook on the head works inside any wrapper (DDP, FSDP, DeepSpeed, LoRA), and the other
    positions' logits, most of the memory of a step, are never computed.
    """
    return hooked(
        head.register_forward_pre_hook,
        lambda module, args: (_flat(args[0])[rows], *args[1:]),
    )


def _flat(hidden: torch.Tensor) -> torch.Tensor:
    return hidden.flatten(0, -2)


def output_head(model: Any) -> torch.nn.Module:
    """The language-model head inside any wrapper."""
    while hasattr(model, "module"):
        model = model.module
    return model.get_output_embeddings()


def selected_logits(model: Any, inputs: Tensors) -> torch.Tensor:
    """Logits (U, V) float32 from which the trained tokens were drawn."""
    with only_at(output_head(model), inputs["rows"]):
        output = model(**model_inputs(inputs))
    return output.logits.float()


def weighted_nll(logits: torch.Tensor, inputs: Tensors) -> torch.Tensor:
    """-sum of A * log pi over the trained tokens, divided by the global batch's actions.

    Args:
        logits: (U, V).
    """
    return -(inputs["weights"] * token_logprobs(logits, inputs)).sum() / inputs["count"]


def token_logprobs(logits: torch.Tensor, inputs: Tensors) -> torch.Tensor:
    """log pi (N,) of the trained tokens under the distribution that they were drawn from.

    That is softmax(logits / temperature), cut to the nucleus of the *current* logits and
    renormalised; a token that has left the nucleus since it was drawn counts as inside.

    Args:
        logits: (U, V) float32.
    """
    at, targets = inputs["at"], inputs["targets"]
    if "top_p" not in inputs:
        return logits.log_softmax(dim=-1)[at, targets]
    temperature = inputs["temperature"]
    total, floor = _nucleus_totals(logits, temperature, inputs["top_p"])
    picked, total = logits[at, targets] / temperature[at], total[at]
    outside = picked.detach() < floor[at]
    return picked - torch.where(outside, torch.logaddexp(total, picked), total)


def _nucleus_totals(
    logits: torch.Tensor, temperature: torch.Tensor, top_p: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Of every row's nucleus the log of the sum of exp(logit / temperature), and the smallest of
    these quotients, -inf where nothing is cut: (U,) and (U,), the latter without a gradient."""
    whole, cut = (top_p >= 1).nonzero()[:, 0], (top_p < 1).nonzero()[:, 0]
    rows, left = [whole], _rows_of(logits, cut)
    totals = [(_rows_of(logits, whole) / temperature[whole, None]).logsumexp(dim=-1)]
    floors = [logits.new_full((len(whole),), float("-inf"))]
    for found in nuclei(left.detach(), temperature[cut], top_p[cut]):
        scaled = _rows_of(left, found.rows).gather(-1, found.tokens)
        scaled = scaled / temperature[cut[found.rows], None]
        totals.append(scaled.masked_fill(~found.kept, float("-inf")).logsumexp(dim=-1))
        floors.append(scaled.detach().masked_fill(~found.kept, float("inf")).amin(dim=-1))
        rows.append(cut[found.rows])
    order = torch.cat(rows).argsort()
    return torch.cat(totals)[order], torch.cat(floors)[order]


def _rows_of(logits: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Those rows of logits, which are not copied where it is all of them."""
    return logits if len(rows) == len(logits) else logits.index_select(0, rows)


def kl_to(reference: torch.Tensor, logits: torch.Tensor, inputs: Tensors) -> torch.Tensor:
    """KL(policy || reference) summed over the trained tokens, divided by the actions.

    Args:
        reference, logits: (U, V); exact over the vocabulary at temperature 1, no sampling.
    """
    policy_log, reference_log = logits.log_softmax(-1), reference.log_softmax(-1)
    per_row = (policy_log.exp() * (policy_log - reference_log)).sum(-1)
    return per_row[inputs["at"]].sum() / inputs["count"]


def entropy_of(
    logits: torch.Tensor, inputs: Tensors, most_tokens: int | None = None
) -> torch.Tensor:
    """Entropy of the policy at the trained tokens, in nats, divided by the actions.

    Args:
        logits: (U, V); at temperature 1.
        most_tokens: estimate it from so many of them, evenly spaced; None: exact.
    """
    at = inputs["at"]
    step = math.ceil(len(at) / most_tokens) if most_tokens else 1
    if step > 1:
        log = logits[at[::step]].log_softmax(-1)
        per_token = -(log.exp() * log).sum(-1)
        return per_token.mean() * len(at) / inputs["count"]
    log = logits.log_softmax(-1)
    return -(log.exp() * log).sum(-1)[at].sum() / inputs["count"]


ReferenceLogits = Callable[[Any, Tensors], torch.Tensor]


@dataclass(frozen=True)
class KlPenalty:
    """What leaving the base model costs: `weight` times the KL divergence to `reference`."""

    weight: float
    reference: ReferenceLogits

    def __call__(self, model: Any, inputs: Tensors, logits: torch.Tensor) -> torch.Tensor:
        return self.weight * kl_to(self.reference(model, inputs), logits, inputs)


@torch.no_grad()
def adapter_off(model: Any, inputs: Tensors) -> torch.Tensor:
    """Logits of the base model underneath a LoRA adapter."""
    inner = model
    while hasattr(inner, "module"):
        inner = inner.module
    with inner.disable_adapter():
        return selected_logits(model, inputs)


def frozen_copy(reference: Any) -> ReferenceLogits:
    """Logits of a separate frozen model, for full fine-tuning."""
    reference.requires_grad_(False).eval()
    use_tree_attention(reference)  # if the policy has it, its base can

    @torch.no_grad()
    def logits(model: Any, inputs: Tensors) -> torch.Tensor:
        reference.to(inputs["input_ids"].device)
        return selected_logits(reference, inputs)

    return logits
