"""Boltzmann machines as exact mathematical objects: couplings, units, energy, enumeration."""

from . import exact, gaussian
from .belief import DeepBelief, Model
from .couplings import (
    COUPLINGS,
    Coupling,
    CPCoupling,
    DenseCoupling,
    KroneckerCoupling,
    MPOCoupling,
)
from .labels import label_logits, labelled_machine, with_labels
from .layered import LayeredCoupling, deep_boltzmann
from .machine import Machine
from .units import (
    HIDDEN_UNITS,
    UNITS,
    Bernoulli,
    Categorical,
    Copies,
    Gaussian,
    JointUnits,
    Rectified,
    Units,
)

__all__ = [
    "COUPLINGS",
    "HIDDEN_UNITS",
    "UNITS",
    "Bernoulli",
    "CPCoupling",
    "Categorical",
    "Copies",
    "Coupling",
    "DeepBelief",
    "DenseCoupling",
    "Gaussian",
    "JointUnits",
    "KroneckerCoupling",
    "LayeredCoupling",
    "MPOCoupling",
    "Machine",
    "Model",
    "Rectified",
    "Units",
    "deep_boltzmann",
    "exact",
    "gaussian",
    "label_logits",
    "labelled_machine",
    "with_labels",
]
