"""Reads request bodies and holds them against the types of the official SDKs.

usage: validate.py API FILE…   API is openai, responses, anthropic or gemini
"""

import collections.abc
import json
import sys
import types
import typing

import typing_extensions


def fits(value, kind, place):
    """What is wrong with a value; an empty list when it fits."""
    origin = typing_extensions.get_origin(kind)
    args = typing_extensions.get_args(kind)
    if kind is typing.Any or kind is object:
        return []
    if origin in (typing_extensions.Required, typing_extensions.NotRequired, typing_extensions.Annotated):
        return fits(value, args[0], place)
    if origin is typing.Literal or origin is typing_extensions.Literal:
        return [] if value in args else [f"{place}: {value!r} is none of {args}"]
    if origin in (typing.Union, types.UnionType):
        wrong = [fits(value, option, place) for option in args]
        # Of several forms the nearest one says what is missing.
        return [] if [] in wrong else min(wrong, key=lambda w: (len(w), -max(map(len, w))))
    if origin is dict or origin is collections.abc.Mapping:
        return [] if isinstance(value, dict) else [f"{place}: no object"]
    if origin in (list, collections.abc.Iterable, collections.abc.Sequence):
        if not isinstance(value, list):
            return [f"{place}: no list"]
        return [w for at, item in enumerate(value) for w in fits(item, args[0], f"{place}[{at}]")]
    if typing_extensions.is_typeddict(kind):
        return fits_fields(value, kind, place)
    if isinstance(kind, typing.TypeVar) or isinstance(kind, str):
        return []
    if kind is float:
        kind = (int, float)
    if kind is None or kind is type(None):
        return [] if value is None else [f"{place}: not null"]
    try:
        good = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
    except TypeError:
        return []
    return [] if good else [f"{place}: {value!r} is no {kind}"]


def fits_fields(value, kind, place):
    if not isinstance(value, dict):
        return [f"{place}: no {kind.__name__}"]
    hints = typing_extensions.get_type_hints(kind, include_extras=True)
    wrong = [f"{place}: {key} is missing in {kind.__name__}" for key in kind.__required_keys__ if key not in value]
    for key, item in value.items():
        if key not in hints:
            wrong.append(f"{place}.{key}: unknown to {kind.__name__}")
        else:
            wrong.extend(fits(item, hints[key], f"{place}.{key}"))
    return wrong


def gemini(body):
    from google.genai import types as api

    config = dict(body.get("generationConfig", {}))
    for key in ("systemInstruction", "tools"):
        if key in body:
            config[key] = body[key]
    parts = [(api.Content, item, "contents") for item in body["contents"]]
    wrong = []
    for model, item, place in parts + [(api.GenerateContentConfig, config, "config")]:
        try:
            model.model_validate(item)
        except ValueError as error:
            wrong.append(f"{place}: {error}")
    return wrong


def check(name, body):
    if name == "gemini":
        return gemini(body)
    if name == "openai":
        from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming as kind
    elif name == "responses":
        from openai.types.responses.response_create_params import ResponseCreateParamsStreaming as kind
    else:
        from anthropic.types.message_create_params import MessageCreateParamsStreaming as kind
    return fits(body, kind, "body")


if __name__ == "__main__":
    failed = False
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as file:
            recorded = json.load(file)
        for line in check(sys.argv[1], recorded.get("body", recorded)):
            failed = True
            print(f"{path}: {line}")
    sys.exit(failed)
