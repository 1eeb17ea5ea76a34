"""A model behind a server that speaks OpenAI's protocol: what it can be asked, and its answers.

Source: the API reference of OpenAI's chat completions and completions, as vLLM, llama.cpp and others offer them.
Unit: one request per answer.
Cost: the server's; requests run side by side in threads, and the `openai` client repeats failed ones with back-off.
Blind spot: what a server does with a field that it does not know. It is tried before anything is measured: a server may take
    a temperature and decode greedily all the same.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from multiprocessing.pool import ThreadPool
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from mixwright.errors import InputError, missing_extra, one_line
from mixwright.records import Text, list_messages
from mixwright.tool_calls import text_of, with_json_arguments

if TYPE_CHECKING:
    from openai import OpenAI

T = TypeVar("T")
KEY_VARIABLE = "OPENAI_API_KEY"
"""Environment variable with the key; it is sent to the server and written nowhere."""
LEAST_KEY = 6
"""Characters of a key from which on it is left out of all that a server says; shorter ones are words that a model writes."""
EXPECTED_ADDRESS = "the address of a server, such as http://localhost:8000/v1"
GOES_ON = "The same command goes on from the answers so far."
REQUEST_SECONDS = 600.0
"""Time limit of one request and its repeats, however slowly the server goes on sending."""
MAX_REPLY_BYTES = 64 << 20
"""Largest reply that is read."""
REFUSED_CODES = (400, 413, 422)
"""Codes of a server that cannot answer one prompt."""
RETRIES = 6
"""Times that a request is repeated after a connection error, a time-out, or the codes 408, 409, 429 and 5xx."""
MAX_CHARACTERS_PER_TOKEN = 200
"""Longer completions are refused: no tokenizer has such tokens."""
MAX_COUNT = 10**9
"""Tokens of a completion above which a server is not believed."""
TRIED_PROMPTS = 4
"""Prompts on which it is seen whether samples differ and seeds are heeded."""
SEEDS, UNALTERED = "seeds", "control of penalties and cut-offs"
SAME_GREEDY = "repeatable greedy answers"
UNALTERED_FIELDS = {"top_p": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0}
"""Fields that everybody takes, at values that change nothing."""
UNALTERED_EXTRA_FIELDS = {"top_k": 0, "min_p": 0.0, "repeat_penalty": 1.0, "repetition_penalty": 1.0}
"""The same for what servers add by default, under llama.cpp's and vLLM's names: llama-cpp-python punishes repetitions."""


@dataclass(frozen=True)
class Asking:
    """How a served model is asked."""

    url: str
    """Of the API, with its version: http://HOST/v1."""
    model: str
    """Name by which the server knows it."""
    max_tokens: int
    """Longest answer."""
    temperature: float = 0.0
    """0 is greedy."""
    seed: int = 0
    """From which the seed of each sample follows."""
    system: str | None = None
    """System message."""
    chat: bool = True
    """Whether prompts are messages, which the server puts into the model's chat template; else plain text."""
    template: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of that template, as vLLM, SGLang and llama.cpp take them."""


@dataclass(frozen=True)
class Reply:
    """One answer of the server."""

    text: str
    """What the model wrote."""
    cut: bool = False
    """Whether it ended at the limit of tokens."""
    refused: bool = False
    """Whether the server filtered it, or says that the model refused."""
    tokens: int | None = None
    """Tokens, where the server counts them."""


Key = tuple[str, str, int]
"""Task, item and number of the sample."""


@dataclass(frozen=True)
class Request:
    """One answer that is wanted."""

    key: Key
    """Which."""
    prompt: Text
    """Plain text or messages."""


class ServedModel:
    """A model that answers over HTTP.

    Args:
        asking: whom to ask, and how.

    Raises:
        InputError: as `make_client`.
    """

    def __init__(self, asking: Asking) -> None:
        self.asking = asking
        self.lacking: list[str] = []
        """What the server was found not to have, in words."""
        self._length_field = "max_tokens"
        self._client: Any = make_client(asking.url)  # its types know OpenAI's own models and roles alone

    def close(self) -> None:
        """Leave the server; what is under way is not waited for."""
        self._client.close()

    def try_abilities(self, prompts: Sequence[Text]) -> None:
        """Find out what the server has, by a few prompts.

        Raises:
            InputError: it answers none of them; or samples are asked for and it decodes greedily.
        """
        first = self._answer_some(prompts[: 4 * TRIED_PROMPTS])
        texts = [reply.text for reply in first.values()]
        same_seed = [self._text(prompts[n], 1) for n in first]
        if self.asking.temperature == 0:
            if same_seed != texts:
                self.lacking.append(SAME_GREEDY)
            return
        if all([self._text(prompts[n], seed) for n in first] == texts for seed in (2, 3)):
            expected = f"samples that differ, at temperature {self.asking.temperature:g}"
            got = f"{'the same text' if len(texts) == 1 else f'the same {len(texts)} texts'} three times"
            remedy = "The server decodes greedily: turn sampling on, or leave --sampled out."
            raise InputError(expected, got, remedy)
        if SEEDS not in self.lacking and same_seed != texts:
            self.lacking.append(SEEDS)

    def find_changed(self, kept: Sequence[tuple[Request, Reply]]) -> int:
        """How many of some kept answers the server gives otherwise now; where it gives another one each time, none count."""
        changed = 0
        for request, reply in kept:
            seed = seed_of(self.asking.seed, request.key)
            now, again = (self._text(request.prompt, seed) for _ in range(2))
            changed += now is not None and now == again != reply.text
        return changed

    def _text(self, prompt: Text, seed: int) -> str | None:
        """The text of an answer; None if the server refuses the prompt, which some do only now and then."""
        try:
            return self.ask(prompt, seed).text
        except RefusedRequest:
            return None

    def _answer_some(self, prompts: Sequence[Text]) -> dict[int, Reply]:
        """Place of each prompt that is answered -> its answer; fields that the server refuses are left out from now on."""
        found, told = dict[int, Reply](), ""
        for n, prompt in enumerate(prompts):
            if len(found) == TRIED_PROMPTS:
                break
            known = self.lacking.copy(), self._length_field
            try:
                found[n] = self._ask_with_fewer_fields(prompt)
            except RefusedRequest as refused:  # for the prompt's own sake, such as its length
                (self.lacking, self._length_field), told = known, str(refused)
        if not found:
            remedy = "See the server's log. --served-model sets the model, --max-new-tokens the longest answer."
            if self.asking.chat and "template" in told.lower():
                remedy = "Send plain text instead of messages: --no-chat-template."
            raise InputError("a server that answers", told, remedy)
        return found

    def _ask_with_fewer_fields(self, prompt: Text) -> Reply:
        """An answer, without the fewest fields that keep the server from giving one. Raises RefusedRequest where none do."""
        known = [name for name in (UNALTERED, SEEDS) if name not in self.lacking]
        lacking, last = self.lacking, RefusedRequest("")
        for count in range(len(known) + 1):
            for left_out in itertools.combinations(known, count):
                self.lacking = [*lacking, *left_out]
                try:
                    return self.ask(prompt, 1)
                except RefusedRequest as refused:
                    last = refused
                    if self._length_field == "max_tokens" and "max_completion_tokens" in str(refused).lower():
                        self._length_field = "max_completion_tokens"
                        self.lacking = lacking
                        return self._ask_with_fewer_fields(prompt)
        self.lacking = lacking
        raise last

    def ask(self, prompt: Text, seed: int) -> Reply:
        """One answer.

        Raises:
            RefusedRequest: the server cannot answer this prompt.
            InputError: it cannot be reached, does not know the model or the key, or what it says is no answer.
        """
        import openai

        asking = self.asking
        fields: dict[str, Any] = {"model": asking.model, "temperature": asking.temperature, **UNALTERED_FIELDS}
        fields[self._length_field if asking.chat else "max_tokens"] = asking.max_tokens
        if SEEDS not in self.lacking:
            fields["seed"] = seed
        fields["extra_body"] = {} if UNALTERED in self.lacking else dict(UNALTERED_EXTRA_FIELDS)
        if asking.template:
            fields["extra_body"]["chat_template_kwargs"] = dict(asking.template)
        try:
            if asking.chat:
                turns = to_messages(prompt, asking.system)
                fields |= {"tools": prompt[0]["tools"]} if not isinstance(prompt, str) and prompt[0].get("tools") else {}
                send = functools.partial(self._client.chat.completions.create, messages=turns, **fields)
            else:
                send = functools.partial(self._client.completions.create, prompt=prompt, **fields)
            answer: Any = _call_within_limit(send, asking.url)
        except (openai.APIError, ValueError, RecursionError) as error:  # the last two: what came is no JSON of ours
            if getattr(error, "status_code", None) in REFUSED_CODES:
                raise RefusedRequest(heard(error)) from None
            raise _to_input_error(error, asking) from None
        return _read_reply(answer, asking)

    def answer(self, requests: Sequence[Request], *, parallel: int) -> Iterator[tuple[Request, Reply | str]]:
        """Each request with its answer as soon as it is there; with words where the server refuses the prompt.

        Raises:
            InputError: the server fails; what was answered until then has been given out.
        """
        failed = Event()

        def work(request: Request) -> tuple[Request, Reply | str]:
            if failed.is_set():
                return request, ""  # nothing more is asked of a server that failed
            try:
                return request, self.ask(request.prompt, seed_of(self.asking.seed, request.key))
            except RefusedRequest as refused:
                return request, str(refused)
            except BaseException:
                failed.set()
                raise

        with ThreadPool(parallel) as pool:  # its threads are daemons: what is under way keeps no stopped command alive
            yield from pool.imap_unordered(work, requests)


class RefusedRequest(Exception):
    """The server says that it cannot answer a prompt: too long, no template."""


def _call_within_limit(send: Callable[[], T], url: str) -> T:
    """Return the answer to a request, sent in a thread that is left behind at the time limit: time-outs of the client start
    again with each byte. Raises InputError at the limit.
    """
    future = Future[T]()

    def work() -> None:
        try:
            future.set_result(send())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=work, daemon=True).start()
    try:
        return future.result(REQUEST_SECONDS)
    except TimeoutError:
        raise InputError(f"an answer of {url} within {REQUEST_SECONDS:g} s", "none", GOES_ON) from None


def _limit_size(response: Any) -> None:
    """Have the client stop reading a reply that is too large to be one."""
    read = response.iter_bytes

    def read_some(*chunk_size: int) -> Iterator[bytes]:
        size = 0
        for chunk in read(*chunk_size):
            size += len(chunk)
            if size > MAX_REPLY_BYTES:
                expected = f"a reply of at most {MAX_REPLY_BYTES >> 20} MiB from {response.url}"
                raise InputError(expected, "a larger one", "Check that the address is that of the API, with /v1.")
            yield chunk

    response.iter_bytes = read_some


def make_client(url: str) -> OpenAI:
    """A client of a server, which follows no redirect: prompts go where the user said.

    Raises:
        InputError: the package `openai` is missing, or as `check_address`.
    """
    try:
        import openai
    except ImportError:
        raise missing_extra("a server", ["openai"], "server") from None
    check_address(url)
    if not (_read_key().isascii() and _read_key().isprintable()):
        raise InputError(f"a key of printable ASCII characters in {KEY_VARIABLE}", "others", f"Set {KEY_VARIABLE} again.")
    hooks = {"response": [_limit_size]}
    try:
        transport = openai.DefaultHttpxClient(follow_redirects=False, timeout=REQUEST_SECONDS, event_hooks=hooks)
        return openai.OpenAI(base_url=url, api_key=_read_key() or "none", max_retries=RETRIES, http_client=transport)
    except Exception as error:  # of the library below, which is not always the same one: a host that is no name, a proxy
        remedy = "Correct it, or the proxy in HTTP_PROXY, HTTPS_PROXY or ALL_PROXY."
        raise InputError(EXPECTED_ADDRESS, heard(error), remedy) from None


def check_address(url: str) -> None:
    """Raise InputError for an address that cannot be used, or that has a password or key in it, which is not repeated."""
    if not set("@?#").isdisjoint(url):
        remedy = f"Put the key into the environment variable {KEY_VARIABLE}: addresses are stored in files."
        raise InputError("an address without a password or key in it", "one with @, ? or #", remedy)
    try:
        parts = urlsplit(url)
        is_usable, got = url.isprintable() and bool(parts.hostname) and parts.port != 0, repr(url)[:80]
    except ValueError as error:
        is_usable, got = False, str(error)[:80]
    if not is_usable:
        raise InputError(EXPECTED_ADDRESS, got, "Correct it.")


def _read_key() -> str:
    return os.environ.get(KEY_VARIABLE, "").strip()


def heard(said: object) -> str:
    """Return what a server says as it may be shown: one line, without control characters or key, cut off."""
    return one_line(_without_key(str(said)))[:200]


def _without_key(text: str) -> str:
    key = _read_key()
    return text.replace(key, "***") if len(key) >= LEAST_KEY else text


def find_model(url: str, option: str = "--served-model") -> str:
    """The one model that a server lists, if `option` names none. Raises InputError where there is none, or more than one."""
    import openai

    remedy = f"Name it: {option} NAME."
    with make_client(url) as client:
        try:
            listed = _call_within_limit(lambda: list(client.with_options(max_retries=1).models.list()), url)
            names = sorted(one.id for one in listed if isinstance(one.id, str))
        except InputError:
            raise
        except (openai.APIConnectionError, openai.AuthenticationError, openai.PermissionDeniedError) as error:
            raise _to_input_error(error, Asking(url, "", 1)) from None
        except Exception as error:  # some servers have no list
            got = heard(error) if isinstance(error, openai.APIError) else "something else"
            remedy = f"Check that the address is that of the API, with /v1, or name the model: {option} NAME."
            raise InputError(f"the list of models of {url}", got, remedy) from None
    if len(names) != 1 or heard(names[0]) != names[0]:
        raise InputError(f"one model at {url}, with a printable name", heard(", ".join(names)) or "none", remedy)
    return names[0]


def seed_of(seed: int, key: Key) -> int:
    """Seed of one sample: 31 bits, the same whatever else is asked."""
    return int.from_bytes(hashlib.sha256(f"{seed} {key}".encode()).digest()[:4], "big") >> 1


def to_messages(prompt: Text, system: str | None) -> list[dict[str, Any]]:
    """A prompt as messages: plain text is the user's, and the system message comes first where the prompt has none.

    Tools are no part of them, and arguments of calls are JSON, as OpenAI's protocol has it.
    """
    turns = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list_messages(prompt)
    turns = [with_json_arguments(turn) for turn in turns]
    if system is not None and turns[0]["role"] != "system":
        turns.insert(0, {"role": "system", "content": system})
    return turns


def _read_reply(answer: Any, asking: Asking) -> Reply:
    """The reply in what a server sent. Raises InputError for what is none."""
    try:
        choice = answer.choices[0]
        message = choice.message if asking.chat else None
        text = choice.text if message is None else message.content
        calls = [one.to_dict() for one in getattr(message, "tool_calls", None) or () if hasattr(one, "to_dict")]
    except Exception:  # the client checks nothing of what comes
        remedy = "Check that the address is that of the API, with /v1."
        raise InputError(f"a completion from {asking.url}", heard(repr(answer))[:120], remedy) from None
    text = "" if text is None else text
    thoughts = getattr(message, "reasoning_content", None) or getattr(message, "reasoning", None)
    if thoughts and isinstance(thoughts, str) and isinstance(text, str):  # graders and behaviours know them by their tags
        text = f"<think>\n{thoughts}\n</think>\n{text}" if text else f"<think>\n{thoughts}"
    if calls and isinstance(text, str):
        text = text_of({"content": text, "tool_calls": calls})
    if not isinstance(text, str) or len(text) > MAX_CHARACTERS_PER_TOKEN * asking.max_tokens:
        got = f"{len(text):,} characters" if isinstance(text, str) else f"a {type(text).__name__}"
        raise InputError(f"a text of at most {asking.max_tokens} tokens from {asking.url}", got, "Look at the server.")
    reason = getattr(choice, "finish_reason", None)
    if reason == "error":
        raise InputError(f"a completion from {asking.url}", "a completion that ended with a server error", GOES_ON)
    text = _without_key(text.encode("utf-8", "replace").decode("utf-8"))  # no half of a character is kept
    refused = reason == "content_filter" or bool(getattr(message, "refusal", None))
    return Reply(text, cut=reason == "length", refused=refused, tokens=_read_count(answer))


def _read_count(answer: Any) -> int | None:
    """Tokens of the completion; None where the server says nothing that can be."""
    count = getattr(getattr(answer, "usage", None), "completion_tokens", None)
    return count if isinstance(count, int) and 0 <= count < MAX_COUNT else None


def _to_input_error(error: Exception, asking: Asking) -> InputError:
    """What a user can do about a server that fails."""
    import openai

    told = heard(error)
    if isinstance(error, openai.APIConnectionError):
        got = f"no connection ({heard(error.__cause__ or error)})"
        return InputError(f"a server at {asking.url}", got, f"Start it, or correct the address. {GOES_ON}")
    if isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError):
        return InputError(f"a key that {asking.url} takes, in {KEY_VARIABLE}", told, f"Set {KEY_VARIABLE}.")
    if isinstance(error, openai.NotFoundError):
        remedy = "Name the model as the server does (--served-model), and the address with its version: http://HOST/v1."
        return InputError(f"the model {asking.model} at {asking.url}", told, remedy)
    return InputError(f"an answer of {asking.url}", told, GOES_ON)
