"""Sentences of a verdict. Pure functions of `Verdict`; no rule is decided here."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from mixwright.behaviours import IN_WORDS
from mixwright.errors import join_some
from mixwright.estimates.protected import READABLE_SHARE
from mixwright.estimates.readings import format_unit
from mixwright.measure.notes import NOISE_NOTE, TOKENIZER_NOTE
from mixwright.records import (
    BehaviourChange,
    Cause,
    CauseKind,
    Gate,
    Interval,
    Reason,
    Recalled,
    RecalledWord,
    TaskChange,
    TaskWord,
    Verdict,
)
from mixwright.verdict.page.text import (
    MINUS_SIGN,
    cell_name,
    format_count,
    format_magnitude,
    format_signed,
    join_words,
    points,
    to_line,
)

WRONG_FORMAT = "wrong format"
"""Word of a task whose answers now have another task's format."""
NEVER_RIGHT = "no answer was right before or after"
"""Why a task without any right answer is not judged."""
UNGRADED = "nothing can be graded"
"""Why tasks are left out, where nobody says otherwise."""
SAME_ANSWERS = "Nothing differs: both gave the same answers. Are these two different models?"
"""Of a model that was compared with itself, or with one that the training never changed."""
FAR_NATS_PER_TOKEN = 1.0
"""Nats a token from which a report says that former answers became less likely: a hint, since style costs nearly as much."""
MAX_NAMED, MAX_PARTS = 3, 5
"""Tasks that a sentence names, and parts of its answers that a row of a table does."""
LOSSES: tuple[TaskWord, ...] = ("lost", "less dependent")
"""Words of a task that is worse."""
CAUSES: dict[CauseKind, tuple[str, str]] = {
    "empty": (
        "are empty or stop in a thought",
        "Check that rows end after their answer; allow longer ones if it thinks",
    ),
    "other format": ("have the format of {}", "Replay answers of these kinds"),
    "new format": ("have a new format ({})", "They may still hold the right answer: replay answers of these kinds"),
    "format lost": ("lack their earlier format ({})", "Replay answers in this format, or ask for it in the prompt"),
    "repeating": ("repeat themselves", "Train for fewer steps or at a lower rate, and check that the end token is learned"),
    "cut": ("are cut", "Allow longer answers, or train on shorter ones that end"),
    "prompt copied": ("copy the question", "Check that prompts are masked in training: mixwright preview"),
    "other language": ("are in another language", "Replay answers in this language"),
    "refuses": ("refuse", "Look for refusals in the training rows"),
    "asks back": ("ask back", "Look for questions in the answers of the training rows"),
    "one answer": ("are all the same ({})", "Train on answers that differ more"),
    "other label": ("name another label ({})", "Look for such labels in the training rows: mixwright audit"),
    "unread": ("seem to state the right answer", "Read some; if they are right, name a grader or a metric that takes them"),
    "wrong step": ("get a step on the way wrong", "Train on worked answers with right steps: mixwright audit"),
    "shorter": ("are at most half as long", "Replay own answers to such requests"),
    "longer": ("are at least twice as long", "Replay own answers to such requests"),
}
"""What explains lost answers -> in words, and what to do about it."""
LEAST_REST = 3
"""Lost answers without a cause that are told, where they are a tenth, too."""
RECALLED: dict[RecalledWord, str] = {
    "covered": "the new form covers what it knows, and replay of such answers brings it back",
    "partly": "some of it is forgotten",
    "gone": "it is forgotten, so replay true rows of it",
    "hidden": "the new form covers it too deeply to tell if it is forgotten; replay such answers first",
}
SAMPLES = {"distinct samples": "Samples of one question differ", "right in any sample": "One of several samples is right"}
START = {"passed": "PASSED", "damaged": "DO NOT SHIP", "inconclusive": "INCONCLUSIVE"}
"""Outcome -> how the headline begins."""
SENTENCES: dict[Reason, str] = {
    "prompts matter less": "Its answers depend less on the prompt than before.",
    "the commonest answer": "It gives one answer more often, whatever the question.",
    "nothing right": "No answer was right before or after: nothing was learned, or the grader misreads the answers.",
    "nothing right greedily": "No greedy answer was right before or after; only sampled answers were.",
}
"""Reason of an outcome -> the sentence on it, where no figure stands in it."""
TASK_WORDS: dict[TaskWord, str] = {
    "lost": "LOST",
    "not shown": "no clear change",
    "less dependent": "depends less on the prompt",
    "commonest": "gives one answer more often",
    "sharper": "only samples improved",
    "never right": "no right answer",
    "too few right": "too few right before to say",
    "not graded": "no grader",
}
"""Word of a task -> how a table shows it, where that is another one."""
NO_GATE = Gate(None, 0.0, (), averaged=0, cells=0, named=False)
"""Stands for the gate of a verdict without one."""


def say_headline(verdict: Verdict, trial_sentence: str = "") -> str:
    """Return the answer in one sentence or two.

    Args:
        verdict: everything but its headline.
        trial_sentence: recommendation of a trial, which is its headline.
    """
    if verdict.reason in ("trial", "nothing compared", "not measured"):
        return trial_sentence or "Nothing was compared yet."
    if verdict.gate and verdict.gate.same:
        return _say_same(verdict, verdict.gate)
    name = verdict.after
    learned = _name_changes([change for change in verdict.tasks if change.word == "learned"], verdict.unit)
    if verdict.outcome == "damaged":
        gain = f" It did learn {learned}." if learned else ""
        return f"DO NOT SHIP {name}. {_say_damage(verdict)}{gain}"
    others, same = _say_others(verdict), SAME_ANSWERS if verdict.same_answers else ""
    if same and verdict.outcome == "passed":
        return f"PASSED {name}. {same}"
    if verdict.outcome == "passed":
        return f"PASSED {name}{_say_passed(verdict, learned)}{others}"
    return f"INCONCLUSIVE for {name}. {same and same + ' '}{_say_inconclusive(verdict, learned)}{others}"


def _say_same(verdict: Verdict, gate: Gate) -> str:
    """Say whether two models can be one: how many answers turned, and which difference is ruled out."""
    total, mean, margin = verdict.total, gate.mean, 100 * gate.margin
    turned = total.gained + total.lost if total else 0
    counts = f"{turned:,} of {total.items:,} answers turned right or wrong" if total else "nothing was compared"
    if verdict.outcome == "passed":
        return f"SAME: {verdict.after} is as good as {verdict.before} within {margin:g} points; {counts}."
    if verdict.outcome == "inconclusive":
        if verdict.reason != "too few items":
            return f"INCONCLUSIVE for {verdict.after}. {_say_inconclusive(verdict, '')}"
        ends = f" (it may be {_ends(mean)})" if mean is not None else ""
        return f"INCONCLUSIVE: a difference of {margin:g} points is not ruled out{ends}; {counts}."
    changed = [change for change in verdict.tasks if change.word in (*LOSSES, "learned", "commonest")]
    named = f" {_name_changes(changed, verdict.unit)}." if changed else ""
    size = f" On average {points(mean.value)} points ({_ends(mean)})." if mean is not None else ""
    return f"NOT THE SAME: {verdict.after} answers unlike {verdict.before}; {counts}.{size}{named}"


def show_word(change: TaskChange, verdict: Verdict) -> str:
    """Return the word of a task in a table; another task's format says more than an interval that allows no change."""
    kept = next((found.kept for found in verdict.answers_kept if found.task == change.task), None)
    if change.word == "not graded" and kept is not None:
        return f"no grader; its answers kept {100 * min(max(kept.value, 0), 1):.0f} % of their content"
    if verdict.lower_is_better and change.word in ("lower", "higher"):
        return f"{verdict.measure} {'rose' if change.word == 'higher' else 'fell'}"
    return WRONG_FORMAT if is_in_wrong_format(change, verdict) else TASK_WORDS.get(change.word, change.word)


def is_in_wrong_format(change: TaskChange, verdict: Verdict) -> bool:
    """Whether another task's format took over where the interval alone shows no loss."""
    perhaps_worse = "higher" if verdict.lower_is_better else "lower"
    return change.word in ("not shown", perhaps_worse) and any(change.task in form.tasks for form in verdict.forms)


def describe_parts(change: TaskChange) -> str:
    """Return how many answers now have each part right, such as `valid JSON 100, team 92 %`; empty without parts."""
    shares = [f"{part.name} {100 * part.after.value:.0f}" for part in change.parts[:MAX_PARTS]]
    more = f" and {len(change.parts) - MAX_PARTS} more" if len(change.parts) > MAX_PARTS else ""
    return f"({', '.join(shares)} %{more})" if shares else ""


def has_interval(change: TaskChange) -> bool:
    """Whether a report prints the change with its interval."""
    return change.change.n > 0 and change.word != "too few right"


def _say_damage(verdict: Verdict) -> str:
    if verdict.reason == "one format took over" and verdict.forms:
        form, *_ = verdict.forms
        if form.answers == form.items:
            others = "everything else" if len(form.tasks) > 1 else join_some(form.tasks)
            return f"It answers {others} as if it were {form.owner}."
        return (
            f"{form.answers:,} of {form.items:,} answers to {join_some(form.tasks)} now look like answers to {form.owner}."
        )
    if verdict.reason == "answers were lost":
        lost_tasks = [task for task in verdict.lost_answers if verdict.gate is None or task in verdict.gate.protected]
        others = f" Also lost: {join_some(lost_tasks[1:])}." if len(lost_tasks) > 1 else ""
        return "".join(f"Its answers to {task} {verdict.lost_answers[task]}.{others}" for task in lost_tasks[:1])
    if verdict.reason == "a behaviour changed":
        return " ".join(_explain_behaviours(verdict, protected=True))
    gate = verdict.gate or NO_GATE
    lost = [change for change in verdict.tasks if change.word in LOSSES and (change.protected or not gate.named)]
    if verdict.reason == "a task was lost" and lost:
        return f"It lost {_name_changes(lost, verdict.unit)}."
    if verdict.reason in SENTENCES:
        return SENTENCES[verdict.reason]
    if gate.mean is not None and gate.mean.high < 0:
        return f"{_say_lower(verdict)}The average of what it could do fell by {_size(gate.mean)}."
    total = verdict.total
    return f"{_capital(verdict.measure)} got worse by {_size(total.change, verdict.unit)}." if total else "It got worse."


def _say_lower(verdict: Verdict) -> str:
    """Name protected tasks that fell, though by themselves this shows no loss; an average hides them. Empty without any."""
    least = (verdict.gate or NO_GATE).margin
    fell = [
        change
        for change in verdict.tasks
        if change.protected and (change.change.value <= -least or change.word == "lower" or not change.limit_excluded)
    ]
    fell = [change for change in fell if change.change.value < 0]
    word = "Lower" if verdict.outcome == "damaged" else "Perhaps lower"
    return f"{word}: {_name_changes(fell, verdict.unit)}. " if fell else ""


def _list_weak_tasks(verdict: Verdict) -> list[str]:
    """List protected tasks of which too little was right before, or all that are protected where none stands out."""
    gate = verdict.gate or NO_GATE
    least = max(gate.margin, READABLE_SHARE)
    judged = [change for change in verdict.tasks if change.protected]
    weak = [change.task for change in judged if change.before is not None and change.before < least]
    return list(dict.fromkeys(weak)) or list(gate.protected)


def _say_excluded(gate: Gate) -> str:
    return f"an average drop of {100 * gate.margin:g} points is ruled out"


def _say_others(verdict: Verdict) -> str:
    """Say what happened outside the tasks that the user named: what was lost there, and what was not judged."""
    gate = verdict.gate or NO_GATE
    if not gate.named:
        return ""
    lost = _name_changes(
        [change for change in verdict.tasks if change.word in LOSSES and not change.protected], verdict.unit
    )
    text = f" Lost, but not protected: {lost}." if lost else ""
    unjudged = [task for task in verdict.not_judged if task not in gate.protected]
    return f"{text} Not judged: {join_some(unjudged)}." if unjudged and verdict.outcome == "passed" else text


def _say_passed(verdict: Verdict, learned: str) -> str:
    gate = verdict.gate or NO_GATE
    kept = _say_excluded(gate) if verdict.gate else "nothing was protected"
    if gate.mean is not None and gate.mean.low > 0:
        kept = f"on average it rose by {_size(gate.mean)}"
    the_rest = f"the {format_count(len(gate.protected), 'protected task')}" if gate.named else "the rest"
    if verdict.reason == "not learned":
        return f", but it did not learn {join_words(verdict.not_learned)}. It kept {the_rest}: {kept}."
    if learned:
        return f". It learned {learned} and kept {the_rest}: {kept}."
    total, what = verdict.total, the_rest if gate.named else "what it could do"
    if total is not None and total.word == "learned":
        return f". It kept {what}: {kept}. The average rose by {_size(total.change)}, but no single task rose measurably."
    if higher := [change for change in verdict.tasks if change.word == "higher"]:
        return f". It kept {what}: {kept}. Perhaps higher: {_name_changes(higher, verdict.unit)}."
    return f". It kept {what}: {kept}. No task improved measurably."


def _say_inconclusive(verdict: Verdict, learned: str) -> str:
    gate, total = verdict.gate or NO_GATE, verdict.total
    gain = f"It learned {learned}. " if learned else ""
    if verdict.reason in SENTENCES:
        return SENTENCES[verdict.reason]
    if verdict.reason == "nothing to protect":
        return f"{gain}No other question was answered correctly before, so no loss can be seen."
    if verdict.reason == "a task was not judged":
        named = {task: why for task, why in verdict.not_judged.items() if not gate.named or task in gate.protected}
        tasks = named or dict.fromkeys(_list_weak_tasks(verdict), "too little was right before to notice a loss")
        reasons = dict.fromkeys(tasks.values())
        if set(reasons) == {NEVER_RIGHT}:
            others = gate.mean is not None and gate.mean.low > -gate.margin
            kept = f" On the other tasks {_say_excluded(gate)}." if others else ""
            return f"{gain}No answer to task {join_some(list(tasks))} is right: not learned, or misread by the grader.{kept}"
        return f"{gain}It is unknown what happened to {join_some(list(tasks))}: {next(iter(reasons))}."
    if verdict.reason == "nothing was graded" and total is not None:
        change = format_signed(total.change.value, verdict.unit)
        unit = format_unit(verdict.unit)
        return f"{_capital(verdict.measure)} changed by {change} {unit}, but no answer was graded, so no loss is ruled out."
    if verdict.reason == "a behaviour changed" and verdict.gate:
        verbs = join_words([IN_WORDS[name][0] for name in gate.behaviours])
        shares = [
            f"{one.task} {100 * one.before:.0f} to {100 * one.after:.0f} %"
            for one in verdict.behaviours
            if one.protected and one.before > 0
        ]
        if not any(one.protected for one in verdict.behaviours):
            return f"{gain}One side has no texts of answers, so it is unknown whether it still {verbs}."
        if not shares:
            return f"{gain}No earlier answer {verbs}, so there is nothing to protect."
        return f"{gain}It is not shown that it {verbs} as often as before: {join_some(shares)}."
    if gate.mean is not None:
        if gate.mean.low > -gate.margin:
            loss = "a larger loss of a single task is not ruled out"
        else:
            loss = f"a drop of {100 * gate.margin:g} points is not ruled out"
        change = f"The average changed by {points(gate.mean.value)} points ({_ends(gate.mean)})"
        return f"{_say_lower(verdict)}{gain}{change}: {loss}."
    return f"{gain}There are too few questions to see a loss."


def explain(verdict: Verdict) -> tuple[str, ...]:
    """Return what explains the outcome, one sentence each, the most important first."""
    reasons = [] if verdict.reason == "a behaviour changed" else _explain_behaviours(verdict, protected=True)
    for form in verdict.forms:
        cover = f", including {form.lost_with_form:,} of the {form.lost:,} lost answers" if form.lost else ""
        tasks = join_some(form.tasks)
        reasons.append(f"{form.answers:,} of {form.items:,} answers to {tasks} now have the format of {form.owner}{cover}.")
    reasons += [note.message for note in verdict.notes if note.severity == "warning" and note.task in verdict.not_judged]
    reasons += [note.message for note in verdict.notes if note.check == TOKENIZER_NOTE]
    reasons += _explain_causes(verdict)
    reasons += [
        f"Items whose {one.column} is {to_line(one.value, limit=40)} changed by {points(one.change)} points: "
        f"{say_mean(one.gap)} compared with others of their tasks."
        for one in verdict.by_column[:MAX_NAMED]
        if one.gap.value < 0 and one.change < 0
    ]
    reasons += _explain_behaviours(verdict, protected=False)
    gate = verdict.gate or NO_GATE
    is_loss = verdict.reason in ("a task was lost", "the average fell")
    if is_loss and gate.mean is not None and gate.mean.low > -gate.margin:
        reasons.append("The average is within the allowed loss, but any loss that is shown in a task fails the gate.")
    known = {change.task for change in verdict.tasks if change.word == "learned"}
    known.update(task for form in verdict.forms for task in form.tasks)  # the format says more
    unlikely = [former for former in verdict.former if former.high < -FAR_NATS_PER_TOKEN and former.task not in known]
    if unlikely:
        largest = max(-former.change for former in unlikely)
        tasks = join_some([former.task for former in unlikely])
        reasons.append(f"Its earlier answers to {tasks} became far less likely (by up to {largest:.2g} nats per token).")
    if gate.same and (tokens := sum(former.tokens for former in verdict.former)):
        change = sum(former.change * former.tokens for former in verdict.former) / tokens
        likelier = f"{format_signed(change, 'nats')} nats per token likelier"
        reasons.append(f"The answers of {verdict.before} are {likelier} under {verdict.after}.")
    noise = [note.message for note in verdict.notes if note.check == NOISE_NOTE]
    return (*noise, *reasons) if gate.same else (*reasons, *noise)


def _explain_causes(verdict: Verdict) -> list[str]:
    """Say what the lost answers are now, the most frequent cause first, and of how many nothing says why they are wrong."""
    groups: dict[tuple[CauseKind, str, bool], list[Cause]] = defaultdict(list)
    with_form = {task for form in verdict.forms for task in form.tasks}
    for cause in verdict.causes:
        if cause.kind != "other format" or cause.task not in with_form:  # the sentence on the format says it
            groups[cause.kind, cause.pattern, cause.is_specific].append(cause)
    sentences = []
    order = sorted(groups.items(), key=lambda group: (not group[0][2], -sum(cause.items for cause in group[1])))
    for (kind, pattern, is_specific), causes in order:
        items, lost, kept_with, kept = (
            sum(getattr(cause, name) for cause in causes) for name in ("items", "lost", "kept_with", "kept")
        )
        what, remedy = CAUSES[kind]
        tasks, shown = join_some([cause.task for cause in causes]), to_line(pattern, limit=60)
        verb = "are" if what.startswith("are") else "do"
        also = f"; so {verb} {kept_with:,} of {kept:,} that stayed right" if kept_with else ""
        end = remedy if is_specific else "So this is a change of style, and explains nothing"
        sentences.append(f"{items:,} of {lost:,} lost answers to {tasks} {what.format(shown)}{also}. {end}.")
    sentences += _explain_recalled(verdict)
    explained = Counter[str]()
    for cause in verdict.causes:
        explained[cause.task] += cause.items if cause.is_specific else 0
    whole = {task for form in verdict.forms for task in form.tasks if form.lost == form.lost_with_form}  # nothing is open
    losses = {change.task: change.lost for change in verdict.whole_tasks if change.word in LOSSES}
    losses = {task: lost for task, lost in losses.items() if task not in whole}
    open_tasks = {task: lost for task, lost in losses.items() if lost - explained[task] >= max(LEAST_REST, lost / 10)}
    if open_tasks and verdict.pairs:
        lost = sum(open_tasks.values())
        rest = lost - sum(explained[task] for task in open_tasks)
        tasks = join_some(list(open_tasks))
        sentences.append(f"{rest:,} of {lost:,} lost answers to {tasks} show none of the causes that are tested.")
    return sentences


def _explain_recalled(verdict: Verdict) -> list[str]:
    """Say of which tasks the lost answers are only covered, and of which they are gone."""
    groups: dict[RecalledWord, list[Recalled]] = defaultdict(list)
    for one in verdict.recalled:
        if one.word:
            groups[one.word].append(one)
    return [
        f"Begun in its earlier words, {sum(one.completed for one in found):,} of {sum(one.items for one in found):,} "
        f"lost answers to {join_some([one.task for one in found])} end right: {RECALLED[name]}."
        for name, found in groups.items()
    ]


def _explain_behaviours(verdict: Verdict, *, protected: bool) -> list[str]:
    """Say what the answers of which tasks do less or more often, the largest change first."""
    known = {task for form in verdict.forms for task in form.tasks}  # the format says more
    known |= {change.task for change in verdict.tasks if change.word == "learned"}  # and what was taught is wanted
    groups: dict[tuple[str, bool], list[BehaviourChange]] = defaultdict(list)
    for change in verdict.behaviours:
        if change.shown and change.protected == protected and (protected or change.task not in known):
            groups[change.behaviour, change.change.value > 0].append(change)
    return [_say_behaviour(name, changes, rose=rose) for (name, rose), changes in groups.items()]


def _say_behaviour(name: str, changes: Sequence[BehaviourChange], *, rose: bool) -> str:
    shares = [f"{change.task} {100 * change.before:.0f} to {100 * change.after:.0f} %" for change in changes[:MAX_NAMED]]
    more = f" and {len(changes) - MAX_NAMED} more tasks" if len(changes) > MAX_NAMED else ""
    what = SAMPLES.get(name) or f"It {IN_WORDS[name][0]}"
    return f"{what} {'more often' if rose else 'less often'}: {', '.join(shares)}{more}."


def say_average(verdict: Verdict) -> str:
    """Return the line on the average of the protected tasks, or on the whole outcome; empty where nothing was compared."""
    gate = verdict.gate or NO_GATE
    if gate.rings:
        rings = [f"{ring.name} {say_mean(ring.mean)}" for ring in gate.rings if ring.mean is not None]
        return f"Average, in points: {', '.join(rings)}. Allowed: {MINUS_SIGN}{100 * gate.margin:g} in each."
    is_by_total = verdict.reason in ("the average fell", "prompts matter less", "the commonest answer")
    if gate.mean is not None and not (is_by_total and gate.mean.low > -gate.margin):
        group = format_count(gate.averaged, "protected task" if gate.cells == len(gate.protected) else "task or level")
        group = group.replace("task or levels", "tasks and levels")
        if gate.averaged < gate.cells:
            group += (
                f" of {gate.cells}, the others could not be judged" if gate.named else ", without improved and weak ones"
            )
        change = f"{points(gate.mean.value)} points ({_ends(gate.mean)})"
        if gate.same:
            return f"Average of all tasks: {change}. Allowed: ±{100 * gate.margin:g}."
        return f"Average of {group}: {change}. Allowed: {MINUS_SIGN}{100 * gate.margin:g}."
    if verdict.total is None:
        return ""
    change, unit = verdict.total.change, format_unit(verdict.unit)
    ends = f"{format_signed(change.low, verdict.unit)} to {format_signed(change.high, verdict.unit)}"
    return f"{_capital(verdict.measure)}: {format_signed(change.value, verdict.unit)} {unit} ({ends})."


def say_mean(mean: Interval) -> str:
    """Return a mean change with its interval, in points."""
    return f"{points(mean.value)} ({_ends(mean)})"


def _ends(interval: Interval) -> str:
    return f"{points(interval.low)} to {points(interval.high)}"


def describe_certainty(verdict: Verdict) -> tuple[str, ...]:
    """Return how sure the verdict is: items, what these items cannot show, and what needs no grader."""
    gate, total, lines = verdict.gate or NO_GATE, verdict.total, []
    if total is not None:
        counts = f", {total.gained:,} gained and {total.lost:,} lost" if total.gained or total.lost else ""
        lines.append(f"{format_count(total.items, 'question')} answered by both models{counts}.")
    if gate.look:
        decided = "Decided" if verdict.outcome != "inconclusive" else "Not decided"
        lines.append(f"{decided} at {gate.look}; the interval of the average is that of this interim analysis.")
    if gate.request_forms:
        forms = ", ".join(f"{form} {say_mean(mean)}" for form, mean in gate.request_forms.items())
        lines.append(f"By format of the request: {forms}.")
    if gate.unseen_loss is not None and verdict.outcome == "passed":
        lines.append(
            f"A loss of up to {100 * gate.unseen_loss:g} points in a single task could go unnoticed (in 1 of 20 cases)."
        )
    if gate.items_needed and verdict.outcome == "inconclusive":
        lines.append(f"About {gate.items_needed:,} questions per task would be enough, if nothing was lost.")
    for part, name in (("shuffled", "with prompts shuffled"), ("dependence", "that depends on the prompt")):
        interval: Interval | None = getattr(total, part, None)
        if interval is not None:
            lines.append(f"Success {name}: {points(interval.value)} points ({_ends(interval)}).")
    for kept in verdict.answers_kept:
        if kept.task in verdict.not_judged or kept.task in verdict.lost_answers or not verdict.graded:
            ends = (kept.kept.value, kept.kept.low, kept.kept.high)
            share, low, high = (f"{100 * min(max(value, 0), 1):.0f}" for value in ends)
            lines.append(f"Answers to {kept.task} kept {share} % of their content ({low} to {high}).")
    reasons = {"too few items": "Too few questions to judge", "too few right": "Too few right before to see a loss"}
    for word, text in reasons.items():
        if weak := [name_task(change) for change in verdict.tasks if change.word == word]:
            lines.append(f"{text}: {join_some(weak)}.")
    return tuple(lines)


def name_task(change: TaskChange) -> str:
    """Return the name of a task or of one of its levels."""
    return cell_name(change.task, change.level)


def list_rows(verdict: Verdict) -> list[TaskChange]:
    """Return whole tasks, and levels whose word is worse than their task's; the worst first."""
    whole = {change.task: change for change in verdict.whole_tasks}
    return [
        change
        for change in verdict.tasks
        if change is whole[change.task] or (change.word in LOSSES and whole[change.task].word not in LOSSES)
    ]


def _name_changes(changes: Sequence[TaskChange], unit: str = "share") -> str:
    """Name up to three changes with their size, whole tasks without levels: `a (-71 points), b (-64) and 4 more`."""
    whole = {change.task for change in changes if change.whole}
    changes = [change for change in changes if change.whole or change.task not in whole]
    words = []
    for place, change in enumerate(changes[:MAX_NAMED]):
        size = format_signed(change.change.value, unit)
        words.append(f"{name_task(change)} ({size}{'' if place else ' ' + format_unit(unit)})")
    more = len(changes) - MAX_NAMED
    return join_words([*words, f"{more} more"] if more > 0 else words)


def _size(interval: Interval, unit: str = "share") -> str:
    """Format the size of a change with its interval, without its sign: `6 points (2 to 10)`."""
    low, high = sorted((abs(interval.low), abs(interval.high)))
    sizes = [format_magnitude(value, unit) for value in (abs(interval.value), low, high)]
    return f"{sizes[0]} {format_unit(unit)} ({sizes[1]} to {sizes[2]})"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
