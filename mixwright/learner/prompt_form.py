"""Form in which prompts reach the model: through the tokenizer's chat template or as plain text; a system message."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

from mixwright.corpus.tool_messages import with_tools
from mixwright.errors import InputError
from mixwright.records import Example, Text, list_messages, messages, plain
from mixwright.time_limit import TooSlow, call_with_timeout
from mixwright.tool_calls import read_tools, read_value, write_as_text

TEMPLATE_SECONDS = 60.0
"""Time limit of a chat template for one prompt."""
MAX_PROMPT_CHARACTERS = 10**7
"""Longer prompts would not fit into memory as tokens."""
TINY_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] + ': ' + message['content'] }}"
    "{% if message['role'] == 'assistant' %}{{ eos_token }}{% endif %}{{ '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}"
)
"""Of the tiny models that are built here, so that conversational data work with them. They learn from plain strings as these
stand, so that it is not taken where nobody asks for it."""


@dataclass(frozen=True, slots=True)
class PromptForm:
    """How a prompt of the data is turned into what the tokenizer reads, and a completion into what is trained on."""

    template: bool | None = None
    """True puts plain strings through the chat template, as the user's message; False joins chat messages by newlines; None
    stands for True where the tokenizer has a chat template, and leaves strings as they are where it has none."""
    system: str | None = None
    """System message of every prompt, instead of one that it has; it needs the template."""
    arguments: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Arguments of the chat template, such as `enable_thinking`."""
    writes_tools: bool = False
    """Whether tools, calls and results are written as text, because the chat template shows no tools."""

    def resolved_for(self, chat_template: object) -> PromptForm:
        """The form with None decided for the chat template of a tokenizer, which may have none."""
        has_template = chat_template is not None and chat_template != TINY_TEMPLATE
        template = True if self.template is None and has_template else self.template
        return replace(self, template=template, writes_tools=not re.search(r"\btools\b", str(chat_template)))

    @property
    def _writes_tools(self) -> bool:
        return self.writes_tools or self.template is False

    def format_prompt(self, prompt: Text) -> Text:
        """The prompt as messages, which go through the chat template, or as a string, which does not."""
        if self.template is False:
            return plain(prompt if isinstance(prompt, str) else write_as_text(prompt))
        if isinstance(prompt, str):
            if (self.template is None and self.system is None) or not prompt:
                return prompt
            prompt = ({"role": "user", "content": prompt},)
        if self.system is not None:
            tools = {name: value for name, value in prompt[0].items() if name == "tools"}
            rest = (message for message in prompt if message["role"] != "system")
            prompt = ({"role": "system", "content": self.system, **tools}, *rest)
        return write_as_text(prompt) if self.writes_tools else prompt

    def format_answer(self, prompt: Text, answer: Text) -> Text:
        """What is trained on after a prompt, in the form that the prompt has: the assistant's message, or a string."""
        if isinstance(self.format_prompt(prompt), str):
            return plain(answer) if self.template is False else answer
        if isinstance(answer, str):
            return ({"role": "assistant", "content": answer},)
        return write_as_text(answer) if self.writes_tools else answer

    def row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """A row of TRL's columns (prompt, completion, chosen, rejected) in this form; other columns stay as they are."""
        prompt = row.get("prompt")
        if not prompt:
            return dict(row)
        prompt = prompt if isinstance(prompt, str) else with_tools(tuple(prompt), read_tools(row.get("tools")))
        row = {name: value for name, value in row.items() if name != "tools" or not self._writes_tools}
        texts = {name: row[name] for name in ("completion", "chosen", "rejected") if row.get(name) is not None}
        listed = {name: messages(self.format_answer(prompt, _text(text))) for name, text in texts.items()}
        formatted = messages(self.format_prompt(prompt))
        given = {} if isinstance(formatted, str) or not self.arguments else {"chat_template_kwargs": dict(self.arguments)}
        return {**row, "prompt": formatted, **listed, **given}

    def example(self, row: Example) -> Example:
        """A row of a corpus in this form."""
        if not row.prompt:
            return row
        texts = {name: getattr(row, name) for name in ("target", "chosen", "rejected")}
        formatted = {name: self.format_answer(row.prompt, text) for name, text in texts.items() if text is not None}
        return replace(row, prompt=self.format_prompt(row.prompt), **formatted)

    def describe(self, prompts: Iterable[Text]) -> str:
        """What is done with these prompts, for people."""
        prompts = list(prompts)
        kinds = {isinstance(self.format_prompt(prompt), str) for prompt in prompts}
        words = {frozenset({True}): "plain text", frozenset({False}): "chat template of the tokenizer"}
        form_text = words.get(frozenset(kinds), "chat messages through the template of the tokenizer, others as plain text")
        form_text += " with a system message of its own" if self.system is not None else ""
        has_tools = any(not isinstance(prompt, str) and prompt[0].get("tools") for prompt in prompts)
        if has_tools and self._writes_tools:
            form_text += "; tools are written into the system message, because the chat template shows none"
        return form_text + (f" ({', '.join(self.list_arguments())})" if self.arguments else "")

    def list_arguments(self) -> list[str]:
        """Return the arguments of the template as they are typed."""
        return [f"{name}={json.dumps(value)}" for name, value in sorted(self.arguments.items())]


SET_BY_US = (
    *("messages", "conversation", "tools", "documents", "chat_template", "add_generation_prompt", "tokenize", "return_dict"),
    *("continue_final_message", "padding", "truncation", "max_length", "return_tensors", "return_assistant_tokens_mask"),
)
"""Arguments of `apply_chat_template` that are no argument of a template."""


def parse_arguments(typed: Sequence[str]) -> dict[str, Any]:
    """Return arguments of a chat template typed as NAME=VALUE, values in JSON where they are. Raises InputError."""
    arguments: dict[str, Any] = {}
    for text in typed:
        name, sign, value = text.partition("=")
        if not sign or not name.isidentifier() or name in arguments:
            raise InputError("NAME=VALUE with --template, each name once", repr(text), "Write enable_thinking=false.")
        if name in SET_BY_US:
            raise InputError("an argument of the chat template itself with --template", name, "Leave it out: it is set.")
        arguments[name] = read_value(value)
    return arguments


def plain_marks(tokenizer: Any) -> tuple[str, str]:
    """What stands around plain text in training, as text: what the tokenizer puts before it, and its end token."""
    special_ids = set(tokenizer.all_special_ids)
    start_ids = takewhile(special_ids.__contains__, tokenizer("x", verbose=False)["input_ids"])
    return tokenizer.decode(list(start_ids)), tokenizer.eos_token or ""


def _text(value: str | Sequence[Mapping[str, str]]) -> Text:
    return value if isinstance(value, str) else tuple(value)


def no_template(name: str) -> InputError:
    """The `InputError` for chat messages and a tokenizer without a chat template."""
    return InputError(
        "a tokenizer with a chat template, because the prompts are chat messages",
        f"{name} without one",
        "Use an instruct model, set tokenizer.chat_template, or use plain-text prompts.",
    )


def render_chat(tokenizer: Any, messages: Sequence[Mapping[str, Any]], name: str, **arguments: Any) -> str:
    """A conversation as the chat template of a tokenizer writes it.

    Args:
        tokenizer: with a chat template.
        messages: the conversation.
        name: of the model, for messages.
        arguments: handed to the template.

    Raises:
        InputError: a template that is broken, or refuses the messages, as some do for a system message.
    """
    tools = messages[0].get("tools") if messages else None
    message_dicts = list_messages(messages)
    arguments |= {"tools": tools} if tools else {}

    def render() -> str:
        text = tokenizer.apply_chat_template(message_dicts, tokenize=False, **arguments)
        if len(text) > MAX_PROMPT_CHARACTERS:
            raise ValueError(f"a prompt of {len(text):,} characters")
        return text

    try:
        return call_with_timeout(TEMPLATE_SECONDS, render)
    except (Exception, TooSlow) as error:  # a template is code, which fails in any way
        roles = ", ".join(str(message.get("role")) for message in message_dicts)
        expected = f"a chat template of {name} that accepts messages of the roles {roles}"
        remedy = "Leave out --system, correct the messages or the template, or use plain text: --no-chat-template."
        raise InputError(expected, f"{type(error).__name__}: {error}"[:200], remedy) from error
