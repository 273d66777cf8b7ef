"""Commands that use a trained machine on data."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from numpy.typing import NDArray

from . import files
from .options import (
    Binary,
    Data,
    Force,
    Json,
    Method,
    Model,
    NGibbs,
    NSamples,
    Original,
    Output,
    OutputArray,
    Picture,
    Quiet,
    Seed,
    Std,
)
from .report import Report, shape_text

N_DRAWN = 12
"""Samples in a picture of several rows."""
Half = Literal["left", "right", "top", "bottom"]


def transform(
    model: Model,
    data: Data,
    output_file: OutputArray,
    feature: Annotated[
        Literal["probability", "field", "state"] | None,
        typer.Option(help="What of the hidden units to write.", show_default="as fitted"),
    ] = None,
    output: Annotated[
        Literal["flat", "tensor"] | None,
        typer.Option(help="Features as rows or as tensors.", show_default="as fitted"),
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write the hidden features of each sample."""
    report = Report(quiet, as_json)
    files.check_output(output_file, force, ".npy")
    estimator, samples = _read(model, data, report)
    chosen = {"feature": feature, "output": output}
    estimator.set_params(**{name: value for name, value in chosen.items() if value is not None})
    with files.blamed(X=data):
        features = estimator.transform(_coded(estimator, samples))
    files.write_array(output_file, features)
    report.finish(*_written(output_file, features))


def complete(
    model: Model,
    data: Data,
    output_file: Output,
    mask: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="True (or not 0) where a value is known: one mask for all samples or one each, as "
            ".npy or PNG. Without it, NaN are unknown.",
        ),
    ] = None,
    known: Annotated[
        Half | None,
        typer.Option(help="Instead of a mask: the half of the first two modes that is known."),
    ] = None,
    method: Method = "gibbs",
    n_gibbs: NGibbs = 100,
    binary: Binary = False,
    n_samples: NSamples = None,
    std: Std = None,
    original: Original = None,
    picture: Picture = None,
    seed: Seed = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Fill in what is not known of each sample; what is known stays as it is."""
    report = Report(quiet, as_json)
    _check_outputs(output_file, std, picture, method, n_samples, force)
    estimator, samples = _read(model, data, report)
    _check_images(estimator, output_file, samples.shape[1:])
    seen = _mask(samples, mask, known)
    truth = None if original is None else _read_original(samples, original)
    if known is not None and original is None and not np.isnan(samples).any():
        truth = samples
    with files.blamed(X=data):
        answer, deviation = _answer(
            estimator,
            estimator.complete,
            _coded(estimator, np.where(seen, samples, samples.dtype.type(0))),
            {"mask": _coded_mask(estimator, seen)},
            method,
            n_gibbs,
            binary,
            n_samples,
            seed,
        )
    wide = seen[:, None] if n_samples is not None else seen
    values = samples[:, None] if n_samples is not None else samples
    answer = np.where(wide, values, answer)
    _finish(report, estimator, output_file, answer, std, deviation, picture, samples, truth, seen)


def denoise(
    model: Model,
    data: Data,
    output_file: Output,
    noise: Annotated[
        float | None,
        typer.Option(
            help="The probability that a value was flipped; for Gaussian units the standard "
            "deviation of the noise.",
            show_default="estimated from DATA",
        ),
    ] = None,
    salt_and_pepper: Annotated[
        float | None,
        typer.Option(help="Instead: the share of values replaced by 0 or 1 at random."),
    ] = None,
    method: Method = "gibbs",
    n_gibbs: NGibbs = 100,
    binary: Binary = False,
    n_samples: NSamples = None,
    std: Std = None,
    original: Original = None,
    picture: Picture = None,
    seed: Seed = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Clean each sample of noise."""
    report = Report(quiet, as_json)
    _check_outputs(output_file, std, picture, method, n_samples, force)
    estimator, samples = _read(model, data, report)
    _check_images(estimator, output_file, samples.shape[1:])
    truth = None if original is None else _read_original(samples, original)
    level = {"noise": noise, "salt_and_pepper": salt_and_pepper}
    estimated = None
    with files.blamed(X=data):
        coded = _coded(estimator, samples)
        if noise is None and salt_and_pepper is None and method != "reconstruct":
            level["noise"] = estimated = estimator.estimate_noise(coded)
        answer, deviation = _answer(
            estimator, estimator.denoise, coded, level, method, n_gibbs, binary, n_samples, seed
        )
    facts = {} if estimated is None else {"estimated_noise": estimated}
    _finish(
        report, estimator, output_file, answer, std, deviation, picture, samples, truth, **facts
    )


def sample(
    model: Model,
    output_file: Output,
    n_samples: Annotated[int, typer.Option("--n-samples", "-n", help="How many.")] = 100,
    n_gibbs: Annotated[int, typer.Option(help="Gibbs steps of each chain.")] = 1000,
    picture: Picture = None,
    seed: Seed = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Draw samples of the model."""
    report = Report(quiet, as_json)
    files.check_output(output_file, force, *files.ARRAY_SUFFIXES)
    files.check_output(picture, force, *files.FIGURE_SUFFIXES)
    estimator = files.read_model(model, report.shown)
    _check_images(estimator, output_file, _sample_shape(estimator))
    drawn = estimator.sample(n_samples, n_gibbs, random_state=seed)
    samples = _decoded(estimator, drawn, estimator.visible_units == "bernoulli")
    files.write_array(output_file, samples, scaled=_is_scaled(estimator))
    if picture is not None:
        from .. import pictures

        files.write_figure(picture, pictures.sample_grid(samples[:100]))
    report.finish(*_written(output_file, samples))


def score(
    model: Model,
    data: Data,
    output_file: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="OUT", help="Write the score of each sample (.npy)."),
    ] = None,
    pseudo: Annotated[
        bool, typer.Option("--pseudo", help="The cheaper pseudo-log-likelihood instead.")
    ] = False,
    method: Annotated[
        Literal["auto", "exact", "ais"],
        typer.Option(help="How log Z is found: by enumeration, or annealed importance sampling."),
    ] = "auto",
    n_chains: Annotated[int, typer.Option(help="Chains of annealed importance sampling.")] = 256,
    n_temperatures: Annotated[int, typer.Option(help="Its steps; more are more precise.")] = 2000,
    seed: Seed = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Tell how likely the samples are under the model: the mean of log p(V)."""
    report = Report(quiet, as_json)
    files.check_output(output_file, force, ".npy")
    estimator, samples = _read(model, data, report)
    with files.blamed(X=data):
        coded = _coded(estimator, samples)
        scores = estimator.pseudo_log_likelihood(coded) if pseudo else -estimator.free_energy(coded)
    facts: dict[str, Any] = {"n_samples": len(coded)}
    texts = []
    if pseudo:
        name = "pseudo_log_likelihood"
    else:
        with report.busy("log Z"):
            z = estimator.log_partition(
                method, n_chains=n_chains, n_temperatures=n_temperatures, random_state=seed
            )
        scores = scores - z.value
        name = "log_probability"
        facts["log_partition"] = {
            "value": z.value,
            "standard_error": z.standard_error,
            "effective_sample_size": None if z.exact else z.effective_sample_size,
            "reverse": z.reverse,
            "exact": z.exact,
        }
        how = (
            "exact"
            if z.exact
            else (
                f"± {z.standard_error:.2f}, in reverse {z.reverse:.2f}, effective sample size "
                f"{z.effective_sample_size:.1f} of {n_chains}"
            )
        )
        texts.append(f"log Z {z.value:.2f} ({how})")
    spread = float(scores.std(ddof=1) / np.sqrt(len(scores))) if len(scores) > 1 else 0.0
    facts |= {name: float(scores.mean()), "standard_error": spread}
    texts.insert(
        0,
        f"{name.replace('_', '-')} {scores.mean():.2f} ± "
        f"{spread:.2f} nats (mean of {len(scores)} samples)",
    )
    if output_file is not None:
        files.write_array(output_file, scores)
        facts["output"] = str(output_file)
    report.finish(facts, *texts)


def _answer(
    estimator: Any,
    mean: Callable[..., Any],
    coded: Any,
    evidence: dict[str, Any],
    method: str,
    n_gibbs: int,
    binary: bool,
    n_samples: int | None,
    seed: int | None,
) -> tuple[NDArray[Any], Any]:
    """What the evidence says of each sample, as the data were, and standard deviations of units."""
    common = {**evidence, "n_gibbs": n_gibbs, "random_state": seed}
    if n_samples is not None:
        drawn = estimator.posterior_samples(coded, n_samples=n_samples, **common)
        return _decoded_samples(estimator, drawn), None
    values, deviation = mean(coded, method=method, binary=binary, return_std=True, **common)
    return _decoded(estimator, values, binary), deviation


def _read(model: Path, data: str, report: Report) -> tuple[Any, NDArray[Any]]:
    """A model, and samples in the shape of those that it has learnt from."""
    # A file that is missing is missed before JAX is loaded.
    samples = files.read_whole(data)
    estimator = files.read_model(model, report.shown)
    from ..estimators import Binarize

    if samples.dtype == bool and isinstance(_coding(estimator), Binarize):
        # They are as the coding would make them, and so is the answer.
        del estimator.coding_
    shape = _sample_shape(estimator)
    if samples.shape[1:] not in (shape, (math.prod(shape),)):
        raise ValueError(
            f"{data}: expected samples of shape {shape}, as the model has learnt from, got "
            f"{samples.shape[1:]}."
        )
    return estimator, samples.reshape(len(samples), *shape)


def _read_original(samples: NDArray[Any], path: str) -> NDArray[Any]:
    original = files.read_whole(path)
    if original.shape not in (samples.shape, (len(samples), math.prod(samples.shape[1:]))):
        raise ValueError(
            f"{path}: expected shape {samples.shape}, as DATA has, got {original.shape}."
        )
    return original.reshape(samples.shape)


def _coding(estimator: Any) -> Any:
    """The coding that a model file remembers, if any."""
    return getattr(estimator, "coding_", None)


def _sample_shape(estimator: Any) -> tuple[int, ...]:
    """The shape of a sample as it is in files."""
    visible: tuple[int, ...] = estimator.visible_shape_
    coding = _coding(estimator)
    if coding is None or coding.sample_shape_ == (math.prod(visible),):
        # Samples that came flattened are tensors to the machine.
        return visible
    return tuple(coding.sample_shape_)


def _coded(estimator: Any, samples: NDArray[Any]) -> Any:
    coding = _coding(estimator)
    return samples if coding is None else coding.transform(samples.reshape(len(samples), -1))


def _coded_mask(estimator: Any, mask: NDArray[np.bool_]) -> Any:
    coding = _coding(estimator)
    if coding is None:
        return mask
    return coding.transform_mask(mask.reshape(len(mask), *coding.sample_shape_))


def _decoded(estimator: Any, values: NDArray[Any], binary: bool) -> NDArray[Any]:
    """Values as the data had them, from units or their probabilities."""
    coding = _coding(estimator)
    values = values > 0.5 if binary else values
    if coding is None:
        return values
    decoded: NDArray[Any] = coding.inverse_transform(values.reshape(len(values), -1))
    return decoded.reshape(len(values), *_sample_shape(estimator))


def _decoded_samples(estimator: Any, drawn: NDArray[Any]) -> NDArray[Any]:
    """Several versions (n, n_samples, ...) of each sample as the data had them."""
    n, n_samples = drawn.shape[:2]
    flat = drawn.reshape(n * n_samples, *drawn.shape[2:])
    decoded = _decoded(estimator, flat, estimator.visible_units == "bernoulli")
    return decoded.reshape(n, n_samples, *decoded.shape[1:])


def _mask(samples: NDArray[Any], path: str | None, half: Half | None) -> NDArray[np.bool_]:
    """What is known of the samples."""
    if half is not None:
        if path is not None:
            raise ValueError("known: expected no such option where mask is given.")
        if samples.ndim < 3:
            raise ValueError(
                f"known={half}: expected samples with two modes or more, got shape "
                f"{samples.shape[1:]}; pass a mask."
            )
        rows, columns = samples.shape[1:3]
        mask = np.zeros(samples.shape[1:], bool)
        where: dict[str, Any] = {
            "left": np.s_[:, : columns // 2],
            "right": np.s_[:, columns // 2 :],
            "top": np.s_[: rows // 2],
            "bottom": np.s_[rows // 2 :],
        }
        mask[where[half]] = True
    elif path is not None:
        mask = _fitting_mask(path, samples.shape)
    elif samples.dtype.kind == "f" and np.isnan(samples).any():
        return np.asarray(~np.isnan(samples))
    else:
        raise ValueError(
            "mask: expected --mask FILE, --known HALF, or data in which NaN mark what is unknown."
        )
    return np.broadcast_to(mask, samples.shape)


def _fitting_mask(path: str, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """A mask for all samples or for each; for flattened ones, or all colours of a pixel, too."""
    mask, (n, *modes) = files.read_mask(path), shape
    size = math.prod(modes)
    if mask.shape in (shape, (1, *modes), tuple(modes)):
        return mask
    if mask.shape in ((size,), (n, size)):
        return mask.reshape(*mask.shape[:-1], *modes)
    if len(shape) == 4 and mask.shape in (shape[:-1], shape[1:-1]):
        return mask[..., None]
    raise ValueError(
        f"{path}: expected a mask of shape {shape[1:]}, for all samples, or {shape}, got "
        f"{mask.shape}."
    )


def _check_images(estimator: Any, output: Path, shape: tuple[int, ...]) -> None:
    """Refuse to write as images what are none."""
    files.check_images(output, shape)
    if not output.suffix and estimator.visible_units == "gaussian":
        raise ValueError(
            f"{output}: expected Bernoulli visible units to write as images, got Gaussian ones; "
            f"write a .npy file instead."
        )


def _is_scaled(estimator: Any) -> bool:
    """Whether 1 stands for white, as it does unless whole numbers were coded."""
    coding = _coding(estimator)
    return coding is None or coding.dtype_.kind == "f"


def _check_outputs(
    output: Path,
    std: Path | None,
    picture: Path | None,
    method: str,
    n_samples: int | None,
    force: bool,
) -> None:
    files.check_output(output, force, *(files.ARRAY_SUFFIXES if n_samples is None else (".npy",)))
    files.check_output(std, force, ".npy")
    files.check_output(picture, force, *files.FIGURE_SUFFIXES)
    if n_samples is not None and std is not None:
        raise ValueError("std: expected no such option where n_samples is given.")
    if n_samples is not None and method != "gibbs":
        raise ValueError(f"method={method}: expected gibbs where n_samples is given.")
    if std is not None and std.absolute() == output.absolute():
        raise ValueError(f"std: expected another file than {output}, which --out has.")


def _finish(
    report: Report,
    estimator: Any,
    output: Path,
    answer: NDArray[Any],
    std: Path | None,
    deviation: Any,
    picture: Path | None,
    samples: NDArray[Any],
    truth: NDArray[Any] | None,
    mask: NDArray[np.bool_] | None = None,
    **facts: Any,
) -> None:
    """Write and draw what a command made of samples, and say so."""
    files.write_array(output, answer, scaled=_is_scaled(estimator))
    if std is not None:
        files.write_array(std, deviation)
    first = answer if answer.ndim == samples.ndim else answer[:, 0]
    if picture is not None:
        from .. import pictures

        rows = {} if truth is None else {"original": truth[:N_DRAWN]}
        rows["given"] = samples[:N_DRAWN]
        rows[type(estimator).__name__] = first[:N_DRAWN]
        shown = None if mask is None else mask[:N_DRAWN]
        files.write_figure(picture, pictures.strips(rows, mask=shown))
    written, text = _written(output, answer)
    if truth is not None:
        facts["psnr"] = _psnr(truth, first)
        text += f"; PSNR {facts['psnr']:.2f} dB"
    if "estimated_noise" in facts:
        text += f"; estimated noise {facts['estimated_noise']:.3f}"
    report.finish({**written, **facts}, text)


def _psnr(truth: NDArray[Any], answer: NDArray[Any]) -> float:
    """The mean peak signal-to-noise ratio, the peak being the range of the true values."""
    peak = float(truth.max()) - float(truth.min()) or 1.0
    error = (answer.astype(np.float64) - truth) ** 2
    mean = np.maximum(error.reshape(len(truth), -1).mean(axis=1), 1e-6 * peak**2)
    return float(np.mean(10.0 * np.log10(peak**2 / mean)))


def _written(path: Path, array: NDArray[Any]) -> tuple[dict[str, Any], str]:
    facts = {"output": str(path), "shape": array.shape, "dtype": str(array.dtype)}
    return facts, f"{path}: {shape_text(array.shape)} {array.dtype}"
