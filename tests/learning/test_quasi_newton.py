"""Quasi-Newton steps against functions whose minimum is known, and SciPy's."""

import jax
import jax.numpy as jnp
import numpy as np
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from mporbm.learning.quasi_newton import Memory, minimise


def rosenbrock(x):
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def barrier(x):
    """A boundary at 1, beyond which the function is NaN, and a stiff direction."""
    return 1000.0 * (x[0] - 0.5) ** 2 - jnp.log(1.0 - x[1]) - 3.0 * x[1]


def run(function, x, n_steps, memory=None):
    memory = Memory.empty(x) if memory is None else memory
    return jax.jit(minimise, static_argnums=(0, 3))(function, x, memory, n_steps)


def test_the_minimum_is_found():
    point, _, _ = run(rosenbrock, jnp.array([-1.2, 1.0, -0.5, 0.8]), 200)
    assert_allclose(point.x, 1.0, atol=1e-6)
    point, memory, _ = run(barrier, jnp.zeros(2), 200)
    assert_allclose(point.x, [0.5, 2.0 / 3.0], atol=1e-6)
    assert memory.is_done


def test_directions_solve_a_quadratic_problem(rng):
    """With a pair for every dimension the inverse Hessian is known along all of them."""
    root = rng.normal(size=(5, 5))
    hessian = root @ root.T + np.eye(5)
    memory = Memory.empty(jnp.zeros(5), 5)
    steps = np.linalg.eigh(hessian)[1].T
    for step in steps:
        memory = memory.add(jnp.asarray(step), jnp.asarray(hessian @ step))
    gradient = rng.normal(size=5)
    assert_allclose(
        memory.direction(jnp.asarray(gradient)), -np.linalg.solve(hessian, gradient), rtol=1e-8
    )


def test_pieces_are_one_minimisation():
    start = jnp.array([-1.2, 1.0, -0.5, 0.8])
    whole, _, _ = run(rosenbrock, start, 20)
    half, memory, _ = run(rosenbrock, start, 10)
    both, _, _ = run(rosenbrock, half.x, 10, memory)
    assert_allclose(both.x, whole.x, rtol=1e-9)


def test_as_few_evaluations_as_scipy(rng):
    """On a stiff problem, within a factor of 2."""
    scales = jnp.asarray(10.0 ** rng.uniform(-3, 3, 40))

    def loss(x):
        return (scales * (x - 1.0) ** 2).sum() + (x**4).sum()

    start = jnp.zeros(40)
    theirs = minimize(
        jax.jit(loss), start, jac=jax.jit(jax.grad(loss)), method="L-BFGS-B", options={"ftol": 0.0}
    )
    n_steps = 1
    while float(run(loss, start, n_steps)[0].value) > theirs.fun + 1e-6:
        n_steps *= 2
    assert int(run(loss, start, n_steps)[2]) < 4 * theirs.nfev


def test_concave_pairs_are_not_remembered():
    memory = Memory.empty(jnp.zeros(2)).add(jnp.ones(2), -jnp.ones(2))
    assert not memory.steps.any()
