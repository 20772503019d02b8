"""Settings: one kind for one name, values that are checked, and what a manifest says of them."""

from __future__ import annotations

import itertools

import pytest

from cocite.errors import UsageError
from cocite.measures import (
    DECAY,
    LENGTH,
    MEASURES,
    SAMPLES,
    Component,
    PartSettings,
    find_measure,
)


def test_settings_of_one_name_are_of_one_kind_in_all_measures() -> None:
    """A value is read by any setting of its name, so their kinds may not differ."""
    settings = [s for measure in MEASURES.values() for s in measure.build + measure.ask]
    settings.sort(key=lambda setting: setting.name)
    for name, several in itertools.groupby(settings, lambda setting: setting.name):
        assert len({type(setting.default) for setting in several}) == 1, name


def test_values_are_of_the_kind_of_their_setting_and_changes_are_checked() -> None:
    settings = PartSettings.checked((SAMPLES, DECAY), {"samples": 7, "length": 3})
    assert (settings[SAMPLES], settings[DECAY]) == (7, 0.6)
    assert LENGTH not in settings
    assert settings.get(LENGTH, None) is None
    fewer = settings.changed(SAMPLES, 5)
    assert (fewer[SAMPLES], settings[SAMPLES]) == (5, 7)
    assert fewer.only((LENGTH, SAMPLES)).to_json() == {"samples": 5}
    with pytest.raises(UsageError, match="samples is 0; it is a whole number from 1 to 65535"):
        settings.changed(SAMPLES, 0)
    with pytest.raises(UsageError, match="decay is 2; it is a number between 0 and 1"):
        PartSettings.checked((DECAY,), {"decay": 2})


def test_a_component_narrows_the_settings_of_the_whole() -> None:
    blend = find_measure("blend:xjaccard(bits=8,decay=0.3)+psimrank+cocitation")
    asked = blend.ask_settings({"decay": 0.5, "form": "count"})
    own = [component.ask_settings(asked).to_json() for component in blend.components]
    assert own[0] == {"decay": 0.3, "normalised": False}
    assert own[1:] == [{"decay": 0.5, "by": "decay ** t"}, {"form": "count", "idf": False}]
    for component in blend.components:
        assert isinstance(component, Component)
        assert type(component.choose(None, {"samples": 9})[1]) is PartSettings
