"""Learning raises the exact log-likelihood, and better samples raise it further."""

import itertools

import numpy as np
import pytest

from mporbm import MPORBM
from mporbm.machine import Machine, MPOCoupling, exact
from mporbm.tensor import MPO
from strategies import all_states

SETTINGS = {"batch_size": 28, "n_iter": 100, "learning_rate": 0.3, "schedule": "linear"}
SETTINGS |= {"rule": "plain", "momentum": 0.5}
WAYS = {phase: {"negative_phase": phase} for phase in ("cd", "pcd", "pt")}
WAYS["centred"] = {"negative_phase": "pcd", "rule": "centred", "learning_rate": "auto"}


def bars_and_stripes():
    """The 14 images of 3x3 pixels whose rows, or columns, are all on or all off."""
    lines = np.array(list(itertools.product([0, 1], repeat=3)))
    stripes = np.repeat(lines[:, None, :], 3, axis=1)
    return np.unique(np.concatenate([stripes, stripes.transpose(0, 2, 1)]), axis=0)


def log_likelihood(machine, visible):
    return float(exact.log_probability(machine, visible).mean())


@pytest.fixture(scope="module")
def bars_likelihoods():
    """For every way of learning, the log-likelihood before and after, over 3 seeds."""
    images = bars_and_stripes()
    data = np.tile(images, (10, 1, 1))
    found = {}
    for name, way in WAYS.items():
        pairs = []
        for seed in range(3):
            model = MPORBM((4, 2), rank=6, random_state=seed, **{**SETTINGS, **way})
            before = model.set_params(n_iter=0).fit(data).machine_
            after = model.set_params(n_iter=100).fit(data).machine_
            pairs.append([log_likelihood(machine, images) for machine in (before, after)])
        found[name] = np.array(pairs)
    return found


@pytest.mark.parametrize("way", WAYS)
def test_the_likelihood_of_bars_and_stripes_rises(bars_likelihoods, way):
    before, after = bars_likelihoods[way].T
    best = -np.log(14.0)
    # More than half of the way from independent pixels to the best possible.
    assert (after > 0.5 * (before + best)).all(), bars_likelihoods[way]
    assert (after < best).all()


@pytest.mark.parametrize("way", ["pcd", "pt", "centred"])
def test_persistent_chains_end_at_least_as_high_as_cd(bars_likelihoods, way):
    assert bars_likelihoods[way][:, 1].mean() >= bars_likelihoods["cd"][:, 1].mean()


def planted(seed, rank, n_samples, strength=7.0):
    """A machine whose W has `rank` equal singular values across its bond, and samples of it."""
    rng = np.random.default_rng(seed)
    sides = [np.linalg.qr(rng.normal(size=(12, rank)))[0] for _ in range(2)]
    cores = [
        strength * sides[0].reshape(1, 4, 3, rank),
        sides[1].T.reshape(rank, 4, 3, 1),
    ]
    coupling = MPOCoupling(MPO(cores))
    w = np.asarray(coupling.to_matrix())
    # Biases that make every unit's mean one half.
    machine = Machine(coupling, -w.sum(1).reshape(4, 4) / 2, -w.sum(0).reshape(3, 3) / 2)
    p = np.asarray(exact.visible_distribution(machine))
    return machine, all_states(machine)[rng.choice(len(p), n_samples, p=p / p.sum())]


@pytest.mark.slow
def test_two_site_finds_the_planted_rank_and_learns_as_well_as_at_that_rank():
    rank, seed = 4, 0
    teacher, samples = planted(seed, rank, 6000)
    settings = {
        "hidden_shape": (3, 3),
        "learning_rate": 0.1,
        "schedule": "linear",
        "negative_phase": "pcd",
        "rule": "plain",
        "momentum": 0.5,
        "n_gibbs": 3,
        "random_state": seed,
    }
    fixed = MPORBM(rank=rank, n_iter=50, **settings).fit(samples)
    # One update for each of the d - 1 bonds against one for each of the d cores.
    free = MPORBM(rank=12, scheme="two-site", n_iter=100, **settings).fit(samples)
    assert 0.75 * rank <= free.ranks_[0] <= 1.25 * rank
    ranks = [entry["ranks"][0] for entry in free.history_]
    assert max(ranks) > free.ranks_[0]
    start = MPORBM(rank=rank, n_iter=0, **settings).fit(samples).machine_
    low, high = log_likelihood(start, samples), log_likelihood(teacher, samples)
    gained = [(log_likelihood(m.machine_, samples) - low) / (high - low) for m in (fixed, free)]
    assert gained[0] > 0.8
    assert gained[1] >= gained[0] - 0.01, gained
