"""Declarations of options: names, types, defaults, bounds and help texts.

The fields of :class:`Options` classes are declared with :func:`option`. All interfaces derive from
these fields:

    the command line     cli/flags.py: flags
    HTTP                 server/requests.py: parameters of queries and bodies, and their OpenAPI
    Python               :func:`accepts`: keyword arguments, signatures and docstrings

Settings of measures (``measures/settings.py``) are also options. Every query loads this module, so
it imports only the standard library.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from functools import cache
from numbers import Integral, Real
from pathlib import Path
from textwrap import fill
from typing import Any, Generic, Self, TypeVar

from cocite.errors import UsageError

Value = bool | int | float | str
CLI = frozenset({"cli"})
PYTHON = frozenset({"python"})
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class NodeNames:
    """Kind of an option that lists node names; on the command line, a file of names."""


@dataclass(frozen=True)
class Option(Generic[T_co]):
    """One option.

    ``low`` and ``high`` bound numbers, and are excluded if ``open``; ``choices`` lists the allowed
    words. The type is ``kind``, or the default's type. ``unset`` describes a default of None.
    ``negated`` is the help text of a flag that turns the option off. ``fronts`` are the interfaces
    with this option; web pages show it if it has a ``label``. ``served`` are bounds for servers.
    """

    name: str
    default: T_co
    text: str
    low: float = -math.inf
    high: float = math.inf
    open: bool = False
    choices: tuple[str, ...] = ()
    kind: type | None = None
    many: bool = False
    flag: str = ""
    metavar: str = ""
    section: str = ""
    unset: str = ""
    fronts: frozenset[str] = frozenset({"cli", "http", "python"})
    limit: str = ""
    negated: str = ""
    label: str = ""
    served: tuple[float, float] | None = None

    @property
    def type(self) -> type:
        """Return the type of the value, or of each value."""
        return self.kind or type(self.default)

    def checked(self, value: object) -> T_co:
        """Return the value as stored; raises :class:`UsageError` if it is not allowed."""
        if not self.allows(value):
            raise self.wrong(value)
        number: Any = value
        if value is None or self.type not in (int, float):
            return number  # type: ignore[no-any-return]
        try:
            return self.type(number)  # type: ignore[return-value]
        except OverflowError:
            raise self.wrong(value) from None

    def wrong(self, value: object) -> UsageError:
        """Return the error for a value."""
        return UsageError(f"{self.name} is {shown(value)}; it must be {self.allowed}")

    def allows(self, value: object) -> bool:
        """Return whether a value is allowed."""
        if value is None and self.default is None:
            return True
        if self.type is bool:
            return type(value) is bool
        if self.type is str:
            return value in self.choices if self.choices else isinstance(value, str)
        if self.type not in (int, float):
            return True
        # Integral and Real include NumPy's numbers.
        if isinstance(value, bool) or not isinstance(value, Integral if self.type is int else Real):
            return False
        number: Any = value
        if self.open:
            return bool(self.low < number < self.high)
        return bool(self.low <= number <= self.high)

    @property
    def allowed(self) -> str:
        """Describe the allowed values."""
        if self.type is bool:
            return "true or false"
        if self.type is str:
            return " or ".join(self.choices) or "a string"
        what = "a whole number" if self.type is int else "a number"
        if math.isinf(self.high):
            return what if math.isinf(self.low) else f"{what}, {self.low:g} or more"
        low, high = (str(x) if isinstance(x, int) else f"{x:g}" for x in (self.low, self.high))
        if self.open:
            return f"{what} above {low} and below {high}"
        return f"{what} from {low} to {high}"

    @property
    def default_text(self) -> str:
        """Return the default in words, or ""."""
        if self.unset or self.default is None or self.type is bool:
            return self.unset
        if isinstance(self.default, tuple):
            return ",".join(map(str, self.default))
        return str(self.default)


def shown(value: object) -> str:
    """Return a value's repr for messages, cut to 100 characters."""
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}..."


_KINDS: dict[str, dict[str, Any]] = {
    "int | None": {"kind": int},
    "float | None": {"kind": float},
    "str | None": {"kind": str},
    "Path | None": {"kind": Path},
    "tuple[str, ...]": {"kind": str, "many": True},
    "str | int | None": {"kind": object},
    "Any": {"kind": object},
}
"""Option types by annotation, for defaults without a type."""


def option(default: T, text: str, **more: Any) -> T:
    """Declare a field of :class:`Options`; ``more`` are other fields of :class:`Option`."""
    declared = {"default": default, "text": text, **more}
    return field(default=default, metadata={"option": declared})


BETWEEN_0_AND_1: dict[str, Any] = {"low": 0, "high": 1, "open": True}
"""Bounds that exclude both ends."""


def side_option(of: str, **more: Any) -> str | None:
    """Declare an option for the side of ``of`` in a bipartite graph, by default the targets."""
    text = f"In a bipartite graph, the side of {of}, such as user."
    return option(None, text, metavar="NAME", unset="the side of the targets, item", **more)


def option_of(kind: type[Options], name: str, **changes: Any) -> Any:
    """Declare the same option as in ``kind``, with some attributes changed."""
    return option(**kind.__dataclass_fields__[name].metadata["option"] | changes)


@dataclass(frozen=True)
class Options:
    """Base class of options, which are checked on creation.

    ``class Mine(Options, fronts=CLI)`` sets an attribute of all options that ``Mine`` declares.
    """

    def __init_subclass__(cls, **shared: Any) -> None:
        for name in cls.__annotations__ if shared else ():
            declared = cls.__dict__[name].metadata.get("option", {})
            declared |= shared | declared

    @classmethod
    @cache
    def declared(cls) -> Mapping[str, Option[Any]]:
        """Return the options by field name, in declaration order."""
        found = {}
        for each in fields(cls):
            if "option" in each.metadata:
                given = _KINDS.get(str(each.type), {}) | each.metadata["option"]
                found[each.name] = Option(name=each.name, **given)
        return found

    def __post_init__(self) -> None:
        for name, declared in self.declared().items():
            value = getattr(self, name)
            if declared.many or _equal(value, declared.default):
                continue
            checked = declared.checked(value)
            if checked is not value:
                object.__setattr__(self, name, checked)

    @classmethod
    def of(cls, options: Self | None, given: Mapping[str, Any]) -> Self:
        """Return ``options``, or the defaults, with the fields in ``given`` replaced.

        Unknown names become the measure's settings; in classes without settings they raise
        :class:`UsageError`.
        """
        known = cls._keywords()
        if given and not given.keys() <= known:
            others = {name: value for name, value in given.items() if name not in known}
            if "settings" not in cls.__dataclass_fields__:
                name = next(iter(others))
                near = get_close_matches(name, known)
                like = f" Did you mean {' or '.join(near)}?" if near else ""
                every = ", ".join(each.name for each in _of_python((cls,)))
                raise UsageError(f"there is no option {name}; the options are {every}.{like}")
            given = {n: value for n, value in given.items() if n in known} | {"settings": others}
        if options is None:
            return cls(**given) if given else cls._default()
        if not isinstance(options, cls):
            raise UsageError(
                f"options is {type(options).__name__} {options!r}; it must be a {cls.__name__}"
            )
        return replace(options, **given) if given else options

    @classmethod
    @cache
    def _default(cls) -> Self:
        return cls()

    @classmethod
    @cache
    def _keywords(cls) -> frozenset[str]:
        return frozenset(each.name for each in _of_python((cls,)))

    def changed(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults."""
        return {
            name: getattr(self, name)
            for name, declared in self.declared().items()
            if not _equal(getattr(self, name), declared.default)
        }


def _equal(value: object, default: object) -> bool:
    """Return whether a value is the default; compares tables and arrays by identity."""
    if value is default:
        return True
    return isinstance(value, str | int | float | tuple) and value == default


# -- the Python front ----------------------------------------------------------------------------


def accepts(*kinds: type[Options]) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Add options to a function's signature, and to its docstring in place of ``{options}``."""

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        signature = inspect.signature(function)
        own = list(signature.parameters.values())
        rest = [each for each in own if each.kind is each.VAR_KEYWORD]
        named = [
            inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default)
            for each in _of_python(kinds)
        ]
        taken = [*(each for each in own if each not in rest), *named]
        if any("settings" in kind.__dataclass_fields__ for kind in kinds):
            taken += rest
        function.__signature__ = signature.replace(parameters=taken)  # type: ignore[attr-defined]
        text = inspect.cleandoc(function.__doc__ or "")
        function.__doc__ = text.replace("{options}", documented(kinds))
        return function

    return decorate


def _of_python(kinds: Sequence[type[Options]]) -> Iterator[Option[Any]]:
    for kind in kinds:
        for each in kind.declared().values():
            if "python" in each.fronts:
                yield each


def documented(kinds: Sequence[type[Options]]) -> str:
    """Return the options as parameters in NumPy docstring style."""
    found = []
    for each in _of_python(kinds):
        default = f" By default {each.default_text}." if each.default_text else ""
        text = spelled(each.text + default, lambda name: f"``{name}``")
        found.append(
            f"{each.name}\n" + fill(text, 96, initial_indent="    ", subsequent_indent="    ")
        )
    return "\n".join(found)


def spelled(text: str, name: Callable[[str], str]) -> str:
    """Return a help text with each flag, such as ``--min-score``, replaced by ``name(option)``."""
    return re.sub(r"--([a-z][a-z-]*)", lambda found: name(found[1].replace("-", "_")), text)


DIRECTIONS = {
    "in": "in-links",
    "out": "out-links",
    "both": "both directions",
    "any": "links in either direction",
}

NO_LINKS = "none"
"""The direction of measures that compare only texts; not an option."""
EITHER = ("any", "both")
"""Directions of a reason's links that ignore which way the links point."""


def opposite(direction: str) -> str:
    """Swap ``in`` and ``out``; return other directions unchanged."""
    return {"in": "out", "out": "in"}.get(direction, direction)


def checked_direction(direction: str) -> str:
    """Return the direction if it is valid; raises :class:`UsageError`."""
    if direction not in DIRECTIONS:
        raise UsageError(f"direction is {direction!r}; it must be " + " or ".join(DIRECTIONS))
    return direction
