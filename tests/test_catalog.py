"""The folder is the registry: listing imports nothing, naming imports one file, errors say what to do."""

import subprocess
import sys

import pytest

from mixwright import catalog
from mixwright.catalog import KIND_BY_NAME, entries_named, listing, load
from mixwright.errors import InputError, unknown_name

PLUGIN = '''"""A check for this test.

Source: none
Unit: none
Cost: none
Blind spot: everything
"""

from mixwright.contracts import Check

NEEDS = ("a_package_nobody_has",)
EXTRA = "lab"


class Made(Check):
    """Nothing."""

    def check(self, corpus):
        """Nothing."""
        return []
'''


def test_listing_every_kind_imports_no_plugin() -> None:
    code = (
        "import sys; from mixwright.catalog import KIND_BY_NAME, listing; n = sum(len(listing(k)) for k in KIND_BY_NAME); "
        "bad = [m for m in sys.modules if m.startswith('mixwright.') and m.count('.') > 1 and 'records' not in m]; "
        "heavy = {'torch', 'transformers', 'numpy', 'pyarrow', 'pydantic'} & set(sys.modules); print(n, bad, heavy)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    count, _, rest = done.stdout.strip().partition(" ")
    assert int(count) >= 20
    assert rest == "[] set()"


def test_a_private_file_is_no_plugin() -> None:
    assert not [name for kind in KIND_BY_NAME for name in listing(kind) if name.startswith("_")]


def test_an_unknown_name_gives_the_nearest() -> None:
    with pytest.raises(InputError, match="Nearest: contamination"):
        load("checks", "contaminaton")


def test_a_name_that_is_near_nothing_lists_some() -> None:
    with pytest.raises(InputError, match="Some of them: a, b, c, d, e, f, g, h\\.") as caught:
        raise unknown_name("letter", "zzz", "abcdefghij")
    assert "Nearest" not in str(caught.value)
    assert "Known: a, b." in str(unknown_name("letter", "zzz", "ab"))
    assert "Nearest: steps." in str(unknown_name("field", "stepz", ["steps", "beta"]))


def test_the_docstring_of_an_installed_module_is_read_without_importing_it(tmp_path, monkeypatch) -> None:
    inner = tmp_path / "made_package" / "inner"
    inner.mkdir(parents=True)
    for path in (tmp_path / "made_package" / "__init__.py", inner / "__init__.py"):
        path.write_text('"""A package."""\nraise RuntimeError("imported")\n')
    (inner / "check.py").write_text('"""What it sees.\n\nSource: none.\n"""\nraise RuntimeError("imported")\n')
    (inner / "broken.py").write_text("def (")
    (tmp_path / "made_module.py").write_text('"""One file."""\nraise RuntimeError("imported")\n')
    monkeypatch.syspath_prepend(tmp_path)

    def read(module: str) -> str:
        return catalog._read_entry("checks", "made", module, catalog.find_source(module)).docstring

    assert read("made_package.inner.check").splitlines() == ["What it sees.", "", "Source: none."]
    assert read("made_package.inner") == "A package."
    assert read("made_module") == "One file."
    for nothing in ("made_package.inner.broken", "made_package.nowhere", "nowhere_at_all.x", "sys"):
        assert read(nothing) == ""


def test_an_unknown_kind_gives_the_nearest() -> None:
    with pytest.raises(InputError, match="checks"):
        listing("chekcs")


def test_a_dropped_file_is_listed_and_its_missing_package_gives_the_pip_command(tmp_path, monkeypatch) -> None:
    (tmp_path / "made.py").write_text(PLUGIN)
    files = catalog._plugin_files
    monkeypatch.setattr(catalog, "_read_entries", catalog._read_entries.__wrapped__)  # what was read before is not asked
    monkeypatch.setattr(
        catalog, "_plugin_files", lambda package: [tmp_path / "made.py"] if "audit" in package else files(package)
    )
    entry = listing("checks")["made"]
    assert (entry.summary, entry.needs) == ("A check for this test.", ("a_package_nobody_has",))
    with pytest.raises(InputError, match=r"pip install 'mixwright\[lab\]'"):
        load("checks", "made")


def test_a_row_follows_the_flow() -> None:
    order = list(KIND_BY_NAME)
    places = [order.index(entry.kind) for entry in entries_named("difficulty")]
    assert len(places) >= 2
    assert places == sorted(places)
