"""The copy of a run folder behind an address: what deaths at any moment leave, what is refused, and a run that moves."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from forked import as_a_program
from hypothesis import given
from hypothesis import strategies as st
from storages import needs_s3, s3_server, storage_address  # noqa: F401 - a fixture

from mixwright.cli.options import Placing
from mixwright.config import CorpusConfig, RunConfig, check_storage
from mixwright.errors import InputError
from mixwright.run import remote_files, storage_user
from mixwright.run.remote_files import RemoteFiles
from mixwright.run.storage import Place, Storage, finished_files, in_order, mark_of, work_beside

BRANCH = "trial/uniform-0"


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_files, "WAITS", (0.01, 0.01, 0.01))
    monkeypatch.setattr(storage_user, "SECONDS_BETWEEN_SIGNS", 0.05)
    monkeypatch.setattr(storage_user, "SECONDS_WITHOUT_SIGN", 0.4)


def write(folder: Path, **texts: str) -> None:
    """Files by name, `__` for `/` and `_` for `.`."""
    for name, text in texts.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def branch(folder: Path, version: str, *names: str) -> None:
    """A branch as `train_branch` leaves it, in place of the one before."""
    shutil.rmtree(folder / BRANCH, ignore_errors=True)
    for name in (*names, "branch.json"):
        path = folder / BRANCH / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name} of {version}")


def texts(folder: Path) -> dict[str, str]:
    """What stands in a folder, without what belongs to this machine."""
    names = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_text() for name, path in names.items() if not Path(name).name.startswith(".")}


def sync(address: str, folder: Path) -> None:
    """What a command does that changes nothing."""
    folder.mkdir(exist_ok=True)
    with Storage(address, folder).opened():
        pass


NAMES = st.sampled_from(
    [f"{part}{name}" for part in ("trial/a-0/", "trial/b-1/model/", "bases/base-0/") for name in ("x", "y", "config.json")]
    + ["trial/a-0/branch.json", "trial/b-1/branch.json", "plan.yaml", "measure/before.parquet", "trial/result.json"]
)


@given(st.dictionaries(NAMES, st.integers(0, 3).map(float)))
def test_what_says_that_a_branch_is_whole_comes_last_and_the_rest_by_time(moments: dict[str, float]) -> None:
    order = in_order(moments)
    assert sorted(order) == sorted(moments)
    for name in moments:
        mark = mark_of(name)
        if mark in moments and mark != name:
            assert order.index(name) < order.index(mark)
    alone = [name for name in order if mark_of(name) is None]
    assert [moments[name] for name in alone] == sorted(moments[name] for name in alone)


def test_only_what_is_finished_is_kept() -> None:
    kept = ["plan.yaml", "trial/a-0/branch.json", "trial/a-0/model/m", "bases/b/config.json", "scan/b/part-00000.parquet"]
    left = ["trial/b-0/after.parquet", "trial/.c-0.partial/branch.json", "trial/logs/a.0.log", "answers/b.jsonl", ".lock"]
    left += ["trial/stages/d/stage.json", "spent.json", "mine/m.spent.json", "bases/log.txt", "../x", "a//b", ""]
    assert list(finished_files(dict.fromkeys([*kept, *left]))) == kept


def test_a_folder_moves_with_the_order_of_its_times(storage_address: str, tmp_path: Path) -> None:  # noqa: F811
    here, there = tmp_path / "here", tmp_path / "there"
    with Storage(storage_address, here).opened():
        for number, name in enumerate(
            ("corpus__rows_parquet", "measure__before_parquet", "plan_yaml", "trial__result_json")
        ):
            write(here, **{name: name * 3})
            os.utime(here / name.replace("__", "/").replace("_", "."), (number, number))
        branch(here, "one", "model/weights", "after.parquet")
        write(here, **{"answers__x_jsonl": "under way", "trial__logs__l_log": "said", "trial___p_partial__branch_json": "-"})
    sync(storage_address, there)
    kept = {name: text for name, text in texts(here).items() if not name.startswith(("answers", "trial/logs"))}
    assert texts(there) == {name: text for name, text in kept.items() if "partial" not in name}
    times = [(there / name).stat().st_mtime for name in ("corpus/rows.parquet", "measure/before.parquet", "plan.yaml")]
    assert [round(later - times[0], 3) for later in times] == [0, 1, 2]
    before = {path: path.stat().st_mtime_ns for path in there.rglob("*.*")}
    sync(storage_address, there)
    assert {path: path.stat().st_mtime_ns for path in before if not path.name.startswith(".")} == {
        path: moment for path, moment in before.items() if not path.name.startswith(".")
    }


def test_what_was_replaced_or_removed_here_is_so_there_and_elsewhere(storage_address: str, tmp_path: Path) -> None:  # noqa: F811
    here, there = tmp_path / "here", tmp_path / "there"
    with Storage(storage_address, here).opened():
        branch(here, "one", "adapter/weights", "after.parquet")
        write(here, trial__result_json="one")
    sync(storage_address, there)
    with Storage(storage_address, here).opened():
        branch(here, "two", "after.parquet")
        (here / "trial/result.json").unlink()
    sync(storage_address, there)
    assert texts(there) == {"trial/result.json": "one"} | texts(here)  # what is here alone stays, and is put again
    assert texts(here) == {f"{BRANCH}/after.parquet": "after.parquet of two", f"{BRANCH}/branch.json": "branch.json of two"}


def test_what_was_removed_by_hand_comes_back_with_its_time(storage_address: str, tmp_path: Path) -> None:  # noqa: F811
    here = tmp_path / "here"
    with Storage(storage_address, here).opened():
        branch(here, "one", "after.parquet")
        write(here, trial__result_json="one", plan_yaml="one")
    os.utime(here / "trial/result.json", (5, 5))
    sync(storage_address, here)
    (here / "trial/result.json").unlink()
    shutil.rmtree(here / BRANCH)
    sync(storage_address, here)
    assert (here / "trial/result.json").stat().st_mtime == 5
    assert set(texts(here)) == {f"{BRANCH}/after.parquet", f"{BRANCH}/branch.json", "trial/result.json", "plan.yaml"}


class Died(BaseException):
    pass


def dying(monkeypatch: pytest.MonkeyPatch, after: int) -> contextlib.AbstractContextManager[None]:
    """A process that dies before it gets, puts or removes the next file behind the address."""
    left = [after]

    @contextlib.contextmanager
    def block() -> Iterator[None]:
        with monkeypatch.context() as patch:
            for name in ("fetched", "put", "remove"):
                own = getattr(RemoteFiles, name)

                def act(*given: object, own: Callable[..., object] = own) -> object:
                    if left[0] == 0:
                        raise Died
                    left[0] -= 1
                    return own(*given)

                patch.setattr(RemoteFiles, name, act)
            with contextlib.suppress(Died):
                yield

    return block()


FIRST, SECOND = ("adapter/weights", "after.parquet", "steps.jsonl"), ("after.parquet", "model/weights", "steps.jsonl")


def whole(folder: Path) -> str:
    """Which branch stands in a folder, `` for none; fails for parts of two, or a mark beside less than all."""
    found = {name.removeprefix(f"{BRANCH}/"): text for name, text in texts(folder).items() if name.startswith(BRANCH)}
    if "branch.json" not in found:
        return ""
    version, names = found["branch.json"].removeprefix("branch.json of "), FIRST
    names = {"one": FIRST, "two": SECOND}[version]
    assert found == {name: f"{name} of {version}" for name in (*names, "branch.json")}
    return version


def test_whoever_dies_while_files_are_put_leaves_nothing_that_looks_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    for after in range(12):
        work = tmp_path / str(after)
        address, here = f"file://{work}/storage", work / "here"
        here.mkdir(parents=True)
        with Storage(address, here).opened():
            branch(here, "one", *FIRST)
        branch(here, "two", *SECOND)
        storage = Storage(address, here)
        with dying(monkeypatch, after):
            storage.push()
        sync(address, work / "there")
        seen.append(whole(work / "there"))
        with Storage(address, here).opened():
            branch(here, "two", *SECOND)
        sync(address, work / "elsewhere")
        assert whole(work / "elsewhere") == "two"
        sync(address, work / "there")
        assert whole(work / "there") == "two"
    assert seen == sorted(seen, key=["one", "", "two"].index)
    assert set(seen) == {"one", "", "two"}


def test_whoever_dies_while_files_are_got_has_nothing_that_looks_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    for after in range(8):
        work = tmp_path / str(after)
        address, here, there = f"file://{work}/storage", work / "here", work / "there"
        here.mkdir(parents=True)
        with Storage(address, here).opened():
            branch(here, "one", *FIRST)
        sync(address, there)
        with Storage(address, here).opened():
            branch(here, "two", *SECOND)
        with dying(monkeypatch, after):
            Storage(address, there).pull()
        seen.append(whole(there))
        sync(address, there)
        assert whole(there) == "two"
    assert set(seen) == {"", "two"}


def test_both_sides_changed_is_refused_and_nothing_is_written(storage_address: str, tmp_path: Path) -> None:  # noqa: F811
    here, there = tmp_path / "here", tmp_path / "there"
    with Storage(storage_address, here).opened():
        write(here, plan_yaml="one", corpus__rows_parquet="rows")
        branch(here, "one", "after.parquet")
    sync(storage_address, there)
    with Storage(storage_address, there).opened():
        write(there, plan_yaml="two", audit_json="new")
    write(here, plan_yaml="my own")
    before = texts(here)
    with pytest.raises(InputError, match=r"differ in plan\.yaml.*Move .*here away") as caught:
        sync(storage_address, here)
    assert caught.value.file == storage_address
    assert texts(here) == before
    sync(storage_address, tmp_path / "elsewhere")
    assert texts(tmp_path / "elsewhere") == texts(there)
    write(here, plan_yaml="two")
    sync(storage_address, here)
    assert texts(here) == texts(there)


def test_another_corpus_in_a_new_folder_is_refused(storage_address: str, tmp_path: Path) -> None:  # noqa: F811
    here, there = tmp_path / "here", tmp_path / "there"
    with Storage(storage_address, here).opened():
        write(here, corpus__rows_parquet="rows")
    write(there, corpus__rows_parquet="ROWS")
    with pytest.raises(InputError, match=r"corpus/rows\.parquet"):
        sync(storage_address, there)
    assert texts(there) == {"corpus/rows.parquet": "ROWS"}


def test_a_branch_that_both_finished_is_the_storages(storage_address: str, tmp_path: Path) -> None:  # noqa: F811
    here, there = tmp_path / "here", tmp_path / "there"
    for folder, seconds in ((here, "5 s"), (there, "6 s")):
        folder.mkdir()
        branch(folder, "one", "after.parquet")
        (folder / BRANCH / "steps.jsonl").write_text(seconds)
    sync(storage_address, here)
    sync(storage_address, there)
    assert texts(there) == texts(here)
    other = tmp_path / "other"
    branch(other, "two", "after.parquet")
    with pytest.raises(InputError, match=r"uniform-0/after\.parquet, trial/uniform-0/branch\.json"):
        sync(storage_address, other)


def test_one_command_at_a_time(
    storage_address: str,  # noqa: F811
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    with Storage(storage_address, here).opened():
        write(here, plan_yaml="one")
        with (
            caplog.at_level(logging.WARNING),
            pytest.raises(InputError, match=f"process {os.getpid()} of .* uses for .*here"),
        ):
            sync(storage_address, there)
        assert "still uses it" in caplog.text
        assert not texts(there)
    sync(storage_address, there)
    assert texts(there) == {"plan.yaml": "one"}


def test_one_that_died_is_waited_for_and_one_that_only_slept_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    address, here, there = f"file://{tmp_path}/storage", tmp_path / "here", tmp_path / "there"
    slept = Storage(address, here)
    with slept.opened():
        monkeypatch.setattr(slept._usage, "_write", lambda: None)  # gives no sign
        with caplog.at_level(logging.WARNING):
            with Storage(address, there).opened():
                write(there, plan_yaml="theirs")
                write(here, plan_yaml="ours")
                until = time.monotonic() + 10
                while slept._usage._other is None and time.monotonic() < until:  # type: ignore[union-attr]
                    time.sleep(0.02)
                with pytest.raises(InputError, match="no other command uses"):
                    slept.push()
            assert "still uses it" in caplog.text
        slept._usage._other = None  # type: ignore[union-attr]
        shutil.rmtree(here)
    sync(address, here)
    assert texts(here) == {"plan.yaml": "theirs"}


def test_what_fails_is_asked_again_and_then_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    here, failures = tmp_path / "here", [2]
    storage = Storage(f"file://{tmp_path}/storage", here)
    put = storage._files._system.put_file

    def fail_first(*given: str) -> None:
        if failures[0]:
            failures[0] -= 1
            raise ConnectionResetError("reset by peer")
        put(*given)

    monkeypatch.setattr(storage._files._system, "put_file", fail_first)
    with caplog.at_level(logging.WARNING), storage.opened():
        write(here, plan_yaml="one")
    assert caplog.text.count("reset by peer. It is asked again in 0.01 s.") == 2
    failures[0] = 99
    refused = pytest.raises(InputError, match=r"storage that can be used, got ConnectionResetError.*same command goes on")
    with refused, storage.opened():
        write(here, audit_json="two")
    assert texts(here) == {"plan.yaml": "one", "audit.json": "two"}
    failures[0] = 0
    sync(storage._files.address, here)
    assert texts(tmp_path / "storage") == texts(here)


def test_a_full_disk_and_a_missing_package_are_told_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="a storage that can be used, got ValueError"):
        Storage("nowhere://a", tmp_path)
    storage = Storage(f"file://{tmp_path}/storage", tmp_path / "here")

    def refuse(*_: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(storage._files._system, "put_file", refuse)
    with pytest.raises(InputError, match="space, and inodes, on the disk"), storage.opened():
        write(tmp_path / "here", plan_yaml="one")


@needs_s3
def test_what_s3_refuses_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with s3_server(monkeypatch):
        with pytest.raises(InputError, match="FileNotFoundError: The specified bucket does not exist"):
            sync("s3://other/run", tmp_path / "here")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        storage = Storage("s3://runs/run", tmp_path / "here")
        storage._files._system = type(storage._files._system)(skip_instance_cache=True)
        with pytest.raises(InputError, match=r"NoCredentialsError.*are its credentials set"), storage.opened():
            pass


def add_branch(folder: str) -> str:
    """What a worker's job does."""
    branch(Path(folder), "one", "after.parquet")
    return Path(folder, "plan.yaml").read_text()


def test_a_job_on_another_machine_gets_what_it_needs_and_puts_what_it_wrote(
    storage_address: str,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    with Storage(storage_address, here).opened() as storage:
        write(here, plan_yaml="one")
        storage.push()
        assert work_beside(storage.place, add_branch, str(here)) == "one"  # the command's own folder
        here.rename(elsewhere)  # the path is empty now, as it is on another machine
        monkeypatch.setattr(storage, "folder", elsewhere)
        shutil.rmtree(elsewhere / BRANCH)
        place = Place(storage_address, str(here), storage.place.user)
        assert work_beside(place, add_branch, str(here)) == "one"
        assert BRANCH not in " ".join(texts(elsewhere))
        storage.pull()
        assert texts(elsewhere) == texts(here)
        write(elsewhere, plan_yaml="two")
        storage.push()
        assert work_beside(place, add_branch, str(here)) == "two"  # a copy takes what is new
        write(elsewhere, plan_yaml="three")
        storage.push()
        write(here, plan_yaml="scribbled over")
        assert work_beside(place, add_branch, str(here)) == "three", "nothing of a copy is anybody's own"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows, a tiny checkpoint and the settings of a run of six branches, and what it leaves undisturbed."""
    import matplotlib.figure  # noqa: F401 - once, for all copies of this process
    import trl.trainer.sft_trainer  # noqa: F401

    from mixwright_lab.studies.kills import make_inputs

    folder = tmp_path_factory.mktemp("made")
    make_inputs(folder / "made", 12)
    child = command(folder / "whole", folder / "made")
    child.join()
    assert child.exitcode == 0
    return folder


def command(folder: Path, made: Path, *words: str) -> multiprocessing.process.BaseProcess:
    """`mixwright run` in a folder, in a copy of this process with a process group of its own."""

    def body() -> None:
        from mixwright.__main__ import main

        os.setpgid(0, 0)
        folder.mkdir()
        os.chdir(folder)
        with Path("said.txt").open("w") as said:
            for number in (1, 2):
                os.dup2(said.fileno(), number)
        as_a_program()
        main(("run", str(made / "run.yaml"), "--folder", "out", *words))

    child = multiprocessing.get_context("fork").Process(target=body)
    child.start()
    return child


def results(folder: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Values that a run left, without times and where its copy is; and the bytes of its tables and weights."""
    from recorded_runs import values

    (folder / "out" / ".storage.json").unlink(missing_ok=True)
    found = values(folder / "out")
    files = [path for path in (folder / "out").rglob("*") if path.suffix in (".parquet", ".safetensors")]
    return {name: value for name, value in found.items() if name != "run.yaml/trial/storage"}, {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in files
    }


def test_a_run_goes_on_in_another_folder_after_the_first_is_gone(
    storage_address: str,  # noqa: F811
    made: Path,
    tmp_path: Path,
) -> None:
    from recorded_runs import differences

    files, first, second = RemoteFiles(storage_address), tmp_path / "first", tmp_path / "second"
    child, finished = command(first, made / "made", "--storage", storage_address), list[str]()
    while len(finished) < 2:
        assert child.is_alive(), (first / "said.txt").read_text()
        finished = [name for name in files.list() if name.endswith("/branch.json")]
        time.sleep(0.05)
    os.killpg(child.pid or 0, signal.SIGKILL)
    child.join()
    shutil.rmtree(first)
    finished = [name for name in files.list() if name.endswith("/branch.json")]
    assert 2 <= len(finished) < 6
    lines = {name: files.read(name) for name in files.list() if name.startswith("trial/") and name.endswith("/steps.jsonl")}

    rows = [made / "made" / f"{name}.jsonl" for name in ("train", "eval", "requests")]
    for path in rows:  # the run folder has them
        path.rename(f"{path}.gone")
    child = command(second, made / "made", "--storage", storage_address)
    child.join()
    for path in rows:
        Path(f"{path}.gone").rename(path)
    said = (second / "said.txt").read_text()
    assert child.exitcode == 0, said
    assert f"trial: {6 - len(finished)} of {6 - len(finished)}" in said
    for name, text in lines.items():  # with the seconds of each step
        if name.replace("steps.jsonl", "branch.json") in finished:
            assert (second / "out" / name).read_bytes() == text, "trained again"
    (values_of_whole, whole_bytes), (found, found_bytes) = results(made / "whole"), results(second)
    assert found_bytes == whole_bytes
    assert len(whole_bytes) > 20
    assert differences(values_of_whole, found) == {}
    assert "verdict.html" in files.list()


def test_files_of_one_second_keep_their_order(storage_address: str, tmp_path: Path) -> None:  # noqa: F811
    """An object store has whole seconds, and a stage whose files are as old as its inputs counts as made of them."""
    here, there = tmp_path / "here", tmp_path / "there"
    with Storage(storage_address, here).opened():
        write(here, plan_yaml="new", trial__result_json="of the old plan")
        os.utime(here / "trial/result.json", (1000, 1000))
        os.utime(here / "plan.yaml", (1000.25, 1000.25))
    sync(storage_address, there)
    assert (there / "plan.yaml").stat().st_mtime - (there / "trial/result.json").stat().st_mtime == pytest.approx(
        0.25, abs=0.01
    )


@pytest.mark.parametrize("place", [".", "run", "run/store", "link"])
def test_a_storage_in_or_around_the_run_folder_is_refused(tmp_path: Path, place: str) -> None:
    write(tmp_path / "run", plan_yaml="p")
    (tmp_path / "link").symlink_to(tmp_path / "run")
    with pytest.raises(InputError, match="a storage beside the run folder"):
        Storage(f"file://{tmp_path / place}", tmp_path / "run")


def test_what_was_lost_there_is_put_again(storage_address: str, tmp_path: Path) -> None:  # noqa: F811
    here = tmp_path / "here"
    with Storage(storage_address, here).opened():
        branch(here, "one", "model/weights")
    files = RemoteFiles(storage_address)
    files.remove(f"{BRANCH}/model/weights")
    sync(storage_address, here)
    assert (here / BRANCH / "model/weights").read_text() == "model/weights of one"
    assert f"{BRANCH}/model/weights" in files.list()


def test_files_behind_a_link_stay_in_the_storage(storage_address: str, tmp_path: Path) -> None:  # noqa: F811
    here = tmp_path / "here"
    with Storage(storage_address, here).opened():
        branch(here, "one", "model/weights")
    (here / "trial").rename(tmp_path / "big")
    (here / "trial").symlink_to(tmp_path / "big")
    (here / "round").symlink_to(here)
    sync(storage_address, here)
    assert set(finished_files(RemoteFiles(storage_address).list())) == {f"{BRANCH}/branch.json", f"{BRANCH}/model/weights"}


def test_a_place_with_other_files_is_no_storage(storage_address: str, tmp_path: Path) -> None:  # noqa: F811
    RemoteFiles(storage_address).write("photos/one.jpg", b"1")
    with pytest.raises(InputError, match="photos/one"):
        sync(storage_address, tmp_path / "here")
    assert texts(tmp_path / "here") == {}


def test_what_is_only_new_there_leaves_a_branch_whole(storage_address: str, tmp_path: Path) -> None:  # noqa: F811
    here = tmp_path / "here"
    with Storage(storage_address, here).opened():
        branch(here, "one", "model/weights")
    RemoteFiles(storage_address).write(f"{BRANCH}/model/more", b"1")
    mark = (here / BRANCH / "branch.json").stat().st_ino
    sync(storage_address, here)
    assert (here / BRANCH / "branch.json").stat().st_ino == mark
    assert (here / BRANCH / "model/more").read_text() == "1"


@pytest.mark.parametrize(
    "address",
    ["memory://x", "file://relative/folder", "ftp://joe:SECRET@host/x", "https://host/x?token=SECRET", "nothing"],
)
def test_an_address_that_loses_or_tells_something_is_refused_without_telling(address: str) -> None:
    with pytest.raises(InputError) as raised:
        Placing(storage=address).applied_to(RunConfig(CorpusConfig("x.jsonl")))
    assert "SECRET" not in str(raised.value)
    assert check_storage("abfs://container@account.dfs.core.windows.net/x")


def test_a_first_command_that_stops_while_it_puts_something_leaves_a_storage(
    storage_address: str,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here, put = tmp_path / "here", RemoteFiles.put

    def stop_at_the_plan(self: RemoteFiles, path: Path, name: str) -> None:
        if name == "plan.yaml":
            raise InputError("a server", "none", "Wait.")
        put(self, path, name)

    write(here, corpus__rows_parquet="rows")
    time.sleep(0.01)
    write(here, plan_yaml="p")
    with monkeypatch.context() as patch:
        patch.setattr(RemoteFiles, "put", stop_at_the_plan)
        with pytest.raises(InputError):
            sync(storage_address, here)
    assert "corpus/rows.parquet" in RemoteFiles(storage_address).list()
    sync(storage_address, here)
    assert "plan.yaml" in RemoteFiles(storage_address).list()
