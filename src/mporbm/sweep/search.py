"""The search over settings, by Optuna: any number of processes share its storage and the runs."""

import hashlib
import json
import os
import socket
from pathlib import Path
from typing import Any

import numpy as np

from ..evaluation.run_cache import Outcome, read_outcome
from ..extras import extra
from .plan import Plan, Range, Setting
from .ranking import MEASURES
from .samples import Samples

KILLED = "its process was killed, perhaps for want of memory"
NOT_DONE, PRUNED, FAILED = "not done", "pruned", "failed"


class Search:
    """Settings of a plan that are tried, by this process and by others with the same folder.

    Outcomes of runs are files in ``folder/runs``, named after what was asked: nothing that is done
    is done again, whoever did it and whatever ended it. The Optuna study in ``folder/study.log``
    holds the settings that wait, and what others were worth, for the sampler.

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
            from optuna.storages.journal import JournalFileBackend
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.plan, self.samples, self.session = plan, samples, session
        self.fingerprint = samples.fingerprint()
        self.folder = folder / "runs"
        self.folder.mkdir(parents=True, exist_ok=True)
        self._states = optuna.trial.TrialState
        backend = JournalFileBackend(str(folder / "study.log"))
        by_worth = plan.sampler == "tpe"
        self.study = optuna.create_study(
            study_name=self._study_name(),
            storage=optuna.storages.JournalStorage(backend),
            sampler=optuna.samplers.TPESampler() if by_worth else optuna.samplers.RandomSampler(),
            pruner=optuna.pruners.MedianPruner(),
            direction="maximize" if MEASURES[plan.measure] > 0 else "minimize",
            load_if_exists=True,
        )

    def _study_name(self) -> str:
        """Return a name for all that makes the worth of settings comparable."""
        plan = self.plan
        space = {n: v._asdict() if isinstance(v, Range) else v for n, v in plan.space.items()}
        asked = [self.fingerprint, dict(plan.common), space, plan.measure, plan.sampler]
        return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:20]

    # What is known

    def settings(self) -> list[Setting]:
        """Return the settings of the grid, or those that the sampler has chosen, in order."""
        if self.plan.sampler == "grid":
            return self.plan.grid
        chosen = [self._setting(t) for t in self._trials() if t.state.is_finished()]
        return [s for k, s in enumerate(chosen) if s is not None and s not in chosen[:k]]

    def outcomes(self) -> list[tuple[Setting, list[Outcome]]]:
        """Return each setting with the outcomes of its runs, by seed.

        The status of a run that has no outcome is "failed", with a reason, if it failed in this
        session, "pruned" if its setting was, and else "not done".
        """
        settings = self.settings()
        pruned = [self._setting(t) for t in self._trials() if t.user_attrs.get(PRUNED)]
        found = []
        for setting in settings:
            failures = self._failures(setting)
            other = {"status": PRUNED if setting in pruned else NOT_DONE}
            paths = [run.path(self.folder, self.fingerprint) for run in self.plan.runs(setting)]
            outcomes = [
                read_outcome(path)
                or ({"status": FAILED, "reason": failures[seed]} if seed in failures else other)
                for seed, path in zip(map(str, self.plan.seeds), paths, strict=True)
            ]
            found.append((setting, outcomes))
        return found

    def missing(self) -> list[Setting]:
        """Return the settings of which a run is not done."""
        known = self.outcomes()
        return [setting for setting, outcomes in known if {"status": NOT_DONE} in outcomes]

    def n_to_choose(self, *, running: bool = False) -> int:
        """Return how many settings the sampler is still to choose, but for `running` ones.

        What failed in another session is tried again, and counts then.
        """
        if self.plan.sampler == "grid":
            return 0
        states, trials = self._states, self._trials()
        counted = {states.COMPLETE, states.PRUNED, *([states.RUNNING] if running else [])}
        failed = [t for t in trials if t.state == states.FAIL and self._is_ours(t)]
        n_tried = sum(t.state in counted for t in trials) + len(failed)
        return max(self.plan.n_settings - n_tried, 0)

    def _is_ours(self, trial: Any) -> bool:
        """Whether a trial is of this session."""
        return bool(trial.user_attrs.get("session") == self.session)

    def _trials(self) -> list[Any]:
        return list(self.study.get_trials(deepcopy=False))

    def _setting(self, trial: Any) -> Setting | None:
        """Return the setting of a trial, if it has chosen one."""
        if not self.plan.space.keys() <= trial.params.keys():
            return None
        return self.plan.decoded(trial.params)

    def _failures(self, setting: Setting) -> dict[str, str]:
        """Return why runs of a setting have failed in this session, by seed."""
        return {
            seed: reason
            for trial in self._trials()
            if self._is_ours(trial) and self._setting(trial) == setting
            for seed, reason in trial.user_attrs.get("failures", {}).items()
        }

    # What is done

    def enqueue(self, settings: list[Setting]) -> None:
        """Let settings be tried next, unless they wait already."""
        waiting = [
            self.plan.decoded(t.system_attrs.get("fixed_params", {}))
            for t in self._trials()
            if t.state == self._states.WAITING
        ]
        for setting in settings:
            if setting not in waiting:
                self.study.enqueue_trial(self.plan.encoded(setting))

    def work(self) -> None:
        """Try settings until none waits and none is to be chosen."""
        waits = self._states.WAITING
        while any(t.state == waits for t in self._trials()) or self.n_to_choose(running=True):
            trial = self.study.ask()
            trial.set_user_attr("session", self.session)
            trial.set_user_attr("process", [socket.gethostname(), os.getpid()])
            self._try(trial, self.plan.suggest(trial))

    def _try(self, trial: Any, setting: Setting) -> None:
        """Do the runs of a setting, and tell the study what they are worth."""
        failures, values = self._failures(setting), []
        try:
            runs = self.plan.runs(setting)
        except (ValueError, TypeError) as error:
            failures |= {str(seed): f"{type(error).__name__}: {error}" for seed in self.plan.seeds}
            runs = []
        for step, run in enumerate(runs):
            if str(run.seed) in failures:
                continue
            outcome = run.perform(self.samples, self.folder, self.fingerprint)
            if outcome["status"] == FAILED:
                failures[str(run.seed)] = outcome["reason"]
            elif outcome["status"] == "done":
                values.append(outcome["measures"][self.plan.measure])
                trial.report(float(np.mean(values)), step)
                if self.plan.prune and step + 1 < len(runs) and trial.should_prune():
                    trial.set_user_attr(PRUNED, True)
                    break
        if failures:
            trial.set_user_attr("failures", failures)
            self.study.tell(trial, state=self._states.FAIL)
        elif len(values) < len(runs):
            # Of those that diverged, too, it is known that they are poor.
            self.study.tell(trial, state=self._states.PRUNED)
        else:
            self.study.tell(trial, float(np.mean(values)))

    def bury(self) -> None:
        """Let trials fail whose process, on this computer, was killed.

        Then their settings are missing; but a run has failed whose process was killed in this
        session.
        """
        for trial in self._trials():
            host, process = trial.user_attrs.get("process", ("", 0))
            is_running = trial.state == self._states.RUNNING and host == socket.gethostname()
            if not is_running or _is_alive(process):
                continue
            setting = self._setting(trial)
            if setting is not None and self._is_ours(trial):
                failures = self._failures(setting)
                for run in self.plan.runs(setting):
                    seed, path = str(run.seed), run.path(self.folder, self.fingerprint)
                    if seed not in failures and not path.exists():
                        failures[seed] = KILLED
                        break
                self.study._storage.set_trial_user_attr(trial._trial_id, "failures", failures)
            self.study.tell(trial.number, state=self._states.FAIL)


def _is_alive(process: int) -> bool:
    """Whether a process of this computer exists."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
