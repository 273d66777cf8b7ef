"""Boltzmann machines as exact mathematical objects: couplings, units, energy, enumeration."""

from . import exact
from .belief import DeepBelief, Model
from .couplings import (
    COUPLINGS,
    Coupling,
    CPCoupling,
    DenseCoupling,
    KroneckerCoupling,
    MPOCoupling,
)
from .labels import LabelledMachine
from .layered import LayeredCoupling, deep_boltzmann
from .machine import Machine
from .units import UNITS, Bernoulli, Copies, Gaussian, Units

__all__ = [
    "COUPLINGS",
    "UNITS",
    "Bernoulli",
    "CPCoupling",
    "Copies",
    "Coupling",
    "DeepBelief",
    "DenseCoupling",
    "Gaussian",
    "KroneckerCoupling",
    "LabelledMachine",
    "LayeredCoupling",
    "MPOCoupling",
    "Machine",
    "Model",
    "Units",
    "deep_boltzmann",
    "exact",
]
