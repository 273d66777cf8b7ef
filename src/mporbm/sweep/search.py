"""The search over settings, by Optuna: any number of processes share its storage and the runs."""

import hashlib
import json
import os
import socket
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..extras import extra
from .plan import Plan, Range, Setting
from .ranking import MEASURES
from .run import Outcome, Run, Samples

if TYPE_CHECKING:
    import optuna.trial

KILLED = "its process was killed, perhaps for want of memory"
NOT_DONE, PRUNED, FAILED = "not done", "pruned", "failed"
LONGEST_START = timedelta(minutes=1)
"""How long a process may take from the beginning of a trial until it says that it is its own."""


class Search:
    """Settings of a plan that are tried, by this process and by others with the same folder.

    Outcomes of runs are files in ``folder/runs``, named after what was asked: nothing that is done
    is done again, whoever did it and whatever ended it. The Optuna study in ``folder/study.log``
    holds the settings that wait, and what others were worth, for the sampler. It gives up settings
    whose first seeds are worse than the median of others, unless the plan is a grid.

    Parameters
    ----------
    plan, samples
        What is tried, and what the runs learn from.
    folder
        Where everything is kept.
    session
        A name that the processes of one command share. Failures are theirs: the next command
        tries again.
    """

    def __init__(self, plan: Plan, samples: Samples, folder: Path, session: str):
        with extra("sweep", "mporbm.sweep"):
            import optuna
            from optuna import distributions
            from optuna.storages.journal import JournalFileBackend
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.plan, self.samples, self.session = plan, samples, session
        self.fingerprint = samples.fingerprint()
        self.folder = folder / "runs"
        self.folder.mkdir(parents=True, exist_ok=True)
        self._states = optuna.trial.TrialState
        self._space: dict[str, distributions.BaseDistribution] = {}
        for name, values in plan.space.items():
            if not isinstance(values, Range):
                choices = [json.dumps(value) for value in values]
                self._space[name] = distributions.CategoricalDistribution(choices)
            elif isinstance(values.low, int) and isinstance(values.high, int):
                self._space[name] = distributions.IntDistribution(
                    values.low, values.high, values.log
                )
            else:
                self._space[name] = distributions.FloatDistribution(*values)
        space = {n: v._asdict() if isinstance(v, Range) else v for n, v in plan.space.items()}
        # All that makes the worth of settings comparable.
        asked = [self.fingerprint, dict(plan.common), space, plan.measure, plan.sampler]
        by_worth = plan.sampler == "tpe"
        # Its lock is a symbolic link to it, which leads nowhere if the path is relative.
        log = JournalFileBackend(str((folder / "study.log").absolute()))
        self.study = optuna.create_study(
            study_name=hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:20],
            storage=optuna.storages.JournalStorage(log),
            sampler=optuna.samplers.TPESampler() if by_worth else optuna.samplers.RandomSampler(),
            pruner=optuna.pruners.MedianPruner(),
            direction="maximize" if MEASURES[plan.measure] > 0 else "minimize",
            load_if_exists=True,
        )

    # What is known

    def outcomes(self) -> list[tuple[Setting, list[Outcome]]]:
        """Return each setting that was chosen, or is in the grid, with its outcomes by seed.

        The status of a run that has no outcome is "failed", with a reason, if it failed in this
        session, "pruned" if its setting was, and else "not done".
        """
        chosen = [setting for trial, setting in self._chosen() if trial.state.is_finished()]
        pruned = [setting for trial, setting in self._chosen() if trial.user_attrs.get(PRUNED)]
        settings = self.plan.grid if self.plan.sampler == "grid" else chosen
        found = []
        for setting in (s for k, s in enumerate(settings) if s not in settings[:k]):
            other: Outcome = {"status": PRUNED if setting in pruned else NOT_DONE}
            found.append((setting, [self._outcome(r) or other for r in self.plan.runs(setting)]))
        return found

    def _outcome(self, run: Run) -> Outcome | None:
        """Return what has become of a run, be it a failure in this session."""
        reason = self.study.user_attrs.get(self._failure(run))
        failed: Outcome | None = {"status": FAILED, "reason": reason} if reason else None
        return run.outcome(self.folder, self.fingerprint) or failed

    def _failure(self, run: Run) -> str:
        """Name the failure of a run in this session."""
        return f"{self.session} {run.path(self.folder, self.fingerprint).stem}"

    def missing(self) -> list[Setting]:
        """Return the settings of which a run is not done."""
        return [s for s, outcomes in self.outcomes() if {"status": NOT_DONE} in outcomes]

    def n_to_choose(self, *, running: bool = False) -> int:
        """Return how many settings the sampler is still to choose, but for `running` ones.

        What failed in another session is tried again, and counts then.
        """
        if self.plan.sampler == "grid":
            return 0
        counted = {"COMPLETE", "PRUNED", *(["RUNNING"] if running else [])}
        n_tried = sum(
            trial.state.name in counted or (trial.state.name == "FAIL" and self._is_ours(trial))
            for trial in self._trials()
        )
        return max(self.plan.n_settings - n_tried, 0)

    def _is_ours(self, trial: "optuna.trial.FrozenTrial") -> bool:
        """Whether a trial is of this session."""
        return bool(trial.user_attrs.get("session") == self.session)

    def _trials(self) -> list["optuna.trial.FrozenTrial"]:
        return self.study.get_trials(deepcopy=False)

    def _chosen(self) -> list[tuple["optuna.trial.FrozenTrial", Setting]]:
        """Return the trials that have chosen a setting, with it."""
        names = self.plan.space.keys()
        return [
            (t, self.plan.decoded(t.params)) for t in self._trials() if names <= t.params.keys()
        ]

    # What is done

    def _waiting(self) -> list[Setting]:
        waiting = [t.system_attrs for t in self._trials() if t.state.name == "WAITING"]
        return [self.plan.decoded(attributes.get("fixed_params", {})) for attributes in waiting]

    def enqueue(self, settings: list[Setting]) -> None:
        """Let settings be tried next, unless they wait already."""
        waiting = self._waiting()
        for setting in settings:
            if setting not in waiting:
                self.study.enqueue_trial(self.plan.encoded(setting))

    def has_work(self) -> bool:
        """Whether a setting waits or is to be chosen, besides those that other processes try."""
        return bool(self._waiting()) or self.n_to_choose(running=True) > 0

    def work(self, look: Callable[[], None] = lambda: None) -> None:
        """Try settings as long as there is work; `look` before each run, and while waiting."""
        while self.has_work():
            self.try_next(look)

    def try_next(self, look: Callable[[], None] = lambda: None) -> None:
        """Do the runs of the setting that comes next, and tell the study what they are worth."""
        trial = self.study.ask(self._space)
        trial.set_user_attr("session", self.session)
        trial.set_user_attr("process", [socket.gethostname(), os.getpid()])
        runs = self.plan.runs(self.plan.decoded(trial.params))
        values: list[float] = []
        has_failed = False
        for step, run in enumerate(runs):
            look()
            outcome = self._outcome(run)
            outcome = outcome or run.perform(self.samples, self.folder, self.fingerprint, look)
            if outcome["status"] == FAILED:
                self.study.set_user_attr(self._failure(run), outcome["reason"])
                has_failed = True
            elif outcome["status"] == "done":
                values.append(outcome["measures"][self.plan.measure])
                trial.report(float(np.mean(values)), step)
                may_stop = self.plan.sampler != "grid" and step + 1 < len(runs)
                if may_stop and trial.should_prune():
                    trial.set_user_attr(PRUNED, True)
                    break
        if has_failed:
            self.study.tell(trial, state=self._states.FAIL)
        elif len(values) < len(runs):
            # Of those that diverged, too, it is known that they are poor.
            self.study.tell(trial, state=self._states.PRUNED)
        else:
            self.study.tell(trial, float(np.mean(values)))

    def bury(self) -> None:
        """Let trials fail whose process, on this computer, was killed.

        So do those of which no process says that they are its own, a while after they began. Then
        their settings are missing; but a run has failed whose process was killed in this session.
        """
        settings = {trial.number: setting for trial, setting in self._chosen()}
        for trial in self._trials():
            if trial.state.name != "RUNNING" or not _is_abandoned(trial):
                continue
            if trial.number in settings and self._is_ours(trial):
                runs = self.plan.runs(settings[trial.number])
                if victim := next((run for run in runs if self._outcome(run) is None), None):
                    self.study.set_user_attr(self._failure(victim), KILLED)
            self.study.tell(trial.number, state=self._states.FAIL)


def _is_abandoned(trial: "optuna.trial.FrozenTrial") -> bool:
    """Whether the process of a running trial was killed, as far as this computer can tell."""
    if "process" in trial.user_attrs:
        host, process = trial.user_attrs["process"]
        return host == socket.gethostname() and not _is_alive(process)
    begun = trial.datetime_start
    return begun is not None and datetime.now() - begun > LONGEST_START


def _is_alive(process: int) -> bool:
    """Whether a process of this computer exists."""
    try:
        os.kill(process, 0)
    except PermissionError:
        return True
    except ProcessLookupError:
        return False
    return True
