"""Write the tables and pictures of speed in the documentation, and what the README quotes of them.

All come from a folder with what the benchmarks wrote.

    python benchmarks/performance.py docs/performance
"""

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

ROOT = Path(__file__).parent.parent
PAGES = tuple(
    ROOT / name
    for name in ("docs/performance.md", "docs/mps-layers.md", "docs/scaling.md", "README.md")
)
START, END = "<!-- measured: {} -->", "<!-- end of measured -->"
LIMIT = "matrix products alone"
PEERS = ("scikit-learn", "learnergy", "rbms", "NumPy + opt_einsum", "torch")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="with what the benchmarks wrote (--out)")
    folder = parser.parse_args().folder
    measured = read(folder)
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        page.write_text(filled(text, tables(measured)), encoding="utf-8")
    with matplotlib.rc_context({"svg.hashsalt": "mporbm", "font.size": 9}):
        for name, draw in PICTURES.items():
            picture = draw(measured[name])
            picture.savefig(folder / f"{name}.svg", metadata={"Date": None})


def read(folder: Path) -> dict[str, Any]:
    """What the benchmarks wrote, by their names."""
    names = ("speed", "scaling", "roofline", "start", "chain", "weak", "cluster", "quality")
    return {
        name: json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for name in names
    }


def filled(text: str, content: dict[str, str]) -> str:
    """A page with tables between its marks."""
    for name, table in content.items():
        before, mark, rest = text.partition(START.format(name))
        if mark:
            text = f"{before}{mark}\n\n{table}\n\n{rest[rest.index(END) :]}"
    return text


def tables(measured: dict[str, Any]) -> dict[str, str]:
    """All tables, as Markdown."""
    return {
        "summary": summary(measured["speed"]),
        "speed": speed_tables(measured["speed"]),
        "scaling": scaling_table(measured["scaling"]),
        "roofline": roofline_table(measured["roofline"]),
        "start": start_table(measured["start"]),
        "chain": chain_table(measured["chain"]),
        "weak": weak_table(measured["weak"]),
        "cluster": cluster_table(measured["cluster"]),
        "quality": quality_table(measured["quality"]),
    }


def summary(speed: dict[str, Any]) -> str:
    """A line for each case with peers."""
    rows = []
    for case in speed["cases"].values():
        ratios = {name: other["ratio"][1] for name, other in case["others"].items()}
        said = [f"{ratios[name]:.1f} x {name}" for name in PEERS if name in ratios]
        if LIMIT in ratios:
            said.append(f"{ratios[LIMIT]:.2f} of the {LIMIT}")
        if said:
            rows.append([case["title"], ", ".join(said)])
    return _table(["work", "speed of ours"], rows, right=False)


def speed_tables(speed: dict[str, Any]) -> str:
    """A table for each case."""
    n_threads = speed["machine"]["threads"]
    parts = [f"{n_threads} threads for each; medians of rounds in turns, and quartiles."]
    for case in speed["cases"].values():
        n_rounds = len(case["seconds"]["ours"])
        rows = [["ours", "1", _mebibytes(case["peak_memory"])]]
        for name, other in case["others"].items():
            rows.append([name, _quartiles(other["ratio"]), _mebibytes(other["peak_memory"])])
        headings = ["contender", "their time / ours", "peak memory"]
        parts += [f"**{case['title']}** ({n_rounds} rounds)", _table(headings, rows)]
    return "\n\n".join(parts)


def scaling_table(scaling: dict[str, Any]) -> str:
    """Exponents."""
    rows = [
        [name, f"{curve['measured']:.2f}", f"{curve['predicted']:.2f}"]
        for name, curve in scaling.items()
    ]
    return _table(["what grows", "exponent of the time", "of the plan's operations"], rows)


def roofline_table(roofline: dict[str, Any]) -> str:
    """Shares of the limits."""
    rows = [
        [name, *(f"{point[key]:.2f}" for key in ("intensity", "share", "limit"))]
        for name, point in roofline["sweeps"].items()
    ]
    return _table(["sweep", "operations a byte", "share of the fastest", "at most"], rows)


def start_table(start: dict[str, Any]) -> str:
    """Seconds of a new process."""
    parts = next(iter(start.values()))
    rows = [[part, *(f"{of[part][1]:.2f} s" for of in start.values())] for part in parts]
    return _table(["", *start], rows)


def chain_table(chain: dict[str, Any]) -> str:
    """Times, memory and exponents against the order."""
    rows = []
    for name, curve in chain.items():
        times = [f"{time:.2f}" for time in curve["relative_times"]]
        memory = [f"{n_bytes / 2**20:.1f} MiB" for n_bytes in curve["memory"]]
        rows.append([f"{name}, time", *times, f"{curve['time_exponent']:.2f}"])
        rows.append([f"{name}, memory", *memory, f"{curve['memory_exponent']:.2f}"])
    orders = next(iter(chain.values()))["orders"]
    return _table(["", *(f"d = {order}" for order in orders), "exponent"], rows)


def weak_table(weak: dict[str, Any]) -> str:
    """The time of one process, divided by that of two."""
    names = list(next(iter(weak.values()))["efficiency"])
    rows = [
        [case, *(_quartiles(result["efficiency"][name]) for name in names)]
        for case, result in weak.items()
    ]
    return _table(["time of one / time of ...", *names], rows)


def cluster_table(cluster: dict[str, Any]) -> str:
    """What an epoch costs, and what of that is talk."""
    rows = [
        [
            name,
            f"{result['bytes'] / 1e6:.2f} MB",
            f"{1e3 * result['compute']:.2f} ms",
            f"{1e3 * result['talk']:.2f} ms",
            f"{result['hours']:.2f} h",
            f"{result['dollars']:.0f}",
            f"{result['memory'] / 1e6:.1f} MB",
        ]
        for name, result in cluster["machines"].items()
    ]
    headings = ["machine", "sent a batch", "computing", "sending", "an epoch", "dollars"]
    return _table([*headings, "weights, velocity, gradient"], rows)


def quality_table(quality: dict[str, Any]) -> str:
    """Seconds to each target, and how many times faster than the best peer."""
    setting, n_rounds = quality["setting"], len(quality["rounds"])
    rows = []
    for name, found in quality["learners"].items():
        row = [name, found["rate"], f"{found['milliseconds'][1]:.1f} ms"]
        for seconds, speed in zip(found["seconds"], found["speed"], strict=True):
            row += ["-" if seconds is None else f"{seconds[1]:.1f} s", _quartiles_or_dash(speed)]
        row += [f"{found['first'][1]:.1f} s", _quartiles_or_dash(found["speed_with_first"])]
        nats, seconds = (values[1] for values in found["end"])
        rows.append([*row, f"{nats:.1f} after {seconds:.0f} s"])
    aims = [text for target in setting["targets"] for text in (f"to {target:g} nats", "speed")]
    headings = ["learner", "rate", "an update", *aims, "first call", "speed with it", "at the end"]
    n_threads = quality["machine"]["threads"]
    rounds = "1 round" if n_rounds == 1 else f"medians of {n_rounds} rounds, and quartiles"
    threads = "1 thread" if n_threads == 1 else f"{n_threads} threads"
    return f"{threads} for each; {rounds}.\n\n{_table(headings, rows)}"


def weak_picture(weak: dict[str, Any]) -> Figure:
    """Two processes beside one, for each machine."""
    figure = Figure(figsize=(7, 2.8), layout="constrained")
    panel = figure.subplots()
    panel.axhline(1.0, color="0.6", linewidth=0.8)
    names = list(next(iter(weak.values()))["efficiency"])
    for offset, marker, name in zip((-0.08, 0.08), "os", names, strict=True):
        low, middle, high = np.array([case["efficiency"][name] for case in weak.values()]).T
        places = np.arange(len(weak)) + offset
        errors = np.stack([middle - low, high - middle])
        panel.errorbar(places, middle, errors, fmt=marker, ms=5, capsize=3, label=name)
    panel.set_xticks(range(len(weak)), [case.replace(", ", "\n") for case in weak])
    panel.set_ylim(0.0, 1.2)
    panel.set_ylabel("time of one / time of two")
    panel.grid(alpha=0.3, axis="y")
    panel.legend(loc="lower right")
    return figure


def scaling_picture(scaling: dict[str, Any]) -> Figure:
    """The time of a sweep against what grows, beside the operations."""
    figure = Figure(figsize=(9, 2.6), layout="constrained")
    panels = figure.subplots(1, len(scaling))
    for panel, (name, curve) in zip(panels, scaling.items(), strict=True):
        panel.loglog(curve["numbers"], curve["relative_times"], "o-", ms=4, label="time")
        panel.loglog(curve["numbers"], curve["relative_operations"], "--", label="operations")
        panel.set_xlabel(name)
        panel.set_xticks(curve["numbers"], [f"{n:g}" for n in curve["numbers"]])
        panel.minorticks_off()
        _plain_ticks(panel)
        panel.tick_params(axis="x", labelrotation=40)
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("relative to the first")
    panels[0].legend()
    return figure


def roofline_picture(roofline: dict[str, Any]) -> Figure:
    """Operations a second against operations a byte, under the roof."""
    figure = Figure(figsize=(7.5, 3.6), layout="constrained")
    panel = figure.subplots()
    intensities = [point["intensity"] for point in roofline["sweeps"].values()]
    x = np.geomspace(min(intensities) / 3, max(*intensities, roofline["ridge"]) * 3, 200)
    panel.loglog(x, np.minimum(1.0, x / roofline["ridge"]), color="black", label="limit")
    panel.xaxis.set_major_formatter("{x:g}")
    for number, (name, point) in enumerate(roofline["sweeps"].items()):
        panel.plot(point["intensity"], point["share"], "osD^vP*"[number % 7], ms=8, label=name)
    panel.set_xlabel("operations a byte")
    panel.set_ylabel("share of the fastest matrix product")
    panel.grid(alpha=0.3, which="both")
    _plain_ticks(panel)
    figure.legend(loc="outside right upper", frameon=False)
    return figure


def chain_picture(chain: dict[str, Any]) -> Figure:
    """Time and memory of a step against the order."""
    figure = Figure(figsize=(7, 2.6), layout="constrained")
    panels = figure.subplots(1, 2)
    for name, curve in chain.items():
        mebibytes = np.array(curve["memory"]) / 2**20
        for panel, values in zip(panels, (curve["relative_times"], mebibytes), strict=True):
            panel.plot(curve["orders"], values, "o-", ms=4, label=name)
    for panel, title in zip(panels, ("time, relative to d = 10", "memory in MiB"), strict=True):
        panel.set_xlabel("order d (2^d visible units)")
        panel.set_ylabel(title)
        panel.set_xticks(next(iter(chain.values()))["orders"])
        panel.set_ylim(bottom=0)
        panel.grid(alpha=0.3)
    panels[0].legend()
    return figure


PICTURES = {
    "scaling": scaling_picture,
    "roofline": roofline_picture,
    "chain": chain_picture,
    "weak": weak_picture,
}


def _plain_ticks(panel: Axes) -> None:
    """1, 2 and 5 of every power of ten, as numbers."""
    panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    panel.yaxis.set_major_formatter("{x:g}")
    panel.yaxis.set_minor_formatter(NullFormatter())


def _table(headings: list[str], rows: list[list[str]], *, right: bool = True) -> str:
    lines = [headings, ["---", *["---:" if right else "---"] * (len(headings) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _quartiles(values: list[float]) -> str:
    low, middle, high = values
    return f"{middle:.2f} ({low:.2f}-{high:.2f})"


def _quartiles_or_dash(values: list[float] | None) -> str:
    if values is None:
        return "-"
    return f"{values[1]:.2f}" if values[0] == values[2] else _quartiles(values)


def _mebibytes(n_bytes: int) -> str:
    return f"{n_bytes / 2**20:.0f} MiB"


if __name__ == "__main__":
    main()
