"""Checkpoints and files: killed, interrupted, refused, broken, half written."""

import json
import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from safetensors.numpy import save_file

import mporbm
from mporbm import MPORBM
from mporbm.training import FileFormatError
from mporbm.training import safetensors_io as storage
from mporbm.training import sources as data
from trainings import COMMON, assert_same, model, progress


@pytest.fixture
def X(rng):
    return rng.random((12, 3, 2)) < 0.4


class Signal:
    """A callback of scikit-learn that raises a signal after so many epochs."""

    def __init__(self, number, after, stop=False):
        self.number, self.left, self.stop = number, after, stop

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, **kwargs):
        pass

    def on_fit_task_end(self, estimator, context, **kwargs):
        self.left -= context.task_name == "epoch"
        if self.left == 0:
            signal.raise_signal(self.number)
            return self.stop
        return False


# Killed

SCRIPT = """
import json, sys, threading
import numpy as np
from mporbm import MPORBM

folder, parameters, phases = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3:]
X = np.load(f"{folder}/X.npy")

compiled = threading.Barrier(len(phases))

def train(phase):
    MPORBM(**{**parameters, "n_iter": 1}, negative_phase=phase).fit(X)
    compiled.wait()
    fitted = MPORBM(**parameters, negative_phase=phase, checkpoint=f"{folder}/{phase}.checkpoint")
    fitted.fit(X).save(f"{folder}/{phase}.model")

threads = [threading.Thread(target=train, args=[phase]) for phase in phases]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_a_killed_training_goes_on_as_if_nothing_had_happened(X, tmp_path):
    np.save(tmp_path / "X.npy", X)
    phases, parameters = ("cd", "pcd"), {**COMMON, "n_iter": 400}
    command = [sys.executable, "-c", SCRIPT, tmp_path, json.dumps(parameters), *phases]
    environment = {**os.environ, "JAX_ENABLE_X64": "1"}
    checkpoints = [tmp_path / f"{phase}.checkpoint" for phase in phases]

    process = subprocess.Popen(command, env=environment)
    # Reading them while they are written is a test as well: they are replaced, not changed.
    while process.poll() is None and not all(
        path.exists() and progress(path).epoch >= 3 for path in checkpoints
    ):
        time.sleep(0.001)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    for path in checkpoints:
        assert 3 <= progress(path).epoch < 400

    subprocess.run(command, env=environment, check=True)
    for phase, path in zip(phases, checkpoints, strict=True):
        expected = MPORBM(**parameters, negative_phase=phase).fit(X)
        assert_same(mporbm.load(tmp_path / f"{phase}.model"), expected)
        assert progress(path).epoch == 400


# Interrupted


@pytest.mark.parametrize(
    "choice",
    [
        {"negative_phase": "cd"},
        {"negative_phase": "pcd"},
        {"rule": "centred", "gauge": "canonical"},
    ],
)
def test_sigterm_writes_a_checkpoint_and_ends_the_process(X, tmp_path, choice):
    path = tmp_path / "checkpoint"
    # Too rarely saved for anything but the signal to have done it.
    common = {**choice, "checkpoint": path, "checkpoint_interval": 100}
    with pytest.raises(SystemExit) as ended:
        model(**common).set_callbacks(Signal(signal.SIGTERM, after=2)).fit(X)
    assert ended.value.code == 128 + signal.SIGTERM
    assert progress(path).epoch == 2
    assert_same(model(**common).fit(X), model(**choice).fit(X))


def test_sigint_leaves_an_estimator_with_what_it_learnt(X):
    interrupted = model().set_callbacks(Signal(signal.SIGINT, after=2))
    with pytest.raises(KeyboardInterrupt):
        interrupted.fit(X)
    assert interrupted.n_iter_ == 2
    assert_same(interrupted, model(n_iter=2).fit(X))
    assert interrupted.transform(X).shape == (12, 4)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_obeyed_though_a_callback_stops_the_training(X, number):
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        model().set_callbacks(Signal(number, after=1, stop=True)).fit(X)


def test_signals_are_handled_as_before_once_training_ended(X):
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    model(n_iter=1).fit(X)
    with pytest.raises(KeyboardInterrupt):
        model().set_callbacks(Signal(signal.SIGINT, after=1)).fit(X)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_training_works_in_a_thread(X):
    fitted = []
    thread = threading.Thread(target=lambda: fitted.append(model().fit(X)))
    thread.start()
    thread.join()
    assert_same(fitted[0], model().fit(X))


@pytest.mark.parametrize("kind", ["array", "stream"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_epoch_goes_on_at_the_block_where_it_was_interrupted(
    X, tmp_path, monkeypatch, kind, number
):
    monkeypatch.setattr(data, "RESIDENT_BYTES", 0)
    monkeypatch.setattr(data, "BLOCK_BYTES", 5 * 6)
    path, gather = tmp_path / "checkpoint", data.gather
    reads = iter(range(10**6))

    def interrupt():
        # Some reads into the second epoch, whatever was read to measure the data.
        if path.exists() and next(reads) == 2:
            signal.raise_signal(number)

    def interrupting_gather(*args):
        interrupt()
        return gather(*args)

    def pieces():
        for start in range(0, 12, 4):
            interrupt()
            yield X[start : start + 4]

    samples = pieces if kind == "stream" else X
    expected = model().fit(samples)
    monkeypatch.setattr(data, "gather", interrupting_gather)
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        model(checkpoint=path).fit(samples)
    stands = progress(path)
    assert stands.epoch == 1
    assert 0 < stands.n_blocks < 3
    assert_same(model(checkpoint=path).fit(samples), expected)


def test_more_epochs_go_on_from_a_finished_training(X, tmp_path):
    path = tmp_path / "checkpoint"
    model(checkpoint=path, n_iter=2).fit(X)
    assert_same(model(checkpoint=path).fit(X), model().fit(X))
    written = path.read_bytes()
    assert_same(model(checkpoint=path).fit(X), model().fit(X))
    assert path.read_bytes() == written


def test_early_stopping_goes_on_with_the_best_machine(X, tmp_path):
    path, other = tmp_path / "checkpoint", ~X[:4]
    common = {"n_iter": 50, "early_stopping": True, "n_iter_no_change": 3}
    expected = model(**common).fit(X, X_val=other)
    assert 3 < expected.n_iter_ < 50
    interrupted = model(**common, checkpoint=path)
    interrupted.set_callbacks(Signal(signal.SIGINT, after=expected.n_iter_ - 1))
    with pytest.raises(KeyboardInterrupt):
        interrupted.fit(X, X_val=other)
    for _ in range(2):
        # The second time there is nothing left to do.
        assert_same(model(**common, checkpoint=path).fit(X, X_val=other), expected)


# Refused


@pytest.fixture
def checkpoint(X, tmp_path):
    path = tmp_path / "checkpoint"
    model(checkpoint=path, n_iter=1).fit(X)
    return path


@pytest.mark.parametrize(
    ("name", "there", "here"),
    [
        ("learning_rate", 0.1, 0.2),
        ("momentum", 0.5, 0.9),
        ("rank", 2, 1),
        ("hidden_shape", [2, 2], [1, 2]),
        ("negative_phase", "cd", "pcd"),
        ("scheme", "su", "aop"),
        ("batch_size", 5, 6),
    ],
)
def test_a_checkpoint_of_other_parameters_is_refused(X, checkpoint, name, there, here):
    written = checkpoint.read_bytes()
    with pytest.raises(ValueError, match="differs in") as refused:
        model(**{"checkpoint": checkpoint, name: here}).fit(X)
    assert f"differs in {name} ({there!r} there, {here!r} here)." in str(refused.value)
    assert str(checkpoint) in str(refused.value)
    assert checkpoint.read_bytes() == written


def test_a_checkpoint_of_other_data_is_refused(X, checkpoint):
    resumed = model(checkpoint=checkpoint)
    with pytest.raises(ValueError, match=r"differs in data \("):
        resumed.fit(~X)
    with pytest.raises(ValueError, match=r"differs in data \("):
        resumed.fit(X, sample_weight=np.arange(12) + 1.0)
    with pytest.raises(ValueError, match=r"differs in validation \("):
        resumed.fit(X, X_val=X)


def test_a_checkpoint_of_another_seed_is_refused(X, checkpoint):
    with pytest.raises(ValueError, match=r"differs in seed \("):
        model(checkpoint=checkpoint, random_state=1).fit(X)


# Broken

READERS = ("load", "checkpoint")


@pytest.fixture(params=READERS)
def reader(request, X, checkpoint, tmp_path):
    """A good file of one kind, another of the other kind, and what reads the first."""
    good = tmp_path / "model"
    model(n_iter=1).fit(X).save(good)
    if request.param == "load":
        return SimpleNamespace(good=good, other=checkpoint, read=mporbm.load)

    def read(path):
        return model(checkpoint=path).fit(X)

    return SimpleNamespace(good=checkpoint, other=good, read=read)


def test_a_good_file_is_read(reader):
    assert reader.read(reader.good).n_iter_ > 0


def test_truncated_files_are_refused(reader, tmp_path):
    path, content = tmp_path / "broken", reader.good.read_bytes()
    (header,) = struct.unpack("<Q", content[:8])
    for size in (0, 1, 7, 8, 9, header // 2, 8 + header, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:size])
        with pytest.raises(FileFormatError, match="broken"):
            reader.read(path)


def test_corrupted_headers_are_refused(tmp_path, X):
    path = tmp_path / "model"
    model(n_iter=1).fit(X).save(path)
    content = path.read_bytes()
    (header,) = struct.unpack("<Q", content[:8])
    # A flipped high bit is no JSON, wherever it is.
    for place in range(8 + header):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x80]) + content[place + 1 :])
        with pytest.raises(FileFormatError, match="model"):
            mporbm.load(path)


def test_a_corrupted_header_of_a_checkpoint_is_refused(checkpoint, X):
    content = bytearray(checkpoint.read_bytes())
    content[100] ^= 0x80
    checkpoint.write_bytes(content)
    with pytest.raises(FileFormatError, match="checkpoint"):
        model(checkpoint=checkpoint).fit(X)
    assert checkpoint.read_bytes() == content


OPTIONAL = {"library_version", "base_bias", "coding", "seed", "diverged"}
"""What people want to know, and what the first models did not have."""


def test_models_may_lack_what_the_first_ones_did_not_have(X, tmp_path):
    path = tmp_path / "model"
    saved = model(n_iter=1).fit(X)
    saved.save(path)
    found, header = storage.read(path, "model")
    assert {*found, *header} >= OPTIONAL
    for name in OPTIONAL:
        found.pop(name, None)
        header.pop(name, None)
    storage.write(path, "model", found, header)
    loaded = mporbm.load(path)
    np.testing.assert_array_equal(loaded.transform(X), saved.transform(X))
    assert not hasattr(loaded, "base_bias_")


@pytest.mark.parametrize("kind", READERS)
def test_files_that_lack_something_are_refused(X, checkpoint, tmp_path, kind):
    path = checkpoint
    if kind == "load":
        path = tmp_path / "model"
        model(n_iter=1).fit(X).save(path)
    found, header = storage.read(path, "model" if kind == "load" else "checkpoint")
    arrays = found.keys() - OPTIONAL
    lacking = [({n: a for n, a in found.items() if n != name}, header) for name in arrays]
    needed = header.keys() - OPTIONAL
    lacking += [(found, {n: v for n, v in header.items() if n != name}) for name in needed]
    for left, rest in lacking:
        storage.write(path, "model" if kind == "load" else "checkpoint", left, rest)
        with pytest.raises(FileFormatError, match=path.name):
            _ = mporbm.load(path) if kind == "load" else model(checkpoint=path).fit(X)


class Bomb:
    """Makes a folder when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("protocol", [0, pickle.HIGHEST_PROTOCOL])
def test_pickles_are_refused_and_not_executed(reader, tmp_path, protocol):
    path, made = tmp_path / "pickle", tmp_path / "made"
    path.write_bytes(pickle.dumps(Bomb(made), protocol))
    with pytest.raises(FileFormatError, match="pickle"):
        reader.read(path)
    assert not made.exists()
    # The same bytes would have done it.
    pickle.loads(path.read_bytes())
    assert made.exists()


def test_files_of_other_kinds_and_programs_are_refused(reader, tmp_path):
    with pytest.raises(FileFormatError, match=r"expected a .* file, got a"):
        reader.read(reader.other)
    foreign = tmp_path / "foreign"
    for metadata in (None, {"format": "pt"}):
        save_file({"weight": np.ones(3)}, foreign, metadata)
        with pytest.raises(FileFormatError, match="another program"):
            reader.read(foreign)
    with pytest.raises(FileFormatError, match=str(tmp_path)):
        reader.read(tmp_path)


def test_files_of_a_later_format_are_refused(reader, monkeypatch):
    monkeypatch.setattr(storage, "FORMAT_VERSION", storage.FORMAT_VERSION - 1)
    with pytest.raises(FileFormatError, match="install a newer version"):
        reader.read(reader.good)


def test_a_missing_model_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        mporbm.load(tmp_path / "missing")


# Half written


@pytest.mark.parametrize(
    "failing", ["training.safetensors_io.save_file", "atomic.os.replace", "atomic.os.fsync"]
)
@pytest.mark.parametrize("error", [OSError("no space left"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_the_old_file_alone(tmp_path, monkeypatch, failing, error):
    path = tmp_path / "file"
    storage.write(path, "kind", {"old": np.ones(3)}, {"number": 1})

    def fail(*args):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(f"mporbm.{failing}", fail)
        with pytest.raises(type(error)):
            storage.write(path, "kind", {"new": np.zeros(2)}, {"number": 2})
    assert list(tmp_path.iterdir()) == [path]
    found, header = storage.read(path, "kind")
    assert_array_equal(found["old"], np.ones(3))
    assert header == {"number": 1}

    storage.write(path, "kind", {"new": np.zeros(2)}, {"number": 2})
    assert list(tmp_path.iterdir()) == [path]
    assert storage.read(path, "kind")[1] == {"number": 2}


def test_without_a_seed_a_training_goes_on_with_its_own(X, tmp_path):
    path = tmp_path / "checkpoint"
    first = model(checkpoint=path, random_state=None).fit(X)
    again = model(checkpoint=path, random_state=None).fit(X)
    np.testing.assert_array_equal(first.weight_matrix(), again.weight_matrix())
