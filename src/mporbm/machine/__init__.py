"""Boltzmann machines as exact mathematical objects: couplings, units, energy, enumeration."""

from . import exact
from .coupling import Coupling, CPCoupling, DenseCoupling, KroneckerCoupling, MPOCoupling
from .labels import LabelledMachine
from .machine import Machine
from .mps_machine import MPSMachine
from .units import Bernoulli, Gaussian, Units

__all__ = [
    "Bernoulli",
    "CPCoupling",
    "Coupling",
    "DenseCoupling",
    "Gaussian",
    "KroneckerCoupling",
    "LabelledMachine",
    "MPOCoupling",
    "MPSMachine",
    "Machine",
    "Units",
    "exact",
]
