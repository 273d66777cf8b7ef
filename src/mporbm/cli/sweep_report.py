"""Settings that a sweep has compared, as a table, files and a picture."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from ..atomic import write_text
from ..pictures import setting_curves, setting_scatter
from ..sweep import MEASURES, Ranked, Ranking
from . import files
from .sweep_config import SweepConfig

TITLES = {
    "pseudo_log_likelihood": ("pseudo-log-likelihood", "nats", 2),
    "reconstruction_error": ("reconstruction error", "mean square", 4),
    "nearest_neighbour_error": ("1-NN error", "%", 1),
}
"""The title, the unit and the digits of each measure."""
STATUSES = ("done", "diverged", "failed", "pruned")
N_NAMED = 5
"""The most settings that a sentence names."""


def write_results(out: Path, asked: SweepConfig, ranking: Ranking) -> None:
    """Write the table, all runs, the picture and the best setting."""
    write_text(out / "results.csv", _csv([_row(ranking, s) for s in ranking.settings]))
    write_text(out / "runs.csv", _csv(_runs(asked, ranking)))
    title, unit, _ = TITLES[ranking.measure]
    best = ranking.best
    draw: Any = setting_curves if asked.plan.sampler == "grid" else setting_scatter
    figure = draw(
        {n: list(map(text, v)) if isinstance(v, list) else v for n, v in asked.plan.space.items()},
        {_key(s): s.values(ranking.measure) for s in ranking.settings if s.place is not None},
        best=None if best is None else _key(best),
        like_the_best=[_key(setting) for setting in ranking.like_the_best],
        ylabel=f"validation {title} ({unit})",
    )
    files.write_figures(out / "sweep.png", figure)
    if best is None:
        # That of another sweep would be taken for the best of this one.
        (out / "best.toml").unlink(missing_ok=True)
        return
    # The best setting as `mporbm fit --config` takes it.
    lines = [
        "# mporbm fit DATA --config best.toml -o model.safetensors",
        f"# The best of {len(ranking.settings)} settings: validation {title} "
        f"{_mean_and_spread(best, ranking.measure)} {unit}, {len(asked.plan.seeds)} seeds.",
    ]
    lines += [f"# Not told apart: {named(setting.options)}" for setting in ranking.like_the_best]
    options = {**asked.plan.common, **best.options}
    if asked.x_val is not None:
        options["x_val"] = str(Path(asked.x_val).absolute())
    options["seed"] = asked.plan.seeds[0]
    # JSON's strings, numbers and lists of them are TOML's.
    lines += [f"{k} = {json.dumps(value, ensure_ascii=False)}" for k, value in options.items()]
    write_text(out / "best.toml", "\n".join(lines) + "\n")


def facts(out: Path, ranking: Ranking) -> dict[str, object]:
    """Return what was found, for programs."""
    return {
        "output": str(out),
        "measure": ranking.measure,
        "best": None if ranking.best is None else ranking.best.options,
        "like_the_best": [setting.options for setting in ranking.like_the_best],
        "settings": [
            {
                "options": setting.options,
                "place": setting.place,
                "told_apart": setting.told_apart,
                "runs": {name: setting.count(name) for name in STATUSES},
                "measures": {
                    name: {"mean": setting.mean(name), "std": setting.std(name)}
                    for name in _measured(ranking)
                },
                **{name: setting.mean(name) for name in ("n_parameters", "seconds")},
            }
            for setting in ranking.settings
        ],
    }


def _row(ranking: Ranking, setting: Ranked) -> dict[str, object]:
    """Return the facts of a setting as a line of a table."""
    row: dict[str, object] = {name: text(value) for name, value in setting.options.items()}
    row |= {"place": setting.place, "told_apart": setting.told_apart}
    row |= {f"n_{name}": setting.count(name) for name in STATUSES}
    for name in _measured(ranking):
        row |= {f"{name}_mean": setting.mean(name), f"{name}_std": setting.std(name)}
    return row | {name: setting.mean(name) for name in ("n_parameters", "seconds")}


def _runs(asked: SweepConfig, ranking: Ranking) -> list[dict[str, object]]:
    """Every run by itself."""
    others = ("n_iter", "n_parameters", "seconds", "reason")
    return [
        {name: text(value) for name, value in setting.options.items()}
        | {"seed": seed, "status": outcome["status"]}
        | {name: outcome.get("measures", {}).get(name) for name in _measured(ranking)}
        | {name: outcome.get(name) for name in others}
        for setting in ranking.settings
        for seed, outcome in zip(asked.plan.seeds, setting.outcomes, strict=True)
    ]


def _measured(ranking: Ranking) -> list[str]:
    """The measures that there are, that of the comparison first."""
    others = [name for name in MEASURES if any(s.values(name) for s in ranking.settings)]
    return [ranking.measure, *(name for name in others if name != ranking.measure)]


def _csv(rows: Sequence[Mapping[str, object]]) -> str:
    file = io.StringIO()
    writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def table(ranking: Ranking) -> Table:
    """The settings, the best first: what is compared, as mean and standard deviation.

    Other measures are left to the files: most terminals have no room for them.
    """
    shown = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    title, unit, _ = TITLES[ranking.measure]
    for name in (*ranking.settings[0].options, f"{title}\n({unit})", "weights", "seconds"):
        shown.add_column(name, justify="right")
    shown.add_column("")
    for setting in ranking.in_order():
        # Other seeds than those of the others would be compared.
        is_whole = not setting.count("pruned")
        cells = [*_key(setting), _mean_and_spread(setting, ranking.measure) if is_whole else ""]
        for name, digits in (("n_parameters", 0), ("seconds", 1)):
            mean = setting.mean(name)
            cells.append("" if mean is None else f"{mean:.{digits}f}")
        counts = {status: setting.count(status) for status in STATUSES[1:]}
        said = [f"{n} of {len(setting.outcomes)} {status}" for status, n in counts.items() if n]
        if setting.place == 1:
            said.append("best")
        elif setting.told_apart is False:
            said.append("not told apart")
        shown.add_row(*cells, ", ".join(said))
    return shown


def sentence(out: Path, ranking: Ranking) -> str:
    """Which setting is the best, and which may be as good."""
    best, alike = ranking.best, ranking.like_the_best
    if best is None:
        return f"No setting can be compared: {out / 'runs.csv'} says why"
    said = f"Best: {named(best.options)} ({out / 'best.toml'})"
    if len(best.outcomes) == 1 and alike:
        return f"{said}; one seed does not tell settings apart, several would"
    if not alike:
        return said
    some = "; ".join(named(setting.options) for setting in alike[:N_NAMED])
    more = f"; and {len(alike) - N_NAMED} more" if len(alike) > N_NAMED else ""
    return f"{said}\nNot told apart from it: {some}{more}"


def complain(out: Path, asked: SweepConfig, ranking: Ranking) -> None:
    """Refuse to end well if runs failed, or if there is nothing to choose from."""
    runs = _runs(asked, ranking)
    if failed := [run for run in runs if run["status"] == "failed"]:
        first = failed[0]
        which = named({name: first[name] for name in asked.plan.space})
        raise ChildProcessError(
            f"{len(failed)} of {len(runs)} runs failed, which the same command tries again; the "
            f"others are kept in {out}; the first is {which}, seed {first['seed']}: "
            f"{first['reason']}"
        )
    if ranking.best is None:
        raise ValueError(
            f"{out}: expected a setting with which no run diverges, got none; try smaller learning "
            f'rates, or on_divergence = "back-off".'
        )


def named(options: Mapping[str, object]) -> str:
    """A setting as people write it."""
    return ", ".join(f"{name}={text(value)}" for name, value in options.items())


def text(value: object) -> str:
    """The value of an option, as a flag would have it."""
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _key(setting: Ranked) -> tuple[str, ...]:
    return tuple(text(value) for value in setting.options.values())


def _mean_and_spread(setting: Ranked, measure: str) -> str:
    mean, std, digits = setting.mean(measure), setting.std(measure), TITLES[measure][2]
    if mean is None:
        return ""
    return f"{mean:.{digits}f}" if std is None else f"{mean:.{digits}f} ± {std:.{digits}f}"
