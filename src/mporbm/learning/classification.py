"""Learning with labels (Larochelle & Bengio 2008).

Three objectives: generative ``log p(V, y)``, discriminative ``log p(y | V)``, and their sum, the
hybrid one. With the free energy ``F(V, y)`` of a `LabelledMachine`, the gradient of each is a sum
of ``a(V, y) grad -F(V, y)`` over samples and all their possible labels, with weights a:

================ ============================== =====================
objective        at the data (V, y0)            at model samples
================ ============================== =====================
generative       ``[y = y0]``                   ``-1``
discriminative   ``[y = y0] - p(y | V)``        none: it is exact
================ ============================== =====================
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..machine import LabelledMachine, Machine
from ..machine.hash_rng import hash_split
from ..machine.labels import draw_labels
from ..sampling import independent_units, labelled_gibbs
from ..tensor.check import check_batch
from ..tensor.matmul import MatmulForm
from .gradient import Batch, GradientInfo, merged
from .monitor import Snapshot, reconstruction_error
from .negative_phases import ContrastiveDivergence, NegativePhase, PersistentCD, equal_weights
from .parameters import Parameters
from .scheme import LearningState, Rates, Rule, Scheme, StepInfo


class LabelledRows(eqx.Module):
    """Samples as they are stored, each with its label: rows of `ArraySource`."""

    rows: Any
    labels: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the samples."""
        shape: tuple[int, ...] = self.rows.shape
        return shape

    @property
    def dtype(self) -> Any:
        """That of the samples."""
        return self.rows.dtype

    @property
    def nbytes(self) -> int:
        """The memory of samples and labels."""
        return int(self.rows.nbytes + self.labels.nbytes)

    @property
    def base(self) -> Any:
        """The samples: who looks for the file behind a view finds it behind them."""
        return self.rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, chosen: Any) -> "LabelledRows":
        return LabelledRows(self.rows[chosen], self.labels[chosen])


class LabelledBatch(Batch):
    """A batch with labels (n,)."""

    labels: Array

    def __init__(self, visible: Array, weight: Array, labels: Array):
        super().__init__(visible, weight)
        self.labels = labels

    def label_weight(self, n_classes: int) -> Array:
        """(n, n_classes): the weight of each sample at its label, else 0."""
        chosen: Array = jax.nn.one_hot(self.labels, n_classes, dtype=self.weight.dtype)
        return self.weight[:, None] * chosen


class LabelledParameters(Parameters):
    """`Parameters` with those of the labels, U and d."""

    label_weights: Array
    label_bias: Array

    BIASES: ClassVar[tuple[str, ...]] = (*Parameters.BIASES, "label_weights", "label_bias")


class LabelledCD(ContrastiveDivergence):
    """CD-K of visible units and labels."""

    def step(
        self, key: Array, machine: Machine, state: None, data: Batch
    ) -> tuple[None, LabelledBatch]:
        """K Gibbs steps away from the data, with their weights."""
        machine, data = _labelled(machine, data)
        visible, labels = labelled_gibbs(key, machine, data.visible, data.labels, self.n_gibbs)
        return None, LabelledBatch(visible, data.weight, labels)


class LabelledPCD(PersistentCD):
    """PCD of visible units and labels: chains are pairs of them."""

    def init(self, key: Array, machine: Machine, n_chains: int) -> Any:
        """Independent units and labels at the rates that their biases give them."""
        assert isinstance(machine, LabelledMachine)
        first, second = hash_split(key)
        logits = jnp.broadcast_to(machine.label_bias, (n_chains, machine.n_classes))
        labels = draw_labels(second, logits)
        return independent_units(first, machine, (n_chains,)), labels

    def step(
        self, key: Array, machine: Machine, state: Any, data: Batch
    ) -> tuple[Any, LabelledBatch]:
        """K Gibbs steps."""
        machine, _ = _labelled(machine, data)
        visible, labels = labelled_gibbs(key, machine, state[0], state[1], self.n_gibbs)
        return (visible, labels), LabelledBatch(visible, equal_weights(visible).weight, labels)


class LabelledRule(Rule):
    """A rule for labels: the objective is the sum of its parts.

    Parameters
    ----------
    discriminative
        Whether ``log p(y | V)`` is a part.
    generative_weight
        How much ``log p(V, y)`` counts; None for not at all, and then no samples are drawn.
    """

    discriminative: bool = eqx.field(static=True)
    generative_weight: Array | None

    def __init__(
        self,
        negative_phase: NegativePhase,
        *,
        discriminative: bool,
        generative_weight: Any = None,
        **options: Any,
    ):
        super().__init__(negative_phase, **options)
        self.discriminative = discriminative
        weight = generative_weight
        self.generative_weight = None if weight is None else jnp.asarray(weight, float)

    def gradient(
        self, machine: Machine, data: Batch, samples: Batch, moved: Sequence[int] | None
    ) -> tuple[Parameters, GradientInfo]:
        """The gradient of the objective for the moved factors and all biases."""
        machine, data = _labelled(machine, data)
        product, pull_back = merged(machine.coupling, len(data.visible), moved)
        phase = _Phase(machine, product, data.visible)
        own = data.label_weight(machine.n_classes)
        weight = jnp.zeros_like(own)
        if self.discriminative:
            weight += own - data.weight[:, None] * jax.nn.softmax(phase.logits)
        largest = phase.largest_field
        if self.generative_weight is None:
            total = phase.ascent(weight)
        else:
            assert isinstance(samples, LabelledBatch)
            share = self.generative_weight.astype(own.dtype)
            negative = _Phase(machine, product, samples.visible)
            drawn = negative.ascent(share * samples.label_weight(machine.n_classes))
            total = jax.tree.map(jnp.subtract, phase.ascent(weight + share * own), drawn)
            largest = jnp.maximum(largest, negative.largest_field)
        ascent = LabelledParameters(pull_back(total.factors[0]), *total.biases)
        return self.sparse(ascent, GradientInfo(phase.hidden_rate(own), largest))


class _Phase(eqx.Module):
    """Samples of one phase with all labels they might have."""

    machine: LabelledMachine
    product: MatmulForm
    visible: Array
    rows: list[Array]
    hidden: Array
    """``p(H = 1 | V, y)``, (n, n_classes, hidden units)."""
    logits: Array
    """Of ``p(y | V)``."""
    largest_field: Array

    def __init__(self, machine: LabelledMachine, product: MatmulForm, visible: Array):
        dtype = machine.coupling.dtype
        self.machine, self.product = machine, product
        self.visible = check_batch("visible", visible, machine.visible_shape, dtype)
        field, self.rows = product.contract_rows(self.visible.reshape(len(visible), -1))
        weights = machine.label_weights.reshape(machine.n_classes, -1)
        fields = (field + machine.hidden_bias.reshape(-1))[:, None] + weights
        self.hidden = machine.hidden_units.mean(fields)
        terms = machine.hidden_units.log_partition(fields)
        self.logits = machine.label_bias + terms.sum(axis=-1)
        self.largest_field = jnp.abs(fields).max()

    def ascent(self, weight: Array) -> LabelledParameters:
        """``sum_{n,y} a(n, y) grad -F(V_n, y)``, with the merged cores as the only factor."""
        signal = jnp.einsum("ny,nyj->nj", weight, self.hidden)
        label_signal = jnp.einsum("ny,nyj->yj", weight, self.hidden)
        _, columns = self.product.contract_columns(signal)
        return LabelledParameters(
            (self.product.gradient(self.rows, columns),),
            jnp.tensordot(weight.sum(axis=1), self.visible, axes=1),
            signal.sum(axis=0).reshape(self.machine.hidden_shape),
            label_signal.reshape(self.machine.label_weights.shape),
            weight.sum(axis=0),
        )

    def hidden_rate(self, weight: Array) -> Array:
        """``sum_{n,y} a(n, y) p(H = 1 | V_n, y)``."""
        rate = jnp.einsum("ny,nyj->j", weight, self.hidden)
        return rate.reshape(self.machine.hidden_shape)


class Labelling(Scheme):
    """A scheme for samples with labels, `LabelledRows`; each of its updates moves U and d, too."""

    scheme: Scheme

    def batch(self, machine: Machine, stored: Any, weight: Array) -> LabelledBatch:
        """Samples and labels, ready for `step`."""
        batch = self.scheme.batch(machine, stored.rows, weight)
        return LabelledBatch(batch.visible, batch.weight, stored.labels)

    def watch(self, machine: Machine, stored: Any, units: Array) -> Snapshot:
        """What a few samples tell about a machine; the score is the mean ``log p(y | V)``."""
        assert isinstance(machine, LabelledMachine)
        return _snapshot(machine, stored.rows, stored.labels)

    def field_limit(self, machine: Machine, stored: Any) -> float:
        """That of the scheme."""
        return self.scheme.field_limit(machine, stored.rows)

    def init(self, key: Array, rule: Rule, machine: Machine, n_chains: int) -> LearningState:
        """No velocity, fresh chains."""
        state = self.scheme.init(key, rule, machine, n_chains)
        return LearningState(
            state.machine, LabelledParameters.zeros_like(machine), state.former, state.chains
        )

    def n_updates(self, machine: Machine) -> int:
        """Those of the scheme."""
        return self.scheme.n_updates(machine)

    def step(
        self, key: Array, rule: Rule, state: LearningState, data: Batch, rates: Rates
    ) -> tuple[LearningState, StepInfo]:
        """All updates that one batch gives."""
        return self.scheme.step(key, rule, state, data, rates)


@eqx.filter_jit
def _snapshot(machine: LabelledMachine, rows: Array, labels: Array) -> Snapshot:
    visible = rows.astype(machine.coupling.dtype)
    given = machine.given(labels)
    field = given.hidden_field(visible)
    passed = given.visible_mean(given.hidden_units.mean(field))
    log_probability = machine.label_log_probability(visible)
    return Snapshot(
        reconstruction_error(given, visible).mean(),
        jnp.take_along_axis(log_probability, labels[:, None], axis=1).mean(),
        machine.free_energy(visible, labels).mean(),
        jnp.maximum(jnp.abs(field).max(), jnp.abs(given.hidden_field(passed)).max()),
    )


def _labelled(machine: Machine, data: Batch) -> tuple[LabelledMachine, LabelledBatch]:
    """Both as what they must be here."""
    assert isinstance(machine, LabelledMachine)
    assert isinstance(data, LabelledBatch)
    return machine, data
