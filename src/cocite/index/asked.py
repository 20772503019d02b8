"""The settings of a question to an index: what is given, what the index takes by default, the rest.

What meetings are worth (``by``, ``measures/meeting.py``) may be kept with an index as the default
of its questions; ``by`` or a decay given with a question goes before it. So may any other setting
of a question (``asks``), such as those that ``cocite tune`` has chosen. Numbers are as many as the
walks of the index have steps, the longest ones if parts differ; functions are asked for as many.

Cost: what was checked once is remembered, so that a question checks it for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cocite.errors import UsageError
from cocite.layouts.plan import PartPlan
from cocite.layouts.stored import StoredPart
from cocite.measures import BY, DECAY, LENGTH, Measure, Value, WholeSettings
from cocite.measures.meeting import heeds_decay, numbers_in, sampled, worth_of

__all__ = ["ASKS", "asked_settings", "kept_settings"]

ASKS = "asks"
"""The fact of an index that holds them."""


def asked_settings(
    measure: Measure,
    parts: Sequence[PartPlan | StoredPart],
    given: Mapping[str, object],
    default: str | None = None,
    asks: Mapping[str, Value] | None = None,
) -> WholeSettings:
    """All settings of a question to an index of some parts, which keeps ``default`` for ``by``, and
    ``asks`` for others.

    Raises :class:`UsageError` for what the measure does not take, and for what is not allowed for
    walks of these lengths.
    """
    walking = [part for part in parts if BY in part.measure.ask]
    longest = max((part.settings[LENGTH] for part in walking), default=0)
    asked: dict[str, Any] = {**(asks or {}), **given}
    if BY.name in given:
        asked[BY.name] = BY.checked(sampled(given[BY.name], longest))
        if DECAY.name not in given and not heeds_decay(asked[BY.name]):
            asked.pop(DECAY.name, None)  # one that is kept
    elif default is not None and (DECAY.name not in given or heeds_decay(default)):
        asked[BY.name] = default
    found = measure.ask_settings(asked)
    for part in walking:
        own = part.ask_settings(found)
        worth_of(own, part.settings)
        numbers = None if BY in part.fixed else numbers_in(own[BY])
        if numbers is not None and numbers != longest:
            raise UsageError(
                f"by has {numbers} numbers; the walks of the index have {longest} steps: give one "
                "for each"
            )
    return found


def kept_settings(
    measure: Measure,
    parts: Sequence[PartPlan | StoredPart],
    asks: Mapping[str, object],
    by: str | None = None,
) -> dict[str, Value]:
    """What an index keeps for its questions, of what is given for it, checked and by name.

    Raises :class:`UsageError` for ``by``, which is kept by itself, and for what no question takes.
    """
    if BY.name in asks:
        raise UsageError("by is kept with the index by itself: give it as by, not among asks")
    found = asked_settings(measure, parts, asks, by).to_json()
    return {name: found[name] for name in sorted(asks) if name in found}
