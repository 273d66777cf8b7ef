"""Tensor trains, the common ground of MPS and MPO: algebra, canonical forms and rounding."""

import math
from collections.abc import Sequence
from typing import ClassVar, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float
from numpy.typing import ArrayLike, DTypeLike

from .arrays import DType, HostTensor, RandomKey, Tensor
from .check import (
    check_array,
    check_concrete,
    check_position,
    check_sequence,
    check_tolerance,
)
from .environments import left_grams
from .network import Node
from .random import factor_std, normal_arrays
from .ranks import Boundary, check_ranks, rank_caps
from .truncation import (
    Truncation,
    canonical_cores,
    diagonal_cores,
    host_cores,
    normalize_cores,
    storage_error,
    tt_round,
    tt_svd,
)


class TensorTrain(eqx.Module):
    """Cores ``A^(k)`` of shape (R_k, modes of core k, R_{k+1}) with R_{d+1} = R_1.

    The represented tensor sums the product of all cores over r_1..r_d, the paper's Eq. (2). It is
    *open* when R_1 = 1 and *periodic* when R_1 > 1. A bond of a given train may be larger than
    its shapes need (sums and embeddings make such bonds); only `random` refuses to.
    """

    LAYERS: ClassVar[tuple[str, ...]]
    """The index letter of each mode of a core: ``("i",)`` for MPS, ``("i", "j")`` for MPO."""
    cores: tuple[Float[Array, "_left ... _right"], ...]

    def __init__(self, cores: Sequence[ArrayLike]):
        check_sequence("cores", cores, "arrays (R_k, ..., R_{k+1})")
        ndim = len(self.LAYERS) + 2
        arrays = [check_array(f"cores[{k}]", core) for k, core in enumerate(cores)]
        for k, core in enumerate(arrays):
            if core.ndim != ndim or 0 in core.shape:
                raise ValueError(
                    f"cores[{k}]: expected {ndim} axes of at least one entry each, "
                    f"got shape {core.shape}."
                )
            left = arrays[k - 1].shape[-1]
            if core.shape[0] != left:
                raise ValueError(
                    f"cores[{k}]: expected a first axis of {left}, the last axis of "
                    f"cores[{(k - 1) % len(arrays)}], got shape {core.shape}."
                )
        dtype = jnp.result_type(*arrays)
        self.cores = tuple(core.astype(dtype) for core in arrays)

    @property
    def n_cores(self) -> int:
        """The number of cores, the order d of each layer."""
        return len(self.cores)

    @property
    def boundary(self) -> Boundary:
        """``"open"`` if R_1 = 1, else ``"periodic"``."""
        return "open" if self.cores[0].shape[0] == 1 else "periodic"

    @property
    def ranks(self) -> tuple[int, ...]:
        """The rank of each bond, (R_2..R_d) if open and (R_1..R_d) if periodic."""
        ranks = tuple(core.shape[0] for core in self.cores)
        return ranks[1:] if self.boundary == "open" else ranks

    @property
    def dtype(self) -> DType:
        """The floating-point type of all cores."""
        return self.cores[0].dtype

    @property
    def n_parameters(self) -> int:
        """The number of entries of all cores."""
        return sum(core.size for core in self.cores)

    @property
    def compression(self) -> float:
        """Entries of the full tensor for each parameter of the train."""
        return math.prod(math.prod(core.shape[1:-1]) for core in self.cores) / self.n_parameters

    def _mode_shapes(self) -> tuple[tuple[int, ...], ...]:
        """For each layer, its mode sizes: ``((I_1..I_d),)`` or ``((I_1..I_d), (J_1..J_d))``."""
        return tuple(zip(*(core.shape[1:-1] for core in self.cores), strict=True))

    def _flat_cores(self) -> list[Float[Array, "_left _modes _right"]]:
        """The cores with their modes merged into one: (R_k, n_k, R_{k+1})."""
        return [core.reshape(core.shape[0], -1, core.shape[-1]) for core in self.cores]

    def _with_flat_cores(self, flat: Sequence[Tensor], dtype: DType | None = None) -> Self:
        """The train with other cores, given with merged modes."""
        return type(self)(
            [
                jnp.asarray(new, dtype).reshape(new.shape[0], *old.shape[1:-1], new.shape[-1])
                for new, old in zip(flat, self.cores, strict=True)
            ]
        )

    def nodes(self, name: str = "A") -> list[Node]:
        """The cores as nodes of a tensor network with the paper's index names (Fig. 3)."""
        d = self.n_cores
        nodes = []
        for k, core in enumerate(self.cores):
            modes = [f"{letter}{k + 1}" for letter in self.LAYERS]
            indices = [f"r{k + 1}", *modes, f"r{(k + 1) % d + 1}"]
            if self.boundary == "open" and k == 0:
                core, indices = core.reshape(core.shape[1:]), indices[1:]
            if self.boundary == "open" and k == d - 1:
                core, indices = core.reshape(core.shape[:-1]), indices[:-1]
            nodes.append(Node(f"{name}^{{({k + 1})}}", core, tuple(indices)))
        return nodes

    # Construction

    @classmethod
    def _random(
        cls,
        key: RandomKey,
        modes: Sequence[tuple[int, ...]],
        rank: int | Sequence[int],
        std: float,
        boundary: Boundary,
        dtype: DTypeLike | None,
    ) -> Self:
        """Normal cores scaled so that the entries of the whole have standard deviation `std`."""
        ranks = check_ranks(rank, [math.prod(mode) for mode in modes], boundary)
        if boundary == "open":
            ranks = (1, *ranks)
        scale = factor_std(std, len(modes), math.prod(ranks))
        ends = zip(ranks, modes, (*ranks[1:], ranks[0]), strict=True)
        shapes = [(left, *mode, right) for left, mode, right in ends]
        return cls(normal_arrays(key, shapes, scale, dtype))

    @classmethod
    def _decompose(
        cls,
        tensor: HostTensor,
        modes: Sequence[tuple[int, ...]],
        max_rank: int | Sequence[int] | None,
        tolerance: float,
        boundary: Boundary,
        dtype: DType,
    ) -> Truncation[Self]:
        """The train of a tensor whose axis k holds the merged modes of core k."""
        caps = rank_caps(max_rank, len(modes), boundary)
        tolerance = check_tolerance("tolerance", tolerance)
        found, bound = tt_svd(tensor, caps, tolerance, periodic=boundary == "periodic")
        cores = [
            jnp.asarray(core.reshape(core.shape[0], *mode, core.shape[2]), dtype)
            for core, mode in zip(found, modes, strict=True)
        ]
        return Truncation(cls(cores), bound + storage_error(found, dtype))

    # Algebra

    # NumPy would take a train apart: leave ``array * train`` to __rmul__.
    __array_ufunc__ = None

    def __add__(self, other: Self) -> Self:
        """The exact sum, whose ranks are the sums of the ranks."""
        self._check_like(other)
        return self._add(other)

    @eqx.filter_jit
    def _add(self, other: Self) -> Self:
        both_open = self.boundary == other.boundary == "open"
        cores = sum_cores(self._flat_cores(), other._flat_cores(), both_open)
        return self._with_flat_cores(cores)

    def __mul__(self, factor: ArrayLike) -> Self:
        """The multiple by a number; the first core carries it."""
        scale = check_array("factor", factor, shape=()).astype(self.dtype)
        return type(self)([self.cores[0] * scale, *self.cores[1:]])

    __rmul__ = __mul__

    def __neg__(self) -> Self:
        return self * -1.0

    def __sub__(self, other: Self) -> Self:
        return self + -other

    def inner(self, other: Self) -> Float[Array, ""]:
        """The inner product ``<A, B>``, the sum of the products of all entries."""
        self._check_like(other)
        return self._inner(other)

    @eqx.filter_jit
    def _inner(self, other: Self) -> Array:
        a, b = self._flat_cores(), other._flat_cores()
        # One pair of indices at the open ends, one at the moving front.
        front = jnp.einsum("anr,bns->abrs", a[0], b[0])
        for left, right in zip(a[1:], b[1:], strict=True):
            front = jnp.einsum("abrs,rnt,snu->abtu", front, left, right)
        return jnp.einsum("abab->", front)

    @eqx.filter_jit
    def norm(self) -> Float[Array, ""]:
        """The Frobenius norm ``sqrt(<A, A>)``."""
        square = self.inner(self)
        if self.boundary == "periodic":
            return jnp.sqrt(jnp.maximum(square, 0.0))
        # Orthogonal factors keep full precision where sqrt(<A, A>) would lose half the digits, but
        # have no derivative on redundant bonds: the value comes from them, the slope from <A, A>.
        fixed = jax.lax.stop_gradient(self)
        norm = jax.lax.stop_gradient(jnp.linalg.norm(fixed.canonical(0).cores[0]))
        slope = (square - jax.lax.stop_gradient(square)) / jnp.where(norm > 0.0, 2.0 * norm, 1.0)
        return jnp.asarray(norm + slope)

    # Gauge

    def canonical(self, center: int = -1) -> Self:
        """The same tensor in mixed-canonical form, centred on one core.

        Cores before `center` become left-orthogonal, ``sum A(r,n,s) A(r,n,t) = [s = t]`` over
        r, n; cores after it right-orthogonal. ``center=-1`` (the last core) is the left-canonical,
        ``center=0`` the right-canonical form. A bond larger than the cores on one side of it can
        fill shrinks to what they can fill: no orthonormal basis is larger. Gradients pass through
        where the cores have full rank.
        """
        self._check_open("canonical")
        return self._canonical(check_position("center", center, self.n_cores))

    @eqx.filter_jit
    def _canonical(self, center: int) -> Self:
        return self._with_flat_cores(canonical_cores(self._flat_cores(), center))

    @eqx.filter_jit
    def left_grams(self) -> tuple[Float[Array, "_rank _rank"], ...]:
        """For each core k, the Gram matrix (R_k, R_k) of the part to its left; open trains only.

        ``L_1 = [[1]]``, ``L_{k+1}(s, t) = sum L_k(r, q) A^(k)(r, n, s) A^(k)(q, n, t)``.
        """
        self._check_open("left_grams")
        return tuple(left_grams(self._flat_cores()))

    @eqx.filter_jit
    def right_grams(self) -> tuple[Float[Array, "_rank _rank"], ...]:
        """For each core k, the Gram matrix (R_{k+1}, R_{k+1}) of the part to its right."""
        self._check_open("right_grams")
        flipped = [core.transpose(2, 1, 0) for core in reversed(self._flat_cores())]
        return tuple(reversed(left_grams(flipped)))

    def environment_gram(self, core: int) -> Float[Array, "left right left right"]:
        """The Gram tensor (R_k, R_{k+1}, R_k, R_{k+1}) of everything but core k, any boundary.

        ``<A, A> = sum G(r, s, q, t) A^(k)(r, n, s) A^(k)(q, n, t)``. For an open train it is the
        product of the left and the right Gram matrix; a periodic one does not factor.
        """
        return self._environment_gram(check_position("core", core, self.n_cores))

    @eqx.filter_jit
    def _environment_gram(self, k: int) -> Array:
        cores = self._flat_cores()
        around = [*cores[k + 1 :], *cores[:k]]
        start = jnp.eye(cores[k].shape[2], dtype=self.dtype)
        front = jnp.einsum("ab,cd->acbd", start, start)
        for other in around:
            front = jnp.einsum("acbd,bne,dnf->acef", front, other, other)
        return front.transpose(2, 0, 3, 1)

    @eqx.filter_jit
    def to_open(self) -> Self:
        """The same tensor as an open train: the loop is cut at r_1, bonds grow to R_1 R_k."""
        if self.boundary == "open":
            return self
        eye = jnp.eye(self.cores[0].shape[0], dtype=self.dtype)
        cores = [
            jnp.einsum("ab,rns->arnbs", eye, core).reshape(
                eye.shape[0] * core.shape[0], core.shape[1], eye.shape[0] * core.shape[2]
            )
            for core in self._flat_cores()
        ]
        ends = eye.reshape(-1)
        cores[0] = jnp.einsum("r,rns->ns", ends, cores[0])[None]
        cores[-1] = jnp.einsum("rns,s->rn", cores[-1], ends)[..., None]
        return self._with_flat_cores(cores)

    def round(
        self, max_rank: int | Sequence[int] | None = None, tolerance: float = 0.0
    ) -> Truncation[Self]:
        """The train rounded to lower ranks (open trains only; see `to_open`).

        Parameters
        ----------
        max_rank
            The largest rank kept, one for all bonds or one per bond.
        tolerance
            Ranks fall as long as ``norm(A - rounded) <= tolerance * norm(A)``, unless `max_rank`
            forces a larger error; the returned bound tells.
        """
        cores = self._concrete_cores("round")
        caps = rank_caps(max_rank, self.n_cores, "open")
        tolerance = check_tolerance("tolerance", tolerance)
        found, bound = tt_round(cores, caps, tolerance)
        rounded = self._with_flat_cores(found, self.dtype)
        return Truncation(rounded, bound + storage_error(found, self.dtype))

    def singular_values(self) -> tuple[Float[np.ndarray, " _rank"], ...]:
        """For each bond, the singular values of the tensor cut in two there; open trains only.

        The cut puts the modes of the cores before the bond into rows and all others into columns.
        Values come in decreasing order, as many as the bond has, or fewer if the cores on one side
        of it cannot fill it.
        """
        cores, scale = normalize_cores(self._concrete_cores("singular_values"))
        _, values = diagonal_cores(canonical_cores(cores, self.n_cores - 1))
        return tuple(scale * bond for bond in values)

    # Checks

    def _concrete_cores(self, method: str) -> list[Float[np.ndarray, "_left _modes _right"]]:
        """The cores of an open train with merged modes, in NumPy and double precision."""
        self._check_open(method)
        check_concrete(method, "cores", self.cores[0])
        return host_cores(self.cores)

    def _check_open(self, method: str) -> None:
        if self.boundary == "periodic":
            raise ValueError(
                f"{method}: expected an open train (R_1 = 1), got a periodic one with "
                f"R_1 = {self.cores[0].shape[0]}; call .to_open() first."
            )

    def _check_like(self, other: Self) -> None:
        if type(other) is not type(self):
            raise TypeError(
                f"other: expected an {type(self).__name__}, got {type(other).__name__}."
            )
        if other._mode_shapes() != self._mode_shapes():
            raise ValueError(
                f"other: expected mode sizes {self._mode_shapes()}, got {other._mode_shapes()}."
            )


def sum_cores(
    first: Sequence[Tensor], second: Sequence[Tensor], shared_ends: bool
) -> list[Float[Array, "..."]]:
    """The cores (..., R_k, n_k, R_{k+1}) of a sum of two trains: block diagonal in the bonds.

    With `shared_ends`, as open trains have them, the first and the last bond keep their size.
    """
    if shared_ends and len(first) == 1:
        return [jnp.add(first[0], second[0])]
    cores = []
    for k, (a, b) in enumerate(zip(first, second, strict=True)):
        if shared_ends and k == 0:
            core = jnp.concatenate([a, b], axis=-1)
        elif shared_ends and k == len(first) - 1:
            core = jnp.concatenate([a, b], axis=-3)
        else:
            others = [(0, 0)] * (a.ndim - 1)
            top = jnp.pad(a, [*others, (0, b.shape[-1])])
            bottom = jnp.pad(b, [*others, (a.shape[-1], 0)])
            core = jnp.concatenate([top, bottom], axis=-3)
        cores.append(core)
    return cores
