"""The package in tests/plugin is installed as a user would install it, and used through the command line."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

WORDS = """
from mixwright.__main__ import main
for words in (["list", "checks"], ["explain", "capitals"], ["explain", "round_robin"]):
    try:
        main(words)
    except SystemExit as leaving:
        assert not leaving.code, words
"""


def test_a_plugin_package_is_installed_and_used(tmp_path: Path) -> None:
    source, place = tmp_path / "source", tmp_path / "installed"
    shutil.copytree(Path(__file__).parent / "plugin", source)
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*install, "--target", str(place), str(source)], check=True)
    (tmp_path / "a.jsonl").write_text(
        "\n".join(json.dumps({"prompt": p, "answer": a}) for p, a in (("x", "Paris"), ("y", "paris")))
    )
    environment = {**os.environ, "PYTHONPATH": str(place)}

    def run(*command: str) -> str:
        done = subprocess.run([sys.executable, *command], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    told = run("-c", WORDS)
    assert "Answers that differ from another answer of their task in capital letters only. (from mixwright-example)" in told
    assert "Blind spot: capitals that carry meaning" in told
    assert "round_robin" in told
    code = "import sys; from mixwright.catalog import listing; listing('checks'); print('mixwright_example' in sys.modules)"
    assert run("-c", code).strip() == "False"
    seen = json.loads(run("-m", "mixwright", "audit", "a.jsonl", "--check", "capitals", "--json"))["observations"]
    assert [(o["severity"], o["count"]) for o in seen] == [("warning", 1)]
    environment["PYTHONPATH"] = os.pathsep.join([str(place), str(Path(__file__).parent)])
    run(
        "-c",
        "from mixwright.catalog import load\nfrom plugin_promises import check_check, check_selector\n"
        "check_check(load('checks', 'capitals'))\ncheck_selector(load('selectors', 'round_robin'))",
    )
