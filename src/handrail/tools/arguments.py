"""Checks what a model sent against a tool's arguments, and says in a sentence what is wrong with which.

Lenient where models are sloppy without being wrong: a number or boolean sent as text is read as one, and `null` for an
optional argument leaves it out.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar, cast

import msgspec

T = TypeVar("T", bound=msgspec.Struct)

_LARGEST = 2**53


class BadArguments(Exception):
    """Travels from here to the tool, which answers with the sentence."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence


def parse(kind: type[T], arguments: Mapping[str, Any]) -> T:
    """`arguments` as a `kind`, or BadArguments naming every fault."""
    fields = _fields(kind)
    faults: list[str] = []
    values: dict[str, Any] = {}
    for name, value in arguments.items():
        if name not in fields:
            faults.append(_unknown(str(name), list(fields)))
        elif value is not None or fields[name].required:
            try:
                values[name] = msgspec.convert(value, fields[name].type, strict=False)
            except (msgspec.ValidationError, OverflowError):
                faults.append(f"{name!r} must be {_wanted(fields[name].type)}, not {_shown(value)}")
    faults += [f"{name!r} is missing" for name, field in fields.items() if field.required and name not in arguments]
    if faults:
        raise BadArguments("; ".join(faults) + ".")
    return kind(**values)


@cache
def _fields(kind: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    """By name. Kept, as finding them evaluates every annotation anew: a tenth of a call."""
    return {field.name: field for field in msgspec.structs.fields(kind)}


def as_object(arguments: object) -> Mapping[str, Any]:
    """What a model or its client sent: an object, or the JSON text of one. Raises BadArguments."""
    if isinstance(arguments, str):
        import json  # clients that pass text have it loaded

        try:
            arguments = json.loads(arguments) if arguments.strip() else {}
        except json.JSONDecodeError as bad:
            where = f"line {bad.lineno}, column {bad.colno}"
            raise BadArguments(f"the arguments are not valid JSON ({where}); send one JSON object.") from bad
        except (RecursionError, ValueError) as bad:
            raise BadArguments("the arguments are JSON beyond all bounds; send one flat JSON object.") from bad
    if not isinstance(arguments, Mapping):
        raise BadArguments("the arguments must be a JSON object, from names to values.")
    return cast("Mapping[str, Any]", arguments)


def schema_of(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON Schema of `kind`, without references, the same at every run."""
    whole = msgspec.json.schema(kind)
    schema: dict[str, Any] = dict(whole["$defs"][kind.__name__])
    schema.pop("title", None)
    schema.pop("description", None)  # the tool's own says more than the structure's docstring
    schema["additionalProperties"] = False
    return schema


def without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Optional arguments as their own type: `null` is accepted and not advertised."""
    properties: dict[str, Any] = {}
    for name, facts in schema["properties"].items():
        plain = {key: value for key, value in facts.items() if key != "anyOf"}
        if plain.get("default", ...) is None:
            del plain["default"]
        for choice in facts.get("anyOf", ()):
            if choice.get("type") != "null":
                plain |= choice
        properties[name] = plain
    return {**schema, "properties": properties}


def _unknown(name: str, known: list[str]) -> str:
    from difflib import get_close_matches  # only a fault needs it

    near = get_close_matches(name, known, n=1)
    meant = f" (did you mean {near[0]!r}?)" if near else f" (there are {', '.join(known)})"
    return f"{quoted(name)} is no argument{meant}"


def _wanted(kind: Any) -> str:
    from msgspec import inspect  # only a fault needs it

    words: dict[type[inspect.Type], str] = {
        inspect.StrType: "text",
        inspect.IntType: "a whole number",
        inspect.FloatType: "a number",
        inspect.BoolType: "true or false",
    }
    info = inspect.type_info(kind)
    kinds = info.types if isinstance(info, inspect.UnionType) else (info,)
    bare = [each.type if isinstance(each, inspect.Metadata) else each for each in kinds]
    names = [words[type(each)] for each in bare if type(each) in words]
    bounds = [
        f", {bound}"
        for each in bare
        if isinstance(each, (inspect.IntType, inspect.FloatType))
        for bound in _bounds(each)
    ]
    return " or ".join(names) + "".join(bounds)


def _bounds(info: msgspec.inspect.IntType | msgspec.inspect.FloatType) -> list[str]:
    return [f"{word} {bound}" for word, bound in (("at least", info.ge), ("at most", info.le)) if bound is not None]


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, (list, tuple)):
        return "a list"
    if value is None:
        return "null"
    if isinstance(value, int) and abs(value) > _LARGEST:  # Python refuses to write thousands of digits
        return "a number that large"
    return quoted(value)


def quoted(value: object) -> str:
    """What a model sent, in a sentence: in quotes if it is text, printable, and short."""
    text = repr(value[:60] if isinstance(value, str) else value)
    return text if len(text) <= 60 else text[:59] + "…"
