"""Meeting weights: expressions and numbers, their values, and refusals."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cocite.errors import UsageError
from cocite.measures import DECAY, LENGTH, MEASURES, MEETING_WEIGHT, PartSettings, find_measure
from cocite.measures.meeting_weight import HORIZON, MeetingWeights, heeds_decay, weights_of


def weights_for(weight: object, length: int = 10, decay: float = 0.6) -> MeetingWeights:
    query = PartSettings.checked(
        (DECAY, MEETING_WEIGHT), {"meeting_weight": weight, "decay": decay}
    )
    return weights_of(query, PartSettings.checked((LENGTH,), {"length": length}))


EXPRESSIONS: dict[str, Callable[[int], float]] = {
    "0.8**t": lambda t: 0.8**t,
    "1/t": lambda t: 1 / t,
    " t <= 3": lambda t: t <= 3,
    "2 < t <= 4": lambda t: 2 < t <= 4,
    "not t > 3": lambda t: not t > 3,
    "t == 2 or t == 5": lambda t: t in (2, 5),
    "(t > 1) and (t < 4)": lambda t: 1 < t < 4,
    "1 if t < 3 else 0.25": lambda t: 1 if t < 3 else 0.25,
    "decay ** t / t": lambda t: 0.6**t / t,
    "max(0, 1 - t / 4)": lambda t: max(0, 1 - t / 4),
    "min(1, t / length)": lambda t: min(1, t / 10),
    "exp(-t / 2)": lambda t: math.exp(-t / 2),
    "1 / (1 + log(t))": lambda t: 1 / (1 + math.log(t)),
    "abs(sqrt(t) - 4) / 4": lambda t: abs(math.sqrt(t) - 4) / 4,
    "t % 2": lambda t: t % 2,
    "(t // 5) / 3": lambda t: t // 5 / 3,
    "((t > 2) + (t > 4)) / 2": lambda t: ((t > 2) + (t > 4)) / 2,
    "hitting": lambda t: 1 - t / 11,
    "decay**t": lambda t: 0.6**t,
}


@pytest.mark.parametrize("weight", EXPRESSIONS)
def test_meeting_weight_expression_matches_python(weight: str) -> None:
    weights, function = weights_for(weight), EXPRESSIONS[weight]
    assert weights.values[0] == 1
    assert np.allclose(weights.values[1:11], [float(function(t)) for t in range(1, 11)], 1e-15)
    assert weights.values[11:] == (0.0,) * 5
    later = [min(1.0, max(0.0, float(function(t)))) for t in range(11, HORIZON + 1)]
    assert math.isclose(weights.beyond, max(later), abs_tol=1e-15)
    assert weights.most == max(weights.values[1:])


@pytest.mark.parametrize("weight", EXPRESSIONS)
def test_meeting_weight_text_is_normalized(weight: str) -> None:
    normalized = MEETING_WEIGHT.checked(weight)
    assert (
        MEETING_WEIGHT.checked(normalized)
        == normalized
        == MEETING_WEIGHT.checked(normalized.replace("  ", " "))
    )
    assert weights_for(normalized) == weights_for(weight)


@pytest.mark.parametrize(
    "weight",
    [[0.9, 0.5, 0.25], (0.9, 0.5, 0.25), np.array([0.9, 0.5, 0.25]), "0.9, .5,0.25"],
)
def test_meeting_weight_accepts_numbers_per_step(weight: Any) -> None:
    assert weights_for(weight, 3) == MeetingWeights((1.0, 0.9, 0.5, 0.25, *[0.0] * 12), 0.0)
    assert MEETING_WEIGHT.checked(weight) == "0.9, 0.5, 0.25"
    assert weights_for([0.5], 1).values[:3] == (1, 0.5, 0)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=15).filter(any))
def test_meeting_weight_numbers_round_trip_exactly(numbers: list[float]) -> None:
    text = MEETING_WEIGHT.checked(numbers)
    assert MEETING_WEIGHT.checked(text) == text
    assert weights_for(text, len(numbers)).values[1 : len(numbers) + 1] == tuple(numbers)


def test_meeting_weight_default_equals_decay() -> None:
    for decay in (0.1, 0.6, 0.95):
        weights = weights_for(MEETING_WEIGHT.default, 15, decay)
        assert weights.values == tuple(decay**t for t in range(16))
        assert weights.beyond == decay**16


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ("t", "meeting_weight 't' is 2 after 2 steps; it must be from 0 to 1"),
        ("1.5 - t", "is -0.5 after 2 steps"),
        ("-0.5 + t", "is 1.5 after 2 steps"),
        ("0", "no nodes would be similar"),
        ("t > 10", "is 0 for all meetings of walks of 10 steps"),
        ("1 / (t - 3)", "not a number for a meeting after"),
        ("(2 - t) ** 0.5", "not a number for a meeting after"),
        ("9 ** 9 ** 9 ** 9 ** t", "not a number for a meeting after 1 steps"),
        ("max(t)", "not a number"),
        ("t +", "it must be 'hitting', an expression"),
        ("", "it must be 'hitting', an expression"),
        ("u / 2", "with 'u' in it"),
        ("__import__('os').system('true')", "in it"),
        ("t.real", "in it"),
        ("[t for t in (1,)][0]", "in it"),
        ("(lambda: 1)()", "in it"),
        ("'a'", "in it"),
        ("True", "in it"),
        ("1j", "in it"),
        ("max", "with 'max' in it"),
        ("t(1)", "in it"),
        ("max(t, key=t)", "in it"),
        ("max(*t)", "in it"),
        ("t @ t", "in it"),
        ("t << 2", "in it"),
        ("9" * 400 + "", "400 characters; the maximum is 200"),
        ("1e999", "in it"),
        ("0.5, t", "with 't' in it"),
        ("()", "without a number"),
        ("1, 0.5", "2 numbers; walks have 10 steps"),
        ([0.1] * 16, "16 numbers"),
        ([], "0 numbers"),
        ([math.nan] * 10, "not finite"),
        ([2.0] * 10, "is 2 after 1 step;"),
        (["a"], "it must be 'hitting', an expression"),
        (3, "it must be 'hitting', an expression"),
        (None, "it must be 'hitting', an expression"),
        ("(" * 90 + "t" + ")" * 90, "in it|it must be 'hitting'|must be from 0 to 1"),
    ],
)
def test_meeting_weight_refuses_invalid_value(weight: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        weights_for(weight)


@pytest.mark.parametrize("alphabet", [None, "t0123456789.,+-*/%<>=()decaylngthmixorsqp \0\n"])
@given(data=st.data())
def test_meeting_weight_reads_or_refuses_any_text(
    alphabet: str | None, data: st.DataObject
) -> None:
    """The alphabet of expressions yields near misses, too."""
    text = data.draw(st.text(max_size=30) if alphabet is None else st.text(alphabet, max_size=25))
    try:
        weights = weights_for(text)
    except UsageError:
        return
    assert all(0 <= value <= 1 for value in weights.values)


def test_ask_settings_keep_only_effective_values() -> None:
    simrank = MEASURES["simrank"]
    assert simrank.ask_settings({}).to_json() == {"decay": 0.6}
    assert simrank.ask_settings({"meeting_weight": "decay**t"}).to_json() == {"decay": 0.6}
    assert simrank.ask_settings({"meeting_weight": "t<=3"}).to_json() == {
        "meeting_weight": "t <= 3"
    }
    query = simrank.ask_settings({"meeting_weight": "decay**t/t", "decay": 0.2})
    assert query.to_json() == {"decay": 0.2, "meeting_weight": "decay ** t / t"}
    with pytest.raises(UsageError, match=r"decay is 0\.2, but meeting_weight does not use it"):
        simrank.ask_settings({"meeting_weight": "t<=3", "decay": 0.2})
    assert heeds_decay("decay / 2")
    assert not heeds_decay("hitting")


def test_blend_passes_meeting_weight_to_walk_measures() -> None:
    mixed = find_measure("blend:simrank+xjaccard")
    query = mixed.ask_settings({"meeting_weight": "t<=3", "decay": 0.2})
    assert query.to_json() == {"decay": 0.2, "meeting_weight": "t <= 3", "normalized": False}
    settings = [component.ask_settings(query).to_json() for component in mixed.components]
    assert settings[0]["meeting_weight"] == "t <= 3"
    assert settings[1] == {"decay": 0.2, "normalized": False}
    fixed = find_measure("blend:simrank(meeting_weight=t<=3)+psimrank")
    assert fixed.name == "blend:simrank(meeting_weight=t <= 3)+psimrank"
    assert find_measure(fixed.name) == fixed
    settings = [
        c.ask_settings(fixed.ask_settings({"meeting_weight": "1/t"})).to_json()
        for c in fixed.components
    ]
    assert [each["meeting_weight"] for each in settings] == ["t <= 3", "1 / t"]
    alone = find_measure("blend:simrank(meeting_weight=hitting)+cocitation")
    with pytest.raises(UsageError, match="meeting_weight does not use it"):
        alone.ask_settings({"decay": 0.5})


@pytest.mark.parametrize("name", MEASURES)
def test_meeting_weight_is_limited_to_walk_measures(name: str) -> None:
    measure = MEASURES[name]
    assert (MEETING_WEIGHT in measure.ask) == (measure.step is not None)
    if MEETING_WEIGHT not in measure.ask:
        with pytest.raises(UsageError, match="has no setting 'meeting_weight' when asking"):
            measure.ask_settings({"meeting_weight": "t<=3"})
