"""`mporbm fit`: train a machine."""

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import typer

from . import files
from .options import Data, Force, Json, OutputModel, Quiet
from .processes import together
from .report import Report, shape_text

MODEL, DATA, LEARNING, STOPPING = "The machine", "The data", "Learning", "Stopping and resuming"
PROCESSES = "Several processes"
CODINGS = ("binarize", "bit_planes", "gray", "coded_shape")
SHAPES = ("hidden_shape", "visible_shape", "rank", "coded_shape")
NOT_IN_FILES = (
    *("data", "output_file", "config", "picture", "force", "quiet", "as_json", "return"),
    *("distributed", "coordinator", "num_processes", "process_id"),
)
"""What a configuration file cannot say: where files are, what to print, and who else computes."""
MOST_CONFIG_BYTES, MOST_CONFIG_DOTS = 2**16, 1000
"""The longest configuration file; a key of n parts takes memory with the square of n."""
Text = str | None
Number = float | None
Integer = int | None
Flag = bool | None


def _option(text: str, panel: str, *names: str, **more: Any) -> Any:
    # Defaults are those of the estimators; a bracket would else be taken as markup.
    text = text.replace("[default", r"\[default")
    return typer.Option(*names, help=text, rich_help_panel=panel, show_default=False, **more)


def fit(
    data: Data,
    output_file: OutputModel,
    model: Annotated[
        Literal["mporbm", "rbm", "mvrbm", "tvrbm"] | None,
        _option(
            "The machine: MPO, dense, Kronecker or CP coupling. [default: mporbm]",
            MODEL,
        ),
    ] = None,
    hidden_shape: Annotated[
        Text,
        _option(
            "Hidden units, such as 10,10. [default: a third of each visible mode]",
            MODEL,
            metavar="SHAPE",
        ),
    ] = None,
    visible_shape: Annotated[
        Text,
        _option("The shape of samples that come flattened, such as 28,28.", MODEL, metavar="SHAPE"),
    ] = None,
    visible_units: Annotated[
        Literal["bernoulli", "gaussian"] | None,
        _option("bernoulli: 0..1; gaussian: standardised values. [default: bernoulli]", MODEL),
    ] = None,
    rank: Annotated[
        Text,
        _option(
            "The largest rank of any bond, or one for each. [default: 20]", MODEL, metavar="RANK"
        ),
    ] = None,
    boundary: Annotated[
        Literal["open", "periodic"] | None,
        _option("periodic closes the cores to a ring. [default: open]", MODEL),
    ] = None,
    init: Annotated[
        Literal["data", "random"] | None,
        _option("How weights and biases begin. [default: data]", MODEL),
    ] = None,
    binarize: Annotated[
        Number, _option("Make values binary: are they above this number?", DATA)
    ] = None,
    bit_planes: Annotated[
        Integer, _option("Code whole numbers by this many bits, as an additional mode.", DATA)
    ] = None,
    gray: Annotated[Flag, _option("Bit planes in Gray code.", DATA, "--gray/--no-gray")] = None,
    coded_shape: Annotated[
        Text,
        _option(
            "The shape of the samples as bit planes, such as 100,100,10.", DATA, metavar="SHAPE"
        ),
    ] = None,
    x_val: Annotated[
        Text,
        _option(
            "Samples to watch for overfitting and to stop early by.",
            DATA,
            "--x-val",
            metavar="DATA",
        ),
    ] = None,
    scheme: Annotated[
        Literal["aop", "su", "two-site"] | None,
        _option(
            "Which cores an update moves: aop one after the other (Algorithm 1), su all, two-site "
            "pairs with ranks that adapt. [default: aop]",
            LEARNING,
        ),
    ] = None,
    gauge: Annotated[
        Literal["canonical", "none"] | None,
        _option("none is the paper's plain rule. [default: canonical]", LEARNING),
    ] = None,
    rank_tolerance: Annotated[
        Number,
        _option("What two-site may drop of W, relative to its norm. [default: 0.25]", LEARNING),
    ] = None,
    negative_phase: Annotated[
        Literal["cd", "pcd", "fpcd", "pt"] | None,
        _option(
            "Contrastive divergence, persistent chains, those with fast weights, or parallel "
            "tempering. [default: cd]",
            LEARNING,
        ),
    ] = None,
    n_gibbs: Annotated[
        Integer, _option("K, the Gibbs steps of each update. [default: 1]", LEARNING)
    ] = None,
    learning_rate: Annotated[
        Text,
        _option(
            "A number, or auto: found by the scale of the data. [default: auto]",
            LEARNING,
            metavar="RATE",
        ),
    ] = None,
    schedule: Annotated[
        Literal["constant", "linear", "cosine"] | None,
        _option("How the rate changes over the epochs. [default: constant]", LEARNING),
    ] = None,
    momentum: Annotated[Number, _option("The paper's gamma. [default: 0.5]", LEARNING)] = None,
    weight_decay: Annotated[
        Number, _option("How strongly weights are pulled to 0. [default: 0]", LEARNING)
    ] = None,
    sparsity_target: Annotated[
        Number, _option("How often a hidden unit should be on. [default: no matter]", LEARNING)
    ] = None,
    sparsity_cost: Annotated[
        Number, _option("How strongly units are held to that. [default: 0.1]", LEARNING)
    ] = None,
    batch_size: Annotated[Integer, _option("Samples of a batch. [default: 100]", LEARNING)] = None,
    n_iter: Annotated[
        Integer, _option("Passes over the data (epochs). [default: 50]", LEARNING)
    ] = None,
    early_stopping: Annotated[
        Flag,
        _option(
            "Stop when validation samples get no better.",
            STOPPING,
            "--early-stopping/--no-early-stopping",
        ),
    ] = None,
    validation_fraction: Annotated[
        Number, _option("The share of samples set aside for that. [default: 0.1]", STOPPING)
    ] = None,
    n_iter_no_change: Annotated[
        Integer, _option("Epochs to wait for something better. [default: 5]", STOPPING)
    ] = None,
    on_divergence: Annotated[
        Literal["stop", "back-off"] | None,
        _option("When weights grow out of bounds. [default: stop]", STOPPING),
    ] = None,
    checkpoint: Annotated[
        Text,
        _option(
            "The file that an interrupted run goes on from. [default: MODEL.checkpoint, removed in "
            "the end]",
            STOPPING,
            metavar="FILE",
        ),
    ] = None,
    checkpoint_interval: Annotated[
        Integer, _option("Epochs between checkpoints. [default: 1]", STOPPING)
    ] = None,
    seed: Annotated[
        Integer, _option("Makes the run repeatable.", LEARNING, "--seed", min=0)
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A TOML file with any of the options below, under their names; options of the "
            "command line win.",
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the training curves (.png, .svg or .pdf)."),
    ] = None,
    distributed: Annotated[
        bool,
        _option(
            "Train together with other processes of the same command, which share every batch. "
            "Under SLURM, Open MPI and Kubernetes they find each other; else see below, or "
            "mporbm launch.",
            PROCESSES,
            "--distributed",
        ),
    ] = False,
    coordinator: Annotated[
        Text, _option("Where process 0 listens.", PROCESSES, metavar="HOST:PORT")
    ] = None,
    num_processes: Annotated[
        Integer, _option("How many processes there are.", PROCESSES, min=1)
    ] = None,
    process_id: Annotated[
        Integer, _option("Which of them this one is, from 0.", PROCESSES, min=0)
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train a machine on DATA and write it to a file.

    A run that is interrupted goes on where it was when the same command is given again. Images of
    0..255 need --binarize or --bit-planes; the model file remembers the coding.
    """
    given = {name: value for name, value in locals().items() if value is not None}
    for name in NOT_IN_FILES:
        given.pop(name, None)
    files.check_output(output_file, force, ".safetensors")
    files.check_output(picture, force, *files.FIGURE_SUFFIXES)
    options = {**_configured(config), **given}
    # Files that are missing are missed before JAX is loaded.
    samples = files.read_array(data)
    validation = files.read_array(options["x_val"]) if "x_val" in options else None
    with together(distributed, coordinator, num_processes, process_id) as writes:
        report = Report(quiet or not writes, as_json and writes)
        _fit(report, data, samples, validation, options, output_file, picture, writes)


def _fit(
    report: Report,
    data: str,
    samples: Any,
    validation: Any,
    options: dict[str, Any],
    output_file: Path,
    picture: Path | None,
    writes: bool,
) -> None:
    """Train, and write the model if it is for this process to do so."""
    from ..training import checkpoint as checkpoints

    x_val = options.get("x_val")
    estimator = make_estimator(options, verbose=int(report.shown))
    coding = make_coding(options)
    kept = Path(estimator.checkpoint) if estimator.checkpoint else None
    temporary = output_file.with_name(f"{output_file.name}.checkpoint")
    if kept is not None and kept.absolute() == output_file.absolute():
        raise ValueError(f"checkpoint: expected another file than {output_file}, the model.")
    estimator.set_params(checkpoint=kept or temporary)

    if coding is not None:
        with files.blamed(X=data):
            samples = coding.fit(samples).transform(samples)
        with files.blamed(X=x_val):
            validation = None if validation is None else coding.transform(validation)
    elif estimator.visible_units == "bernoulli":
        check_bytes(data, samples)
    resumed = checkpoints.exists(estimator.checkpoint)
    if resumed:
        report.note(f"going on from {estimator.checkpoint}")
    try:
        with files.blamed(X=data, X_val=x_val), files.writing(estimator.checkpoint):
            estimator.fit(samples, X_val=validation)
    except (KeyboardInterrupt, SystemExit):
        report.note(f"stopped; the same command goes on from {estimator.checkpoint}, which is kept")
        raise
    if coding is not None:
        estimator.coding_ = coding
    if not writes:
        return
    files.write_model(output_file, estimator)
    if kept is None:
        checkpoints.remove(temporary)
    if picture is not None:
        from .. import pictures

        files.write_figure(picture, pictures.training_curves(estimator))
    machine = estimator.machine_
    facts = {
        "output": str(output_file),
        "class": type(estimator).__name__,
        "visible_shape": machine.visible_shape,
        "hidden_shape": machine.hidden_shape,
        "n_parameters": estimator.n_parameters_,
        "n_iter": estimator.n_iter_,
        "resumed": resumed,
        "last": estimator.history_[-1] if estimator.history_ else None,
    }
    report.finish(
        facts,
        f"{output_file}: {type(estimator).__name__} {shape_text(machine.visible_shape)} -> "
        f"{shape_text(machine.hidden_shape)}, {estimator.n_parameters_} weights, "
        f"{estimator.n_iter_} epochs",
    )


def _configured(path: Path | None) -> dict[str, Any]:
    """The options of a configuration file, under the names of Python."""
    if path is None:
        return {}
    return {check_option(path, key, value): value for key, value in read_toml(path).items()}


def read_toml(path: Path) -> dict[str, Any]:
    """What a configuration file says."""
    with open(path, "rb") as file:
        content = file.read(MOST_CONFIG_BYTES + 1)
    if len(content) > MOST_CONFIG_BYTES or content.count(b".") > MOST_CONFIG_DOTS:
        raise ValueError(
            f"{path}: expected a TOML file of at most {MOST_CONFIG_BYTES} bytes, at most "
            f"{MOST_CONFIG_DOTS} of them dots."
        )
    try:
        return tomllib.loads(content.decode())
    # Integers of thousands of digits are no TOMLDecodeError.
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: expected a TOML file: {error}") from error


def check_option(path: Path, key: str, value: Any) -> str:
    """The name in Python of an option of a configuration file, whose value has to fit."""
    hints = {n: hint for n, hint in get_type_hints(fit).items() if n not in NOT_IN_FILES}
    name = key.replace("-", "_")
    if name not in hints:
        raise ValueError(f"{path}: {key:.100}: there is no such option; see mporbm fit --help.")
    expected = _mismatch(name, value, hints[name])
    if expected is not None:
        raise ValueError(f"{path}: {key}={_shown(value)}: expected {expected}.")
    return name


def _mismatch(name: str, value: Any, hint: Any) -> str | None:
    """What the value of an option should have been, if it is not."""
    kind = get_args(hint)[0]
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        return None if value in choices else f"one of {', '.join(choices)}"
    types: dict[Any, tuple[Any, str]] = {
        bool: (bool, "true or false"),
        int: (int, "a whole number"),
        float: ((int, float), "a number"),
        str: (str, "a string"),
    }
    allowed, text = types[kind]
    if name in SHAPES:
        allowed, text = (int, str, list), "whole numbers, such as [10, 10]"
    elif name == "learning_rate":
        allowed, text = (int, float, str), '"auto" or a number'
    if not _is_small(value):
        return f"{text}, of at most 63 bits"
    # In Python, a bool is an int.
    fits = isinstance(value, allowed) and (kind is bool or not isinstance(value, bool))
    return None if fits else text


def _is_small(value: Any) -> bool:
    """Whether integers have the range of TOML; Python's have none, and cannot all be printed."""
    values = value if isinstance(value, list) else [value]
    return all(not isinstance(item, int) or -(2**63) <= item < 2**63 for item in values)


def _shown(value: Any) -> str:
    """A value as errors show it, however long or deeply nested."""
    try:
        return f"{value!r:.100}"
    except (ValueError, RecursionError):
        return "something huge"


def make_estimator(options: dict[str, Any], verbose: int) -> Any:
    """The estimator that options ask for."""
    from ..estimators.machines import ESTIMATORS

    classes = {c.__name__.lower(): c for c in ESTIMATORS}
    kind = options.get("model", "mporbm")
    known = classes[kind]().get_params(deep=False)
    parameters: dict[str, Any] = {"verbose": verbose}
    for name, value in options.items():
        if name in ("model", "x_val", *CODINGS):
            continue
        target = "random_state" if name == "seed" else name
        if target not in known:
            raise ValueError(f"{name}: {kind} has no such option; see mporbm fit --help.")
        parameters[target] = _PARSERS[name](name, value) if name in _PARSERS else value
    return classes[kind](**parameters)


def make_coding(options: dict[str, Any]) -> Any:
    """The coding that options ask for, if any."""
    from ..estimators import Binarize, BitPlanes

    chosen = [name for name in ("binarize", "bit_planes") if name in options]
    if len(chosen) > 1:
        raise ValueError("binarize: expected no such option where bit_planes is given.")
    if chosen and options.get("visible_units") == "gaussian":
        raise ValueError(f"{chosen[0]}: expected Bernoulli visible units, got Gaussian ones.")
    if "bit_planes" in options:
        shape = options.get("coded_shape")
        return BitPlanes(
            options["bit_planes"],
            gray=options.get("gray", False),
            shape=None if shape is None else parse_shape("coded_shape", shape),
        )
    for name in ("gray", "coded_shape"):
        if name in options:
            raise ValueError(f"{name}: expected bit_planes, too.")
    return Binarize(options["binarize"]) if "binarize" in options else None


def check_bytes(path: str, samples: Any) -> None:
    """Refuse images of 0..255 before the estimator does, with what is to be done here."""
    from ..estimators.inputs import value_range

    if samples.dtype == np.uint8 and (largest := int(value_range(samples)[1])) > 1:
        raise ValueError(
            f"{path}: expected values from 0 to 1, got up to {largest}; pass --binarize "
            f"{largest // 2} or --bit-planes {largest.bit_length()}."
        )


def parse_shape(name: str, value: Any) -> tuple[int, ...]:
    """Integers separated by commas, or as a list."""
    parts = value.split(",") if isinstance(value, str) else value
    parts = parts if isinstance(parts, list) else [parts]
    try:
        if not all(isinstance(part, str) or type(part) is int for part in parts):
            raise TypeError
        sizes = tuple(int(part) for part in parts)
        if not _is_small(list(sizes)):
            raise ValueError
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name}={_shown(value)}: expected integers separated by commas, such as 10,10."
        ) from error
    return sizes


def parse_rank(name: str, value: Any) -> Any:
    """One rank for all bonds, or one for each."""
    ranks = parse_shape(name, value)
    return ranks[0] if len(ranks) == 1 and not isinstance(value, list) else ranks


def _rate(name: str, value: Any) -> Any:
    try:
        return value if value == "auto" else float(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}={_shown(value)}: expected auto or a number above 0.") from error


def _gauge(name: str, value: Any) -> Any:
    return None if value == "none" else value


def _seed(name: str, value: int) -> int:
    if not 0 <= value < 2**32:
        raise ValueError(f"{name}={value}: expected an integer from 0 to 2^32 - 1.")
    return value


_PARSERS = {
    "hidden_shape": parse_shape,
    "visible_shape": parse_shape,
    "rank": parse_rank,
    "learning_rate": _rate,
    "gauge": _gauge,
    "seed": _seed,
}
