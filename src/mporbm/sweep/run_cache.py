"""The runs of a sweep: what was done before is read, what is missing is done and kept."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from reproduction.runs import progress_bar

from ..evaluation.run_cache import Outcome, read_outcome, write_outcome
from .samples import Samples
from .trial import Trial
from .workers import Done, locally, on_dask


def perform_all(
    trials: Sequence[Trial],
    samples: Samples,
    folder: Path,
    *,
    n_jobs: int | None = None,
    dask: str | None = None,
    shown: bool = True,
) -> list[Outcome]:
    """The outcomes of all runs, of which those that are not in the folder yet are done.

    A run that fails loses only itself. Its outcome has the status "failed" and a reason; it is not
    kept, so that it is done again when all are asked for again.

    Parameters
    ----------
    trials, samples
        The runs, and what they learn from.
    folder
        Where outcomes are kept, one file each.
    n_jobs
        How many processes work at once; by default one for every core.
    dask
        The address of a Dask scheduler whose workers do the runs instead.
    shown
        Whether to show progress on the standard error.
    """
    folder.mkdir(parents=True, exist_ok=True)
    fingerprint = samples.fingerprint()
    paths = [trial.path(folder, fingerprint) for trial in trials]
    found = {number: read_outcome(path) for number, path in enumerate(paths)}
    missing = {number: trials[number] for number, outcome in found.items() if outcome is None}
    with progress_bar(shown) as progress:
        task = progress.add_task("", total=len(trials), completed=len(trials) - len(missing))
        for done in _performed(missing, samples, n_jobs, dask):
            trial, path = trials[done.number], paths[done.number]
            if done.outcome is None:
                found[done.number] = {"status": "failed", "reason": done.reason}
            else:
                write_outcome(path, trial.about(fingerprint), done.outcome, done.seconds)
                found[done.number] = read_outcome(path)
            progress.update(task, advance=1, description=f"seed {trial.seed}")
    return [outcome for outcome in found.values() if outcome is not None]


def _performed(
    missing: Mapping[int, Trial], samples: Samples, n_jobs: int | None, dask: str | None
) -> Iterator[Done]:
    if not missing:
        return iter(())
    return locally(missing, samples, n_jobs) if dask is None else on_dask(missing, samples, dask)
