"""No file makes a parser do anything but read it or refuse it by name."""

import pytest

from fuzz.campaign import made, run
from fuzz.parsers import PARSERS

# What users without the tests' type checker see: parsers are to cope by themselves.
pytestmark = pytest.mark.filterwarnings("ignore:.*violates type hint:UserWarning")

N_FILES = 150


@pytest.mark.parametrize("name", PARSERS)
def test_files_are_read_or_refused(tmp_path, name):
    tally = run(name, tmp_path, range(N_FILES))
    assert not tally.crashes, "\n".join(text for _, text in tally.crashes.values())
    assert tally.refused + tally.accepted == N_FILES
    # Changes that no parser minds, or all, would find nothing.
    assert tally.refused > N_FILES // 10
    assert tally.accepted > 0


@pytest.mark.parametrize("name", PARSERS)
def test_valid_files_are_read(tmp_path, name):
    path = tmp_path / "fuzzed" / PARSERS[name].name
    path.parent.mkdir()
    content = PARSERS[name].valid()[0]
    path.write_bytes(content)
    PARSERS[name].read(path)


@pytest.mark.parametrize("name", PARSERS)
def test_files_are_the_same_at_all_times(name):
    assert [made(name, 0, k) for k in range(5)] == [made(name, 0, k) for k in range(5)]
