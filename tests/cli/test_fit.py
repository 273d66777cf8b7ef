"""The options of fit are the parameters of the estimators; what is killed goes on."""

import os
import re
import signal
import subprocess
import sys
import time

import jax
import pytest
import typer

import mporbm
from mporbm import MPORBM
from mporbm.cli.app import make_app
from mporbm.cli.fit_options import MODELS, choices_of, documented_parameters, fit_options

ESTIMATORS = [getattr(mporbm, name) for name in MODELS]
# What transform chooses, and what only Python can use.
ELSEWHERE = {"feature", "output", "verbose", "warm_start"}
# A value of each option that is not the default, as a flag, in TOML and in Python.
OTHERS = {
    "hidden_shape": ("2,1", "[2, 1]", (2, 1)),
    "visible_shape": ("3,2", "[3, 2]", (3, 2)),
    "visible_units": ("gaussian", '"gaussian"', "gaussian"),
    "hidden_units": ("rectified", '"rectified"', "rectified"),
    "rank": ("2", "2", 2),
    "boundary": ("periodic", '"periodic"', "periodic"),
    "init": ("random", '"random"', "random"),
    "scheme": ("su", '"su"', "su"),
    "gauge": ("none", '"none"', None),
    "rank_tolerance": ("0.5", "0.5", 0.5),
    "negative_phase": ("pcd", '"pcd"', "pcd"),
    "n_gibbs": ("2", "2", 2),
    "learning_rate": ("0.3", "0.3", 0.3),
    "schedule": ("cosine", '"cosine"', "cosine"),
    "rule": ("centred", '"centred"', "centred"),
    "momentum": ("0.9", "0.9", 0.9),
    "weight_decay": ("0.01", "0.01", 0.01),
    "sparsity_target": ("0.1", "0.1", 0.1),
    "sparsity_cost": ("1", "1", 1.0),
    "batch_size": ("7", "7", 7),
    "n_iter": ("4", "4", 4),
    "early_stopping": (None, "true", True),
    "standardize": (None, "false", False),
    "validation_fraction": ("0.2", "0.2", 0.2),
    "n_iter_no_change": ("2", "2", 2),
    "on_divergence": ("back-off", '"back-off"', "back-off"),
    "checkpoint_interval": ("9", "9", 9),
    "random_state": ("11", "11", 11),
}


def option(parameter):
    return "seed" if parameter == "random_state" else parameter


@pytest.fixture(scope="module")
def flags():
    """The options of fit by their names."""
    fit = typer.main.get_command(make_app()).commands["fit"]
    return {name: parameter for parameter in fit.params for name in parameter.opts}


@pytest.fixture
def recorded(monkeypatch):
    """The parameters that estimators are fitted with, without fitting them."""
    found = []

    def record(self, X, y=None, **options):
        found.append(self.get_params(deep=False) | {"class": type(self)})
        raise ValueError("recorded")

    for estimator in ESTIMATORS:
        monkeypatch.setattr(estimator, "fit", record)
    return found


# Flags


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_parameter_is_a_flag_that_says_its_default(flags, estimator):
    for name, default in estimator().get_params(deep=False).items():
        if name in ELSEWHERE:
            continue
        flag = flags[f"--{option(name).replace('_', '-')}"]
        said = re.findall(r"\[default: (.*)\]", flag.help.replace("\\", ""))
        if name == "checkpoint":
            assert said == ["MODEL.checkpoint, removed in the end"]
        elif default is None or default is False:
            assert said == []
        else:
            assert said == [f"{default:g}" if isinstance(default, float) else str(default)]
        # What is not given is left to the estimator.
        assert flag.default is None
        assert len(flag.help) > 10
        assert flag.rich_help_panel


def test_documentation_becomes_help():
    doc = """A machine.

    Parameters
    ----------
    rank
        The largest rank, ``"auto"`` (`mporbm.tensor`), or None. More is more.
    n_iter, batch_size : int
        Numbers.

        Of two paragraphs.

    Attributes
    ----------
    ranks_
        What came out.
    """
    assert documented_parameters(doc) == {
        "rank": 'The largest rank, ``"auto"`` (`mporbm.tensor`), or None. More is more.',
        "n_iter": "Numbers. Of two paragraphs.",
        "batch_size": "Numbers. Of two paragraphs.",
    }
    gauge = fit_options()["gauge"]
    assert gauge.choices == ("canonical", "none")
    assert gauge.help.startswith("canonical makes steps independent of the gauge")
    assert "none is the paper's plain rule" in gauge.help
    assert fit_options()["rank"].help == (
        "The largest rank of any bond, or one rank for every bond; auto is the largest up to 20 "
        "that makes no more weights than there are samples (20 for streams and partial_fit). "
        "[default: auto]"
    )


def test_choices_are_those_of_the_estimators():
    assert choices_of("boundary") == ("open", "periodic")
    assert choices_of("gauge") == ("canonical", "none")
    assert choices_of("momentum") == ()


def test_what_a_user_registers_can_be_chosen(refused, run, trained, tmp_path, monkeypatch):
    arguments = ["fit", trained.plain.data, "-o", tmp_path / "m.safetensors"]
    arguments += ["--negative-phase", "mine"]
    assert "'mine' is not one of" in refused(*arguments, code=2)
    phases = mporbm.learning.NEGATIVE_PHASES
    before = tuple(phases)
    monkeypatch.setitem(phases, "mine", phases["cd"])
    assert fit_options()["negative_phase"].choices == (*before, "mine")
    assert run(*arguments, "--n-iter", "1").code == 0


def test_every_flag_is_a_parameter(flags):
    known = {option(name) for e in ESTIMATORS for name in e().get_params(deep=False)}
    others = {"out", "model", "config", "picture", "force", "quiet", "json", "x_val"}
    others |= {"binarize", "bit_planes", "gray", "coded_shape"}
    others |= {"distributed", "coordinator", "num_processes", "process_id"}
    names = {name[2:].replace("-", "_") for name in flags if name.startswith("--")}
    assert names == (known - ELSEWHERE) | others
    assert OTHERS.keys() == {n for e in ESTIMATORS for n in e().get_params(deep=False)} - (
        ELSEWHERE | {"checkpoint"}
    )


@pytest.mark.parametrize("how", ["flags", "file", "both"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_option_reaches_the_estimator(run, trained, tmp_path, recorded, estimator, how):
    parameters, kind = estimator().get_params(deep=False), estimator.__name__.lower()
    chosen = {name: values for name, values in OTHERS.items() if name in parameters}
    arguments, lines = ["--model", kind], []
    for name, (flag, toml, _) in chosen.items():
        words = option(name).replace("_", "-")
        if how != "file":
            no = "no-" if flag is None and parameters[name] else ""
            arguments += [f"--{no}{words}", *([] if flag is None else [flag])]
        # Names may be written either way. What the flags say wins.
        lines.append(f"{words if how == 'file' else option(name)} = {toml}")
    config = tmp_path / "config.toml"
    config.write_text("\n".join(lines if how == "file" else ["n_iter = 999", "momentum = 0.1"]))
    given = [] if how == "flags" else ["--config", config]
    out = tmp_path / "m.safetensors"
    assert run("fit", trained.plain.data, "-o", out, *given, *arguments).code == 1
    silent = {"checkpoint": out.with_name("m.safetensors.checkpoint"), "verbose": 1}
    expected = {name: values[2] for name, values in chosen.items()}
    assert recorded == [{**parameters, **expected, **silent, "class": estimator}]


def test_without_options_parameters_are_the_defaults(run, trained, tmp_path, recorded):
    run("fit", trained.plain.data, "-o", tmp_path / "m.safetensors", "--quiet")
    silent = {"checkpoint": tmp_path / "m.safetensors.checkpoint", "class": MPORBM}
    assert recorded == [{**MPORBM().get_params(deep=False), **silent}]


@pytest.mark.parametrize(
    ("flag", "toml", "value"),
    [("2,3", "[2, 3]", (2, 3)), ("2, 3", '"2,3"', (2, 3)), ("3", "3", 3), ("3", '"3"', 3)],
)
def test_ranks_are_one_number_or_several(run, trained, tmp_path, recorded, flag, toml, value):
    config, out = tmp_path / "config.toml", tmp_path / "m.safetensors"
    config.write_text(f"rank = {toml}")
    run("fit", trained.plain.data, "-o", out, "--rank", flag)
    run("fit", trained.plain.data, "-o", out, "--config", config)
    assert [parameters["rank"] for parameters in recorded] == [value, value]


def test_what_a_file_turns_on_a_flag_turns_off(run, trained, tmp_path, recorded):
    config, out = tmp_path / "config.toml", tmp_path / "m.safetensors"
    config.write_text("early-stopping = true")
    for options in ([], ["--no-early-stopping"]):
        run("fit", trained.plain.data, "-o", out, "--config", config, *options)
    assert [parameters["early_stopping"] for parameters in recorded] == [True, False]


@pytest.mark.parametrize("kind", ["plain", "grey", "planes"])
def test_a_file_gives_the_same_model_as_flags(ok, trained, tmp_path, same, kind):
    model, lines = getattr(trained, kind), []
    for name, value in zip(model.options[::2], model.options[1::2], strict=True):
        number = re.fullmatch(r"[\d.]+", str(value))
        lines.append(f"{name[2:]} = {value if number else repr(value)}")
    config, out = tmp_path / "config.toml", tmp_path / "m.safetensors"
    config.write_text("\n".join(lines))
    ok("fit", model.data, "-o", out, "--config", config)
    found = mporbm.load(out)
    same(found, model.expected)
    if model.coding is not None:
        assert found.coding_.get_params() == model.coding.get_params()


def test_codings_can_be_chosen_in_a_file(ok, trained, tmp_path):
    config, out = tmp_path / "config.toml", tmp_path / "m.safetensors"
    config.write_text('bit-planes = 2\ngray = true\ncoded-shape = [4, 3]\nn_iter = 0\nrank = "2"')
    facts = ok("fit", trained.planes.data, "-o", out, "--config", config)
    assert facts["visible_shape"] == [4, 3]
    coding = mporbm.load(out).coding_
    assert (coding.n_bits, coding.gray, coding.shape_) == (2, True, (4, 3))
    ok("fit", trained.planes.data, "-o", out, "--config", config, "--no-gray", "--force")
    assert not mporbm.load(out).coding_.gray


BAD_FILES = {
    "nonsense = 1": "nonsense: there is no such option",
    "verbose = 1": "verbose: there is no such option",
    "random_state = 1": "random_state: there is no such option",
    'out = "x"': "out: there is no such option",
    "[fit]\nrank = 2": "fit: there is no such option",
    "[rank]\nmost = 2": "rank={'most': 2}: expected whole numbers",
    'momentum = "high"': "momentum='high': expected a number.",
    "momentum = true": "momentum=True: expected a number.",
    "n_iter = 2.5": 'n_iter=2.5: expected "auto" or a whole number.',
    "n-iter = true": 'n-iter=True: expected "auto" or a whole number.',
    "early_stopping = 1": "early_stopping=1: expected true or false.",
    'gray = "yes"': "gray='yes': expected true or false.",
    "rank = 2.5": "rank=2.5: expected whole numbers",
    "learning_rate = [1]": 'learning_rate=[1]: expected "auto" or a number.',
    "checkpoint = 5": "checkpoint=5: expected a string.",
    "x_val = 5": "x_val=5: expected a string.",
    'model = ["rbm"]': "model=['rbm']: expected one of mporbm, rbm, mvrbm, tvrbm.",
    'model = "dbn"': "model='dbn': expected one of mporbm, rbm, mvrbm, tvrbm.",
    'scheme = "als"': "scheme='als': expected one of aop, su, two-site.",
    "momentum 0.9": "expected a TOML file: ",
    "a = 1\na = 2": "expected a TOML file: ",
}


def test_bad_configuration_files_are_refused(refused, trained, tmp_path):
    config, out = tmp_path / "config.toml", tmp_path / "m.safetensors"
    for text, expected in BAD_FILES.items():
        config.write_text(text)
        message = refused("fit", trained.plain.data, "-o", out, "--config", config)
        assert message.startswith(f"{config}: {expected}")


def test_a_binary_file_is_no_configuration(refused, trained, tmp_path):
    arguments = ["fit", trained.plain.data, "-o", tmp_path / "m.safetensors"]
    message = refused(*arguments, "--config", trained.plain.path)
    assert message.startswith(f"{trained.plain.path}: expected a TOML file: ")
    missing = tmp_path / "missing.toml"
    assert refused(*arguments, "--config", missing).startswith(f"{missing}: No such file")


BAD_VALUES = {
    'rank = [2, "x"]': "rank=[2, 'x']: expected integers",
    "rank = [2.5]": "rank=[2.5]: expected integers",
    "hidden_shape = [true, 2]": "hidden_shape=[True, 2]: expected integers",
    'learning_rate = "fast"': "learning_rate='fast': expected auto or a number",
    "seed = -1": "seed=-1: expected an integer from 0 to 2^32 - 1.",
    "batch_size = 0": "batch_size=0: expected an integer of at least 1.",
    "momentum = 1.5": "momentum=1.5: expected a number in [0, 1).",
}


def test_values_out_of_range_are_refused_with_their_names(refused, trained, tmp_path):
    config, out = tmp_path / "config.toml", tmp_path / "m.safetensors"
    for text, expected in BAD_VALUES.items():
        config.write_text(text)
        message = refused("fit", trained.plain.data, "-o", out, "--config", config)
        assert message.startswith(expected)


# Killed

EPOCHS = 60
SIGNALS = {signal.SIGKILL: -signal.SIGKILL, signal.SIGTERM: 143, signal.SIGINT: 130}
PROGRAM = [sys.executable, "-c", "from mporbm.cli import main; main()"]


class Victim:
    """A training in a process of its own."""

    def __init__(self, number, model, folder, cache):
        self.number, self.out = number, folder / "m.safetensors"
        options = [*model.options, "--n-iter", EPOCHS]
        self.arguments = [str(a) for a in ("fit", model.data, "-o", self.out, *options)]
        # The same programs as here: others round otherwise.
        plain = str(int(jax.config.read("jax_disable_most_optimizations")))
        environment = {"JAX_ENABLE_X64": "1", "JAX_DISABLE_MOST_OPTIMIZATIONS": plain}
        environment |= {
            "JAX_COMPILATION_CACHE_DIR": str(cache),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        }
        self.process = subprocess.Popen(
            [*PROGRAM, *self.arguments],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def checkpoint(self):
        return self.out.with_name(f"{self.out.name}.checkpoint")


@pytest.fixture(scope="module")
def victims(trained, tmp_path_factory):
    """Trainings that a signal ended once they had written a checkpoint."""
    cache, found = tmp_path_factory.mktemp("cache"), {}
    # The first one compiles for the others.
    for numbers in ([signal.SIGKILL], [signal.SIGTERM, signal.SIGINT]):
        waiting = [
            Victim(number, trained.plain, tmp_path_factory.mktemp(number.name), cache)
            for number in numbers
        ]
        while waiting:
            time.sleep(0.001)
            for victim in list(waiting):
                if victim.process.poll() is not None or victim.checkpoint.exists():
                    victim.process.send_signal(victim.number)
                    waiting.remove(victim)
                    found[victim.number] = victim
        for number in numbers:
            victim = found[number]
            victim.printed, victim.errors = victim.process.communicate(timeout=60)
    return found


@pytest.fixture(scope="module")
def uninterrupted(trained):
    model = MPORBM((2, 2), rank=2, n_iter=EPOCHS, batch_size=10, random_state=0)
    return model.fit(trained.plain.samples)


def left(folder, number):
    """The files of a training but for the checkpoint before; what is killed may leave others."""
    hidden = number == signal.SIGKILL
    files = [path for path in folder.iterdir() if not (hidden and path.name.startswith("."))]
    return [path for path in files if path.suffix != ".former"]


@pytest.mark.slow
@pytest.mark.parametrize("number", SIGNALS)
def test_a_killed_fit_goes_on_as_if_nothing_had_happened(run, victims, uninterrupted, same, number):
    victim = victims[number]
    folder, checkpoint = victim.out.parent, victim.checkpoint
    assert victim.process.returncode == SIGNALS[number]
    assert victim.printed == ""
    assert "Traceback" not in victim.errors
    assert left(folder, number) == [checkpoint]
    if number != signal.SIGKILL:
        end = f"stopped; the same command goes on from {checkpoint}, which is kept\n"
        assert victim.errors.endswith(end)

    ended = run(*victim.arguments)
    assert ended.code == 0
    assert ended.err.startswith(f"going on from {checkpoint}\n")
    assert ended.out.endswith(f"{EPOCHS} epochs\n")
    assert list(folder.iterdir()) == [victim.out]
    same(mporbm.load(victim.out), uninterrupted)


def test_a_checkpoint_that_was_asked_for_is_kept(ok, trained, tmp_path, same):
    out, checkpoint = tmp_path / "m.safetensors", tmp_path / "kept"
    options = [*trained.plain.options, "--checkpoint", checkpoint]
    assert not ok("fit", trained.plain.data, "-o", out, *options)["resumed"]
    before = checkpoint.read_bytes()
    assert ok("fit", trained.plain.data, "-o", out, *options, "--force")["resumed"]
    assert checkpoint.read_bytes() == before
    same(mporbm.load(out), trained.plain.expected)


def test_a_checkpoint_of_another_run_is_refused(ok, refused, trained, tmp_path):
    out, checkpoint = tmp_path / "m.safetensors", tmp_path / "m.safetensors.checkpoint"
    options = [*trained.plain.options, "--checkpoint", checkpoint]
    ok("fit", trained.plain.data, "-o", tmp_path / "other.safetensors", *options)
    arguments = ["fit", trained.plain.data, "-o", out, *trained.plain.options]
    message = refused(*arguments, "--momentum", 0.9, "--quiet")
    assert str(checkpoint) in message
    assert "differs in momentum (0.0 there, 0.9 here). Delete the file to start anew" in message


@pytest.mark.filterwarnings("default:learning_rate=1e.09:UserWarning")
def test_a_diverging_fit_warns_and_keeps_what_it_had(run, trained, tmp_path):
    out = tmp_path / "m.safetensors"
    options = [*trained.plain.options, "--learning-rate", 1e9, "--quiet"]
    ended = run("fit", trained.plain.data, "-o", out, *options)
    assert ended.code == 0
    assert ended.err.startswith("mporbm: warning: learning_rate=1e+09: fields grew out of bounds")
    assert ended.err.count("\n") == 1
    model = mporbm.load(out)
    assert (model.n_iter_, model.diverged_, model.verbose) == (0, True, 0)
    assert "0, then it diverged" in run("inspect", out).out
    assert not mporbm.load(trained.plain.path).diverged_
