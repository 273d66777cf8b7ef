"""Bad input is refused in one line that says what to do, and leaves nothing behind."""

import errno
import os
import pickle
import re
import subprocess
import sys
import warnings
from unittest import mock

import numpy as np
import pytest
from PIL import Image
from safetensors import SafetensorError

from mporbm.cli import files, main
from mporbm.training import safetensors_io as storage

# What a user without the tests' type checker sees.
pytestmark = pytest.mark.filterwarnings("ignore:.*violates type hint:UserWarning")


@pytest.fixture
def place(tmp_path, trained):
    """The names of files, as commands are given them; ``~`` is the folder of a test."""

    def of(*words):
        names = {"MODEL": trained.plain.path, "X": trained.plain.data}
        names |= {"GREY": trained.grey.path, "LEVELS": trained.grey.data}
        names |= {"PLANES": trained.planes.path, "DENSE": trained.dense.path}
        return [str(names.get(w, str(w).replace("~", str(tmp_path)))) for w in words]

    return of


def assert_says(message, expected):
    assert re.search(expected, message), message


# Data

BAD_ARRAYS = {
    "complex": (np.zeros((4, 3, 2), complex), "expected an array of real numbers, got dtype compl"),
    "strings": (np.full((4, 3, 2), "one"), "expected an array of real numbers, got dtype <U3"),
    "dates": (np.zeros((4, 3, 2), "M8[s]"), "expected an array of real numbers, got dtype dat"),
    "objects": (np.full((4, 3, 2), None), r"expected a \.npy file of numbers: .*Python objects"),
    "empty": (np.zeros((0, 3, 2), bool), r"at least one of them, got shape \(0, 3, 2\)"),
    "no-pixels": (np.zeros((4, 0, 2), bool), r"at least one of them, got shape \(4, 0, 2\)"),
    "vector": (np.zeros(6, bool), r"expected samples in the first axis .* got shape \(6,\)"),
    "number": (np.zeros((), bool), r"got shape \(\)"),
    "other-shape": (np.zeros((4, 2, 3), bool), r"expected shape \(4, 3, 2\).*\(4, 2, 3\)"),
    "other-size": (np.zeros((4, 5), bool), r"expected shape \(4, 3, 2\).*got \(4, 5\)"),
    "bytes": (np.full((4, 3, 2), 200, np.uint8), "expected values from 0 to 1 .*200"),
    "infinite": (np.full((4, 3, 2), np.inf), "expected finite numbers, got NaN or inf"),
}


@pytest.mark.slow
def test_arrays_that_are_no_samples(refused, place, tmp_path):
    for name, (array, expected) in BAD_ARRAYS.items():
        np.save(tmp_path / f"{name}.npy", array)
        message = refused(*place("transform", "MODEL", f"~/{name}.npy", "-o", "~/o.npy"))
        assert message.startswith(f"{tmp_path}/{name}.npy: ")
        assert_says(message, expected)


def test_pickles_are_not_opened(refused, place, tmp_path):
    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "made"),)

    np.save(tmp_path / "bomb.npy", np.array([[Bomb()]]))
    np.savez(tmp_path / "bomb.npz", np.array([[Bomb()]]))
    for name in ("plain.npy", "plain.npz", "plain.safetensors"):
        (tmp_path / name).write_bytes(pickle.dumps(Bomb()))
    for name in ("bomb.npy", "bomb.npz", "plain.npy", "plain.npz"):
        message = refused("score", *place("MODEL"), tmp_path / name)
        assert message.startswith(f"{tmp_path}/{name}: expected ")
        # Nobody is to be told how to open it all the same.
        assert "unsafe" not in message
    refused("inspect", tmp_path / "plain.safetensors")
    assert not (tmp_path / "made").exists()


BAD_FILES = {
    "text.npy": (b"1 2 3\n4 5 6\n", r"expected a \.npy file of numbers: .*magic string"),
    "nothing.npy": (b"", r"expected a \.npy file of numbers: "),
    "text.npz": (b"1 2 3\n", r"expected a \.npz file of arrays"),
    "broken.png": (b"\x89PNG\r\n\x1a\n and nothing more", "expected a PNG image: "),
    "text.png": (b"no image", "expected a PNG image: "),
    "table.csv": (b"1,2\n", r"expected an array \(\.npy, .* got a file of another kind"),
}


def test_files_that_hold_no_samples(refused, place, tmp_path):
    for name, (content, expected) in BAD_FILES.items():
        (tmp_path / name).write_bytes(content)
        message = refused(*place("fit", f"~/{name}", "-o", "~/m.safetensors"))
        assert message.startswith(f"{tmp_path}/{name}: ")
        assert_says(message, expected)


def test_truncated_arrays(refused, place, tmp_path, trained):
    content = trained.plain.data.read_bytes()
    for size in (5, 20, len(content) - 1):
        (tmp_path / "x.npy").write_bytes(content[:size])
        message = refused(*place("score", "MODEL", "~/x.npy"))
        assert_says(message, r"/x\.npy: expected a \.npy file of numbers: ")
    np.savez_compressed(tmp_path / "x.npz", trained.plain.samples)
    content = bytearray((tmp_path / "x.npz").read_bytes())
    content[len(content) // 4 : len(content) // 3] = b"\xff" * (
        len(content) // 3 - len(content) // 4
    )
    (tmp_path / "x.npz").write_bytes(content)
    assert_says(
        refused(*place("score", "MODEL", "~/x.npz")), r"/x\.npz: expected a \.npz file of arrays: "
    )


def test_archives_need_the_name_of_an_array(refused, place, tmp_path, trained):
    np.savez(tmp_path / "two.npz", a=trained.plain.samples, b=np.zeros(3))
    np.savez(tmp_path / "none.npz")
    (tmp_path / "array.npz").write_bytes(trained.plain.data.read_bytes())
    (tmp_path / "archive.npy").write_bytes((tmp_path / "two.npz").read_bytes())
    for name, expected in {
        "two.npz": r"two\.npz: expected the name of one .* as in .*/two\.npz:NAME; it holds a, b\.",
        "two.npz:c": r"two\.npz: expected the name of one of its arrays, .* it holds a, b\.",
        "two.npz:b": r"two\.npz:b: expected samples in the first axis",
        "none.npz": r"none\.npz: .* it holds none\.",
        "array.npz": r"array\.npz: expected a \.npz file of arrays",
        "archive.npy": r"archive\.npy: expected a \.npy file of numbers",
        "missing.npz:a": r"missing\.npz: .* there is no such file",
    }.items():
        assert_says(refused(*place("score", "MODEL", f"~/{name}")), expected)


def test_images_that_do_not_fit_together(refused, place, tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    arguments = place("fit", "~/images", "-o", "~/m.safetensors")
    assert_says(refused(*arguments), "images: expected PNG images in this folder, but it has none")
    Image.new("L", (4, 3)).save(folder / "a.png")
    Image.new("L", (4, 4)).save(folder / "b.png")
    assert_says(refused(*arguments), r"b\.png: expected an image of shape \(3, 4\).*got \(4, 4\)")
    Image.new("RGB", (4, 3)).save(folder / "b.png")
    assert_says(refused(*arguments), r"b\.png: expected an image of shape .*got \(3, 4, 3\)")
    Image.new("1", (4, 3)).save(folder / "b.png")
    assert_says(refused(*arguments), r"b\.png: expected an image .*uint8.*got .*bool")
    (folder / "b.png").write_bytes((folder / "a.png").read_bytes()[:40])
    assert_says(refused(*arguments), r"b\.png: expected a PNG image: ")
    Image.new("L", (4, 3)).save(folder / "b.png", format="JPEG")
    assert_says(refused(*arguments), r"b\.png: expected a PNG image: ")


# Models


def test_files_that_are_no_models(refused, place, tmp_path, trained, monkeypatch):
    content = trained.plain.path.read_bytes()
    (tmp_path / "cut.safetensors").write_bytes(content[: len(content) // 2])
    (tmp_path / "text.safetensors").write_text("a model, I promise\n")
    storage.write(tmp_path / "other.safetensors", "checkpoint", {"a": np.ones(2)}, {})
    with monkeypatch.context() as patch:
        patch.setattr(storage, "FORMAT_VERSION", storage.FORMAT_VERSION + 1)
        trained.plain.estimator.save(tmp_path / "future.safetensors")
    (tmp_path / "folder").mkdir()
    for name, expected in {
        "missing.safetensors": "expected a model file, but there is no such file",
        "folder": "expected a model file, but it is a folder",
        "cut.safetensors": "expected a model file of mporbm, .* truncated",
        "text.safetensors": "expected a model file of mporbm, got one that is",
        "other.safetensors": "expected a model file, got a checkpoint file",
        "future.safetensors": "expected format version .* install a newer version of mporbm",
    }.items():
        message = refused(*place("sample", f"~/{name}", "-o", "~/s.npy"))
        assert message.startswith(f"{tmp_path}/{name}: ")
        assert_says(message, expected)


# Options

MISSING = r"missing.*: expected .* but there is no such file"
BAD_OPTIONS = [
    # Files that are missing
    (["fit", "~/missing.npy", "-o", "~/m.safetensors"], MISSING),
    (["fit", "X", "-o", "~/m.safetensors", "--x-val", "~/missing.npy"], MISSING),
    (["complete", "MODEL", "X", "-o", "~/o.npy", "--mask", "~/missing.npy"], MISSING),
    (["complete", "MODEL", "X", "-o", "~/o.npy", "--mask", "~/missing.png"], MISSING),
    (["denoise", "MODEL", "X", "-o", "~/o.npy", "--original", "~/missing.npy"], MISSING),
    # Outputs that cannot be
    (["fit", "X", "-o", "~/no/m.safetensors"], "expected an existing folder, but .*/no is none"),
    (
        ["sample", "MODEL", "-o", "~/file/below.npy"],
        "expected an existing folder, but .*/file is none",
    ),
    (["fit", "X", "-o", "~/model"], r"expected a name that ends in \.safetensors\."),
    (["fit", "X", "-o", "~/model.pt"], r"expected a name that ends in \.safetensors\."),
    (["sample", "MODEL", "-o", "~/s.mat"], r"ends in \.npy, or the name of a folder, without a su"),
    (["sample", "MODEL", "-o", "."], r"ends in \.npy, or the name of a folder, without a suffix"),
    (["transform", "MODEL", "X", "-o", "~/folder"], r"expected a name that ends in \.npy\."),
    (["score", "MODEL", "X", "-o", "~/s.csv"], r"expected a name that ends in \.npy\."),
    (["draw", "MODEL", "-o", "~/d.gif"], r"ends in \.png or \.svg or \.pdf\."),
    (["sample", "MODEL", "-o", "~/s.npy", "--picture", "~/s.jpg"], r"s\.jpg: expected a name"),
    (["sample", "MODEL", "-o", "~/s.npy", "--picture", "~/no/s.png"], "expected an existing fol"),
    (["inspect", "MODEL", "--pictures", "~/p.png"], "expected the name of a folder, without"),
    (["sample", "PLANES", "-o", "~/s", "--n-gibbs", "-1"], "n_gibbs=-1: expected an integer"),
    # Options that exclude each other, or that something lacks
    (["complete", "MODEL", "X", "-o", "~/o.npy"], r"expected --mask FILE, --known HALF, or data"),
    (
        ["complete", "MODEL", "X", "-o", "~/o.npy", "--known", "top", "--mask", "X"],
        "known: expected no such option where mask is given",
    ),
    (
        ["denoise", "MODEL", "X", "-o", "~/o.npy", "--noise", 0.1, "--salt-and-pepper", 0.1],
        "noise.*: expected None where salt_and_pepper is given",
    ),
    (
        ["denoise", "MODEL", "X", "-o", "~/o.npy", "--n-samples", 2, "--std", "~/s.npy"],
        "std: expected no such option where n_samples is given",
    ),
    (
        ["denoise", "MODEL", "X", "-o", "~/o.npy", "--n-samples", 2, "--method", "reconstruct"],
        "method=reconstruct: expected gibbs where n_samples is given",
    ),
    (
        ["denoise", "MODEL", "X", "-o", "~/o", "--n-samples", 2],
        r"expected a name that ends in \.npy",
    ),
    (
        ["complete", "MODEL", "X", "-o", "~/o.npy", "--known", "top", "--std", "~/o.npy"],
        r"std: expected another file than .*/o\.npy",
    ),
    (["compress", "MODEL", "-o", "~/m.safetensors"], "expected --rank or --tolerance"),
    (
        ["compress", "MODEL", "-o", "~/m.safetensors", "--rank", 1, "--hidden-shape", 4],
        "hidden_shape: expected a dense RBM to give modes to, got MPORBM",
    ),
    (["compress", "DENSE", "-o", "~/m.safetensors", "--rank", 1, "--hidden-shape", 4], "2 modes"),
    (["compress", "MODEL", "-o", "~/m.safetensors", "--rank", "a"], "rank='a': expected integers"),
    (["compress", "MODEL", "-o", "~/m.safetensors", "--rank", 0], "rank=0: expected"),
    (["compress", "MODEL", "-o", "~/m.safetensors", "--tolerance", -1], "tolerance=-1"),
    # Values out of range
    (["sample", "MODEL", "-o", "~/s.npy", "-n", 0], "n_samples=0: expected an integer of at least"),
    (
        ["sample", "MODEL", "-o", "~/s.npy", "--seed", 2**32],
        "from 0 to 2^32 - 1".replace("^", r"\^"),
    ),
    (["denoise", "MODEL", "X", "-o", "~/o.npy", "--noise", 0.7], r"noise=0\.7: expected a number"),
    (["denoise", "MODEL", "X", "-o", "~/o.npy", "--salt-and-pepper", 1], "expected a share in"),
    (["complete", "MODEL", "X", "-o", "~/o.npy", "--known", "top", "--n-gibbs", 0], "n_gibbs=0"),
    (["score", "MODEL", "X", "--method", "ais", "--n-chains", 0], "n_chains=0: expected"),
    (["draw", "MODEL", "-o", "~/d.png", "--what", "gradient", "--core", 5], "core=5: expected"),
]


def test_options_that_cannot_be(refused, place, tmp_path):
    (tmp_path / "file").touch()
    for words, expected in BAD_OPTIONS:
        quiet = [] if words[0] == "inspect" else ["--quiet"]
        assert_says(refused(*place(*words), *quiet), expected)


BAD_FITS = [
    (
        ["LEVELS"],
        r"grey\.npy: expected values from 0 to 1, got up to \d+; pass --binarize 1\d\d or",
    ),
    (["LEVELS", "--bit-planes", 2], r"grey\.npy: expected whole numbers from 0 to 3 .* got \d"),
    (["LEVELS", "--bit-planes", 0], "n_bits=0: expected an integer of at least 1"),
    (["LEVELS", "--bit-planes", 8, "--binarize", 100], "binarize: expected no such option where"),
    (["LEVELS", "--binarize", 100, "--visible-units", "gaussian"], "binarize: expected Bernoulli"),
    (["X", "--gray"], "gray: expected bit_planes, too"),
    (["X", "--coded-shape", "3,2"], "coded_shape: expected bit_planes, too"),
    (["LEVELS", "--bit-planes", 8, "--coded-shape", "3,2"], r"shape=\(3, 2\): expected a shape of"),
    (["X", "--x-val", "LEVELS"], r"grey\.npy: expected values from 0 to 1"),
    (["LEVELS", "--binarize", 9, "--x-val", "~/other.npy"], r"other\.npy: expected shape"),
    (["X", "--x-val", "~/other.npy"], r"other\.npy: expected shape \(n_samples, 3, 2\)"),
    (["X", "--model", "rbm", "--rank", 4], "rank: rbm has no such option; see mporbm fit --help"),
    (["X", "--model", "mvrbm", "--boundary", "open"], "boundary: mvrbm has no such option"),
    (["X", "--model", "tvrbm", "--scheme", "two-site"], "scheme='two-site': expected"),
    (["X", "--model", "tvrbm", "--rank", "2,2"], r"rank=\(2, 2\): expected an integer"),
    (["X", "--hidden-shape", "2;2"], "hidden_shape='2;2': expected integers of 64 bits sep"),
    (["X", "--hidden-shape", "9" * 20], "hidden_shape='9{20}': expected integers of 64 bits"),
    (["X", "--hidden-shape", "a" * 200], "hidden_shape='a{99}: expected integers"),
    (["X", "--hidden-shape", "2"], r"hidden_shape=\(2,\): expected 2 modes"),
    (["X", "--hidden-shape", "2,0"], r"hidden_shape\[1\]=0: expected an integer of at least 1"),
    (["X", "--visible-shape", "2,3"], r"expected shape \(n_samples, 2, 3\)"),
    (["X", "--rank", "0"], "rank=0: expected an integer of at least 1"),
    (["X", "--learning-rate", "fast"], "learning_rate='fast': expected auto or a number above 0"),
    (["X", "--learning-rate", "a" * 200], "learning_rate='a{99}: expected auto or"),
    (["X", "--learning-rate", "-1"], r"learning_rate=-1.*: expected"),
    (["X", "--n-iter", "-1"], "n_iter=-1: expected an integer of at least 0"),
    (["X", "--n-iter", "2.5"], "n_iter='2.5': expected auto or a whole number"),
    (["X", "--batch-size", 0], "batch_size=0: expected an integer of at least 1"),
    (["X", "--momentum", 1], r"momentum=1\.0: expected a number in \[0, 1\)"),
    (["X", "--validation-fraction", 1, "--early-stopping"], r"validation_fraction=1\.0: expected"),
    (["X", "--checkpoint", "~/no/c"], r"no/c.* expected a file in an existing folder"),
    (["X", "--checkpoint", "~/m.safetensors"], "checkpoint: expected another file than"),
    (["X", "--checkpoint", "MODEL"], "expected a checkpoint file, got a model file"),
    (["X", "--negative-phase", "fpcd", "--scheme", "two-site"], "negative_phase='fpcd'"),
]


def test_fits_that_cannot_be(refused, place, tmp_path):
    np.save(tmp_path / "other.npy", np.ones((4, 5, 2), bool))
    for words, expected in BAD_FITS:
        arguments = place("fit", *words, "-o", "~/m.safetensors", "--quiet")
        assert_says(refused(*arguments), expected)


USAGE = [
    (["fit", "X"], "Missing option '--out' / '-o'.*; see mporbm fit --help."),
    (["fit", "-o", "~/m.safetensors"], "Missing argument 'DATA'; see mporbm fit --help."),
    (["fit", "X", "-o", "~/m.safetensors", "--rnk", 2], "No such option: --rnk .*--rank"),
    (["fit", "X", "-o", "~/m.safetensors", "--momentum", "high"], "'--momentum'.*: .*valid "),
    (["fit", "X", "-o", "~/m.safetensors", "--model", "dbn"], "'--model'.*: .*'mvrbm'"),
    (["fit", "X", "-o", "~/m.safetensors", "--seed", "-1"], "'--seed'.*: .*0"),
    (["sample", "MODEL", "-o", "~/s.npy", "--seed"], "'--seed' requires an argument"),
    (["complete", "MODEL", "X", "-o", "~/o.npy", "--known", "middle"], "'--known'.*: .*'bottom'"),
    (["score", "MODEL", "X", "more"], r"unexpected extra argument"),
    (["draw", "MODEL", "-o", "~/d.png", "--what", "love"], "'--what'.*: .*'gradient'"),
    (["train"], "No such command 'train'.*; see mporbm --help."),
    (["--verbose"], "No such option: --verbose"),
    (["--"], "Missing command; see mporbm --help."),
]


def test_usage_that_cannot_be(refused, place):
    for words, expected in USAGE:
        message = refused(*place(*words), code=2)
        assert_says(message, expected)
        assert_says(message, r"; see mporbm( \w+)? --help\.$")


def test_what_cannot_be_compressed(run, refused, place):
    fit = place("fit", "X", "-o", "~/m.safetensors", "--model", "mvrbm", "--n-iter", 0, "--quiet")
    assert run(*fit).code == 0
    message = refused(*place("compress", "~/m.safetensors", "-o", "~/s.safetensors", "--rank", 1))
    assert_says(message, r"/m\.safetensors: expected an RBM or an MPORBM to compress, got MvRBM")


# Masks

BAD_MASKS = {
    "other": (
        np.ones((2, 3), bool),
        r"expected shape .* or \(3, 2\) for all samples, got \(2, 3\)",
    ),
    "fewer": (np.ones((7, 3, 2), bool), r"expected shape \(20, 3, 2\), .* got \(7, 3, 2\)"),
    "long": (np.ones(7, bool), r"got \(7,\)"),
    "text": (np.full((3, 2), "no"), "expected an array of real numbers, got dtype <U2"),
    "complex": (np.ones((3, 2), complex), "expected an array of real numbers, got dtype comp"),
    "objects": (np.full((3, 2), None), "expected a .npy file of numbers"),
}


def test_masks_that_do_not_fit(refused, place, tmp_path):
    arguments = ["complete", "MODEL", "X", "-o", "~/o.npy", "--mask"]
    for name, (array, expected) in BAD_MASKS.items():
        np.save(tmp_path / f"{name}.npy", array)
        message = refused(*place(*arguments, f"~/{name}.npy"))
        assert message.startswith(f"{tmp_path}/{name}.npy: ")
        assert_says(message, expected)


def test_images_and_texts_as_masks(refused, place, tmp_path):
    Image.new("L", (3, 2)).save(tmp_path / "wide.png")
    (tmp_path / "text.npy").write_text("1 0\n")
    (tmp_path / "text.png").write_text("1 0\n")
    for name, expected in {
        "wide.png": r"expected shape .* or \(3, 2\) for all samples, got \(2, 3\)",
        "text.npy": r"expected a \.npy file of numbers",
        "text.png": "expected a PNG image",
    }.items():
        message = refused(*place("complete", "MODEL", "X", "-o", "~/o.npy", "--mask", f"~/{name}"))
        assert message.startswith(f"{tmp_path}/{name}: ")
        assert_says(message, expected)


def test_unknown_values_cannot_be_known(refused, place, tmp_path):
    array = np.zeros((20, 3, 2))
    array[3, 1, 1] = np.nan
    np.save(tmp_path / "nan.npy", array)
    np.save(tmp_path / "mask.npy", np.ones((3, 2), bool))
    arguments = ["~/nan.npy", "-o", "~/o.npy", "--quiet"]
    for words in (["--known", "bottom"], ["--mask", "~/mask.npy"]):
        name = "known=bottom" if words[0] == "--known" else f"{tmp_path}/mask.npy"
        for model in ("MODEL", "GREY"):
            message = refused(*place("complete", model, *arguments, *words))
            assert message.startswith(f"{name}: expected no NaN in DATA among the known values; ")
            assert "pass --mask FILE that is 0 there" in message


def test_originals_of_another_shape(refused, place, tmp_path):
    np.save(tmp_path / "few.npy", np.zeros((7, 3, 2)))
    message = refused(*place("denoise", "MODEL", "X", "-o", "~/o.npy", "--original", "~/few.npy"))
    assert_says(message, r"/few\.npy: expected shape \(20, 3, 2\), as DATA has, got \(7, 3, 2\)")


# Outputs


def test_what_is_no_image_is_not_written_as_one(run, refused, place, tmp_path, trained):
    np.save(tmp_path / "rows.npy", trained.plain.samples.reshape(20, 6).astype(float))
    fit = place("fit", "~/rows.npy", "--n-iter", 0, "--quiet")
    assert run(*fit, "-o", tmp_path / "flat.safetensors").code == 0
    assert_says(refused(*place("sample", "~/flat.safetensors", "-o", "~/s")), "write a .npy file")
    gaussian = [*fit, "--visible-units", "gaussian", "--visible-shape", "3,2"]
    assert run(*gaussian, "-o", tmp_path / "gaussian.safetensors").code == 0
    # Nor has a vector a left half.
    words = ["complete", "~/flat.safetensors", "~/rows.npy", "-o", "~/o.npy", "--known", "left"]
    assert_says(refused(*place(*words)), "known=left: expected samples with two modes or more")
    message = refused(*place("sample", "~/gaussian.safetensors", "-o", "~/s"))
    assert_says(message, r"/s: expected Bernoulli visible units .* write a \.npy file instead")


def test_force_does_not_make_files_of_folders(refused, place, tmp_path):
    (tmp_path / "o.npy").mkdir()
    (tmp_path / "o").write_text("a file")
    force = ["--force", "-n", 40, "--quiet"]
    message = refused(*place("sample", "MODEL", "-o", "~/o.npy", *force))
    assert_says(message, "expected a file to overwrite, but it is a folder")
    message = refused(*place("sample", "MODEL", "-o", "~/o", *force))
    assert_says(message, "expected a folder to overwrite, but it is a file")


@pytest.mark.parametrize("real", [True, False])
def test_a_folder_that_must_not_be_written_to(refused, place, tmp_path, monkeypatch, real):
    folder = tmp_path / "locked"
    folder.mkdir()
    folder.chmod(0o500)
    if not real:
        monkeypatch.setattr(os, "access", lambda path, mode: "locked" not in str(path))
    elif os.access(folder, os.W_OK):
        pytest.skip("this user may write anywhere")
    for words in (["sample", "-o", "~/locked/s.npy"], ["draw", "-o", "~/locked/d.png"]):
        message = refused(*place(*words, "MODEL"))
        assert_says(message, "expected a folder that can be written to: .*locked")


def test_values_that_are_no_pixels(tmp_path):
    for images, most in ((np.full((2, 3, 2), 7e4), 65535), (np.full((2, 3, 2, 3), 300), 255)):
        with pytest.raises(ValueError, match=f"o: expected values from 0 to {most} to write"):
            files.write_array(tmp_path / "o", images)
    with pytest.raises(ValueError, match=r"got -2 to -1; write a \.npy file instead"):
        files.write_array(tmp_path / "o", np.array([[[-2, -1]]]))
    assert list(tmp_path.iterdir()) == []


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
WRITES = [
    (["sample", "MODEL", "-o", "~/o.npy", "-n", 40], "numpy.save", FULL),
    (["sample", "MODEL", "-o", "~/o", "-n", 40], "PIL.Image.Image.save", FULL),
    (["draw", "MODEL", "-o", "~/o.png"], "matplotlib.figure.Figure.savefig", FULL),
    (["inspect", "MODEL", "--pictures", "~/o"], "matplotlib.figure.Figure.savefig", FULL),
    (["compress", "MODEL", "-o", "~/o.safetensors", "--rank", 1], "SAVE", FULL),
    (["compress", "MODEL", "-o", "~/o.safetensors", "--rank", 1], "SAVE", SafetensorError("full")),
    (["fit", "X", "-o", "~/o.safetensors", "--n-iter", 0], "SAVE", SafetensorError("full")),
    (["sample", "MODEL", "-o", "~/o.npy", "-n", 40], "os.replace", PermissionError("locked")),
]


@pytest.mark.parametrize("there", [False, True])
def test_a_full_disk(refused, place, tmp_path, monkeypatch, there):
    for number, (words, function, error) in enumerate(WRITES):
        folder = tmp_path / str(number)
        folder.mkdir()
        words = [str(word).replace("~", str(folder)) for word in words]
        with monkeypatch.context() as patch:
            fill_disk(refused, place, folder, patch, words, function, error, there)


def fill_disk(refused, place, tmp_path, monkeypatch, words, function, error, there):
    arguments = place(*words, *(["--quiet"] if words[0] != "inspect" else []))
    output = next(word for word in arguments if word.startswith(f"{tmp_path}/o"))
    if there:
        # What was there before stays.
        arguments.append("--force")
        if output.endswith("/o"):
            os.mkdir(output)
        with open(f"{output}/old.png" if output.endswith("/o") else output, "w") as file:
            file.write("old")

    def fail(*args, **options):
        for target in args:
            if hasattr(target, "write"):
                target.write(b"half of it")
            elif isinstance(target, os.PathLike) and function not in ("SAVE", "os.replace"):
                target.write_bytes(b"half of it")
        raise error

    monkeypatch.setattr(function.replace("SAVE", "mporbm.training.safetensors_io.save_file"), fail)
    message = refused(*arguments)
    assert message.startswith(f"{output}: cannot be written: ")
    assert_says(message, "make room, or write elsewhere")


def test_a_full_disk_while_training(refused, place, tmp_path, trained, monkeypatch):
    def fail(*args, **options):
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("mporbm.training.safetensors_io.save_file", fail)
    options = [*trained.plain.options, "--quiet"]
    message = refused(*place("fit", "X", "-o", "~/o.safetensors", *options))
    assert_says(message, r"/o\.safetensors\.checkpoint: cannot be written: .*No space left")


FAULTS = {
    r"not enough memory\.$": MemoryError(),
    "not enough memory. Unable to allocate 9 TiB": MemoryError("Unable to allocate 9 TiB"),
    "not enough memory: ": RuntimeError("INTERNAL: Out of memory allocating 9 bytes"),
    r"expected a smaller number: Python int too large\.$": OverflowError("Python int too large"),
}


def test_too_large_numbers_and_too_little_memory(refused, place, monkeypatch):
    for expected, error in FAULTS.items():
        monkeypatch.setattr("mporbm.MPORBM.sample", mock.Mock(side_effect=error))
        assert_says(refused(*place("sample", "MODEL", "-o", "~/s.npy")), expected)


@pytest.mark.parametrize("error", [AttributeError("a bug"), RuntimeError("a bug")])
def test_errors_of_the_program_itself_are_not_hidden(place, monkeypatch, error):
    monkeypatch.setattr("mporbm.MPORBM.sample", mock.Mock(side_effect=error))
    before = warnings.showwarning
    with pytest.raises(type(error), match="a bug"):
        main(place("sample", "MODEL", "-o", "~/s.npy"))
    assert warnings.showwarning is before


def test_the_program_itself_prints_no_traceback(place, tmp_path):
    program = [sys.executable, "-c", "from mporbm.cli import main; main()"]
    words = place("fit", "~/missing.npy", "-o", "~/m.safetensors")
    ended = subprocess.run([*program, *words], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith(f"mporbm: error: {tmp_path}/missing.npy: expected an array")
    assert ended.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
