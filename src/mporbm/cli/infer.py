"""Commands that use a trained machine on data."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from numpy.typing import NDArray

from . import files
from .coded_model import CodedModel
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
    coded, samples = _read(model, data, report)
    chosen = {"feature": feature, "output": output}
    coded.estimator.set_params(**{k: value for k, value in chosen.items() if value is not None})
    with files.blamed(X=data):
        features = coded.estimator.transform(coded.encode(samples))
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
    task = _Task(output_file, method, n_gibbs, binary, n_samples, std, picture, seed)
    task.check(force)
    report = Report(quiet, as_json)
    coded, samples = _read(model, data, report)
    coded.check_images(output_file)
    seen = _mask(samples, mask, known)
    truth = None if original is None else _read_original(samples, original)
    if known is not None and original is None and not np.isnan(samples).any():
        truth = samples
    with files.blamed(X=data):
        rows = coded.encode(np.where(seen, samples, samples.dtype.type(0)))
        answer, deviation = task.answer(coded, "complete", rows, mask=coded.encode_mask(seen))
    wide = (slice(None), None) if n_samples is not None else slice(None)
    answer = np.where(seen[wide], samples[wide], answer)
    task.finish(report, coded, answer, deviation, samples, truth, seen)


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
    task = _Task(output_file, method, n_gibbs, binary, n_samples, std, picture, seed)
    task.check(force)
    report = Report(quiet, as_json)
    coded, samples = _read(model, data, report)
    coded.check_images(output_file)
    truth = None if original is None else _read_original(samples, original)
    level = {"noise": noise, "salt_and_pepper": salt_and_pepper}
    facts = {}
    with files.blamed(X=data):
        rows = coded.encode(samples)
        if noise is None and salt_and_pepper is None and method != "reconstruct":
            level["noise"] = facts["estimated_noise"] = coded.estimator.estimate_noise(rows)
        answer, deviation = task.answer(coded, "denoise", rows, **level)
    task.finish(report, coded, answer, deviation, samples, truth, **facts)


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
    files.check_figure(picture, force)
    coded = CodedModel(model, report.shown)
    coded.check_images(output_file)
    drawn = coded.estimator.sample(n_samples, n_gibbs, random_state=seed)
    samples = coded.decode(drawn, coded.is_binary)
    files.write_array(output_file, samples, scaled=coded.is_scaled)
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
    coded, samples = _read(model, data, report)
    estimator = coded.estimator
    with files.blamed(X=data):
        rows = coded.encode(samples)
        scores = estimator.pseudo_log_likelihood(rows) if pseudo else -estimator.free_energy(rows)
    facts: dict[str, Any] = {"n_samples": len(rows)}
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


@dataclass(frozen=True)
class _Task:
    """What `complete` and `denoise` are asked for alike."""

    output: Path
    method: str
    n_gibbs: int
    binary: bool
    n_samples: int | None
    std: Path | None
    picture: Path | None
    seed: int | None

    def check(self, force: bool) -> None:
        """Refuse outputs that cannot be written, and options that exclude each other."""
        suffixes = files.ARRAY_SUFFIXES if self.n_samples is None else (".npy",)
        files.check_output(self.output, force, *suffixes)
        files.check_output(self.std, force, ".npy")
        files.check_figure(self.picture, force)
        if self.n_samples is not None and self.std is not None:
            raise ValueError("std: expected no such option where n_samples is given.")
        if self.n_samples is not None and self.method != "gibbs":
            raise ValueError(f"method={self.method}: expected gibbs where n_samples is given.")
        if self.std is not None and self.std.absolute() == self.output.absolute():
            raise ValueError(f"std: expected another file than {self.output}, which --out has.")

    def answer(
        self, coded: CodedModel, name: str, rows: Any, **evidence: Any
    ) -> tuple[NDArray[Any], Any]:
        """Infer what the evidence says of each sample, and standard deviations of its units."""
        common = {**evidence, "n_gibbs": self.n_gibbs, "random_state": self.seed}
        if self.n_samples is not None:
            drawn = coded.estimator.posterior_samples(rows, n_samples=self.n_samples, **common)
            return coded.decode_versions(drawn), None
        infer = getattr(coded.estimator, name)
        values, deviation = infer(
            rows, method=self.method, binary=self.binary, return_std=True, **common
        )
        return coded.decode(values, self.binary), deviation

    def finish(
        self,
        report: Report,
        coded: CodedModel,
        answer: NDArray[Any],
        deviation: Any,
        samples: NDArray[Any],
        truth: NDArray[Any] | None,
        mask: NDArray[np.bool_] | None = None,
        **facts: Any,
    ) -> None:
        """Write and draw what was made of samples, and say so."""
        files.write_array(self.output, answer, scaled=coded.is_scaled)
        if self.std is not None:
            files.write_array(self.std, deviation)
        first = answer if answer.ndim == samples.ndim else answer[:, 0]
        if self.picture is not None:
            from .. import pictures

            rows = {} if truth is None else {"original": truth[:N_DRAWN]}
            rows["given"] = samples[:N_DRAWN]
            rows[type(coded.estimator).__name__] = first[:N_DRAWN]
            shown = None if mask is None else mask[:N_DRAWN]
            files.write_figure(self.picture, pictures.strips(rows, mask=shown))
        written, text = _written(self.output, answer)
        if truth is not None:
            from ..evaluation.images import psnr

            facts["psnr"] = psnr(first, truth)
            text += f"; PSNR {facts['psnr']:.2f} dB"
        if "estimated_noise" in facts:
            text += f"; estimated noise {facts['estimated_noise']:.3f}"
        report.finish({**written, **facts}, text)


def _read(model: Path, data: str, report: Report) -> tuple[CodedModel, NDArray[Any]]:
    """Read a model, and samples in the shape of those that it has learnt from."""
    # A file that is missing is missed before JAX is loaded.
    samples = files.read_whole(data)
    coded = CodedModel(model, report.shown)
    return coded, coded.read_samples(data, samples)


def _read_original(samples: NDArray[Any], path: str) -> NDArray[Any]:
    original = files.read_whole(path)
    if original.shape not in (samples.shape, (len(samples), math.prod(samples.shape[1:]))):
        raise ValueError(
            f"{path}: expected shape {samples.shape}, as DATA has, got {original.shape}."
        )
    return original.reshape(samples.shape)


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


def _written(path: Path, array: NDArray[Any]) -> tuple[dict[str, Any], str]:
    facts = {"output": str(path), "shape": array.shape, "dtype": str(array.dtype)}
    return facts, f"{path}: {shape_text(array.shape)} {array.dtype}"
