"""The table of mutations fits the code: each text that it changes is there, and once."""

from pathlib import Path

import mporbm
from mutations import table

PACKAGE = Path(mporbm.__file__).parent


def test_every_mutation_can_be_made():
    mutations = [*table.TENSOR, *table.MACHINE, *table.SAMPLING, *table.LEARNING]
    assert len(mutations) >= 60
    stale = [m.name for m in mutations if (PACKAGE / m.file).read_text().count(m.old) != 1]
    assert not stale
