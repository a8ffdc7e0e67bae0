"""The JSON of OpenAI's chat completions <-> values of the chat. Pure: no socket, no model.

What the model cannot do is refused in a sentence, not passed over in silence. Specification: the
"Chat completions" and "Models" pages of OpenAI's API reference.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from app.chat.messages import FinishReason, Message, ModelInfo, Options, Stats

MOST_MESSAGES = 2000
MOST_STOPS = 16
LONGEST_ANSWER = 1_000_000
REFUSED = {
    "tools": "This server does not call tools.",
    "functions": "This server does not call functions.",
    "audio": "This server does not speak.",
    "logprobs": "This server does not return probabilities.",
    "logit_bias": "This server does not take logit_bias.",
    "presence_penalty": "Use repetition_penalty in place of presence_penalty.",
    "frequency_penalty": "Use repetition_penalty in place of frequency_penalty.",
}


class BadRequest(Exception):
    """A sentence for the caller, with the status that HTTP gives it."""

    def __init__(self, message: str, *, status: int = 400, parameter: str | None = None) -> None:
        super().__init__(message)
        self.status, self.parameter = status, parameter


@dataclass(frozen=True)
class Completion:
    """One request, understood."""

    messages: tuple[Message, ...]
    options: Options
    is_streamed: bool = False
    wants_usage: bool = False


def read_completion(body: bytes) -> Completion:
    """Raises BadRequest."""
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequest("The request is not JSON.") from error
    if not isinstance(asked, dict):
        raise BadRequest("The request must be a JSON object.")
    for name, sentence in REFUSED.items():
        if asked.get(name):
            raise BadRequest(sentence, parameter=name)
    if asked.get("n") not in (None, 1):
        raise BadRequest("This server writes one answer a request.", parameter="n")
    system, messages = _messages(asked.get("messages"))
    usage = asked.get("stream_options") or {}
    return Completion(
        messages,
        _options(asked, system),
        is_streamed=_flag(asked, "stream"),
        wants_usage=isinstance(usage, dict) and bool(usage.get("include_usage")),
    )


def _messages(found: object) -> tuple[str, tuple[Message, ...]]:
    """(system prompt, turns): the system messages joined, and the rest in order."""
    if not isinstance(found, list) or not found or len(found) > MOST_MESSAGES:
        raise BadRequest(
            f"messages must be a list of 1 to {MOST_MESSAGES} messages.", parameter="messages"
        )
    system: list[str] = []
    turns: list[Message] = []
    for entry in found:
        role = entry.get("role") if isinstance(entry, dict) else None
        if role in ("system", "developer"):
            system.append(_text(entry.get("content")))
        elif role in ("user", "assistant"):
            turns.append(Message.of(role, _text(entry.get("content"))))
        else:
            raise BadRequest(
                "Each message needs a role: system, user or assistant.", parameter="messages"
            )
    if not turns or turns[-1].role != "user":
        raise BadRequest("The last message must be the user's.", parameter="messages")
    return "\n\n".join(system), tuple(turns)


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise BadRequest("A message's content must be text.", parameter="messages")
    texts = []
    for part in content:
        is_text = isinstance(part, dict) and part.get("type") == "text"
        if not is_text or not isinstance(part.get("text"), str):
            raise BadRequest("This server takes text only.", parameter="messages")
        texts.append(part["text"])
    return "".join(texts)


def _options(asked: Mapping[str, Any], system: str) -> Options:
    longest = _number(asked, "max_completion_tokens", 1, LONGEST_ANSWER) or _number(
        asked, "max_tokens", 1, LONGEST_ANSWER
    )
    values: dict[str, Any] = {
        "temperature": _number(asked, "temperature", 0, 2),
        "top_p": _number(asked, "top_p", 0, 1),
        "top_k": _whole(_number(asked, "top_k", 0, 1_000_000)),
        "repetition_penalty": _number(asked, "repetition_penalty", 0.01, 10),
        "seed": _seed(asked),
        "system_prompt": system,
        "stop_strings": _stops(asked.get("stop")),
    }
    if longest is not None:
        values["longest_answer"] = int(longest)
    return Options(**values, **_format(asked.get("response_format")))


def _format(wanted: object) -> dict[str, Any]:
    if wanted is None:
        return {}
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    if kind == "text":
        return {}
    if kind == "json_object":
        return {"answer_format": "json"}
    if kind == "json_schema":
        assert isinstance(wanted, dict)
        described = wanted.get("json_schema")
        schema = described.get("schema") if isinstance(described, dict) else None
        if isinstance(schema, dict):
            return {"answer_format": "json_schema", "answer_grammar": json.dumps(schema)}
    raise BadRequest(
        "response_format must be text, json_object, or json_schema with a schema.",
        parameter="response_format",
    )


def _number(asked: Mapping[str, Any], name: str, least: float, most: float) -> float | None:
    value = asked.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise BadRequest(f"{name} must be a number from {least} to {most}.", parameter=name)
    return value


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _seed(asked: Mapping[str, Any]) -> int | None:
    value = asked.get("seed")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadRequest("seed must be a whole number.", parameter="seed")
    return value % 2**31


def _stops(found: object) -> tuple[str, ...]:
    listed = [found] if isinstance(found, str) else [] if found is None else found
    if isinstance(listed, list) and len(listed) <= MOST_STOPS:
        texts = tuple(stop for stop in listed if isinstance(stop, str) and stop)
        if len(texts) == len(listed):
            return texts
    raise BadRequest(f"stop must be up to {MOST_STOPS} texts.", parameter="stop")


def _flag(asked: Mapping[str, Any], name: str) -> bool:
    value = asked.get(name)
    if value not in (None, True, False):
        raise BadRequest(f"{name} must be true or false.", parameter=name)
    return bool(value)


# ---- answers


class Answer:
    """One completion's JSON, whole or in chunks."""

    def __init__(self, model: str, number: int) -> None:
        self._head = {
            "id": f"chatcmpl-{number}",
            "created": int(time.time()),
            "model": model,
        }

    def whole(self, text: str, thought: str, reason: FinishReason, stats: Stats) -> dict[str, Any]:
        message = {"role": "assistant", "content": text}
        if thought:
            message["reasoning_content"] = thought
        choice = {"index": 0, "message": message, "finish_reason": finish_reason(reason)}
        usage = _usage(stats)
        return {**self._head, "object": "chat.completion", "choices": [choice], "usage": usage}

    def first(self) -> dict[str, Any]:
        return self._chunk({"role": "assistant", "content": ""})

    def piece(self, text: str, *, is_thought: bool) -> dict[str, Any]:
        return self._chunk({"reasoning_content" if is_thought else "content": text})

    def last(self, reason: FinishReason) -> dict[str, Any]:
        return self._chunk({}, finish_reason(reason))

    def usage(self, stats: Stats) -> dict[str, Any]:
        usage = _usage(stats)
        return {**self._head, "object": "chat.completion.chunk", "choices": [], "usage": usage}

    def _chunk(self, delta: dict[str, str], reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return {**self._head, "object": "chat.completion.chunk", "choices": [choice]}


def finish_reason(reason: FinishReason) -> Literal["stop", "length"]:
    return "length" if reason in ("length", "context") else "stop"


def models(model: ModelInfo | None) -> dict[str, Any]:
    data = [] if model is None else [{"id": model.name, "object": "model", "owned_by": "inglenook"}]
    return {"object": "list", "data": data}


def failure(
    message: str, *, kind: str = "invalid_request_error", parameter: str | None = None
) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": parameter, "code": None}}


def _usage(stats: Stats) -> dict[str, Any]:
    return {
        "prompt_tokens": stats.prompt_tokens,
        "completion_tokens": stats.new_tokens,
        "total_tokens": stats.prompt_tokens + stats.new_tokens,
        "prompt_tokens_details": {"cached_tokens": stats.kept_tokens},
    }
