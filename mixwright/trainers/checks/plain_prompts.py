"""Prompts that are plain text beside a chat template: TRL trains on them without it, `measure` asks with it.

Left out on purpose: rows without prompts (`text`, `messages`), which say themselves what they are, and other rows than the
first, because TRL decides by that one, too.
"""

from __future__ import annotations

from typing import Any

ADVICE = (
    "the prompts are plain text, and TRL trains on them without the tokenizer's chat template. `mixwright measure` and "
    "`verdict` use that template, so they would ask the model in another format than it is trained in. Write prompts and "
    "completions as messages: [{'role': 'user', 'content': ...}]. If you want plain text, measure with --no-chat-template."
)


def plain_prompts(processing_class: Any, rows: Any) -> list[str]:
    """One sentence where prompts are plain text beside a chat template; else none.

    Args:
        processing_class: tokenizer or processor of the trainer.
        rows: its data set, before TRL prepares it.
    """
    tokenizer = getattr(processing_class, "tokenizer", processing_class)
    if not getattr(tokenizer, "chat_template", None) or not len(rows):
        return []
    return [ADVICE] if isinstance(rows[0].get("prompt"), str) else []
