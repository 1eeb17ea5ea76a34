"""A state on disk comes back exactly, long lists compactly, and nothing is pickled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixwright.errors import InputError
from mixwright.steer.beside.files import SteeringFiles
from mixwright.steer.beside.run import DrawLog
from mixwright.steer.beside.state_file import MIN_ARCHIVED_LENGTH, read_state, write_state

NUMBERS = st.one_of(st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False), st.booleans())
LISTS = st.one_of(
    st.lists(NUMBERS, max_size=2 * MIN_ARCHIVED_LENGTH),
    st.lists(st.integers(-300, 300), min_size=MIN_ARCHIVED_LENGTH, max_size=2 * MIN_ARCHIVED_LENGTH),
    st.lists(
        st.floats(allow_nan=False, allow_infinity=False, width=32),
        min_size=MIN_ARCHIVED_LENGTH,
        max_size=2 * MIN_ARCHIVED_LENGTH,
    ),
    st.lists(
        st.lists(st.integers(0, 2**40), min_size=2, max_size=2),
        min_size=MIN_ARCHIVED_LENGTH,
        max_size=MIN_ARCHIVED_LENGTH + 5,
    ),
    st.lists(st.text(max_size=3), max_size=MIN_ARCHIVED_LENGTH + 5),
)


@given(st.dictionaries(st.text(max_size=5), st.one_of(LISTS, st.dictionaries(st.text(max_size=3), LISTS, max_size=2))))
def test_it_comes_back_exactly(tmp_path_factory: pytest.TempPathFactory, state: dict[str, Any]) -> None:
    folder = tmp_path_factory.mktemp("state")
    write_state(folder, "s", state)
    assert read_state(folder, "s") == state


@pytest.mark.parametrize(("rows", "most"), [(200, 1.0), (50_000, 2.0), (1_000_000, 4.0)])
def test_a_million_draws_take_megabytes_not_tens(tmp_path: Path, rows: int, most: float) -> None:
    """As JSON they take 4.5, 6.8 and 7.9 MB."""
    numbers = np.random.default_rng(0).integers(0, rows, 1_000_000)
    log = DrawLog(lambda count: [])
    log.rows.extend(numbers.tolist())
    write_state(tmp_path, "s", {"draws": log.state()})
    size = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert size < most * 1e6 + 1000
    again = DrawLog(lambda count: [])
    again.restore(read_state(tmp_path, "s")["draws"])
    assert again.rows == log.rows


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda folder: (folder / "s.json").unlink(), "no s.json"),
        (lambda folder: (folder / "s.npz").unlink(), "no s.npz"),
        (lambda folder: (folder / "s.npz").write_bytes(b"PK\x03\x04"), "broken steering state"),
        (lambda folder: (folder / "s.json").write_text("[1]"), "broken steering state"),
    ],
)
def test_broken_files_are_the_users_to_mend(tmp_path: Path, spoil: Any, told: str) -> None:
    write_state(tmp_path, "s", {"long": list(range(MIN_ARCHIVED_LENGTH))})
    spoil(tmp_path)
    with pytest.raises(InputError, match=told):
        read_state(tmp_path, "s")


def test_lines_are_cut_to_the_byte(tmp_path: Path) -> None:
    files = SteeringFiles(tmp_path)
    files.clear()
    files.append("steps.jsonl", [{"step": 0, "text": "é"}])
    kept = files.sizes_and_checksums()
    whole = (tmp_path / "steps.jsonl").read_bytes()
    assert kept["steps.jsonl"][0] == len(whole)
    files.append("steps.jsonl", [{"step": 1}])
    with (tmp_path / "steps.jsonl").open("a") as file:
        file.write('{"step": 2, "tor')  # what a kill leaves
    again = SteeringFiles(tmp_path)
    assert again.first_differing(kept) == ""
    again.truncate_to(kept)
    assert (tmp_path / "steps.jsonl").read_bytes() == whole
    assert again.sizes_and_checksums() == kept
    (tmp_path / "steps.jsonl").write_bytes(whole.replace(b"0", b"1"))
    assert again.first_differing(kept) == "steps.jsonl"
    (tmp_path / "steps.jsonl").write_bytes(whole[:-1])
    assert again.first_differing(kept) == "steps.jsonl"
