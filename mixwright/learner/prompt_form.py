"""Form in which prompts reach the model: through the tokenizer's chat template or as plain text; a system message."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mixwright.records import Text, plain


@dataclass(frozen=True, slots=True)
class PromptForm:
    """How a prompt of the data is turned into what the tokenizer reads."""

    template: bool | None = None
    """True puts plain strings through the chat template, as the user's message; False joins chat messages by newlines; None
    does as TRL does: messages through the template, strings as they are."""
    system: str | None = None
    """System message of every prompt, instead of one that it has; it needs the template."""

    def of(self, prompt: Text) -> Text:
        """The prompt as messages, which go through the chat template, or as a string, which does not."""
        if self.template is False:
            return plain(prompt)
        if isinstance(prompt, str):
            if self.template is None and self.system is None:
                return prompt
            prompt = ({"role": "user", "content": prompt},)
        if self.system is None:
            return prompt
        return ({"role": "system", "content": self.system}, *(m for m in prompt if m["role"] != "system"))

    def told(self, prompts: Iterable[Text]) -> str:
        """What is done with these prompts, for people."""
        kinds = {isinstance(self.of(prompt), str) for prompt in prompts}
        words = {frozenset({True}): "plain text", frozenset({False}): "chat template of the tokenizer"}
        told = words.get(frozenset(kinds), "chat messages through the template of the tokenizer, others as plain text")
        return told + (" with a system message of its own" if self.system is not None else "")
