"""Commands that use a trained machine on data."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import typer

from . import files
from .coded_model import CodedModel, reshaped
from .options import Data, Force, Model, Output, Picture, Report, SampleSteps, Seed, shape_text

N_DRAWN = 12
"""Samples in a picture of several rows."""
Half = Literal["left", "right", "top", "bottom"]


def transform(
    model: Model,
    data: Data,
    output_file: Annotated[
        Path, typer.Option("--out", "-o", metavar="OUT", help="The .npy file to write.")
    ],
    *,
    feature: Annotated[
        Literal["probability", "field", "state"] | None,
        typer.Option(help="What of the hidden units to write.", show_default="as fitted"),
    ] = None,
    output: Annotated[
        Literal["flat", "tensor"] | None,
        typer.Option(help="Features as rows or as tensors.", show_default="as fitted"),
    ] = None,
    force: Force = False,
    report: Report,
) -> None:
    """Write the hidden features of each sample."""
    files.check_output(output_file, force, ".npy")
    coded, samples = _read(model, data, report)
    chosen = {"feature": feature, "output": output}
    coded.estimator.set_params(**{k: value for k, value in chosen.items() if value is not None})
    with files.blamed(X=data):
        features = coded.estimator.transform(coded.encode(samples))
    files.write_array(output_file, features)
    report.finish(*_written(output_file, features))


@dataclass(frozen=True)
class Question:
    """What `complete` and `denoise` are asked for alike."""

    output_file: Output
    method: Annotated[
        Literal["auto", "gibbs", "mean-field", "reconstruct"],
        typer.Option(
            help="auto: in closed form where both layers are Gaussian, else gibbs; gibbs: "
            "posterior mean along Markov chains; mean-field: a fast approximation; reconstruct: "
            "one pass up and down, as in the paper."
        ),
    ] = "auto"
    n_gibbs: Annotated[int, typer.Option(help="Gibbs steps of each chain.")] = 100
    binary: Annotated[
        bool,
        typer.Option("--binary", help="Write the likelier of 0 and 1 instead of probabilities."),
    ] = False
    n_samples: Annotated[
        int | None,
        typer.Option(
            help="Write this many plausible versions of each sample, (n, n_samples, ...), instead "
            "of their mean."
        ),
    ] = None
    std: Annotated[
        Path | None,
        typer.Option(
            "--std", metavar="FILE", help="Also write the standard deviation of each unit (.npy)."
        ),
    ] = None
    original: Annotated[
        str | None,
        typer.Option(
            "--original",
            metavar="DATA",
            help="The true samples, to tell the peak signal-to-noise ratio (PSNR) and to draw.",
        ),
    ] = None
    picture: Picture = None
    seed: Seed = None
    force: Force = False

    def read(
        self, model: Path, data: str, report: Report
    ) -> tuple[CodedModel, np.ndarray, np.ndarray | None]:
        """Read the model, the samples and, where they are given, the true ones.

        Outputs that cannot be written, and options that exclude each other, are refused first.
        """
        suffixes = files.ARRAY_SUFFIXES if self.n_samples is None else (".npy",)
        files.check_output(self.output_file, self.force, *suffixes)
        files.check_output(self.std, self.force, ".npy")
        files.check_figure(self.picture, self.force)
        if self.n_samples is not None and self.std is not None:
            raise ValueError("std: expected no such option where n_samples is given.")
        if self.n_samples is not None and self.method not in ("auto", "gibbs"):
            raise ValueError(f"method={self.method}: expected gibbs where n_samples is given.")
        if self.std is not None and self.std.absolute() == self.output_file.absolute():
            raise ValueError(
                f"std: expected another file than {self.output_file}, which --out has."
            )
        coded, samples = _read(model, data, report)
        coded.check_images(self.output_file)
        if self.original is None:
            return coded, samples, None
        truth = files.read_whole(self.original)
        return coded, samples, reshaped(self.original, truth, samples.shape, "DATA has")

    def answer(
        self, coded: CodedModel, name: str, rows: object, **evidence: object
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Infer what the evidence says of each sample, and standard deviations of its units."""
        common = {**evidence, "n_gibbs": self.n_gibbs, "random_state": self.seed}
        if self.n_samples is not None:
            drawn = coded.estimator.posterior_samples(rows, n_samples=self.n_samples, **common)
            return coded.decode_versions(drawn), None
        values, deviation = getattr(coded.estimator, name)(
            rows, method=self.method, binary=self.binary, return_std=True, **common
        )
        return coded.decode(values, self.binary), deviation

    def finish(
        self,
        report: Report,
        coded: CodedModel,
        answer: tuple[np.ndarray, np.ndarray | None],
        samples: np.ndarray,
        truth: np.ndarray | None,
        mask: np.ndarray | None = None,
        noise: float | None = None,
    ) -> None:
        """Write and draw what was made of samples, and say so."""
        values, deviation = answer
        files.write_array(self.output_file, values, scaled=coded.is_scaled)
        if self.std is not None and deviation is not None:
            files.write_array(self.std, deviation)
        first = values if values.ndim == samples.ndim else values[:, 0]
        if self.picture is not None:
            from .. import pictures

            rows = {} if truth is None else {"original": truth[:N_DRAWN]}
            rows["given"] = samples[:N_DRAWN]
            rows[type(coded.estimator).__name__] = first[:N_DRAWN]
            shown = None if mask is None else mask[:N_DRAWN]
            files.write_figures(self.picture, pictures.strips(rows, mask=shown))
        facts, text = _written(self.output_file, values)
        if truth is not None:
            from ..evaluation.images import psnr

            facts["psnr"] = ratio = psnr(first, truth)
            text += f"; PSNR {ratio:.2f} dB"
        if noise is not None:
            facts["estimated_noise"] = noise
            text += f"; estimated noise {noise:.3f}"
        report.finish(facts, text)


def complete(
    model: Model,
    data: Data,
    *,
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
    question: Question,
    report: Report,
) -> None:
    """Fill in what is not known of each sample; what is known stays as it is."""
    coded, samples, truth = question.read(model, data, report)
    seen = _mask(samples, mask, known)
    if known is not None and truth is None and not np.isnan(samples).any():
        truth = samples
    with files.blamed(X=data):
        rows = coded.encode(np.where(seen, samples, samples.dtype.type(0)))
        answer, std = question.answer(coded, "complete", rows, mask=coded.encode_mask(seen))
    wide = (slice(None), None) if question.n_samples is not None else slice(None)
    answer = np.where(seen[wide], samples[wide], answer)
    question.finish(report, coded, (answer, std), samples, truth, mask=seen)


def denoise(
    model: Model,
    data: Data,
    *,
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
    question: Question,
    report: Report,
) -> None:
    """Clean each sample of noise."""
    coded, samples, truth = question.read(model, data, report)
    estimated = None
    with files.blamed(X=data):
        rows = coded.encode(samples)
        if noise is None and salt_and_pepper is None and question.method != "reconstruct":
            noise = estimated = coded.estimator.estimate_noise(rows)
        level = {"noise": noise, "salt_and_pepper": salt_and_pepper}
        answer = question.answer(coded, "denoise", rows, **level)
    question.finish(report, coded, answer, samples, truth, noise=estimated)


def sample(
    model: Model,
    output_file: Output,
    *,
    n_samples: Annotated[int, typer.Option("--n-samples", "-n", help="How many.")] = 100,
    n_gibbs: SampleSteps = None,
    picture: Picture = None,
    seed: Seed = None,
    force: Force = False,
    report: Report,
) -> None:
    """Draw samples of the model."""
    files.check_output(output_file, force, *files.ARRAY_SUFFIXES)
    files.check_figure(picture, force)
    coded = CodedModel(model, report.shown)
    coded.check_images(output_file)
    drawn = coded.estimator.sample(n_samples, n_gibbs, random_state=seed)
    samples = coded.decode(drawn, coded.is_binary)
    files.write_array(output_file, samples, scaled=coded.is_scaled)
    if picture is not None:
        from .. import pictures

        files.write_figures(picture, pictures.sample_grid(samples[:100]))
    report.finish(*_written(output_file, samples))


def score(
    model: Model,
    data: Data,
    *,
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
    n_temperatures: Annotated[
        int | None,
        typer.Option(help="Its steps; more are more precise.", show_default="as needed"),
    ] = None,
    seed: Seed = None,
    force: Force = False,
    report: Report,
) -> None:
    """Tell how likely the samples are under the model: the mean of log p(V)."""
    files.check_output(output_file, force, ".npy")
    coded, samples = _read(model, data, report)
    from ..sampling import LogPartition

    estimator = coded.estimator
    name = "pseudo_log_likelihood" if pseudo else "log_probability"
    facts: dict[str, object] = {"n_samples": len(samples)}
    texts, log_z_error = [], 0.0
    with files.blamed(X=data):
        rows = coded.encode(samples)
        if pseudo:
            scores = estimator.pseudo_log_likelihood(rows)
        else:
            # What is wrong with the samples is said before log Z takes its time.
            scores = estimator.score_samples(rows, LogPartition.known(0.0))
    if not pseudo:
        with report.busy("log Z"):
            z = estimator.log_partition(
                method, n_chains=n_chains, n_temperatures=n_temperatures, random_state=seed
            )
        scores, log_z_error = scores - z.value, z.standard_error
        names = ["value", "standard_error", "effective_sample_size", "forward", "reverse", "exact"]
        facts["log_partition"] = {name: getattr(z, name) for name in names}
        how = (
            f"± {z.standard_error:.2f}, forwards {z.forward:.2f}, in reverse {z.reverse:.2f}, "
            f"effective sample size {z.effective_sample_size:.1f} of {n_chains}"
        )
        texts.append(f"log Z {z.value:.2f} ({'exact' if z.exact else how})")
    mean, error = float(scores.mean()), log_z_error
    if len(scores) > 1:
        error = math.hypot(error, float(scores.std(ddof=1) / np.sqrt(len(scores))))
    facts |= {name: mean, "standard_error": error}
    text = f"{name.replace('_', '-')} {mean:.2f} ± {error:.2f} nats (mean of {len(scores)} samples)"
    if output_file is not None:
        files.write_array(output_file, scores)
        facts["output"] = str(output_file)
    report.finish(facts, text, *texts)


def _read(model: Path, data: str, report: Report) -> tuple[CodedModel, np.ndarray]:
    """Read a model, and samples in the shape of those that it has learnt from."""
    # A file that is missing is missed before JAX is loaded.
    samples = files.read_whole(data)
    coded = CodedModel(model, report.shown)
    return coded, coded.read_samples(data, samples)


def _mask(samples: np.ndarray, path: str | None, half: Half | None) -> np.ndarray:
    """What is known of the samples."""
    from ..estimators.inputs import check_mask

    mask = None
    if path is not None:
        if half is not None:
            raise ValueError("known: expected no such option where mask is given.")
        mask = files.read_mask(path)
        if samples.ndim == 4 and mask.shape in (samples.shape[:-1], samples.shape[1:-1]):
            # For all colours of a pixel.
            mask = np.repeat(mask[..., None], samples.shape[-1], axis=-1)
    elif half is not None:
        if samples.ndim < 3:
            raise ValueError(
                f"known={half}: expected samples with two modes or more, got shape "
                f"{samples.shape[1:]}; pass a mask."
            )
        axis = 0 if half in ("top", "bottom") else 1
        is_first = np.indices(samples.shape[1:])[axis] < samples.shape[1 + axis] // 2
        mask = is_first if half in ("left", "top") else ~is_first
    elif samples.dtype.kind != "f" or not np.isnan(samples).any():
        raise ValueError(
            "mask: expected --mask FILE, --known HALF, or data in which NaN mark what is unknown."
        )
    seen = check_mask(None, samples)
    if mask is None:
        return seen
    with files.blamed(mask=path or "mask"):
        given = check_mask(mask, np.broadcast_to(np.True_, samples.shape))
    if (given & ~seen).any():
        raise ValueError(
            f"{path or f'known={half}'}: expected no NaN in DATA among the known values; pass "
            f"--mask FILE that is 0 there, or leave out --mask and --known: NaN are then unknown."
        )
    return given


def _written(path: Path, array: np.ndarray) -> tuple[dict[str, object], str]:
    facts: dict[str, object] = {
        "output": str(path),
        "shape": array.shape,
        "dtype": str(array.dtype),
    }
    return facts, f"{path}: {shape_text(array.shape)} {array.dtype}"
