"""A model card: what a policy is, how to load it, how well it plays, and what it is not."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from typing import TYPE_CHECKING, Any

from ruamel.yaml import YAML

from aria_dvc.handover.finished import Finished
from aria_dvc.models.packaged import LANGUAGE_MODELS
from aria_dvc.settings.training import VANILLA

if TYPE_CHECKING:
    from huggingface_hub import ModelCard

PAPER = "[ARIA](https://arxiv.org/abs/2506.00539)"
TAGS = ("aria-dvc", "dialogue-games", "reinforcement-learning")
BASE_NAMED = "named by `base_model_name_or_path` of `adapter_config.json`"
ADAPTER, MERGED = "A LoRA adapter", "A model (a LoRA adapter merged into its base)"
LIMITS = (
    "It plays the games named above, prompted and refereed as aria-dvc does, in English. It is no "
    "assistant, and was trained and judged on nothing else.",
    "It was paid for winning, not for saying what is true: in a negotiation it may mislead.",
    "Rates hold against the opponents and configurations of `evaluate` in params.yaml. Others may "
    "find it easy to beat.",
    "Another seed or machine gives other figures; two seeds may differ by more than two methods.",
)


def make_card(policy: Finished, base: str, *, is_merged: bool, is_adapter: bool) -> ModelCard:
    """The card of a policy's folder.

    Args:
        base: what its base is called; a Hugging Face id becomes metadata, a folder does not.
    """
    from huggingface_hub import ModelCard

    metadata = _metadata(policy, base, is_adapter and not is_merged)
    parts = [
        _about(policy, base, is_merged, is_adapter),
        _use(is_adapter and not is_merged),
        "\n".join(_results(policy)),
        _trained_on(policy),
        _settings(policy),
        "## Limits\n\n" + "\n".join(f"- {text}" for text in LIMITS),
    ]
    return ModelCard(f"---\n{metadata}\n---\n\n" + "\n\n".join(parts) + "\n")


def without_peft(card: ModelCard) -> ModelCard:
    """The card of an adapter, for the model that it is merged into."""
    card.data["library_name"] = "transformers"
    for old, new in zip(_texts(True), _texts(False), strict=True):
        card.text = card.text.replace(old, new)
    return card


def _texts(is_peft: bool) -> tuple[str, ...]:
    """What a card says of an adapter, and in its place of a merged model."""
    if is_peft:
        return _use(True), f", {BASE_NAMED}", ADAPTER
    return _use(False), "", MERGED


def _metadata(policy: Finished, base: str, is_peft: bool) -> str:
    from huggingface_hub import EvalResult, ModelCardData

    results = [
        EvalResult(
            task_type="text-generation",
            dataset_type="aria-dvc",
            dataset_name=game,
            dataset_config=game,
            metric_type="success_rate",
            metric_value=numbers["all"][policy.variant]["rate"],
        )
        for game, numbers in policy.evaluation.items()
    ]
    return str(
        ModelCardData(
            base_model=base if is_hub_id(base) else None,
            library_name="peft" if is_peft else "transformers",
            pipeline_tag="text-generation",
            tags=list(TAGS),
            language="en",
            model_name=f"{policy.variant}-{policy.category}",
            eval_results=results or None,
        ).to_yaml()
    )


def is_hub_id(name: str) -> bool:
    """Whether a model is called as on Hugging Face's hub: owner/name, of old models name alone."""
    told = name.count("/") <= 1 and not name.startswith((".", "/", "~"))
    return told and name not in LANGUAGE_MODELS


def _about(policy: Finished, base: str, is_merged: bool, is_adapter: bool) -> str:
    form = (MERGED if is_merged else ADAPTER) if is_adapter else "A model"
    changes = policy.settings.get(f"variants.{policy.variant}", {})
    how = ", ".join(f"{key}: {value}" for key, value in changes.items()) or "the block policy"
    named = f", {BASE_NAMED}" if is_adapter and not is_merged else ""
    return (
        f"# {policy.variant}, {policy.category}\n\n{form} trained on dialogue games with "
        f"aria-dvc, which runs {PAPER} as a data-versioned pipeline: variant `{policy.variant}` "
        f"({how}) of the category {policy.category}. {_base(policy, base)}{named}."
    )


def _base(policy: Finished, base: str) -> str:
    known = f"`{base}`" if is_hub_id(base) else "a model of its own"
    if "source" not in policy.base:
        return f"Its base is {known}"
    learned = " after supervised training on scripted dialogues of the games"
    warm = learned if policy.base.get("warm_start") else ""
    return f"Its base is {known}: `{policy.base['source']}`{warm}"


def _use(is_peft: bool) -> str:
    loader = "AutoPeftModelForCausalLM" if is_peft else "AutoModelForCausalLM"
    library = "peft" if is_peft else "transformers"
    return (
        "## Use\n\n```python\n"
        f"from {library} import {loader}\nfrom transformers import AutoTokenizer\n\n"
        f"model = {loader}.from_pretrained(FOLDER)\n"
        "tokenizer = AutoTokenizer.from_pretrained(FOLDER)  # with the chat template\n```"
    )


def _results(policy: Finished) -> Iterator[str]:
    yield "## Results\n"
    if not policy.evaluation:
        yield "Not evaluated."
        return
    yield "Win or success rates with 95 % intervals; the difference to the base is paired.\n"
    yield f"| game | role | games | {policy.variant} | {VANILLA} | difference, all roles |"
    yield "|---|---|---|---|---|---|"
    for game, numbers in policy.evaluation.items():
        roles = {**numbers["by_role"], **({"all": numbers["all"]} if numbers["all"] else {})}
        for role, by_variant in roles.items():
            own, base = (by_variant.get(name) for name in (policy.variant, VANILLA))
            gain = numbers["minus_vanilla"].get(policy.variant) if role == "all" else None
            cells = [game, role, str(own["episodes"]), _rate(own), _rate(base), _gain(gain)]
            yield f"| {' | '.join(cells)} |"
    if policy.warnings:
        yield "\nWarnings of the run:\n"
        yield from (f"- {text}" for text in policy.warnings)


def _rate(found: dict[str, Any] | None) -> str:
    if found is None or found["rate"] is None:
        return ""
    return f"{found['rate']:.2f} ({found['low']:.2f} to {found['high']:.2f})"


def _gain(found: dict[str, Any] | None) -> str:
    if found is None or found["mean"] is None:
        return ""
    interval = (
        "no interval" if found["low"] is None else f"{found['low']:+.2f} to {found['high']:+.2f}"
    )
    undecided = "; too few games to decide" if found["undecided"] else ""
    return f"{found['mean']:+.2f} ({interval}){undecided}"


def _trained_on(policy: Finished) -> str:
    rows = [f"| `{path}` | `{md5}` |" for path, md5 in policy.sums.items()]
    which = "Git commit" if policy.is_committed else "Changes that no commit has, after Git commit"
    head = ["## Trained on", "", f"{which} `{policy.commit}`; sums are DVC's (MD5).", ""]
    return "\n".join([*head, "| data | sum |", "|---|---|", *rows])


def _settings(policy: Finished) -> str:
    text = StringIO()
    YAML().dump(policy.settings, text)
    if policy.version is None:
        off = "No version is tagged to compare with; all settings are below."
    elif policy.off_default:
        lines = [f"- `{knob}`: {value} ({default})" for knob, default, value in policy.off_default]
        off = "\n".join([f"Other than in {policy.version}, whose value stands behind:\n", *lines])
    else:
        off = f"Those of {policy.version}."
    fold = f"<details><summary>all</summary>\n\n```yaml\n{text.getvalue()}```\n\n</details>"
    return f"## Settings\n\n{off}\n\n{fold}"
