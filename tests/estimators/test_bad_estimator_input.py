"""Bad input to the estimators gets an error that names what was given and what is expected."""

import functools

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import BernoulliRBM

from mporbm import MPORBM, RBM, MvRBM, TvRBM
from tables import check_messages

# What a user without the tests' type checker sees.
pytestmark = pytest.mark.filterwarnings("ignore:.*violates type hint:UserWarning")

X = np.random.default_rng(0).random((20, 4, 3)) < 0.4
FLAT = X.reshape(len(X), -1)
IMAGES = np.where(X, 255, 0)
REAL = X.astype(float)
MASK = np.arange(12).reshape(4, 3) % 2 == 0


def wrong_entry(samples, value):
    changed = np.array(samples, float)
    changed[0, 0] = value
    return changed


def untrained(**parameters):
    return MPORBM(**{"hidden_shape": (2, 2), "rank": 2, "n_iter": 0, **parameters})


@functools.cache
def model():
    return untrained(warm_start=True).fit(X)


@functools.cache
def gaussian():
    return untrained(visible_units="gaussian", hidden_units="bernoulli").fit(REAL)


@functools.cache
def rbm():
    return RBM(4, n_iter=0).fit(X)


@functools.cache
def bernoulli_rbm():
    return BernoulliRBM(4, n_iter=1).fit(FLAT)


PARAMETERS = [
    # shapes
    ({"hidden_shape": (2,)}, ValueError, r"hidden_shape=\(2,\): expected 2 modes.*\(4, 3\), got 1"),
    ({"hidden_shape": 4}, ValueError, r"hidden_shape=\(4,\): expected 2 modes"),
    ({"hidden_shape": (2, 0)}, ValueError, r"hidden_shape\[1\]=0: expected .* at least 1"),
    ({"hidden_shape": (2, 2.0)}, TypeError, r"hidden_shape\[1\]=2.0: expected an integer"),
    ({"hidden_shape": ()}, ValueError, r"hidden_shape: expected a non-empty .*got \(\)"),
    ({"hidden_shape": "2x2"}, TypeError, "hidden_shape='2x2': expected .*got str"),
    (
        {"visible_shape": (4, 4)},
        ValueError,
        r"X: expected shape \(n_samples, 4, 4\) or \(n_samples, 16\), got .*\(4, 3\)",
    ),
    ({"visible_shape": 12}, TypeError, r"visible_shape: expected .*\(28, 28\), got 12 \(int\)"),
    # ranks
    ({"rank": 0}, ValueError, "rank=0: expected an integer of at least 1"),
    ({"rank": 2.5}, TypeError, "rank=2.5: expected an integer, got float"),
    ({"rank": None}, TypeError, "rank=None: expected an integer"),
    ({"rank": (2, 2)}, ValueError, r"rank=\(2, 2\): expected one integer, or 1 of them"),
    ({"rank": (100,)}, ValueError, r"rank=\(100,\): expected .* at most \(6,\).*Pass rank=\(6,\)"),
    ({"rank": (0,)}, ValueError, r"rank\[0\]=0: expected"),
    ({"rank_tolerance": 1.0}, ValueError, r"rank_tolerance=1.0: expected .* in \[0, 1\)"),
    # words
    ({"visible_units": "binary"}, ValueError, "visible_units='binary': .*'categorical' or 'gauss"),
    ({"boundary": "ring"}, ValueError, "boundary='ring': expected 'open' or 'periodic'"),
    ({"scheme": "dmrg"}, ValueError, "scheme='dmrg': expected 'aop', 'su' or 'two-site'"),
    (
        {"scheme": "two-site", "boundary": "periodic"},
        ValueError,
        "scheme='two-site': expected boundary='open', got 'periodic'",
    ),
    ({"gauge": "left"}, ValueError, "gauge='left': expected 'canonical' or None"),
    ({"gauge": False}, ValueError, "gauge=False: expected 'canonical' or None"),
    (
        {"scheme": "two-site", "negative_phase": "fpcd"},
        ValueError,
        "negative_phase='fpcd': expected another one for scheme='two-site'",
    ),
    ({"negative_phase": "cd1"}, ValueError, "negative_phase='cd1': expected 'cd', 'pcd', .* or "),
    ({"schedule": "step"}, ValueError, "schedule='step': expected 'constant', 'linear' or 'cos"),
    ({"init": "zero"}, ValueError, "init='zero': expected 'data' or 'random'"),
    ({"on_divergence": "raise"}, ValueError, "on_divergence='raise': .*'stop' or 'back-off'"),
    ({"feature": "mean"}, ValueError, "feature='mean': expected 'probability', 'field' or 'state'"),
    ({"output": "matrix"}, ValueError, "output='matrix': expected 'flat' or 'tensor'"),
    # numbers
    ({"learning_rate": -0.1}, ValueError, "learning_rate=-0.1: expected a finite number above 0"),
    ({"learning_rate": 0}, ValueError, "learning_rate=0.0: expected .* above 0"),
    ({"learning_rate": "fast"}, ValueError, "learning_rate='fast': expected 'auto' or a number"),
    ({"learning_rate": None}, TypeError, "learning_rate=None: expected a real number"),
    ({"momentum": 1}, ValueError, r"momentum=1.0: expected a number in \[0, 1\)"),
    ({"momentum": "high"}, TypeError, "momentum='high': expected a real number"),
    ({"weight_decay": -1.0}, ValueError, r"weight_decay=-1.0: expected a number in \[0, inf\)"),
    ({"weight_decay": float("nan")}, ValueError, "weight_decay=nan: expected a number"),
    ({"sparsity_target": 1.5}, ValueError, r"sparsity_target=1.5: expected .*\[0, 1\)"),
    ({"sparsity_cost": -1.0}, ValueError, "sparsity_cost=-1.0: expected"),
    ({"n_gibbs": 0}, ValueError, "n_gibbs=0: expected an integer of at least 1"),
    ({"batch_size": 0}, ValueError, "batch_size=0: expected an integer of at least 1"),
    ({"batch_size": 10.0}, TypeError, "batch_size=10.0: expected an integer, got float"),
    ({"n_iter": -1}, ValueError, "n_iter=-1: expected an integer of at least 0"),
    ({"n_iter": "many"}, ValueError, "n_iter='many': expected 'auto' or an integer"),
    ({"n_iter_no_change": 0}, ValueError, "n_iter_no_change=0: expected"),
    ({"checkpoint_interval": 0}, ValueError, "checkpoint_interval=0: expected"),
    ({"checkpoint": 3}, TypeError, "checkpoint=3: expected the path of a file or None, got int"),
    ({"random_state": -1}, ValueError, "random_state=-1: expected None, an integer from 0"),
    ({"random_state": "a"}, ValueError, "random_state='a': expected None, an integer"),
    # early stopping
    ({"early_stopping": "yes"}, TypeError, "early_stopping='yes': expected True or False"),
    ({"warm_start": 1}, TypeError, "warm_start=1: expected True or False"),
    ({"validation_fraction": 0.0}, ValueError, "validation_fraction=0.0: expected .* above 0"),
    ({"validation_fraction": 1.0}, ValueError, "validation_fraction=1.0: expected .* below 1"),
    (
        {"validation_fraction": 0.99, "early_stopping": True},
        ValueError,
        "validation_fraction=0.99: expected to leave samples to learn from, but X has 20",
    ),
]


def test_messages_of_parameters():
    check_messages(
        (lambda parameters=parameters: untrained(**parameters).fit(X), error, message)
        for parameters, error, message in PARAMETERS
    )


SAMPLES = [
    (wrong_entry(X, np.inf), "Input X contains infinity"),
    (wrong_entry(FLAT, np.inf), "Input X contains infinity"),
    (np.full(FLAT.shape, "a"), "X: expected numbers, got strings .*astype"),
    (np.full(X.shape, "1"), "X: expected numbers, got strings"),
    (np.zeros((0, 4, 3)), r"X: expected at least one sample .*got shape \(0, 4, 3\)"),
    (np.zeros((0, 12)), r"0 sample\(s\) \(shape=\(0, 12\)\) while a minimum of 1 is required"),
    (np.zeros((20, 0)), r"0 feature\(s\) \(shape=\(20, 0\)\) while a minimum of 1 is required"),
    (np.zeros((20, 4, 0)), r"X: expected .* no empty mode, got shape \(20, 4, 0\)"),
    (np.zeros(12), "Expected 2D array, got 1D array instead"),
    (FLAT * 1j, "Complex data not supported"),
]


def test_messages_of_bad_samples():
    methods = (untrained().fit, untrained().partial_fit, model().transform, model().score)
    check_messages(
        (functools.partial(method, samples), ValueError, message)
        for samples, message in SAMPLES
        for method in methods
    )


@pytest.mark.parametrize("samples", [IMAGES.astype(np.uint8), IMAGES, IMAGES.astype(np.float32)])
def test_images_up_to_255_are_told_how_to_be_scaled(samples):
    message = r"X: expected values from 0 to 1 .*got 0 to 255; .*X / 255 or X > 127.5.*gaussian"
    for method in (untrained().fit, untrained().partial_fit):
        with pytest.raises(ValueError, match=message):
            method(samples)
    with pytest.raises(ValueError, match=r"X_val: .*X / 255"):
        untrained().fit(X, X_val=samples)


def test_levels_up_to_16_are_refused_as_bytes_are():
    with pytest.raises(ValueError, match=r"got 0 to 16; .*X / 16 or X > 8"):
        untrained().fit(16.0 * (IMAGES > 0.0))


@pytest.mark.parametrize("share", [0.5, 2.0])
def test_categorical_samples_are_one_hot(share):
    states = np.eye(3)[np.random.default_rng(0).integers(3, size=(20, 4))]
    model = untrained(visible_units="categorical")
    model.fit(states)
    for wrong in (share * states, states + np.eye(3)[0]):
        with pytest.raises(ValueError, match=r"expected one-hot states .*mporbm\.Alphabet"):
            model.fit(wrong)


def test_flat_samples_are_told_what_makes_them_tensors():
    with pytest.raises(ValueError, match="if samples come flattened, visible_shape says"):
        untrained().fit(X.reshape(len(X), -1))


def test_bytes_above_1_are_not_probabilities():
    with pytest.raises(ValueError, match=r"X: expected values from 0 to 1 .*got 0 to 2; scale"):
        untrained().fit((2 * X).astype(np.uint8))


@pytest.mark.parametrize(
    ("samples", "given"), [(2.0 * REAL, "0 to 2"), (2.0 * REAL - 1.0, "-1 to 1")]
)
def test_values_outside_0_and_1_warn(samples, given):
    message = f"X: expected values from 0 to 1 .*got {given};.*visible_units='gaussian'"
    with pytest.warns(UserWarning, match=message):
        untrained().fit(samples)
    untrained(visible_units="gaussian").fit(samples)


def test_images_of_any_range_are_gaussian():
    model = untrained(visible_units="gaussian").fit(IMAGES)
    assert abs(model.visible_bias_).max() < 1e-9
    assert model.sample(50, random_state=0).max() > 100.0


SHAPE = r"X: expected shape \(n_samples, 4, 3\) or \(n_samples, 12\), got samples of shape"
CASES = [
    # samples of another shape
    (lambda: model().transform(FLAT[:, :11]), ValueError, "X has 11 features.* expecting 12"),
    (lambda: model().transform(X[0]), ValueError, "X has 3 features.* expecting 12"),
    (lambda: model().transform(X.transpose(0, 2, 1)), ValueError, rf"{SHAPE} \(3, 4\)"),
    (lambda: model().score(X[..., None]), ValueError, rf"{SHAPE} \(4, 3, 1\)"),
    (lambda: model().gibbs(X[:, :2]), ValueError, rf"{SHAPE} \(2, 3\)"),
    (lambda: model().partial_fit(X[:, :2]), ValueError, rf"{SHAPE} \(2, 3\)"),
    (
        lambda: untrained(visible_shape=(4, 4)).fit(FLAT),
        ValueError,
        r"visible_shape=\(4, 4\): expected a shape of 12 units.*got 16",
    ),
    (lambda: untrained().fit(X, X_val=X[:, :2]), ValueError, rf"X_val: {SHAPE} \(2, 3\)"),
    (lambda: untrained().fit(X, X_val=FLAT[:, :11]), ValueError, "X_val: X has 11 features"),
    (
        lambda: untrained(warm_start=True).fit(X).fit(X[:, :2]),
        ValueError,
        rf"{SHAPE} \(2, 3\)",
    ),
    # other estimators
    (lambda: MvRBM(4).fit(X), ValueError, r"hidden_shape=\(4,\): expected 2 modes"),
    (lambda: MvRBM(scheme="two-site").fit(X), ValueError, "scheme='two-site': .*'aop' or 'su'"),
    (lambda: TvRBM((2, 2)).fit(X), ValueError, r"hidden_shape=\(2, 2\): expected one mode"),
    (lambda: TvRBM(4, rank=0).fit(X), ValueError, "rank=0: expected an integer of at least 1"),
    (lambda: TvRBM(4, rank=(2,)).fit(X), TypeError, r"rank=\(2,\): expected an integer"),
    (lambda: RBM(0).fit(X), ValueError, "hidden_shape=0: expected an integer of at least 1"),
    (lambda: RBM(rank=3), TypeError, "unexpected keyword argument 'rank'"),
    (lambda: MPORBM(ranks=3), TypeError, "unexpected keyword argument 'ranks'"),
    (lambda: untrained().set_params(ranks=3), ValueError, "Invalid parameter 'ranks'"),
    # weights and keywords
    (
        lambda: untrained().fit(X, sample_weight=np.ones(19)),
        ValueError,
        r"sample_weight: expected shape \(20,\), one weight for each sample, got \(19,\)",
    ),
    (
        lambda: untrained().fit(X, sample_weight=np.ones((20, 1))),
        ValueError,
        r"sample_weight: expected shape \(20,\).*got \(20, 1\)",
    ),
    (
        lambda: untrained().fit(X, sample_weight=-np.ones(20)),
        ValueError,
        "sample_weight: expected finite weights of at least 0.*got -1.0 to -1.0",
    ),
    (
        lambda: untrained().partial_fit(X, sample_weight=np.zeros(20)),
        ValueError,
        "sample_weight: .*not all of them 0, got 0.0 to 0.0",
    ),
    (
        lambda: untrained().fit(X, sample_weight=np.full(20, np.nan)),
        ValueError,
        "sample_weight: expected finite weights .*got nan",
    ),
    (
        lambda: untrained().fit(X, sample_weight=["a"] * 20),
        ValueError,
        r"sample_weight: expected shape \(20,\), one number .*'a'",
    ),
    (
        lambda: untrained().fit(lambda: iter([X]), sample_weight=np.ones(20)),
        ValueError,
        "sample_weight: expected None for a stream",
    ),
    (
        lambda: untrained(early_stopping=True).fit(lambda: iter([X])),
        ValueError,
        "X_val: expected samples to stop early by, got None",
    ),
    (
        lambda: untrained(n_iter=2).fit(iter([X])),
        ValueError,
        "X: expected a stream that can be read n_iter=2 times, got an iterator",
    ),
    (lambda: untrained().fit(lambda: iter([])), ValueError, "X: .*got an empty one; "),
    (
        lambda: untrained().fit(X, groups=3),
        TypeError,
        "fit: expected the keywords X_val and sample_weight, got groups",
    ),
    # methods
    (lambda: model().sample(0), ValueError, "n_samples=0: expected an integer of at least 1"),
    (lambda: model().sample(1.5), TypeError, "n_samples=1.5: expected an integer"),
    (lambda: model().sample(1, -1), ValueError, "n_gibbs=-1: expected an integer of at least 0"),
    (lambda: model().gibbs(X, "2"), TypeError, "n_gibbs='2': expected an integer"),
    (lambda: model().sample(1, 1, random_state="a"), ValueError, "random_state='a': expected"),
    (lambda: model().weight_matrix("K"), ValueError, "order='K': expected 'C' or 'F'"),
    (lambda: model().compress(rank=0), ValueError, "^rank=0: expected an integer"),
    (lambda: model().compress(rank=(1, 1)), ValueError, r"^rank=\(1, 1\): expected .* 1 of"),
    (lambda: model().compress(tolerance=1.0), ValueError, r"tolerance=1.0: expected .*\[0, 1\)"),
    # evidence
    (lambda: model().complete(X, MASK.astype(int)), TypeError, r"mask: .*int64; .*astype\(bool\)"),
    (lambda: model().denoise(X, 0.1, mask=REAL), TypeError, "mask: expected an array of bool"),
    (
        lambda: model().complete(X, MASK[:2]),
        ValueError,
        r"mask: expected shape \(20, 4, 3\), as X has, or \(4, 3\) for all samples, got \(2, 3\)",
    ),
    (lambda: model().complete(X, X[:19]), ValueError, r"mask: expected .*got \(19, 4, 3\)"),
    (lambda: model().posterior_samples(X, MASK.T), ValueError, r"mask: .*got \(3, 4\)"),
    (lambda: model().estimate_noise(X, np.True_), ValueError, r"mask: .*got \(\)"),
    (
        lambda: model().complete(wrong_entry(X, np.nan), np.ones(12, bool)),
        ValueError,
        r"mask: expected False wherever X is NaN, got True; try mask & ~np.isnan\(X\)",
    ),
    (lambda: model().complete(wrong_entry(X, np.inf)), ValueError, "X: expected finite numbers"),
    (lambda: model().complete(IMAGES, MASK), ValueError, "X: expected values .*0 to 255; scale"),
    (lambda: model().complete(X[:, :2], MASK), ValueError, rf"{SHAPE} \(2, 3\)"),
    (
        lambda: model().complete(X, MASK, method="em"),
        ValueError,
        "method='em': expected 'auto', 'gibbs', 'mean-field' or 'reconstruct'",
    ),
    (lambda: model().denoise(X, 0.1, method=None), ValueError, "method=None: expected 'auto'"),
    (lambda: model().complete(X, MASK, n_gibbs=0), ValueError, "n_gibbs=0: .*at least 1"),
    (lambda: model().denoise(X, 0.1, n_gibbs=1.5), TypeError, "n_gibbs=1.5: expected an integer"),
    (lambda: model().posterior_samples(X, n_gibbs=-1), ValueError, "n_gibbs=-1: .*at least 0"),
    (lambda: model().posterior_samples(X, n_samples=0), ValueError, "n_samples=0: .*at least 1"),
    (lambda: model().complete(X, MASK, random_state=-1), ValueError, "random_state=-1: expected"),
    (
        lambda: gaussian().complete(REAL, MASK, binary=True, n_gibbs=1),
        ValueError,
        "binary=True: expected Bernoulli visible units, got Gaussian ones; leave it False",
    ),
    # noise
    (lambda: model().denoise(X, 0.5), ValueError, r"noise=0.5: .*\[0, 0.5\); .*salt_and_pepper=p"),
    (lambda: model().denoise(X, -0.1), ValueError, r"noise=-0.1: expected .* \[0, 0.5\)\.$"),
    (lambda: model().posterior_samples(X, noise=np.nan), ValueError, "noise=nan: expected"),
    (lambda: model().denoise(X, "a little"), TypeError, "noise='a little': expected a real number"),
    (lambda: model().denoise(X, [0.1]), TypeError, r"noise=\[0.1\]: expected a real number"),
    (lambda: gaussian().denoise(REAL, -1.0), ValueError, r"noise=-1.0: .*\[0, inf\)\.$"),
    (lambda: gaussian().denoise(REAL, np.inf), ValueError, r"noise=inf: .*\[0, inf\)\.$"),
    (
        lambda: model().denoise(X, 0.1, salt_and_pepper=0.2),
        ValueError,
        "noise=0.1: expected None where salt_and_pepper is given; leave one out",
    ),
    (
        lambda: model().posterior_samples(X, salt_and_pepper=1.0),
        ValueError,
        r"salt_and_pepper=1.0: expected a share in \[0, 1\)",
    ),
    (lambda: model().denoise(X, salt_and_pepper=-1), ValueError, "salt_and_pepper=-1.0: expected"),
    (lambda: model().denoise(X, salt_and_pepper="a"), TypeError, "salt_and_pepper='a': .*real"),
    (
        lambda: gaussian().denoise(REAL, salt_and_pepper=0.1),
        ValueError,
        "salt_and_pepper: expected binary visible units, got Gaussian ones; set noise",
    ),
    # likelihood
    (lambda: model().log_partition("all"), ValueError, "method='all': .*'auto', 'exact' or 'ais'"),
    (lambda: model().log_partition("ais", n_chains=1), ValueError, "n_chains=1: .*at least 2"),
    (
        lambda: model().log_partition("ais", n_temperatures=0),
        ValueError,
        "n_temperatures=0: expected an integer of at least 1",
    ),
    (lambda: model().log_partition("ais", random_state="a"), ValueError, "random_state='a': exp"),
    (
        lambda: RBM(25, n_iter=0).fit(np.eye(25)).log_partition("exact"),
        ValueError,
        "method='exact': expected at most 24 units in the smaller layer, got 25; use",
    ),
    (
        lambda: gaussian().pseudo_log_likelihood(REAL),
        ValueError,
        "pseudo_log_likelihood: expected Bernoulli visible units alone, got Gaussian",
    ),
    # other machines
    (lambda: MPORBM.from_rbm(rbm(), rank=0, hidden_shape=(2, 2)), ValueError, "^rank=0: exp"),
    (
        lambda: MPORBM.from_rbm(rbm()),
        ValueError,
        r"hidden_shape=\(4,\): expected 2 modes, as many as visible_shape=\(4, 3\)",
    ),
    (
        lambda: MPORBM.from_rbm(rbm(), hidden_shape=4),
        TypeError,
        r"hidden_shape: expected .*got 4 \(int\)",
    ),
    (
        lambda: MPORBM.from_rbm(rbm(), hidden_shape=(2, 3)),
        ValueError,
        r"hidden_shape=\(2, 3\): expected a shape of 4 units.*got 6",
    ),
    (
        lambda: MPORBM.from_rbm(bernoulli_rbm(), visible_shape=(3, 3), hidden_shape=(2, 2)),
        ValueError,
        r"visible_shape=\(3, 3\): expected a shape of 12 units.*got 9",
    ),
    (
        lambda: MPORBM.from_rbm(rbm(), hidden_shape=(2, 2), tolerance=2),
        ValueError,
        "tolerance=2.0: expected",
    ),
    (
        lambda: MPORBM.from_rbm(KNeighborsClassifier(1).fit(FLAT, FLAT[:, 0])),
        TypeError,
        "rbm: expected a fitted RBM of mporbm or a BernoulliRBM .*got KNeighborsClassifier",
    ),
    (lambda: MPORBM.from_rbm(RBM()), NotFittedError, "RBM instance is not fitted yet"),
]


def test_messages():
    check_messages(CASES)


def test_an_estimator_has_to_be_fitted_first():
    message = "MPORBM instance is not fitted yet. Call 'fit'"
    uses = [
        lambda model: model.transform(X),
        lambda model: model.reconstruct(X),
        lambda model: model.gibbs(X),
        lambda model: model.sample(),
        lambda model: model.free_energy(X),
        lambda model: model.score_samples(X),
        lambda model: model.score(X),
        lambda model: model.pseudo_log_likelihood(X),
        lambda model: model.log_partition(),
        lambda model: model.complete(X),
        lambda model: model.denoise(X, 0.1),
        lambda model: model.posterior_samples(X),
        lambda model: model.estimate_noise(X),
        lambda model: model.weight_matrix(),
        lambda model: model.compress(rank=1),
        lambda model: model.save("never-written"),
        lambda model: model.get_feature_names_out(),
    ]
    check_messages((functools.partial(use, MPORBM()), NotFittedError, message) for use in uses)


@pytest.mark.parametrize(
    "name", ["visible_bias_", "hidden_bias_", "n_parameters_", "cores_", "ranks_"]
)
def test_attributes_come_with_fitting(name):
    assert not hasattr(MPORBM(), name)
    with pytest.raises(AttributeError, match=f"MPORBM has no {name} before it is fitted"):
        getattr(MPORBM(), name)
    assert hasattr(model(), name)


def test_nan_is_found_anywhere_in_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr("mporbm.estimators.inputs.BLOCK_BYTES", 3 * REAL[0].nbytes)
    rows = REAL.copy()
    rows[11, 2, 1] = np.nan
    np.save(tmp_path / "X.npy", rows)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    with pytest.raises(ValueError, match=r"X: expected finite .*NaN.* samples 9 to 11"):
        model().reconstruct(mapped)


def test_a_checkpoint_needs_a_folder_before_training_begins(tmp_path):
    path = tmp_path / "missing" / "checkpoint"
    with pytest.raises(FileNotFoundError, match=r"checkpoint=.*missing.*expected .* folder"):
        untrained(checkpoint=path).fit(X)
