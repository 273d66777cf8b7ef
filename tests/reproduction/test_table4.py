"""The report on runs of Table 4."""

from pathlib import Path

from reproduction import table4
from reproduction.scale import Scale
from reproduction_support import fakes


def section(scale, outcomes):
    """The section of given outcomes, by machine and seed, for the others made up ones."""

    def outcome(run):
        asked = dict(run.configuration)
        found = fakes.classification_run(**asked)
        change = outcomes.get((asked["machine"], asked["seed"]), {})
        found.update(change)
        return found

    return table4.section(scale, outcome, Path())


def chosen(error, *validation):
    choice = {"coding": "bits", "feature": "field", "distance": "cosine"}
    choice |= {"settings": {"learning_rate": "auto"}, "n_iter": 3, "stopped": False}
    return {"error": error, "balanced": error, "validation": [*validation], "choice": choice}


def best_scheme(scale, outcomes):
    """Its cell in both tables."""
    overview, table = section(scale, outcomes)["tables"]
    (row,) = [row for row in table["rows"] if row["label"] == "MPORBM, best scheme"]
    (whole,) = overview["rows"]
    cell = whole["cells"][overview["columns"].index("MPORBM, best scheme")]
    assert cell == row["cells"][-1]
    return cell


def test_the_best_scheme_is_that_of_validation_split_by_split():
    outcomes = {
        ("gauge", 0): {"chosen": chosen(10.0, 4.0, 9.0)},
        ("CD-AOP", 0): {"chosen": chosen(1.0, 5.0, 1.0)},
        ("CD-SU", 0): {"chosen": chosen(2.0, 6.0, 1.0)},
        ("gauge", 1): {"chosen": chosen(1.0, 9.0, 1.0)},
        ("CD-AOP", 1): {"chosen": chosen(2.0, 8.0, 1.0)},
        ("CD-SU", 1): {"chosen": chosen(20.0, 7.0, 9.0)},
    }
    assert best_scheme(Scale(seeds=2), outcomes)["mean"] == 15.0
    # Of those that are equal in this, training samples tell; of those in both, it is ours.
    outcomes[("CD-AOP", 1)] = {"chosen": chosen(40.0, 7.0, 8.0)}
    assert best_scheme(Scale(seeds=2), outcomes)["mean"] == 25.0
    outcomes[("gauge", 1)] = {"chosen": chosen(30.0, 7.0, 8.0)}
    assert best_scheme(Scale(seeds=2), outcomes)["mean"] == 20.0


def test_what_validation_chose_is_counted():
    other = chosen(1.0, 1.0, 1.0)
    other["choice"]["distance"] = "euclidean"
    outcomes = {("gauge", seed): {"chosen": chosen(1.0, 1.0, 1.0)} for seed in (0, 2)}
    outcomes[("gauge", 1)] = {"chosen": other}
    _, table = section(Scale(), outcomes)["tables"]
    expected = "bits, field, cosine (2); bits, field, euclidean (1)."
    assert table["notes"][-1].endswith(expected)
    assert not any("diverged" in note for note in table["notes"])
    other["choice"]["stopped"] = True
    _, table = section(Scale(), outcomes)["tables"]
    (note,) = [note for note in table["notes"] if "diverged" in note]
    assert note.endswith(": MPORBM, ours (gauge) 1.")
