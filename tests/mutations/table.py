"""Small mistakes in the mathematics, each of which the tests have to notice."""

from typing import NamedTuple


class Mutation(NamedTuple):
    """One mistake: in `file` of the package, the only `old` becomes `new`."""

    file: str
    old: str
    new: str

    @property
    def name(self) -> str:
        """What it does, in one line."""
        return f"{self.file}: {self.old.strip()} -> {self.new.strip()}"


# ruff: noqa: E501
# fmt: off
TENSOR = [
    Mutation("tensor/mpo.py", "core.swapaxes(1, 2)", "core"),
    Mutation("tensor/mpo.py", '"rijs,qjt->rqist"', '"rijs,qjt->qrist"'),
    Mutation("tensor/mpo.py", "for axis in (k, d + k)]", "for axis in (d + k, k)]"),
    Mutation("tensor/mpo.py", "rows, columns = rows[::-1], columns[::-1]", "rows = rows[::-1]"),
    Mutation("tensor/train.py", "return self + -other", "return self + other"),
    Mutation("tensor/train.py", "(a.shape[-1], 0)])", "(0, a.shape[-1])])"),
    Mutation("tensor/train.py", 'return jnp.einsum("abab->", front)', "return front[0, 0, 0, 0]"),
    Mutation("tensor/train.py", "jnp.where(norm > 0.0, 2.0 * norm, 1.0)", "norm"),
    Mutation("tensor/truncation.py", "cores[k - 1], carry.T, axes=1", "cores[k - 1], carry, axes=1"),
    Mutation("tensor/train.py", "return front.transpose(2, 0, 3, 1)", "return front.transpose(0, 2, 1, 3)"),
    Mutation("tensor/train.py", '"ab,rns->arnbs", eye', '"ab,rns->ranbs", eye'),
    Mutation("tensor/train.py", "factor_std(std, len(modes), math.prod(ranks))", "factor_std(std, len(modes))"),
    Mutation("tensor/random.py", "/ math.sqrt(n_terms)", "/ n_terms"),
    Mutation("tensor/random.py", "** (1.0 / n_factors)", "* (1.0 / n_factors)"),
    Mutation("tensor/environments.py", 'to_left="neasr,nsit,rijq->neajtq"', 'to_left="neasr,nsit,rijq->nejatq"'),
    Mutation("tensor/environments.py", '"fexapr,piyq,rijs->fexyajqs"', '"fexapr,piyq,rijs->feyxajqs"'),
    Mutation("tensor/environments.py", '"rq,rns,qnt->st", gram', '"rq,qns,rnt->ts", 2.0 * gram'),
    Mutation("tensor/network.py", "if k != position]", "if k > position]"),
    Mutation("tensor/network.py", "tuple(i if _is_open(i) else f\"{i}'\" for i in node.indices)", "tuple(node.indices)"),
    Mutation("tensor/matmul.py", "forward[:-1], backward[-2::-1]", "forward[1:], backward[:0:-1]"),
    Mutation("tensor/matmul.py", "rows, columns = columns, rows\n            merged", "pass\n            merged"),
    Mutation("tensor/matmul.py", "(core, n * math.prod(columns[:k]), math.prod(rows[k + 1 :]))", "(core, n * math.prod(rows[:k]), math.prod(columns[k + 1 :]))"),
    Mutation("tensor/matmul.py", "(matrix.T if transposed else matrix)", "(2.0 * matrix.T if transposed else matrix)"),
    Mutation("tensor/matmul.py", "wide: Array = lax.optimization_barrier(  # type: ignore[no-untyped-call]\n                after[..., 0].T", "wide: Array = lax.optimization_barrier(  # type: ignore[no-untyped-call]\n                -after[..., 0].T"),
    Mutation("tensor/ranks.py", "return min(left, total // left)", "return max(left, total // left)"),
    Mutation("tensor/truncation.py", "rest.reshape(first, second, -1), 0, 2)", "rest.reshape(second, first, -1), 1, 2)"),
]

MACHINE = [
    Mutation("machine/units/categorical.py", "jax.nn.softmax(self._groups(field), axis=-1)", "jax.nn.sigmoid(self._groups(field))"),
    Mutation("machine/units/categorical.py", "- jnp.log(-jnp.log(uniform))", "+ jnp.log(-jnp.log(uniform))"),
    Mutation("machine/exact.py", "jnp.where(numbers < n_states, 0.0, -jnp.inf)", "jnp.where(numbers < n_states, 0.0, 0.0)"),
    Mutation("machine/exact.py", "log_weights - free_energy(states) - log_z", "log_weights - free_energy(states)"),
    Mutation("machine/units/bernoulli.py", "jax.nn.sigmoid(-jnp.abs(precise))", "jax.nn.sigmoid(jnp.abs(precise))"),
    Mutation("machine/units/bernoulli.py", "+ 0.5) * 2.0**-32", "+ 0.5) * 2.0**-33"),
    Mutation("machine/units/gaussian.py", "state * (state / (2.0 * self.variance))", "state * (state / self.variance)"),
    Mutation("machine/units/gaussian.py", "0.5 * (self.variance * field**2 + jnp.log(2.0 * jnp.pi * self.variance))", "0.5 * (self.variance * field**2 + jnp.log(jnp.pi * self.variance))"),
    Mutation("machine/units/gaussian.py", "self.mean(field) + jnp.sqrt(self.variance) * noise", "self.mean(field) + self.variance * noise"),
    Mutation("machine/units/bernoulli.py", "return mean * (1.0 - mean)", "return mean * mean"),
    Mutation("machine/units/bernoulli.py", "jnp.where(field > 0, 1.0 - unlikely, unlikely)", "jnp.where(field > 0, unlikely, 1.0 - unlikely)"),
    Mutation("machine/units/copies.py", "self.n_copies * self.unit.potential(state / self.n_copies)", "self.unit.potential(state / self.n_copies)"),
    Mutation("machine/units/copies.py", "return self.n_copies * self.unit.log_partition(field)", "return self.unit.log_partition(field)"),
    Mutation("machine/machine.py", "self.coupling.apply_transpose(visible) + self.hidden_bias", "self.coupling.apply_transpose(visible)"),
    Mutation("machine/machine.py", "return self.coupling.apply(hidden) + self.visible_bias", "return self.coupling.apply(hidden) - self.visible_bias"),
    Mutation("machine/machine.py", "return -interaction - own", "return -interaction + own"),
    Mutation("machine/machine.py", "v * self.visible_bias - self.visible_units.potential(v))", "v * self.visible_bias + self.visible_units.potential(v))"),
    Mutation("machine/machine.py", "return -own - self._sum_visible(", "return -2.0 * own - self._sum_visible("),
    Mutation("machine/couplings/cp.py", "first[:, None, :] * self.hidden_factor", "first[:, None, :] + self.hidden_factor"),
    Mutation("machine/couplings/dense.py", "before[k] * sizes[k] >= after[k]", "before[k] * sizes[k] > 0"),
    Mutation("machine/couplings/cp.py", "factor_std(std, len(visible) + 1, rank)", "factor_std(std, len(visible), rank)"),
    Mutation("machine/layered.py", "0.5 * (low.hidden_bias + up.visible_bias)", "low.hidden_bias + up.visible_bias"),
    Mutation("machine/layered.py", "product.gradient(even, odd) if k % 2 == 0", "product.gradient(even, odd) if k % 2 == 1"),
    Mutation("machine/layered.py", "block, row, column = block.T, column, row", "row, column = column, row"),
    Mutation("machine/layered.py", "fields[target] = fields[target] + field if target in fields else field", "fields[target] = field"),
    Mutation("machine/belief.py", "for machine in stack[:0:-1]:", "for machine in stack[::-1]:"),
    Mutation("machine/hash_rng.py", "state = state + word", "state = state + words[0]"),
]

SAMPLING = [
    Mutation("sampling/gibbs.py", "inverse_temperature * machine.hidden_field(visible)", "machine.hidden_field(visible)"),
    Mutation("sampling/gibbs.py", "inverse_temperature * machine.coupling.apply(hidden) + machine.visible_bias", "inverse_temperature * (machine.coupling.apply(hidden) + machine.visible_bias)"),
    Mutation("sampling/gibbs.py", "keys = hash_split(rest, n_steps - 1)", "keys = hash_split(rest, n_steps)"),
    Mutation("sampling/gibbs.py", "machine.hidden_units.sample(up,", "machine.hidden_units.sample(down,"),
    Mutation("sampling/tempering.py", "- score(b, field, pull)", "+ score(b, field, pull)"),
    Mutation("sampling/tempering.py", "jnp.log(uniform) < log_ratio", "jnp.log(uniform) > log_ratio"),
    Mutation("sampling/tempering.py", "+ accepted - received", "- accepted + received"),
    Mutation("sampling/tempering.py", "+ b[:, None] * pull", "- b[:, None] * pull"),
    Mutation("sampling/ais.py", "(upper - lower) * (visible * tilt).sum(axes)", "(visible * tilt).sum(axes)"),
    Mutation("sampling/ais.py", "at = lower if reverse else upper", "at = upper if reverse else lower"),
    Mutation("sampling/ais.py", "weights.std(ddof=1) / mean / math.sqrt(n)", "weights.std(ddof=1) / mean / n"),
    Mutation("sampling/ais.py", "expit(value - odds - back).sum()", "expit(value - odds + back).sum()"),
    Mutation("sampling/ais.py", "odds = math.log(len(back) / len(ahead))", "odds = 0.0"),
    Mutation("sampling/ais.py", "math.hypot(found.standard_error, disorder)", "found.standard_error"),
    Mutation("sampling/ais.py", " - 1.0 / len(ahead) - 1.0 / len(back), 0.0)", ", 0.0)"),
    Mutation("sampling/gibbs.py", "base_bias + b * (machine.visible_bias - base_bias)", "base_bias + (1.0 - b) * (machine.visible_bias - base_bias)"),
    Mutation("sampling/evidence.py", "jnp.where(self.known, self.value, visible)", "visible"),
    Mutation("machine/units/rectified.py", "0.5 * near**2 + log_ndtr(near)", "near**2 + log_ndtr(near)"),
    Mutation("machine/units/rectified.py", "fraction = a + k / fraction", "fraction = a + 1 / fraction"),
    Mutation("machine/units/rectified.py", "tail = tail - excess / rate", "tail = tail + excess / rate"),
    Mutation("machine/machine.py", "h * self.hidden_bias - self.hidden_units.potential(h))\n        return -interaction", "h * self.hidden_bias)\n        return -interaction"),
    Mutation("machine/units/gaussian.py", "jnp.where(observed, 1.0 / noise**2, 0.0)", "jnp.where(observed, 1.0 / noise, 0.0)"),
    Mutation("sampling/evidence.py", "machine.resampled_field(key, visible) + evidence.field", "machine.resampled_field(key, visible)"),
    Mutation("sampling/evidence.py", "(number - burn_in + 1)", "(number + 1)"),
    Mutation("sampling/evidence.py", "(mean - average) * (mean - moved)", "(mean - average) * (mean - average)"),
    Mutation("evaluation/samples.py", "+ 0.5 * equal.mean()", "+ equal.mean()"),
    Mutation("evaluation/samples.py", "n_shared + 2 * (total - n_mutual)", "n_shared + (total - n_mutual)"),
    Mutation("evaluation/samples.py", "outside[:, 0] + (1 - kind) * n)", "outside[:, 0] + kind * n)"),
    Mutation("evaluation/samples.py", "shares(data[again], again)", "shares(data[again])"),
    Mutation("evaluation/neighbours.py", "own = left_out[part] - others.start", "own = left_out[part]"),
]

LEARNING = [
    Mutation("learning/rule.py", "kept = self.momentum * velocity if", "kept = velocity if"),
    Mutation("learning/rule.py", "(kept + rate * ascent)", "(kept - rate * ascent)"),
    Mutation("learning/rule.py", "/ (1.0 - self.momentum)", "* (1.0 - self.momentum)"),
    Mutation("learning/rule.py", "(self.sparsity_target - hidden_mean)", "(hidden_mean - self.sparsity_target)"),
    Mutation("learning/algorithm.py", "+ share[c] * velocities[c]", "+ velocities[c]"),
    Mutation("learning/algorithm.py", "            former[c] = coupling\n", ""),
    Mutation("learning/algorithm.py", "state, info = algorithm.update(group_key, state, data, rates, group)", "_, info = algorithm.update(group_key, state, data, rates, group)"),
    Mutation("learning/algorithm.py", "split_for(key, len(groups)), strict=True", "[key] * len(groups), strict=True"),
    Mutation("learning/schemes.py", "for c in range(max(sizes))", "for c in range(min(sizes))"),
    Mutation("learning/two_site.py", "values[:s, None] * v[:s]", "v[:s]"),
    Mutation("learning/two_site.py", '"rijs,sklt->rikjlt"', '"rijs,sklt->rkijlt"'),
    Mutation("learning/two_site.py", "/ (1.0 - rule.momentum)", "* 1.0"),
    Mutation("learning/gauge.py", "relative * jnp.trace(matrix)", "1e5 * relative * jnp.trace(matrix)"),
    Mutation("learning/gauge.py", "1.0 / moved_parts.count(parts[k])", "1.0"),
    Mutation("tensor/balance.py", "enumerate(map(np.sqrt, values))", "enumerate(values)"),
    Mutation("tensor/balance.py", "half[:, None, None, None] * cores[k + 1]", "cores[k + 1]"),
    Mutation("learning/gauge.py", "position -= len(nodes)", "position -= 1"),
    Mutation("tensor/truncation.py", "cores[k - 1], left * bond, axes=1", "cores[k - 1], left, axes=1"),
    Mutation("learning/gradient.py", "positive.mean(positive.visible) - negative.mean(negative.visible)", "positive.mean(positive.visible)"),
    Mutation("learning/gradient.py", "phases[0].hidden_mean - phases[1].hidden_mean", "phases[1].hidden_mean - phases[0].hidden_mean"),
    Mutation("learning/gradient.py", "hidden * batch.weight[:, None].astype(dtype)", "hidden / len(hidden)"),
    Mutation("learning/gradient.py", "jnp.abs(field).max()", "field.max()"),
    Mutation("learning/negative_phases.py", "(self.DECAY * fast + rate * ascent)", "(fast + rate * ascent)"),
    Mutation("learning/negative_phases.py", "gibbs(key, both.into(machine), state.visible", "gibbs(key, machine, state.visible"),
    Mutation("learning/negative_phases.py", "Batch.equal(state.visible[-1])", "Batch.equal(state.visible[0])"),
    Mutation("learning/negative_phases.py", "gibbs(key, machine, data.visible, self.n_gibbs)", "gibbs(key, machine, data.visible, 1)"),
    Mutation("learning/gradient.py", "1.0 / len(visible), visible.dtype", "1.0, visible.dtype"),
    Mutation("learning/rates.py", "min(4.0 * growth / variance, 1.0)", "min(growth / variance, 1.0)"),
    Mutation("learning/rates.py", "0.5 * (1.0 + math.cos(math.pi * progress))", "math.cos(math.pi * progress)"),
    Mutation("learning/rates.py", "flat = flat - flat.mean(axis=0)", "flat = flat - flat.mean()"),
    Mutation("learning/rates.py", "inner.mean(axis=1)[:, None] + inner.mean()", "inner.mean(axis=1)[:, None] + 9.0 * inner.mean()"),
    Mutation("machine/units/bernoulli.py", "(rate * len(rows) + 0.5) / (len(rows) + 1.0)", "rate"),
    Mutation("machine/units/bernoulli.py", "np.log(rate) - np.log1p(-rate)", "np.log(rate)"),
    Mutation("tensor/sketch.py", "rest = rest - rest.mean(axis=0)", "rest = rest - rest.mean()"),
    Mutation("tensor/sketch.py", "cores[-1] *= std / scale", "cores[-1] *= scale / std"),
    Mutation("learning/centring.py", "_pair(centre.visible, ascent.visible_bias)", "_pair(ascent.visible_bias, centre.visible)"),
    Mutation("learning/centring.py", "square += share * jnp", "square += jnp"),
    Mutation("learning/centring.py", "(after.apply(mean) - before.apply(mean))", "after.apply(mean)"),
    Mutation("machine/units/categorical.py", "groups - groups.mean(axis=-1, keepdims=True)", "groups"),
    Mutation("learning/zero_sum.py", "machine.hidden_bias + lost", "machine.hidden_bias - lost"),
    Mutation("learning/zero_sum.py", "machine.visible_bias + (before.apply(mean) - after.apply(mean))", "machine.visible_bias"),
    Mutation("learning/zero_sum.py", 'index_names("j" if hidden else "i", n_modes)[-1]', 'index_names("j" if hidden else "i", n_modes)[0]'),
    Mutation("learning/algorithm.py", "ascent = zero_sum_step(planned, ascent)", "pass"),
    Mutation("learning/two_site.py", "ascent = zero_sum_step(planned, ascent)", "pass"),
    Mutation("learning/averaging.py", "(1.0 + SHARPNESS) / (jnp", "1.0 / (jnp"),
    Mutation("learning/rates.py", "* math.sqrt(n_hidden)", "* n_hidden"),
    Mutation("learning/negative_phases.py", "return state.visible[-1]", "return state.visible[0]"),
    Mutation("training/watch.py", "least = max(least, found.interval[0])", "pass"),
    Mutation("training/watch.py", "self._least = least - TOLERANCE * abs(least) - 1.0", "self._least = -1e9"),
    Mutation("training/watch.py", "return steps * LAST_STEPS if number == n_epochs else steps", "return steps"),
    Mutation("training/reservoir.py", "[self.states[1:], new]", "[new, self.states[1:]]"),
    Mutation("training/reservoir.py", "max(number[0], 0.0)", "number[0]"),
    Mutation("learning/start.py", "center = -scale * field.mean(axis=0)", "center = scale * field.mean(axis=0)"),
]

MUTATIONS = [*TENSOR, *MACHINE, *SAMPLING, *LEARNING]
