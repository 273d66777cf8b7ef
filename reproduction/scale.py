"""How much of an experiment is done."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """Quick: a few minutes on data that come with Python packages; full: as the paper has it.

    Parameters
    ----------
    full
        Whether all of the paper's data sets, sizes and ranks are used, and 10 random splits.
    seeds
        Another number of random splits.
    """

    full: bool = False
    seeds: int | None = None

    def splits(self, usual: int) -> range:
        """The seeds of the random splits."""
        return range(usual if self.seeds is None else self.seeds)
