"""Memory and time of a training step; docs/plan.md derives every formula.

Bytes that a layer keeps for its backward pass are counted to the byte (tests compare them with
what autograd saves); what a step adds at its peak, and the speed, are estimates.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from aria_dvc.plan.batch import Load, Reads
from aria_dvc.plan.shapes import ModelShape
from aria_dvc.settings.training import Lora

Sharding = Literal["none", "fsdp", "zero3"]
Arithmetic = Literal["float32", "narrow", "cast"]
GIB = 2**30
FLOAT, NARROW = 4, 2  # bytes of float32 and of bfloat16
# Copies of the logits in float32 at the peak of a step: of log softmax what is saved, its gradient
# and the gradient that comes in; the exact KL divergence saves four more and reads a fifth.
LOGITS, LOGITS_WITH_KL = 3, 8
# DeepSpeed's defaults: parameters that stage 3 gathers at most, gradients that it reduces at once.
ZERO3_LIVE, ZERO3_BUCKET = 1_000_000_000, 500_000_000
QUERY_KEY = ("q_proj", "k_proj")
# Matrices of a layer in the order gone through, those of one input together.
IN_ORDER = ((*QUERY_KEY, "v_proj"), ("o_proj",), ("gate_proj", "up_proj"), ("down_proj",))


@dataclass(frozen=True)
class Method:
    """What a method adds to the forward and backward passes over its sequences.

    reads: passes over all sequences before the first step. pairs: two sequences are compared.
    scores: one number an action instead of logits.
    """

    name: str
    reads: int = 0
    pairs: bool = False
    scores: bool = False
    exact_kl: bool = False


REWARD_MODEL, PROGRESS = "reward_model", "progress"
METHODS = {
    method.name: method
    for method in (
        Method("reinforce", exact_kl=True),
        Method("behaviour_cloning", exact_kl=True),
        Method("ppo", reads=2),
        Method("grpo", reads=1),
        Method("gigpo", reads=1),
        Method("igpo", reads=1),
        Method("spag", reads=1),
        Method("trajectory_dpo", reads=1, pairs=True),
        Method("step_dpo", reads=1, pairs=True),
        Method(REWARD_MODEL, scores=True),
        Method(PROGRESS, scores=True),
    )
}


@dataclass(frozen=True)
class Machine:
    """memory: bytes of a GPU. tflops: of one GPU, at its peak; utilisation: the share of it that
    training gets. on_cpu: one process on a CPU, whose attention keeps its weights."""

    gpus: int
    memory: float
    tflops: float
    utilisation: float
    sharding: Sharding = "none"
    on_cpu: bool = False


@dataclass(frozen=True)
class Training:
    """How a method trains. lora: None trains all weights."""

    method: Method
    lora: Lora | None
    bfloat16: bool
    checkpointing: bool
    kl: bool = False


@dataclass(frozen=True)
class Memory:
    """Bytes of one GPU at the peak of a step, by what takes them, in the order of the table."""

    weights: float
    gradients: float
    optimiser: float
    activations: float
    logits: float
    reference: float

    @property
    def total(self) -> float:
        return sum(getattr(self, name) for name in self.__dataclass_fields__)


@dataclass(frozen=True)
class Estimator:
    """Everything that the formulas need."""

    shape: ModelShape
    training: Training
    machine: Machine
    load: Load
    read: Reads = field(default=Reads(0, 0, 0))

    @property
    def arithmetic(self) -> Arithmetic:
        """float32; or bfloat16 with weights that are held in it (`narrow`) or cast at every use."""
        training = self.training
        if not training.bfloat16:
            return "float32"
        held = self.machine.sharding != "none" or (training.lora and not training.method.scores)
        return "narrow" if held else "cast"

    @property
    def element(self) -> int:
        """Bytes of an activation."""
        return FLOAT if self.arithmetic == "float32" else NARROW

    @property
    def parameters(self) -> int:
        """Of the model without adapters."""
        return self.shape.parameters(scores=self.training.method.scores)

    @property
    def adapted(self) -> int:
        """Layers with adapters."""
        lora, layers = self.training.lora, self.shape.layers
        return min(lora.layers or layers, layers) if lora else 0

    @property
    def trained(self) -> int:
        """Trained parameters: of adapters and a score head, or all."""
        if self.training.lora is None:
            return self.parameters
        head = self.shape.hidden if self.training.method.scores else 0
        return self.adapted * adapters_of_layer(self.shape, self.training.lora) + head

    @property
    def depth(self) -> int:
        """Layers that gradients pass: down to the lowest that has something to train. With
        checkpoints all of them, since these start from the embedding."""
        lora = self.training.lora
        return self.adapted if lora and not self.training.checkpointing else self.shape.layers

    def memory(self) -> Memory:
        return Memory(
            self._weights(),
            self._gradients(),
            self._optimiser(),
            self._activations(),
            self._logits(),
            self._reference(),
        )

    def _weights(self) -> float:
        held = NARROW if self.arithmetic == "narrow" else FLOAT
        sharding, gpus = self.machine.sharding, self.machine.gpus
        extra = self.trained if self.training.lora else 0
        if sharding == "none":
            cast = self.depth * self.shape.linear_of_layer * NARROW if self._casts else 0
            head = self.shape.embedding * NARROW if self._casts and not self._scores else 0
            return self.parameters * held + extra * FLOAT + cast + head
        kept = FLOAT if self.training.lora is None or self._scores else held
        if sharding == "zero3":
            # in the precision of training; float32 beside trained ones counts as the optimiser's
            gathered = min(ZERO3_LIVE, self.parameters) * self.element
            return (self.parameters + extra) * self.element / gpus + gathered
        two_layers = 2 * self.shape.of_layer * self.element
        root = (self.parameters - self.shape.layers * self.shape.of_layer) * self.element
        return (self.parameters * kept + extra * FLOAT) / gpus + two_layers + root

    @property
    def _scores(self) -> bool:
        return self.training.method.scores

    @property
    def _casts(self) -> bool:
        return self.arithmetic == "cast"

    def _gradients(self) -> float:
        trained, gpus = self.trained, self.machine.gpus
        if self.machine.sharding == "zero3":
            return trained * self.element / gpus + min(ZERO3_BUCKET, trained) * self.element
        if self.machine.sharding == "fsdp":
            whole = (
                self.shape.of_layer if self.training.lora is None else trained / self.shape.layers
            )
            return trained * FLOAT / gpus + whole * FLOAT
        buckets = 2 if gpus > 1 else 1  # what DistributedDataParallel sends is a copy
        return buckets * trained * FLOAT

    def _optimiser(self) -> float:
        """Two moments of Adam in float32; of ZeRO-3 also the weights that it steps."""
        sharded = self.machine.sharding != "none"
        moments = 3 if self.machine.sharding == "zero3" and self.arithmetic != "float32" else 2
        return moments * FLOAT * self.trained / (self.machine.gpus if sharded else 1)

    def _activations(self) -> float:
        tokens, hidden = self.load.tokens, self.shape.hidden
        layer = tokens * saved_per_token(self.shape, self.training.lora, self.arithmetic)
        layer += self._attention_reads()
        # the last norm, its input, and the gradients of a layer while it is gone through
        ends = tokens * hidden * (2 * FLOAT + 2 * self.element) + self._working()
        if self.training.checkpointing:
            return self.shape.layers * tokens * hidden * self.element + layer + ends
        return self.depth * layer + ends

    def _working(self) -> float:
        """Gradients of the feed-forward part's four wide tensors."""
        return 4 * self.load.tokens * self.shape.feed_forward * self.element

    def _attention_reads(self) -> float:
        """What attention over a tree keeps of a layer beyond plain attention: the keys and values
        of every chunk, and on a CPU its weights, on a GPU its mask."""
        read, shape = self.read, self.shape
        if not read.chunks:
            return 0.0
        rows = read.chunks * read.size
        copied = 2 * (read.chunks * read.keys - self.load.tokens) * shape.keys
        filled = (rows - self.load.tokens) * shape.query
        per_score = shape.heads if self.machine.on_cpu else shape.heads // shape.kv_heads
        return (copied + filled + rows * read.keys * per_score) * self.element

    def _logits(self) -> float:
        if self._scores:
            return self.load.tokens * (FLOAT + self.element)
        copies = LOGITS_WITH_KL if self._exact_kl else LOGITS
        return self.load.trained * self.shape.vocabulary * copies * FLOAT

    @property
    def _exact_kl(self) -> bool:
        return self.training.kl and self.training.method.exact_kl

    def _reference(self) -> float:
        """A frozen copy in float32, where all weights are trained against the base model; an
        adapter is switched off instead."""
        copied = self._exact_kl and self.training.lora is None
        return self.parameters * FLOAT if copied else 0.0

    def scoring(self) -> float:
        """Bytes of the passes before the first step, for which every process holds all weights."""
        if not self.training.method.reads:
            return 0.0
        held = self.parameters * (
            NARROW if self.training.lora and self.element == NARROW else FLOAT
        )
        logits = self.load.trained * self.shape.vocabulary * 2 * FLOAT
        return held + self.trained * FLOAT * bool(self.training.lora) + self._working() + logits

    def peak(self) -> float:
        return max(self.memory().total, self.scoring())

    def flops_per_token(self, sequences_read: float = 1.0) -> float:
        """Operations for one trained token of a dialogue.

        Args:
            sequences_read: passes over a token before the first step, by the method's `reads`, for
                each time that it is trained.
        """
        shape = self.shape
        attention = 4 * shape.query * self.load.length
        layer = 2 * shape.linear_of_layer + attention
        head = 0.0
        if not self._scores:
            head = 2 * shape.embedding * self.load.trained / self.load.tokens
        forward = shape.layers * layer + head
        # both products of attention have two factors that need a gradient; a frozen matrix has one
        back = self.depth * (layer + attention) + head
        if self.training.lora is None:
            back += shape.layers * 2 * shape.linear_of_layer + head
        else:
            back += 6 * self.trained - self._lowest()
        again = shape.layers * layer if self.training.checkpointing else 0.0
        reference = forward if self._exact_kl else 0.0
        return (
            forward
            + back
            + again
            + reference
            + forward * self.training.method.reads * sequences_read
        )

    def _lowest(self) -> float:
        """Operations for a token that the lowest adapted layer does without: what comes before its
        first adapters needs no gradient. With checkpoints the embedding's output asks for one."""
        lora, shape = self.training.lora, self.shape
        if lora is None or self.training.checkpointing:
            return 0.0
        adapted, spared = set(lora.target_modules), 0.0
        for group in IN_ORDER:
            for name in group:
                inner, outer = shape.linear[name]
                spared += 2 * inner * (outer + lora.rank * (name in adapted))
            if not adapted.isdisjoint(group):
                break
        values, scores = "v_proj" not in adapted, adapted.isdisjoint(QUERY_KEY)
        products = values + scores + sum(name not in adapted for name in QUERY_KEY)
        return spared + products * 2 * shape.query * self.load.length

    def tokens_per_second(self, sequences_read: float = 1.0) -> float:
        machine = self.machine
        able = machine.gpus * machine.tflops * 1e12 * machine.utilisation
        return able / self.flops_per_token(sequences_read)


def adapters_of_layer(shape: ModelShape, lora: Lora) -> int:
    """Parameters of a layer's adapters."""
    return lora.rank * sum(sum(shape.linear[name]) for name in lora.target_modules)


def saved_per_token(shape: ModelShape, lora: Lora | None, arithmetic: Arithmetic) -> float:
    """Bytes that autograd keeps of one layer for a token, attention in PyTorch's own kernel."""
    e = FLOAT if arithmetic == "float32" else NARROW
    h, f = shape.hidden, shape.feed_forward
    # Both norms keep their input in float32 and the root of its square; attention its sum.
    always = FLOAT * (2 * h + 2 + shape.heads)
    attention = 2 * shape.query + 2 * shape.keys  # queries and what comes out; keys and values
    if lora is None:
        # Norms keep what they scale; every matrix its input.
        scaled = FLOAT * 2 * h if arithmetic == "cast" else e * 2 * h
        inputs = 5 * h if arithmetic == "cast" else 2 * h
        return always + scaled + e * (attention + inputs + 4 * f)
    return always + e * (attention + 3 * f + _inputs(shape, lora, arithmetic))


def _inputs(shape: ModelShape, lora: Lora, arithmetic: Arithmetic) -> int:
    """Elements that adapters keep: their inputs, shared where they need no cast, and what comes
    out of their first matrices."""
    adapted = set(lora.target_modules)
    kept = lora.rank * len(adapted)
    if arithmetic == "cast":
        return kept + sum(shape.linear[name][0] for name in adapted)
    # what goes into o_proj attention keeps anyway
    for group in (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"), ("down_proj",)):
        kept += shape.linear[group[0]][0] * (not adapted.isdisjoint(group))
    return kept
