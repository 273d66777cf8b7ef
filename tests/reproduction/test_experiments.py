"""All experiments with made-up outcomes: what stands in the report is what was found."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mporbm.evaluation.statistics import interval
from mporbm.pictures import rank_error_curve
from reproduction import beyond, classification, figure7, generation, likelihood, runs
from reproduction.densities import DENSITIES
from reproduction.drawing import save_figure
from reproduction.experiments import EXPERIMENTS, gather, reproduce
from reproduction.report import render
from reproduction.scale import Scale
from reproduction.tasks import TASKS
from reproduction_support import fakes

SCALES = {"quick": Scale(), "full": Scale(full=True, seeds=2)}


@pytest.fixture(scope="module")
def done(made_up, tmp_path_factory):
    """The folder and the results of all experiments, for both scales."""
    found = {}
    for name, scale in SCALES.items():
        folder = tmp_path_factory.mktemp(name)
        options = {"full": scale.full, "seeds": scale.seeds, "command": f"a {name} command"}
        results = reproduce(list(EXPERIMENTS), folder, **options, shown=False)
        found[name] = folder, results
    return found


@pytest.fixture(params=SCALES)
def scale(request):
    return SCALES[request.param]


@pytest.fixture
def folder(done, scale):
    return done["full" if scale.full else "quick"][0]


@pytest.fixture
def results(done, scale):
    return done["full" if scale.full else "quick"][1]


def tables(results):
    return {table["name"]: table for section in results["sections"] for table in section["tables"]}


def figures(results):
    return [figure for section in results["sections"] for figure in section["figures"]]


def rows(table):
    """The cells of each row, by the titles of the columns."""
    return {
        row["label"]: dict(zip(table["columns"], row["cells"], strict=True))
        for row in table["rows"]
    }


def expected_cell(values):
    return {"value": values[0]} if len(values) == 1 else interval(values)._asdict()


def splits(scale, usual):
    return range(usual if scale.seeds is None else scale.seeds)


# All of it


@pytest.mark.slow
def test_the_report_takes_them(folder, results, scale):
    page = render(results, folder)
    for section in results["sections"]:
        assert section["title"] in page
    assert len(page) > 10_000
    # It looks at what it is given.
    with pytest.raises(ValueError, match="expected"):
        render({**results, "mode": "slow"}, folder)


@pytest.mark.slow
def test_results_are_strict_json(folder, results, scale):
    def refuse(name):
        raise AssertionError(f"{name} is no JSON")

    text = (folder / "results.json").read_text(encoding="utf-8")
    assert json.loads(text, parse_constant=refuse) == json.loads(json.dumps(results)) == results


def test_experiments_come_in_the_order_of_the_paper(results, scale):
    names = [section["name"] for section in results["sections"]]
    expected = ["tables1-3", "table4", "figure7", "table5", "table6", "figures8-9", "table7"]
    expected = ["likelihood", *expected, "beyond"]
    assert names == list(EXPERIMENTS) == expected
    assert results["mode"] == ("full" if scale.full else "quick")
    assert results["command"] == f"a {results['mode']} command"


def test_every_name_is_unique_and_every_picture_is_there(folder, results, scale):
    names = [section["name"] for section in results["sections"]]
    names += [*tables(results), *(figure["name"] for figure in figures(results))]
    assert len({*names}) == len(names)
    drawn = {folder / figure["path"] for figure in figures(results)}
    assert drawn == {*(folder / "figures").iterdir()}
    for path in drawn:
        if path.suffix == ".png":
            Image.open(path).verify()
        else:
            assert path.read_bytes().startswith(b"<?xml")
    assert len(drawn) == 8 + (4 * 3 + 2 if scale.full else 2)
    left = {path.name for path in folder.iterdir()}
    assert left == {"runs", "figures", "results.json"}
    assert not list(folder.rglob(".*"))


def test_everything_that_was_run_is_counted(folder, results, scale):
    wanted = {
        run.path(folder / "runs") for module in EXPERIMENTS.values() for run in module.runs(scale)
    }
    assert wanted == {*(folder / "runs").iterdir()}
    assert results["environment"].keys() >= {"Python", "jax", "numpy", "scikit-learn"}


def test_the_summary_is_what_sections_say(results, scale):
    said = [verdict for section in results["sections"] for verdict in section["verdicts"]]
    said += [verdict for table in tables(results).values() for verdict in table["verdicts"]]
    texts = {verdict["text"]: verdict["holds"] for verdict in said}
    titles = {*(f"{task.title}: " for task in TASKS.values()), "Completion, ", "Denoising, "}
    titles |= {f"{density.title}: " for density in DENSITIES.values()}
    assert len(results["summary"]) > 5
    for verdict in results["summary"]:
        text = verdict["text"]
        for title in titles:
            text = text if text in texts else text.removeprefix(title)
        assert texts[text] is verdict["holds"]
    assert all("summary" not in section for section in results["sections"])


@pytest.mark.usefixtures("made_up")
def test_what_is_there_is_not_done_again(monkeypatch, tmp_path):
    results = reproduce(["table5", "table6"], tmp_path, shown=False)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    monkeypatch.setattr(runs, "run_in_processes", lambda tasks, *_, **__: [1 / 0 for _ in tasks])
    assert reproduce(["table6", "table5"], tmp_path, shown=False) == results
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    with pytest.raises(ZeroDivisionError):
        reproduce(["table5"], tmp_path, full=True, shown=False)


@pytest.mark.usefixtures("made_up")
def test_times_are_added(tmp_path):
    # Both have runs in common.
    reproduce(["table5", "table6"], tmp_path, shown=False)
    paths = sorted((tmp_path / "runs").iterdir())
    for seconds, path in enumerate(paths, start=10):
        path.write_text(json.dumps({**json.loads(path.read_text()), "seconds": seconds}))
    results = reproduce(["table5", "table6"], tmp_path, shown=False)
    assert results["seconds"] == 10 + 11 + 12 + 13


def test_a_missing_outcome_is_named(scale, tmp_path):
    wanted = {run.path(tmp_path / "runs") for run in generation.runs(scale)}
    with pytest.raises(FileNotFoundError, match="the outcome of a run is missing; start") as error:
        gather({"table6": EXPERIMENTS["table6"]}, scale, tmp_path, "a command")
    assert Path(str(error.value).split(": ")[0]) in wanted


@pytest.mark.usefixtures("made_up")
def test_some_experiments_only(tmp_path):
    results = reproduce(["table5", "tables1-3"], tmp_path, shown=False)
    assert [section["name"] for section in results["sections"]] == ["tables1-3", "table5"]
    kept = [path.name.split("-")[0] for path in (tmp_path / "runs").iterdir()]
    assert sorted(kept) == ["generation"] * 3 + ["tables1_3"]


@pytest.mark.usefixtures("made_up")
def test_names_that_are_not_there(tmp_path):
    with pytest.raises(ValueError, match="table9"):
        reproduce(["table5", "table9"], tmp_path, shown=False)


def test_pictures_are_the_same_bytes(tmp_path):
    written = []
    for name in ("a.svg", "b.svg", "a.png", "b.png"):
        save_figure(rank_error_curve([1, 2], {"error": [2.0, 1.0]}), tmp_path / name)
        written.append((tmp_path / name).read_bytes())
    assert written[0] == written[1]
    assert written[2] == written[3]
    assert b"<dc:date>" not in written[0]


# How much is done


def test_quick_is_offline_and_full_is_what_the_paper_has():
    quick, full = (
        [dict(run.configuration) for m in EXPERIMENTS.values() for run in m.runs(scale)]
        for scale in (Scale(), Scale(full=True))
    )

    def offline(asked):
        of_a_package = asked.get("task") == "mnist" or asked.get("data") == "digits"
        return asked.get("offline", of_a_package)

    assert {offline(asked) for asked in quick} == {True}
    assert {offline(asked) for asked in full} == {False}
    assert {asked["task"] for asked in full if "task" in asked} == TASKS.keys() - {"mnist"}
    assert {asked["n_train"] for asked in full if "n_train" in asked} == {3000, 4000, 5000}
    assert {asked["rank"] for asked in full if "rank" in asked} >= {1, 2, 40, 200}
    for asked in full:
        if "n_test" in asked:
            assert asked["n_iter"] == (50 if "n_train" in asked else 500)
            assert asked["n_test"] == 10000
        if "n_asked" in asked:
            assert asked["n_asked"] == 10000
    # There are 5000 images offline.
    for asked in quick:
        if "n_asked" in asked:
            assert asked["n_train"] + 2 * asked["n_asked"] <= 5000
        if "n_test" in asked:
            used = asked.get("n_train", 50), asked["n_validation"], asked["n_test"]
            assert sum(used) <= 5000
    seeds = {asked["seed"] for asked in full if asked.get("task") != "coil100" and "seed" in asked}
    assert seeds == set(range(10))


@pytest.mark.parametrize("seeds", [1, 4])
@pytest.mark.parametrize("full", [False, True])
def test_the_number_of_seeds(full, seeds):
    scale = Scale(full, seeds)
    for module in (likelihood, classification, figure7, generation, beyond):
        asked = [run.configuration["seed"] for run in module.runs(scale)]
        assert {*asked} == set(range(seeds))
        assert len(asked) == seeds * len([seed for seed in asked if seed == 0])


# Numbers of the paper, as they are printed there

TABLE_1 = {
    "Alphadigits": ("20x16", "320", "20x16", "20x16", "80", "10x8", "10x8"),
    "DrivFace": ("80x80", "51200", "80x640", "80x80x8", "500", "10x50", "10x10x5"),
    "Arcene": ("10000", "100000", "100x1000", "100x100x10", "500", "10x50", "10x10x5"),
    "COIL-100": ("128x128x3", "393216", "128x3072", "128x128x24", "500", "10x50", "10x10x5"),
}
TABLE_4 = {
    "alphadigits": (28.10, 31.20, 28.10, 26.90),
    "drivface": (24.20, 15.48, 9.68, 8.06),
    "arcene": (45.00, 34.00, 32.00, 27.00),
    "coil100": (None, 6.82, 6.82, 0.00),
}
TABLE_5 = {"RBM": 78400, "MvRBM": 560, "MPORBM": 22400}
TABLE_6 = {
    "right half given": (13.86, 12.35, 13.79),
    "bottom half given": (13.66, 12.38, 13.69),
}
TABLE_7 = {
    "10 % noise": (13.55, 11.82, 13.49),
    "15 % noise": (12.90, 10.26, 13.24),
    "20 % noise": (11.88, 9.23, 12.95),
}


def test_tables_2_and_3(done):
    found = rows(tables(done["full"][1])["table2-3"])
    layers = {name: tuple(cell["text"] for cell in row.values()) for name, row in found.items()}
    assert layers == {name: shapes[1:] for name, shapes in TABLE_1.items()}


def test_table_1(results, scale):
    table = tables(results)["table1"]
    names = ["MNIST"] if not scale.full else list(TABLE_1)
    assert list(rows(table)) == names
    for row in rows(table).values():
        assert (row["samples"]["count"], row["classes"]["count"]) == (1200, 10)
        parts = [row[part]["count"] for part in ("training", "validation", "test")]
        assert parts == [340, 430, 430]
    if scale.full:
        values = [row["values"]["text"] for row in rows(table).values()]
        assert values == ["binary", "0 to 255", "0 to 1023", "0 to 255"]


def test_table_4_has_the_numbers_of_the_paper(done):
    found = tables(done["full"][1])
    for name, expected in TABLE_4.items():
        table = rows(found[f"table4-{name}"])
        labels = ("RBM", "MvRBM", "MPORBM, CD-SU", "MPORBM, CD-AOP")
        for label, error in zip(labels, expected, strict=True):
            cell = table[label]["paper"]
            assert cell is None if error is None else cell == {"value": error, "digits": 2}
        assert table["TvRBM"]["paper"] is None
        assert table["MPORBM, ours (gauge)"]["paper"] is None
    balanced = rows(found["table4-drivface-balanced"])
    assert all(row["paper"] is None for row in balanced.values())


def test_table_4_has_the_means_over_the_splits(results, scale):
    names = TABLE_4 if scale.full else ["mnist"]
    balanced = {"table4-drivface-balanced"} if scale.full else set()
    found = {k: t for k, t in tables(results).items() if k.startswith("table4")}
    found.pop("table4-overview")
    assert found.keys() == {f"table4-{name}" for name in names} | balanced
    for name, table in found.items():
        task = name.split("-")[1]
        measure = "balanced" if name in balanced else "error"
        outcomes = {
            machine: [fakes.classification_run(task, machine, seed) for seed in splits(scale, 3)]
            for machine in (*classification.machines(scale), "baselines")
        }
        lines = rows(table)
        for machine in classification.machines(scale):
            row = lines[classification.MACHINES[machine]]
            values = [outcome["chosen"][measure] for outcome in outcomes[machine]]
            assert row["chosen on validation"] == expected_cell(values)
            for way, title in classification.COLUMNS.items():
                kept = [outcome["columns"][", ".join(way)] for outcome in outcomes[machine]]
                if task == "coil100" and machine == "RBM":
                    assert kept == [None] * len(kept)
                    assert row[title] is None
                    assert row["weights"] is None
                else:
                    assert row[title] == expected_cell([entry[measure] for entry in kept])
                    assert row["weights"] == {"count": 1000}
        for label in outcomes["baselines"][0]["baselines"]:
            values = [found["baselines"][label][measure] for found in outcomes["baselines"]]
            assert lines[label]["chosen on validation"] == expected_cell(values)
        assert ("TvRBM" in lines) == scale.full


def test_table_4_at_a_glance(results, scale):
    table = tables(results)["table4-overview"]
    found = rows(table)
    columns = ["MPORBM in the paper (CD-AOP)", "RBM", "MvRBM", "MPORBM, best scheme"]
    assert table["columns"] == [*columns, "best without a machine"]
    names = list(TABLE_4) if scale.full else ["mnist"]
    assert list(found) == [TASKS[name].title for name in names]
    for name, row in zip(names, found.values(), strict=True):
        lines = rows(tables(results)[f"table4-{name}"])
        paper = TABLE_4[name][-1] if scale.full else None
        cell = row["MPORBM in the paper (CD-AOP)"]
        assert cell is None if paper is None else cell == {"value": paper, "digits": 2}
        for label in ("RBM", "MvRBM", "MPORBM, best scheme"):
            assert row[label] == lines[label]["chosen on validation"]
        baselines = {
            label: [
                fakes.classification_run(name, "baselines", seed)["baselines"][label]["error"]
                for seed in splits(scale, 3)
            ]
            for label in lines
            if label.startswith("1-NN") or label == "majority class"
        }
        assert row["best without a machine"] == expected_cell(min(baselines.values(), key=sum))


def test_table_5(results, scale):
    found = rows(tables(results)["table5-weights"])
    paper = {name: row["paper"]["count"] for name, row in found.items() if row["paper"]}
    assert paper == TABLE_5
    assert {name: row["here"]["count"] for name, row in found.items()} == {
        name: n for name, n in fakes.N_WEIGHTS.items() if name in found
    }
    assert ("TvRBM" in found) == scale.full
    (verdict,) = tables(results)["table5-weights"]["verdicts"]
    assert verdict["holds"] is True


@pytest.mark.parametrize(("name", "paper"), [("table6-psnr", TABLE_6), ("table7-psnr", TABLE_7)])
def test_tables_6_and_7(results, scale, name, paper):
    table = tables(results)[name]
    found = rows(table)
    questions = {"right half given": "right", "bottom half given": "bottom"}
    questions |= {f"{p} % noise": f"{p}%" for p in (10, 15, 20)}
    assert (table["unit"], table["better"]) == ("dB", "higher")
    for title, numbers in paper.items():
        for machine, number in zip(("RBM", "MvRBM", "MPORBM"), numbers, strict=True):
            assert found[f"{machine}, one pass"][f"{title}, paper"] == {"value": number}
            assert found[f"{machine}, posterior mean"][f"{title}, paper"] is None
        for label, row in found.items():
            machine, _, way = label.rpartition(", ")
            values = [
                fakes.generation_run(machine or "baselines", 0, 0, 10, True, seed)["psnr"][way][
                    questions[title]
                ]
                for seed in splits(scale, 1)
            ]
            assert row[title] == expected_cell(values)
    assert set(found) >= {"mean training image", "given as it is"}


def test_verdicts_of_tables_6_and_7_are_those_of_the_numbers(done):
    sections = {section["name"]: section for section in done["full"][1]["sections"]}
    for name, paper in {"table6": TABLE_6, "table7": TABLE_7}.items():
        found = rows(tables(done["full"][1])[f"{name}-psnr"])
        reached = [v for v in sections[name]["verdicts"] if "the paper's" in v["text"]]
        assert len(reached) == len(paper)
        for verdict, (title, numbers) in zip(reached, paper.items(), strict=True):
            assert verdict["text"].startswith(f"{title}: MPORBM, posterior mean: ")
            ours = found["MPORBM, posterior mean"][title]["mean"]
            assert verdict["holds"] is bool(ours >= numbers[2])
            assert f"the paper's {numbers[2]:.2f} dB" in verdict["text"]


def test_figure_7_in_numbers(results, scale):
    ways = list(figure7.COLUMNS)
    for n_train in (3000, 4000, 5000) if scale.full else (3000,):
        found = rows(tables(results)[f"figure7-{n_train}"])
        for rule, label in figure7.RULE_TITLES.items():
            for rank in figure7.ranks(scale):
                row = found[f"{label}, rank {rank}"]
                assert row["weights"] == {"count": 1000 + rank}
                for way in ways:
                    values = [
                        fakes.number(rule, rank, n_train, seed, ", ".join(way))
                        for seed in splits(scale, 1)
                    ]
                    assert row[figure7.TITLES[way]] == expected_cell(values)
        assert {label for label in found if label.startswith("1-NN")} == {
            "1-NN on raw values, Euclidean",
            "1-NN on binary images, Euclidean",
        }


def test_a_baseline_of_figure_7_stands_below_its_distance(results, scale):
    found = rows(tables(results)["figure7-3000"])
    for name in ("raw values", "binary images"):
        row = found[f"1-NN on {name}, Euclidean"]
        values = [fakes.number("baselines", 0, 3000, seed, name) for seed in splits(scale, 1)]
        filled = {title: cell for title, cell in row.items() if cell is not None}
        assert [*filled.values()] == [expected_cell(values)]
        assert all("Euclidean" in title for title in filled)


def test_beyond_in_numbers(results, scale):
    chosen = splits(scale, 3 if scale.full else 1)
    found = rows(tables(results)["beyond-errors"])
    assert [*found] == ["MPORBM", "MPODBN", "MPODBM", "DBN", "binary pixels"]
    for label, row in found.items():
        machine = "baselines" if label == "binary pixels" else label
        assert row["weights"] == {"count": 7840 if machine == "baselines" else 3000}
        for way, title in {"1-NN": "1-NN", "linear": "linear classifier"}.items():
            values = [fakes.number(machine, seed, way) for seed in chosen]
            assert row[title] == expected_cell(values)
    titles = {"right": "right half given", "bottom": "bottom half given", "20%": "20 % noise"}
    for machine, row in rows(tables(results)["beyond-psnr"]).items():
        for name, title in titles.items():
            values = [fakes.number(machine, seed, name) for seed in chosen]
            assert row[title] == expected_cell(values)
    found = rows(tables(results)["beyond-labels"])
    for label in ("MPOClassRBM", "ClassRBM"):
        values = [fakes.number(label, seed, "own") for seed in chosen]
        assert found[label] == {"weights": {"count": 2000}, "error": expected_cell(values)}
    values = [fakes.number("baselines", seed, "linear") for seed in chosen]
    assert found["logistic regression"]["error"] == expected_cell(values)


def test_beyond_compares_the_right_way_round(results, scale):
    (section,) = (entry for entry in results["sections"] if entry["name"] == "beyond")
    said = {verdict["text"].split(" = ")[0]: verdict for verdict in section["verdicts"]}
    assert len(said) == len(section["verdicts"]) == 4 * 2 + 2 + 4 * 3
    chosen = splits(scale, 3 if scale.full else 1)
    for start, (first, second, way, other, sign) in {
        "Error, 1-NN: MPODBN − MPORBM": ("MPODBN", "MPORBM", "1-NN", "1-NN", 1),  # noqa: RUF001
        "PSNR, 20 % noise: MPODBM − DBN": ("MPODBM", "DBN", "20%", "20%", -1),  # noqa: RUF001
        "Error, labels: MPOClassRBM − logistic regression": (  # noqa: RUF001
            *("MPOClassRBM", "baselines", "own", "linear", 1),
        ),
    }.items():
        differences = [
            fakes.number(first, seed, way) - fakes.number(second, seed, other) for seed in chosen
        ]
        found = interval(differences)
        assert f"{abs(found.mean):.2f}" in said[start]["text"]
        expected = None
        if found.n > 1 and found.low * found.high > 0.0:
            expected = sign * found.mean < 0.0
        assert said[start]["holds"] is expected


def test_strips_show_what_was_kept(done, made_up, monkeypatch, tmp_path):
    shown = {}

    def keep(rows, mask=None):
        shown.update(rows=rows, mask=mask)
        return rank_error_curve([1], {"error": [1.0]})

    monkeypatch.setattr(generation, "strips", keep)
    folder, _ = done["quick"]

    def outcome(run):
        return run.outcome(folder / "runs")

    for question, known in {"bottom": np.s_[14:], "20%": None}.items():
        figure = generation.strips_figure("name", question, "said", Scale(), outcome, tmp_path)
        assert list(shown["rows"]) == ["original", "given", "RBM", "MvRBM", "MPORBM"]
        kept = outcome(generation.run_of(Scale(), "MvRBM", 0))
        expected = generation.decode(kept["pictures"][question])
        assert np.array_equal(shown["rows"]["MvRBM"], expected)
        if known is None:
            assert shown["mask"] is None
        else:
            assert shown["mask"][known].all()
            assert shown["mask"].sum() == 14 * 28
        assert figure["path"] == f"{tmp_path.name}/name.png"
        assert "MvRBM" in figure["alt"]
