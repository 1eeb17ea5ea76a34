"""Verdict: what was learned and what was lost, as one page; reads files only, no torch."""

from _shared import RUN

from mixwright.api import verdict

found = verdict(RUN)
print(found.headline)
for task in found.tasks:
    where = f"{task.task}@{task.level:g}" if task.level is not None else task.task
    after = "-" if task.after is None else f"{task.after:.2f}"
    print(f"{where}: {task.word}, {task.before:.2f} -> {after} ({task.items} items)")
print(f"verdict: {RUN.page}")
