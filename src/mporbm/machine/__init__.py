"""Boltzmann machines as exact mathematical objects: couplings, units, energy, enumeration."""

from . import exact
from .belief import DeepBelief, Model
from .coupling import Coupling, CPCoupling, DenseCoupling, KroneckerCoupling, MPOCoupling
from .labelled import LabelledMachine
from .labels import label_logits, labelled_machine, with_labels
from .layered import LayeredCoupling, deep_boltzmann
from .machine import Machine
from .units import UNITS, Bernoulli, Categorical, Copies, Gaussian, JointUnits, Units

__all__ = [
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
    "LabelledMachine",
    "LayeredCoupling",
    "MPOCoupling",
    "Machine",
    "Model",
    "Units",
    "deep_boltzmann",
    "exact",
    "label_logits",
    "labelled_machine",
    "with_labels",
]
