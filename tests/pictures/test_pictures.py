"""Pictures: what is drawn is what was given, on the scales and with the labels promised."""

import copy
import io
import itertools

import numpy as np
import pytest
from matplotlib._pylab_helpers import Gcf
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb, to_rgba
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

import strategies
from mporbm import MPORBM
from mporbm.evaluation.samples import measure_samples
from mporbm.machine import DenseCoupling
from mporbm.pictures import (
    rank_error_curve,
    rank_error_panels,
    receptive_fields,
    sample_comparison,
    sample_grid,
    setting_curves,
    setting_scatter,
    singular_values,
    strips,
    training_curves,
)
from mporbm.pictures.images import UNKNOWN
from mporbm.sweep import Range

RNG = np.random.default_rng(0)
IMAGES = RNG.random((7, 4, 4))
X = RNG.random((20, 3, 2)) < 0.4
RIGHT = np.broadcast_to(np.arange(4) >= 2, (4, 4))
RANKS = [1, 2, 5, 10, 20, 40, 60, 80, 100, 150, 200]


@pytest.fixture(scope="module")
def model():
    return MPORBM((2, 2), rank=2, n_iter=3, random_state=0).fit(X, X_val=X[:5])


def with_history(model, history):
    changed = copy.copy(model)
    changed.history_ = history
    return changed


def coupling(kind):
    return strategies.random_coupling(
        kind, strategies.VISIBLE, strategies.HIDDEN, 2, np.random.default_rng(1)
    )


def drawn(axis):
    """The array of the one image of an axis."""
    (image,) = axis.images
    return image.get_array()


def place(axis):
    cell = axis.get_subplotspec()
    return cell.rowspan.start, cell.colspan.start


def lines(axis):
    return {line.get_label(): line for line in axis.lines}


def draw(figure):
    FigureCanvasAgg(figure).draw()
    return figure


# Images


def test_grid_shows_every_image_row_by_row():
    figure = sample_grid(IMAGES, n_columns=3, title="seven")
    assert [place(axis) for axis in figure.axes] == [divmod(k, 3) for k in range(7)]
    for axis, image in zip(figure.axes, IMAGES, strict=True):
        assert_array_equal(drawn(axis), image)
        assert axis.images[0].cmap.name == "gray_r"
        assert list(axis.get_xticks()) == list(axis.get_yticks()) == []
    assert figure.get_suptitle() == "seven"
    assert sample_grid(IMAGES, cmap="gray").axes[0].images[0].cmap.name == "gray"


@pytest.mark.parametrize(
    ("images", "limits"),
    [
        (X, (0.0, 1.0)),
        (0.5 * IMAGES, (0.0, 1.0)),
        (np.array([[[0, 7]]], np.uint8), (0.0, 255.0)),
        (np.array([[[0.0, np.nan, 200.0]]]), (0.0, 255.0)),
        (np.array([[[0, 300]]]), (0.0, 300.0)),
        (np.array([[[-1.5, 2.0]], [[0.0, 3.5]]]), (-1.5, 3.5)),
        (np.array([[[2.5, 2.5]]]), (2.5, 3.5)),
        (np.full((1, 2, 2), np.nan), (0.0, 1.0)),
    ],
)
def test_one_grey_scale_fits_all_images(images, limits):
    for axis in sample_grid(images).axes:
        assert axis.images[0].get_clim() == limits


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((6,), (1, 6)), ((3, 2), (3, 2)), ((2, 3, 5), (2, 15)), ((2, 2, 3, 2), (2, 12))],
)
def test_any_shape_is_drawn_as_a_matrix(shape, expected):
    images = RNG.random((2, *shape))
    for axis, image in zip(sample_grid(images).axes, images, strict=True):
        assert_array_equal(drawn(axis), image.reshape(expected))


@pytest.mark.parametrize("n_channels", [3, 4])
def test_colour_images_keep_their_colours(n_channels):
    images = RNG.integers(0, 256, (2, 4, 5, n_channels))
    images[0, 0, 0] = 255
    for axis, image in zip(sample_grid(images).axes, images, strict=True):
        assert_allclose(drawn(axis), image / 255)


def test_unknown_pixels_have_a_colour_of_their_own():
    red, green, blue = to_rgb(UNKNOWN)
    assert 0.3 < min(red, green, blue) < max(red, green, blue) < 0.95
    assert blue > red + 0.1  # no grey
    images = IMAGES[:1].copy()
    images[0, 1, 2] = np.nan
    (image,) = sample_grid(images).axes[0].images
    assert_array_equal(image.get_array().mask, np.isnan(images[0]))
    shown = image.to_rgba(image.get_array())
    assert_allclose(shown[1, 2], to_rgba(UNKNOWN))
    assert_allclose(shown[0, 0, :3], 1.0 - IMAGES[0, 0, 0], atol=1 / 255)


def test_unknown_pixels_of_colour_images():
    images = RNG.random((1, 3, 3, 3))
    images[0, 1, 2, 0] = np.nan
    shown = drawn(sample_grid(images).axes[0])
    assert_allclose(shown[1, 2], to_rgb(UNKNOWN))
    assert_allclose(shown[0], images[0, 0])


@pytest.mark.parametrize("mask", [RIGHT, RIGHT[None], np.stack([RIGHT, ~RIGHT, RIGHT])])
def test_strips_hide_what_was_not_given(mask):
    completed = IMAGES[3:6].copy()
    completed[2, 0, 0] = np.nan
    rows = {"original": IMAGES[:3], "given": IMAGES[:3], "RBM": completed}
    figure = strips(rows, mask=mask)
    assert [place(axis) for axis in figure.axes] == [divmod(k, 3) for k in range(9)]
    known = np.broadcast_to(mask, (3, 4, 4))
    for k, axis in enumerate(figure.axes):
        name, number = list(rows)[k // 3], k % 3
        assert axis.get_ylabel() == (name if number == 0 else "")
        array, blank = drawn(axis), np.zeros((4, 4), bool)
        if name == "given":
            blank = ~known[number]
        elif (name, number) == ("RBM", 2):
            blank[0, 0] = True
        assert_array_equal(np.ma.getmaskarray(array), blank)
        assert_array_equal(array[~blank], rows[name][number][~blank])


def test_strips_have_one_scale_for_all_rows():
    figure = strips({"a": IMAGES[:2], "b": 3.0 * IMAGES[:2]})
    limits = {axis.images[0].get_clim() for axis in figure.axes}
    assert limits == {(IMAGES[:2].min(), 3.0 * IMAGES[:2].max())}


# Weights


@pytest.mark.parametrize("kind", strategies.KINDS)
def test_receptive_fields_are_the_columns_of_w_by_norm(kind):
    given = coupling(kind)
    columns = np.asarray(given.to_matrix()).T
    order = sorted(range(4), key=lambda unit: -np.linalg.norm(columns[unit]))
    figure = receptive_fields(given, n_columns=2)
    *tiles, bar = figure.axes
    assert bar.get_ylabel() == "weight"
    assert [place(axis) for axis in tiles] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    for axis, unit in zip(tiles, order, strict=True):
        assert_array_equal(drawn(axis), columns[unit].reshape(3, 2))
        index = np.unravel_index(unit, given.hidden_shape)
        assert axis.get_title() == ", ".join(map(str, index))
        assert_allclose(axis.images[0].get_clim(), [-abs(columns).max(), abs(columns).max()])
    few = receptive_fields(given, n_units=1)
    assert len(few.axes) == 2
    assert_array_equal(drawn(few.axes[0]), columns[order[0]].reshape(3, 2))
    assert few.axes[0].images[0].get_clim()[1] == abs(columns[order[0]]).max()


def test_receptive_fields_of_colour_images_show_channels_side_by_side():
    weights = RNG.normal(size=(2, 5, 3, 1))
    shown = drawn(receptive_fields(DenseCoupling(weights, 3)).axes[0])
    assert_array_equal(shown, np.concatenate([weights[:, :, c, 0] for c in range(3)], axis=1))


def test_receptive_fields_of_no_weights_are_all_neutral():
    figure = draw(receptive_fields(DenseCoupling(np.zeros((3, 2)))))
    assert figure.axes[0].images[0].get_clim() == (-1.0, 1.0)


@pytest.mark.parametrize("kind", strategies.KINDS)
def test_singular_values_are_those_of_w_cut_between_its_modes(kind):
    given = coupling(kind)
    # The hidden layer of CP couplings is a vector, at the first mode.
    hidden = (*given.hidden_shape, 1)[:2]
    tensor = np.asarray(given.to_matrix()).reshape(3, 2, *hidden).transpose(0, 2, 1, 3)
    expected = np.linalg.svd(tensor.reshape(3 * hidden[0], -1), compute_uv=False)
    (axis,) = singular_values(strategies.random_machine(given, RNG)).axes
    (line,) = axis.lines
    assert line.get_label() == "modes 1 | 2"
    assert_array_equal(line.get_xdata(), np.arange(1, len(line.get_ydata()) + 1))
    missing = len(expected) - len(line.get_ydata())
    assert_allclose(np.pad(line.get_ydata(), (0, missing)), expected / expected[0], atol=1e-12)
    assert axis.get_yscale() == "log"
    assert 0.0 < axis.get_ylim()[0] < expected[expected > 1e-9].min() / expected[0]


def test_singular_values_have_a_curve_for_every_bond():
    given = strategies.random_coupling("mpo", (2, 2, 2), (2, 2, 2), 2, RNG)
    (axis,) = singular_values(given).axes
    assert list(lines(axis)) == ["modes 1 | 2", "modes 2 | 3"]
    for line, values in zip(axis.lines, given.mpo.singular_values(), strict=True):
        assert_allclose(line.get_ydata(), values / values[0])


@pytest.mark.parametrize(("n_visible_modes", "shape"), [(2, (3, 2, 4)), (1, (6, 4))])
def test_singular_values_of_a_dense_matrix(n_visible_modes, shape):
    weights = RNG.normal(size=shape)
    (axis,) = singular_values(DenseCoupling(weights, n_visible_modes)).axes
    expected = np.linalg.svd(weights.reshape(6, 4), compute_uv=False)
    assert list(lines(axis)) == ["visible | hidden"]
    assert_allclose(axis.lines[0].get_ydata(), expected / expected[0])


def test_values_below_the_precision_of_w_do_not_stretch_the_axis():
    (axis,) = singular_values(DenseCoupling(np.diag([1.0, 0.1, 1e-30, 0.0]))).axes
    assert 0.05 < axis.get_ylim()[0] < 0.1


# Curves


def test_training_curves_are_the_history(model):
    figure = training_curves(model)
    titles = [axis.get_title(loc="left") for axis in figure.axes]
    assert titles == [
        "reconstruction error (mean square)",
        "pseudo-log-likelihood (nats)",
        "log-likelihood (nats)",
        "gradient norm",
    ]
    error, score, likelihood, norm = figure.axes
    for line, name in [
        (error.lines[0], "reconstruction_error"),
        (lines(score)["training"], "score"),
        (lines(score)["validation"], "validation_score"),
        (lines(likelihood)["training"], "log_likelihood"),
        (lines(likelihood)["validation"], "validation_log_likelihood"),
        (norm.lines[0], "gradient_norm"),
    ]:
        assert_array_equal(line.get_xdata(), [1, 2, 3])
        assert_array_equal(line.get_ydata(), [entry[name] for entry in model.history_])
    shown = [text.get_text() for text in score.get_legend().get_texts()]
    assert shown == ["training", "validation"]
    assert norm.get_xlabel() == "epoch"
    assert all(axis.get_shared_x_axes().joined(axis, norm) for axis in figure.axes)


def test_a_single_likelihood_is_no_curve(model):
    short = copy.copy(model)
    likelihoods = {"log_likelihood", "validation_log_likelihood"}
    short.history_ = [
        {name: value for name, value in entry.items() if name not in likelihoods}
        for entry in model.history_[:-1]
    ]
    short.history_.append(model.history_[-1])
    assert len(training_curves(short).axes) == len(training_curves(model).axes) - 1


def test_training_curves_show_ranks_that_change(model):
    grown = [{**entry, "ranks": [k, 2]} for k, entry in enumerate(model.history_, start=1)]
    changed = with_history(model, grown)
    changed.visible_shape_ = (3, 2, 2)
    axis = training_curves(changed).axes[-1]
    assert axis.get_title(loc="left") == "ranks"
    assert {name: list(line.get_ydata()) for name, line in lines(axis).items()} == {
        "$R_{2}$": [1, 2, 3],
        "$R_{3}$": [2, 2, 2],
    }
    assert axis.get_legend() is not None


def test_training_curves_of_epochs_without_validation(model):
    first, *rest = model.history_
    bare = {name: value for name, value in first.items() if name != "validation_score"}
    score = training_curves(with_history(model, [bare, *rest])).axes[1]
    line = lines(score)["validation"]
    assert_array_equal(line.get_xdata(), [2, 3])
    assert_array_equal(line.get_ydata(), [entry["validation_score"] for entry in rest])
    alone = draw(training_curves(with_history(model, [bare])))
    assert alone.axes[1].get_legend() is None
    low, high = alone.axes[-1].get_xlim()
    assert [tick for tick in alone.axes[-1].get_xticks() if low <= tick <= high] == [1]


def test_rank_error_curve_is_the_mean_within_a_band(rng):
    errors = rng.uniform(5.0, 9.0, (3, 4))
    figure = rank_error_curve(
        [40, 1, 10], {"seeds": errors, "once": errors[:, 0]}, {"RBM": [6.0, 8.0], "pixels": 9}
    )
    (axis,) = figure.axes
    order = [1, 2, 0]
    assert axis.get_xscale() == "log"
    assert axis.get_xlabel() == "MPO-rank"
    assert axis.get_ylabel() == "classification error (%)"
    assert list(lines(axis)) == ["seeds", "once", "RBM", "pixels"]
    seeds, once, rbm, pixels = axis.lines
    assert_array_equal(seeds.get_xdata(), [1, 10, 40])
    assert_allclose(seeds.get_ydata(), errors.mean(axis=1)[order])
    assert_allclose(once.get_ydata(), errors[order, 0])
    assert list(rbm.get_ydata()) == [7.0, 7.0]
    assert list(pixels.get_ydata()) == [9.0, 9.0]
    assert_allclose(rbm.get_xdata(), axis.get_xlim())
    assert rbm.get_linestyle() == "--"
    assert len({line.get_color() for line in axis.lines}) == 4
    band, level = (collection.get_paths()[0].vertices[:, 1] for collection in axis.collections)
    deviation = errors.std(axis=1, ddof=1)
    assert_allclose(band.max(), (errors.mean(axis=1) + deviation).max())
    assert_allclose(band.min(), (errors.mean(axis=1) - deviation).min())
    assert_allclose([level.min(), level.max()], 7.0 + np.sqrt(2.0) * np.array([-1.0, 1.0]))


def test_rank_error_panels_are_curves_on_one_scale(rng):
    errors = {"3000 images": rng.uniform(5.0, 9.0, (3, 4)), "4000 images": np.full((3, 4), 30.0)}
    level = {"RBM": [6.0, 8.0]}
    panels = {title: ({"ours": values}, level) for title, values in errors.items()}
    figure = draw(rank_error_panels([40, 1, 10], panels, xlabel="rank", ylabel="error"))
    assert [axis.get_title(loc="left") for axis in figure.axes] == list(errors)
    assert [place(axis) for axis in figure.axes] == [(0, 0), (0, 1)]
    assert [axis.get_xlabel() for axis in figure.axes] == ["rank", "rank"]
    assert [axis.get_ylabel() for axis in figure.axes] == ["error", ""]
    assert [axis.get_legend() is not None for axis in figure.axes] == [False, True]
    limits = {axis.get_ylim() for axis in figure.axes}
    assert len(limits) == 1
    ((low, high),) = limits
    assert low == 0.0
    assert high > 30.0
    for axis, (curves, baseline) in zip(figure.axes, panels.values(), strict=True):
        (alone,) = rank_error_curve([40, 1, 10], curves, baseline).axes
        assert not alone.get_title(loc="left")
        assert lines(axis).keys() == lines(alone).keys() == {"ours", "RBM"}
        for name, line in lines(alone).items():
            assert_array_equal(lines(axis)[name].get_xydata(), line.get_xydata())
        assert len(axis.collections) == len(alone.collections) == 2
        assert axis.get_xlim() == alone.get_xlim()


def test_numbers_at_the_rank_axis_do_not_touch():
    (axis,) = draw(rank_error_curve(RANKS, {"error": np.ones(11)}, ylabel="error (%)")).axes
    texts = sorted(axis.get_xticklabels(), key=lambda text: text.get_position()[0])
    names = [int(text.get_text()) for text in texts]
    assert set(names) <= set(RANKS)
    assert {1, 200} <= set(names)
    boxes = [text.get_window_extent() for text in texts]
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))
    assert axis.get_ylabel() == "error (%)"


def marked(axis, size):
    """Where rings of a size, or crosses, are."""
    return {
        tuple(line.get_xydata()[0].round(6))
        for line in axis.lines
        if line.get_linestyle() == "None"
        and line.get_markersize() == size
        and len(line.get_xdata())
    }


def test_sampled_settings_are_drawn_against_each_option():
    values = {("2", "0.01", "su"): [1.0, 3.0], ("5", "0.1", "aop"): [4.0, 6.0]}
    space = {"rank": Range(1, 8), "rate": Range(0.01, 0.1, log=True), "scheme": ["aop", "su"]}
    best, alike = list(values)[::-1]
    figure = setting_scatter(space, values, best=best, like_the_best=[alike], ylabel="score")
    figure.canvas.draw()
    for axis, places in zip(figure.axes, ([2, 5], [0.01, 0.1], [1, 0]), strict=True):
        points, ring, small = (np.column_stack(line.get_data()) for line in axis.get_lines())
        assert_allclose(points, np.column_stack([places, [2.0, 5.0]]))
        assert_allclose(ring, points[1:])
        assert_allclose(small, points[:1])
    assert [axis.get_xlabel() for axis in figure.axes] == list(space)
    assert [axis.get_xscale() for axis in figure.axes] == ["linear", "log", "linear"]
    assert [text.get_text() for text in figure.axes[2].get_xticklabels()] == ["aop", "su"]
    assert figure.axes[0].get_ylabel() == "score"


def test_setting_curves_are_means_with_bars(rng):
    swept = {"rank": ["2", "5", "10"], "rate": ["0.1", "auto"]}
    values = {key: list(rng.normal(size=4)) for key in itertools.product(*swept.values())}
    del values["5", "auto"]
    best, alike = ("10", "0.1"), ("2", "auto")
    (axis,) = setting_curves(swept, values, best=best, like_the_best=[alike], ylabel="score").axes
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("rank", "score")
    assert [text.get_text() for text in axis.get_xticklabels()] == swept["rank"]
    for k, (rate, bars) in enumerate(zip(swept["rate"], axis.containers, strict=True)):
        assert bars.get_label() == f"rate {rate}"
        line, _, (errors,) = bars.lines
        drawn = [rank for rank in swept["rank"] if (rank, rate) in values]
        means = [np.mean(values[rank, rate]) for rank in drawn]
        data = line.get_xydata()[np.isfinite(line.get_xydata()[:, 1])]
        assert_allclose(data[:, 1], means)
        # Beside the number that they stand for, so that no bar hides another.
        assert_allclose(data[:, 0], [swept["rank"].index(r) + (-0.025, 0.025)[k] for r in drawn])
        ends = np.array([segment[:, 1] for segment in errors.get_segments() if len(segment)])
        ends = ends[np.isfinite(ends).all(axis=1)]
        spreads = [np.std(values[rank, rate], ddof=1) for rank in drawn]
        assert_allclose(np.diff(ends)[:, 0] / 2, spreads)
    assert marked(axis, 11) == {(1.975, round(np.mean(values[best]), 6))}
    assert marked(axis, 7) == {(0.025, round(np.mean(values[alike]), 6))}
    assert marked(axis, 6) == {(1.025, 0.0)}
    legend = [text.get_text() for text in axis.get_legend().get_texts()]
    names = {"rate 0.1", "rate auto", "best", "not told apart from it", "failed or diverged"}
    assert {*legend} == names


def test_setting_curves_have_panels_for_more_options():
    swept = {"a": ["1"], "b": ["1", "2"], "c": ["x", "y"], "d": ["u", "v"]}
    values = {key: [float(k)] for k, key in enumerate(itertools.product(*swept.values()))}
    figure = draw(setting_curves(swept, values, ylabel="score"))
    titles = [axis.get_title(loc="left") for axis in figure.axes]
    assert titles[:4] == ["c x, d u", "c x, d v", "c y, d u", "c y, d v"]
    assert [axis.axison for axis in figure.axes] == [True] * 4 + [False] * 2
    assert [axis.get_legend() is not None for axis in figure.axes[:4]] == [
        False,
        False,
        True,
        False,
    ]
    assert {axis.get_ylim() for axis in figure.axes[:4]} == {figure.axes[0].get_ylim()}
    shown = [[bars.lines[0].get_ydata()[0] for bars in axis.containers] for axis in figure.axes[:4]]
    assert shown == [[k, k + 4.0] for k in range(4)]


# All of them

FIGURES = {
    "sample_grid": lambda model: sample_grid(IMAGES[:1], title="a title wider than the image"),
    "strips": lambda model: strips({"a name that needs room": IMAGES, "given": IMAGES}, RIGHT),
    "receptive_fields": receptive_fields,
    "training_curves": training_curves,
    "singular_values": singular_values,
    "rank_error_curve": lambda model: rank_error_curve(RANKS, {"3000 samples": np.ones((11, 2))}),
    "setting_curves": lambda model: setting_curves(
        {"rank": ["2", "5"], "learning_rate": ["0.01", "auto"]},
        {("2", "0.01"): [1.0, 2.0], ("5", "auto"): [2.0, 2.5]},
        best=("5", "auto"),
        ylabel="validation pseudo-log-likelihood (nats)",
    ),
    "rank_error_panels": lambda model: rank_error_panels(
        RANKS, {f"{n} training images": ({"ours": np.ones(11)}, {"RBM": 2.0}) for n in (3000, 4000)}
    ),
}


@pytest.mark.parametrize("name", FIGURES)
def test_figures_save_with_nothing_cut_off(name, model):
    figure = FIGURES[name](model)
    for form, beginning in [("png", b"\x89PNG"), ("svg", b"<?xml")]:
        file = io.BytesIO()
        figure.savefig(file, format=form)
        assert file.getvalue().startswith(beginning)
    draw(figure)
    texts = [text.get_window_extent() for text in figure.texts]
    for box in [*texts, *(axis.get_tightbbox() for axis in figure.axes)]:
        assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1
    assert not Gcf.figs  # pyplot knows of none of them


UNFITTED = MPORBM((2, 2))
BAD_INPUT = [
    # settings
    (lambda: setting_curves({}, {}), ValueError, "swept: expected options with values"),
    (lambda: setting_curves({"a": []}, {}), ValueError, "swept: expected options with values"),
    (
        lambda: setting_curves({"a": ["1"]}, {("2",): [1.0]}),
        ValueError,
        r"values: expected values of the options, got \('2',\)",
    ),
    # images
    (
        lambda: sample_grid(np.ones(3)),
        ValueError,
        r"images: expected shape \(n_images, .*got \(3,",
    ),
    (lambda: sample_grid(np.ones((0, 3, 3))), ValueError, r"images: .*got \(0, 3, 3\)"),
    (lambda: sample_grid(IMAGES * 1j), TypeError, "images: expected .*real.*complex128"),
    (lambda: sample_grid([[[1.0]], [1.0]]), ValueError, "images: expected an array of images"),
    (lambda: sample_grid(IMAGES / 0), ValueError, "images: expected finite .*NaN where unknown"),
    (lambda: sample_grid(IMAGES, n_columns=0), ValueError, "n_columns=0: expected .* at least 1"),
    (lambda: sample_grid(IMAGES, n_columns=2.0), TypeError, "n_columns=2.0: expected an integer"),
    (lambda: sample_grid(IMAGES, cmap="grey!"), ValueError, "cmap='grey!': expected .*'gray_r'"),
    (lambda: strips([]), TypeError, "rows: expected a dictionary.*got list"),
    (lambda: strips({}), ValueError, "rows: expected at least one row"),
    (lambda: strips({"a": 1.0}), ValueError, r"rows\['a'\]: expected shape"),
    (
        lambda: strips({"a": IMAGES, "b": IMAGES[:2]}),
        ValueError,
        r"rows\['b'\]: expected shape \(7, 4, 4\), as rows\['a'\] has, got \(2, 4, 4\)",
    ),
    (
        lambda: strips({"a": IMAGES}, mask=RIGHT),
        ValueError,
        r"mask: expected a row called 'given' .*got rows \['a'\]",
    ),
    (
        lambda: strips({"given": IMAGES}, mask=RIGHT.astype(int)),
        TypeError,
        "mask: expected an array of bool, .*got dtype int64",
    ),
    (
        lambda: strips({"given": IMAGES}, mask=RIGHT[:2]),
        ValueError,
        r"mask: expected shape \(7, 4, 4\).* or \(4, 4\) for all images, got \(2, 4\)",
    ),
    # weights
    (lambda: receptive_fields(IMAGES), TypeError, "model: expected a fitted .*, got ndarray"),
    (lambda: receptive_fields(UNFITTED), NotFittedError, "MPORBM instance is not fitted"),
    (
        lambda: receptive_fields(LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0])),
        TypeError,
        "model: expected a fitted estimator of mporbm.*got LinearRegression",
    ),
    (lambda: receptive_fields(coupling("mpo"), n_units=5), ValueError, "n_units=5: .*at most 4"),
    (lambda: receptive_fields(coupling("mpo"), n_units=0), ValueError, "n_units=0: .*at least 1"),
    (lambda: receptive_fields(coupling("mpo"), n_columns=0), ValueError, "n_columns=0: expected"),
    (lambda: singular_values(None), TypeError, "model: expected .*got NoneType"),
    (lambda: singular_values(UNFITTED), NotFittedError, "MPORBM instance is not fitted"),
    (
        lambda: singular_values(DenseCoupling(np.zeros((3, 2)))),
        ValueError,
        "model: expected weights that are not all 0",
    ),
    # curves
    (lambda: training_curves(coupling("mpo")), TypeError, "model: .*got MPOCoupling"),
    (lambda: training_curves(UNFITTED), NotFittedError, "MPORBM instance is not fitted"),
    (lambda: rank_error_curve(3, {"a": [1.0]}), TypeError, r"ranks: expected .*got 3 \(int\)"),
    (
        lambda: rank_error_curve([], {"a": []}),
        ValueError,
        r"ranks: expected a non-empty.*\[\]",
    ),
    (lambda: rank_error_curve([0], {"a": [1.0]}), ValueError, r"ranks\[0\]=0: expected .*least 1"),
    (lambda: rank_error_curve([1, 2], [1.0, 2.0]), TypeError, "errors: expected a dict.*got list"),
    (lambda: rank_error_curve([1, 2], {}), ValueError, "errors: expected at least one curve"),
    (
        lambda: rank_error_curve([1, 2], {"a": np.ones((3, 2))}),
        ValueError,
        r"errors\['a'\]: expected shape \(2,\) or \(2, n_seeds\), got \(3, 2\)",
    ),
    (
        lambda: rank_error_curve([1, 2], {"a": [1.0, np.nan]}),
        ValueError,
        r"errors\['a'\]: expected entries that are finite",
    ),
    (
        lambda: rank_error_curve([1], {"a": [1.0]}, {"RBM": np.ones((2, 2))}),
        ValueError,
        r"baseline\['RBM'\]: expected a number, or one for each seed, got shape \(2, 2\)",
    ),
    (lambda: rank_error_curve([1], {"a": [1.0]}, 5.0), TypeError, "baseline: .*got float"),
    (lambda: rank_error_panels([1], {}), ValueError, "panels: expected at least one chart, got"),
    (lambda: rank_error_panels([1], [1.0]), TypeError, "panels: expected a dict.*got list"),
    (
        lambda: rank_error_panels([1], {"a": ({"b": [1.0]}, None), "c": ({}, None)}),
        ValueError,
        "errors: expected at least one curve",
    ),
]


@pytest.mark.filterwarnings("ignore:(?s).*violates type hint:UserWarning")
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
@pytest.mark.parametrize(("call", "error", "message"), BAD_INPUT)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_no_history_is_told(model):
    with pytest.raises(ValueError, match=r"model: .*MPORBM with an empty history_; call fit"):
        training_curves(model.compress(rank=1))


# Samples beside data


def test_samples_stand_above_their_nearest_neighbours():
    data = RNG.random((30, 4, 3))
    samples = data[::-2] + 0.01 * RNG.random((15, 4, 3))
    labels = np.array(["a", "b", "c"])[np.arange(30) % 3]
    found = measure_samples(data, samples, labels)
    figure = draw(sample_comparison(data, samples, found))
    means, pairs, classes, *tiles = figure.axes
    for axis, name, agreement in (
        (means, "means of units", found.means),
        (pairs, "covariances of pairs", found.covariances),
    ):
        numbers = f"correlation {agreement.correlation:.3f}, slope {agreement.slope:.3f}"
        assert axis.get_title(loc="left") == f"{name}\n{numbers}"
        assert (axis.get_xlabel(), axis.get_ylabel()) == ("data", "samples")
        # Every statistic is counted in one place.
        (places,) = axis.collections
        assert places.get_array().sum() == len(agreement.data)
        assert axis.get_xlim() == axis.get_ylim()
    heights = np.array([bar.get_height() for bar in classes.patches])
    expected = np.concatenate([found.classes.data_shares, found.classes.sample_shares])
    assert_allclose(heights, 100.0 * expected)
    assert [label.get_text() for label in classes.get_xticklabels()] == ["a", "b", "c"]
    assert len(tiles) == 24
    for k in range(12):
        assert_array_equal(drawn(tiles[k]), samples[k])
        assert_array_equal(drawn(tiles[12 + k]), data[::-2][k])
    assert (tiles[0].get_ylabel(), tiles[12].get_ylabel()) == ("samples", "nearest")


@pytest.mark.parametrize("shape", [(1,), (5,), (4, 6, 3), (2, 3, 4)])
def test_samples_without_labels_and_of_any_shape(shape):
    data, samples = RNG.random((20, *shape)), RNG.random((5, *shape))
    figure = draw(sample_comparison(data, samples, measure_samples(data, samples)))
    assert len([axis for axis in figure.axes if axis.get_xlabel() == "data"]) == 2
    assert len([axis for axis in figure.axes if axis.images]) == 10


@pytest.mark.parametrize(("n_classes", "n_names"), [(12, 12), (40, None)])
def test_nothing_of_a_comparison_overlaps(n_classes, n_names):
    """Texts of one kind do not touch, and stay in the figure."""
    data, samples = RNG.random((200, 6, 6)), RNG.random((50, 6, 6))
    labels = np.array([f"class {k % n_classes}" for k in range(200)])
    figure = draw(sample_comparison(data, samples, measure_samples(data, samples, labels)))
    classes = figure.axes[2]
    # Ticks beyond the limits are not drawn.
    low, high = classes.get_xlim()
    names = [name for name in classes.get_xticklabels() if low <= name.get_position()[0] <= high]
    assert n_names is None or len(names) == n_names
    titles = [axis.title for axis in figure.axes] + [axis._left_title for axis in figure.axes[:3]]
    shown = [t for t in (*names, *titles) if t.get_text()]
    boxes = [text.get_window_extent() for text in shown]
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))
    width, height = figure.bbox.size
    assert all(b.x0 >= 0 and b.x1 <= width and b.y0 >= 0 and b.y1 <= height for b in boxes)


def test_other_samples_than_those_measured_are_refused():
    data = RNG.random((20, 4, 4))
    found = measure_samples(data, data)
    with pytest.raises(ValueError, match=r"samples: expected images of shape \(4, 4\).*\(4, 3\)"):
        sample_comparison(data, data[:, :, :3], found)
