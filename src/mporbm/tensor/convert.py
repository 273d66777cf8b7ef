"""Conversion to and from the trains of quimb and TensorLy (``pip install "mporbm[quimb]"``)."""

import importlib
from collections.abc import Iterable
from types import ModuleType
from typing import TYPE_CHECKING, cast

import numpy as np

from ..extras import extra
from .mpo import MPO
from .mps import MPS

if TYPE_CHECKING:
    import quimb.tensor
    import tensorly


def to_quimb(
    train: MPS | MPO,
) -> "quimb.tensor.MatrixProductState | quimb.tensor.MatrixProductOperator":
    """A quimb ``MatrixProductState`` or ``MatrixProductOperator`` with NumPy arrays.

    Row modes are quimb's upper indices ``k0, k1, ...``, column modes its lower ``b0, b1, ...``.
    """
    qtn = _import("quimb.tensor", "to_quimb")
    _check_train(train)
    _check_ring("train", train.boundary == "periodic", train.n_cores)
    arrays = [np.moveaxis(np.asarray(core), -1, 1) for core in train.cores]
    if train.boundary == "open":
        arrays[0] = arrays[0][0]
        arrays[-1] = arrays[-1][(slice(None),) * (train.n_cores > 1) + (0,)]
    if isinstance(train, MPO):
        return qtn.MatrixProductOperator(arrays, shape="lrud")
    return qtn.MatrixProductState(arrays, shape="lrp")


def from_quimb(network: object) -> MPS | MPO:
    """The MPS or MPO of a quimb ``MatrixProductState`` or ``MatrixProductOperator``."""
    qtn = _import("quimb.tensor", "from_quimb")
    is_operator = isinstance(network, qtn.MatrixProductOperator)
    if not isinstance(network, (qtn.MatrixProductOperator, qtn.MatrixProductState)):
        raise TypeError(
            f"network: expected quimb's MatrixProductState or MatrixProductOperator, "
            f"got {type(network).__name__}."
        )
    _check_ring("network", network.cyclic, network.L)
    ordered = network.copy()
    ordered.permute_arrays("lrud" if is_operator else "lrp")
    arrays = [np.asarray(array) for array in ordered.arrays]
    if not network.cyclic:
        arrays[0] = arrays[0][None]
        arrays[-1] = np.expand_dims(arrays[-1], 1)
    cores = [np.moveaxis(array, 1, -1) for array in arrays]
    return MPO(cores) if is_operator else MPS(cores)


def to_tensorly(
    train: MPS | MPO,
) -> "tensorly.tt_tensor.TTTensor | tensorly.tr_tensor.TRTensor | tensorly.tt_matrix.TTMatrix":
    """A TensorLy ``TTTensor`` (MPS), ``TRTensor`` (periodic MPS) or ``TTMatrix`` (open MPO)."""
    _check_train(train)
    cores = [np.asarray(core) for core in train.cores]
    if isinstance(train, MPO):
        if train.boundary == "periodic":
            raise ValueError(
                "train: expected an open MPO, got a periodic one, which TensorLy has no class "
                "for; call .to_open() first."
            )
        return _import("tensorly.tt_matrix", "to_tensorly").TTMatrix(cores)
    if train.boundary == "periodic" and train.n_cores > 1:
        return _import("tensorly.tr_tensor", "to_tensorly").TRTensor(cores)
    cores = [np.asarray(core) for core in train.to_open().cores]  # a ring of one core has no bond
    return _import("tensorly.tt_tensor", "to_tensorly").TTTensor(cores)


def from_tensorly(factors: object) -> MPS | MPO:
    """The MPS or MPO of a TensorLy ``TTTensor``, ``TRTensor`` or ``TTMatrix``."""
    tl = _import("tensorly", "from_tensorly")
    if type(factors).__name__ not in ("TTTensor", "TRTensor", "TTMatrix"):
        raise TypeError(
            f"factors: expected TensorLy's TTTensor, TRTensor or TTMatrix, "
            f"got {type(factors).__name__}."
        )
    cores = [tl.to_numpy(core) for core in cast(Iterable[object], factors)]
    return MPO(cores) if cores[0].ndim == 4 else MPS(cores)


def _check_ring(name: str, is_ring: bool, n_cores: int) -> None:
    if is_ring and n_cores < 3:
        raise ValueError(
            f"{name}: expected an open train or at least 3 cores, got a ring of {n_cores}: quimb "
            f"keeps one bond between the same cores; open it first (.to_open())."
        )


def _check_train(train: object) -> None:
    if not isinstance(train, (MPS, MPO)):
        raise TypeError(
            f"train: expected an MPS or MPO, got {type(train).__name__}; the MPO of an "
            f"MPOCoupling is its .mpo."
        )


def _import(module: str, function: str) -> ModuleType:
    with extra("quimb", f"mporbm.tensor.{function}"):
        return importlib.import_module(module)
