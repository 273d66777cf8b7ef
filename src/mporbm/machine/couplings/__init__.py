"""Couplings: the weight tensor W in its forms, one file each.

==================== ======= =============================================== ==========
coupling             machine W(i_1..i_d, j_1..j_d)                           paper
==================== ======= =============================================== ==========
`DenseCoupling`      RBM     any                                             Fig. 4 (a)
`CPCoupling`         TvRBM   ``sum_r W1(i1,r) ... Wd(id,r) Wh(j,r)``         Fig. 4 (b)
`KroneckerCoupling`  MvRBM   ``W1(i1,j1) ... Wd(id,jd)``                     Fig. 4 (c)
`MPOCoupling`        MPORBM  ``sum_r W1(r1,i1,j1,r2) ... Wd(rd,id,jd,r1)``   Fig. 4 (d)
==================== ======= =============================================== ==========
"""

from .base import COUPLINGS, Coupling, PlannedCoupling
from .cp import CPCoupling
from .dense import DenseCoupling
from .kronecker import KroneckerCoupling
from .mpo import MPOCoupling

__all__ = [
    "COUPLINGS",
    "CPCoupling",
    "Coupling",
    "DenseCoupling",
    "KroneckerCoupling",
    "MPOCoupling",
    "PlannedCoupling",
]
