"""Configuration files and the outcomes of runs."""

import json
from unittest import mock

from fuzz import mutation
from mporbm.cli import config
from mporbm.cli.fit_options import fit_options
from reproduction.runs import Run

TOML = (
    b'hidden-shape = [2, 2]\nrank = 2\nscheme = "su"\ngauge = "none"\nrule = "plain"\n'
    b"n_iter = 3\nmomentum = 0.5\n"
)
OPTIONS = sorted([*fit_options(), "data", "picture", "force", "quiet"])
LITERALS = (
    "1",
    "-1",
    "0",
    "2.5",
    "nan",
    "inf",
    "-inf",
    "true",
    "false",
    '"x"',
    '""',
    '"auto"',
    "[]",
    "[1, 2]",
    "[[1]]",
    "[1, 'a']",
    "{}",
    "{a = 1}",
    "1979-05-27",
    "0x" + "f" * 5000,
    "9" * 30,
    "9" * 5000,
    "1e400",
    "[" * 300 + "]" * 300,
    '"10,10"',
    '"9,-1"',
    '"none"',
    '"bernoulli"',
    '"two-site"',
    '"periodic"',
    "[0x" + "f" * 5000 + "]",
    "[" * 20_000,
)


def changed_toml(rng):
    lines = []
    for _ in range(rng.choice((1, 2, 3, 5))):
        name = rng.choice(OPTIONS)
        name = rng.choice(
            (name, name, name, name.replace("_", "-"), f"{name}.a.b", f"[{name}]\na", "x")
        )
        lines.append(f"{name} = {rng.choice(LITERALS)}")
    return "\n".join(lines).encode()


def read_toml(path):
    options = config.read_options(path)
    try:
        estimator = config.make_estimator(options, 0)
        config.make_coding(options)
        estimator.check_parameters()
    except (ValueError, TypeError, FileNotFoundError) as error:
        # Those of parameters name the option; its file is known to who gave it.
        raise (ValueError if str(error) else AssertionError)(f"{path}: {error}") from error


RUN = Run("reproduction.figure7", {"seed": 1})
OUTCOME = {
    "outcome": {"error": 0.5, "errors": [1, 2]},
    "seconds": 1.5,
    "module": "m",
    "configuration": {},
}


def changed_outcome(rng):
    if rng.randrange(10) == 0:
        return mutation.deep_text(rng).encode()
    return json.dumps(mutation.change_value(rng, rng.choice(([OUTCOME], OUTCOME)))).encode()


def read_outcome(path):
    with mock.patch.object(Run, "path", return_value=path):
        outcome = RUN.outcome(path.parent)
    if outcome is None:
        raise ValueError(f"{path}: to be made again")
