"""Options of `mporbm fit`, made from the fields of the estimators and their documentation."""

import dataclasses
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_type_hints

import typer

MODELS = ("MPORBM", "RBM", "MvRBM", "TvRBM")
"""Our estimators that can be fitted; the first is the default, and documents all parameters."""
NOT_OFFERED = ("feature", "output", "verbose", "warm_start")
"""Parameters of other commands, or of Python alone."""
RENAMED = {"random_state": "seed"}

MACHINE, DATA, LEARNING, STOPPING = "The machine", "The data", "Learning", "Stopping and resuming"
PANELS = {
    **dict.fromkeys(("hidden_shape", "visible_shape", "visible_units", "hidden_units"), MACHINE),
    **dict.fromkeys(("rank", "boundary", "init"), MACHINE),
    "standardize": DATA,
    **dict.fromkeys(("early_stopping", "validation_fraction", "n_iter_no_change"), STOPPING),
    **dict.fromkeys(("on_divergence", "checkpoint", "checkpoint_interval"), STOPPING),
}
"""Where help shows parameters; others are shown with those of learning."""
DEFAULTS = {"checkpoint": "MODEL.checkpoint, removed in the end"}
"""Defaults of the command that are not those of the estimators."""

SHAPE, RANK, RATE, EPOCHS = "SHAPE", "RANK", "RATE", "EPOCHS"
SEED, FILE = "SEED", "FILE"
WRITTEN = {
    **{"hidden_shape": SHAPE, "visible_shape": SHAPE, "rank": RANK, "learning_rate": RATE},
    "n_iter": EPOCHS,
    **{"random_state": SEED, "checkpoint": FILE},
}
"""Parameters whose values are written in a way of their own."""
MOST_HELP = 200
"""The longest help of an option, in characters."""


@dataclass(frozen=True)
class FitOption:
    """An option of `mporbm fit`, on the command line and in configuration files.

    Its kind is `bool`, `int`, `float`, `str`, or a way of writing values (`WRITTEN`); it may have
    a few choices only, and set a parameter of the estimators.
    """

    name: str
    kind: type | str
    help: str
    panel: str
    choices: tuple[str, ...] = ()
    parameter: str | None = None

    def as_parameter(self) -> inspect.Parameter:
        """Return the option as a parameter of a command: None where it is not given."""
        flag = f"--{self.name.replace('_', '-')}"
        hint: Any = Literal.__getitem__(self.choices) if self.choices else self.kind
        is_written = isinstance(hint, str)
        option = typer.Option(
            f"{flag}/--no-{flag[2:]}" if hint is bool else flag,
            # A bracket would be taken as markup.
            help=self.help.replace("[", r"\["),
            rich_help_panel=self.panel,
            show_default=False,
            min=0 if hint == SEED else None,
            metavar=str(hint) if is_written and hint != SEED else None,
        )
        if is_written:
            hint = int if hint == SEED else str
        return inspect.Parameter(
            self.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=None,
            annotation=Annotated[hint | None, option],
        )


OWN_OPTIONS = (
    FitOption("binarize", float, "Make values binary: are they above this number?", DATA),
    FitOption(
        "bit_planes", int, "Code whole numbers by this many bits, as an additional mode.", DATA
    ),
    FitOption("gray", bool, "Bit planes in Gray code.", DATA),
    FitOption(
        "coded_shape", SHAPE, "The shape of the samples as bit planes, such as 100,100,10.", DATA
    ),
    FitOption("x_val", "DATA", "Samples to watch for overfitting and to stop early by.", DATA),
)
"""Options that are no parameters of estimators, but for `model`."""


def fitted_classes() -> dict[str, Any]:
    """Return the estimators by the names that the option `model` has for them.

    Ours come first, then those that a user has registered.
    """
    import mporbm

    from ..estimators.model_file import ESTIMATORS

    own = {name: getattr(mporbm, name) for name in MODELS}
    others = {n: cls for n, cls in ESTIMATORS.items() if n not in mporbm.ESTIMATOR_MODULES}
    return {name.lower(): cls for name, cls in {**own, **others}.items()}


def fit_options() -> dict[str, FitOption]:
    """Return all options of `mporbm fit` by their names; for them JAX is loaded."""
    text = f"The machine: MPO, dense, Kronecker or CP coupling. [default: {MODELS[0].lower()}]"
    model = FitOption("model", str, text, MACHINE, tuple(fitted_classes()))
    made = [model, *OWN_OPTIONS, *_estimator_options()]
    made.sort(key=lambda option: (MACHINE, DATA, LEARNING, STOPPING).index(option.panel))
    return {option.name: option for option in made}


def _estimator_options() -> Iterator[FitOption]:
    """Yield an option for each parameter of the estimators, in the order of their documentation."""
    classes = list(fitted_classes().values())
    fields = {f.name: (f, cls) for cls in reversed(classes) for f in dataclasses.fields(cls)}
    texts = documented_parameters(classes[0].__doc__ or "")
    names = [name for name in texts if name in fields]
    for name in [*names, *(name for name in fields if name not in texts)]:
        field, cls = fields[name]
        if name in NOT_OFFERED:
            continue
        hint = get_type_hints(cls)[name]
        choices = () if name in WRITTEN else choices_of(name)
        yield FitOption(
            name=RENAMED.get(name, name),
            kind=WRITTEN.get(name, str if choices else _plain_type(hint)),
            help=_help(texts.get(name, ""), DEFAULTS.get(name, field.default), choices),
            panel=PANELS.get(name, LEARNING),
            choices=choices,
            parameter=name,
        )


def choices_of(parameter: str) -> tuple[str, ...]:
    """Return the words that a parameter can be, if it is one of a few; None is ``none``.

    Registries are looked up each time, so that what a user has registered can be chosen.
    """
    from ..estimators.parameters import CHOICES

    return tuple("none" if choice is None else choice for choice in CHOICES.get(parameter, ()))


def _plain_type(hint: object) -> type:
    """Return the simplest of `bool`, `int` and `float` that a type has, else `str`."""
    parts = get_args(hint) or (hint,)
    return next((kind for kind in (bool, int, float) if kind in parts), str)


def documented_parameters(docstring: str) -> dict[str, str]:
    """Return what the section "Parameters" of a numpydoc docstring says of each parameter."""
    _, _, rest = inspect.cleandoc(docstring).partition("Parameters\n----------\n")
    section = re.split(r"\n\n?\S[^\n]*\n---+\n", rest, maxsplit=1)[0]
    found = {}
    for names, text in re.findall(r"^(\S.*)\n((?:(?:[ \t].*)?(?:\n|$))*)", section, re.MULTILINE):
        for name in names.partition(" :")[0].split(","):
            found[name.strip()] = " ".join(text.split())
    return found


def _help(text: str, default: object, choices: tuple[str, ...]) -> str:
    """Return the first sentence of a documentation without its marks, and the default."""
    text = re.split(r"(?<=\.)\s+(?=[A-Z`])", text, maxsplit=1)[0]
    text = re.sub(r"\s*\(`mporbm[\w.]*`\)", "", text)
    text = re.sub(r"``\"?(.*?)\"?``|`(.*?)`", r"\1\2", text)
    if "none" in choices:
        text = re.sub(r"\bNone\b", "none", text)
    text = textwrap.shorten(text, MOST_HELP, placeholder=" …")
    if default is None or default is False:
        return text
    return f"{text} [default: {f'{default:g}' if isinstance(default, float) else default}]"
