"""One of some processes that train machines together, as a program; the first writes what it has.

python member.py OUT.npz NAME,NAME,... N_DEVICES [PORT N_PROCESSES NUMBER]
"""

import gzip
import os
import sys
from pathlib import Path

import jax
import numpy as np

LEARNING = {
    "aop": {},
    "su": {"scheme": "su"},
    "two-site": {"scheme": "two-site", "rank_tolerance": 0.3},
    "pcd": {"negative_phase": "pcd", "gauge": None},
    "fpcd": {"negative_phase": "fpcd"},
    "tempering": {"negative_phase": "pt"},
    "centred": {"negative_phase": "pcd", "rule": "centred"},
}
PLAIN = {"rule": "plain", "negative_phase": "cd", "schedule": "constant", "momentum": 0.5}
"""The paper's rule, which is learnt by unless another one is said."""
LABELS = "labels"
"""A machine with labels, which learns last."""


def images():
    """Digits, if they are there; else noise. 130 of them, so that the last batch is padded."""
    folder = os.environ.get("MPORBM_DATA")
    if folder is None:
        return np.random.default_rng(0).random((130, 14, 14)) < 0.2
    path = Path(folder) / "mnist" / "t10k-images-idx3-ubyte.gz"
    pixels = np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8, offset=16)
    return pixels.reshape(-1, 28, 28)[:130, ::2, ::2] > 127


def main(out, names, n_devices, *address):
    jax.config.update("jax_num_cpu_devices", int(n_devices))
    if address:
        port, n_processes, number = map(int, address)
        jax.distributed.initialize(f"127.0.0.1:{port}", n_processes, number)
    # JAX must not be used before its processes know each other.
    from mporbm import MPORBM, MPOClassRBM

    digits = images()
    common = {"n_iter": 3, "batch_size": 20, "random_state": 0}
    found = {}
    chosen = names.split(",")
    for name in filter(LEARNING.__contains__, chosen):
        model = MPORBM((3, 4), rank=4, **{**PLAIN, **LEARNING[name], **common}).fit(digits)
        parts = model.weight_matrix(), model.visible_bias_, model.hidden_bias_
        found[name] = np.concatenate([part.ravel() for part in parts])
        state, _ = model._continuation.reached
        found[f"{name}, chains"] = np.concatenate(
            [np.zeros(0), *(np.ravel(a) for a in jax.tree.leaves(state.chains))]
        )
        found[f"{name}, features"] = model.transform(digits[:3])
    if LABELS in chosen:
        labelled = MPOClassRBM((3, 4), rank=2, **common).fit(digits, np.arange(130) % 3)
        found[LABELS] = labelled.weight_matrix()
    # The others have the same: they are asked, too.
    if jax.process_index() == int(os.environ.get("WRITER", 0)):
        np.savez(out, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
