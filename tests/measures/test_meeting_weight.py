"""What meetings are worth: how it is read, what is refused, what it means."""

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


def worth(weight: object, length: int = 10, decay: float = 0.6) -> MeetingWeights:
    asked = PartSettings.checked(
        (DECAY, MEETING_WEIGHT), {"meeting_weight": weight, "decay": decay}
    )
    return weights_of(asked, PartSettings.checked((LENGTH,), {"length": length}))


READ: dict[str, Callable[[int], float]] = {
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


@pytest.mark.parametrize("weight", READ)
def test_an_expression_means_what_python_means_by_it(weight: str) -> None:
    found, function = worth(weight), READ[weight]
    assert found.values[0] == 1
    assert np.allclose(found.values[1:11], [float(function(t)) for t in range(1, 11)], 1e-15)
    assert found.values[11:] == (0.0,) * 5
    later = [min(1.0, max(0.0, float(function(t)))) for t in range(11, HORIZON + 1)]
    assert math.isclose(found.beyond, max(later), abs_tol=1e-15)
    assert found.most == max(found.values[1:])


@pytest.mark.parametrize("weight", READ)
def test_a_text_is_kept_in_one_way_of_writing(weight: str) -> None:
    kept = MEETING_WEIGHT.checked(weight)
    assert MEETING_WEIGHT.checked(kept) == kept == MEETING_WEIGHT.checked(kept.replace("  ", " "))
    assert worth(kept) == worth(weight)


@pytest.mark.parametrize(
    "weight",
    [[0.9, 0.5, 0.25], (0.9, 0.5, 0.25), np.array([0.9, 0.5, 0.25]), "0.9, .5,0.25"],
)
def test_numbers_are_what_each_step_is_worth(weight: Any) -> None:
    assert worth(weight, 3) == MeetingWeights((1.0, 0.9, 0.5, 0.25, *[0.0] * 12), 0.0)
    assert MEETING_WEIGHT.checked(weight) == "0.9, 0.5, 0.25"
    assert worth([0.5], 1).values[:3] == (1, 0.5, 0)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=15).filter(any))
def test_numbers_are_kept_to_the_bit(numbers: list[float]) -> None:
    kept = MEETING_WEIGHT.checked(numbers)
    assert MEETING_WEIGHT.checked(kept) == kept
    assert worth(kept, len(numbers)).values[1 : len(numbers) + 1] == tuple(numbers)


def test_decay_is_the_default_to_the_bit() -> None:
    for decay in (0.1, 0.6, 0.95):
        found = worth(MEETING_WEIGHT.default, 15, decay)
        assert found.values == tuple(decay**t for t in range(16))
        assert found.beyond == decay**16


@pytest.mark.parametrize(
    ("weight", "said"),
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
def test_what_is_no_function_of_meetings_is_refused(weight: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        worth(weight)


@pytest.mark.parametrize("signs", [None, "t0123456789.,+-*/%<>=()decaylngthmixorsqp \0\n"])
@given(data=st.data())
def test_any_text_is_read_or_refused(signs: str | None, data: st.DataObject) -> None:
    """Also what looks like a function."""
    text = data.draw(st.text(max_size=30) if signs is None else st.text(signs, max_size=25))
    try:
        found = worth(text)
    except UsageError:
        return
    assert all(0 <= value <= 1 for value in found.values)


def test_a_question_tells_what_it_goes_by_and_nothing_else() -> None:
    simrank = MEASURES["simrank"]
    assert simrank.ask_settings({}).to_json() == {"decay": 0.6}
    assert simrank.ask_settings({"meeting_weight": "decay**t"}).to_json() == {"decay": 0.6}
    assert simrank.ask_settings({"meeting_weight": "t<=3"}).to_json() == {
        "meeting_weight": "t <= 3"
    }
    asked = simrank.ask_settings({"meeting_weight": "decay**t/t", "decay": 0.2})
    assert asked.to_json() == {"decay": 0.2, "meeting_weight": "decay ** t / t"}
    with pytest.raises(UsageError, match=r"decay is 0\.2, but meeting_weight does not use it"):
        simrank.ask_settings({"meeting_weight": "t<=3", "decay": 0.2})
    assert heeds_decay("decay / 2")
    assert not heeds_decay("hitting")


def test_a_blend_hands_it_to_those_that_walk() -> None:
    mixed = find_measure("blend:simrank+xjaccard")
    asked = mixed.ask_settings({"meeting_weight": "t<=3", "decay": 0.2})
    assert asked.to_json() == {"decay": 0.2, "meeting_weight": "t <= 3", "normalized": False}
    own = [component.ask_settings(asked).to_json() for component in mixed.components]
    assert own[0]["meeting_weight"] == "t <= 3"
    assert own[1] == {"decay": 0.2, "normalized": False}
    fixed = find_measure("blend:simrank(meeting_weight=t<=3)+psimrank")
    assert fixed.name == "blend:simrank(meeting_weight=t <= 3)+psimrank"
    assert find_measure(fixed.name) == fixed
    own = [
        c.ask_settings(fixed.ask_settings({"meeting_weight": "1/t"})).to_json()
        for c in fixed.components
    ]
    assert [each["meeting_weight"] for each in own] == ["t <= 3", "1 / t"]
    alone = find_measure("blend:simrank(meeting_weight=hitting)+cocitation")
    with pytest.raises(UsageError, match="meeting_weight does not use it"):
        alone.ask_settings({"decay": 0.5})


@pytest.mark.parametrize("name", MEASURES)
def test_measures_of_walks_take_it_and_no_others(name: str) -> None:
    measure = MEASURES[name]
    assert (MEETING_WEIGHT in measure.ask) == (measure.step is not None)
    if MEETING_WEIGHT not in measure.ask:
        with pytest.raises(UsageError, match="has no setting 'meeting_weight' when asking"):
            measure.ask_settings({"meeting_weight": "t<=3"})
