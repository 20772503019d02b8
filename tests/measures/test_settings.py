"""Settings: one kind for one name, values that are checked, and what a manifest says of them."""

import itertools
from dataclasses import replace

import pytest

from cocite.errors import UsageError
from cocite.measures import DECAY, LENGTH, MEASURES, SAMPLES, Component, PartSettings, find_measure
from cocite.measures.pagesim import DECAY_PER, RADIUS


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
    with pytest.raises(UsageError, match="samples is 0; it must be a whole number from 1 to 65535"):
        settings.changed(SAMPLES, 0)
    with pytest.raises(UsageError, match="decay is 2; it must be a number above 0 and below 1"):
        PartSettings.checked((DECAY,), {"decay": 2})


def test_a_component_narrows_the_settings_of_the_whole() -> None:
    blend = find_measure("blend:xjaccard(bits=8,decay=0.3)+psimrank+cocitation")
    asked = blend.ask_settings({"decay": 0.5, "form": "count"})
    own = [component.ask_settings(asked).to_json() for component in blend.components]
    assert own[0] == {"decay": 0.3, "normalized": False}
    assert own[1:] == [
        {"decay": 0.5, "meeting_weight": "decay ** t"},
        {"form": "count", "idf": False},
    ]
    for component in blend.components:
        assert isinstance(component, Component)
        assert type(component.choose(None, {"samples": 9})[1]) is PartSettings


def test_a_late_setting_is_named_only_where_it_is_chosen() -> None:
    """What was written before it came stays as it is, and says the same."""
    settings = PartSettings.checked((RADIUS, DECAY_PER), {})
    assert settings.to_json() == {"radius": 3}
    assert settings[DECAY_PER] == "hop"
    chosen = settings.changed(DECAY_PER, "path")
    assert chosen.to_json() == {"radius": 3, "decay_per": "path"}
    assert chosen.changed(DECAY_PER, "hop").to_json() == {"radius": 3}
    with pytest.raises(UsageError, match="decay_per is 'link'; it must be hop or path"):
        settings.changed(DECAY_PER, "link")
    blend = find_measure("blend:pagesim+psimrank")
    assert "decay_per" not in blend.build_settings({}).to_json()
    assert blend.build_settings({"decay_per": "path"}).to_json()["decay_per"] == "path"
    assert blend.components[0].choose(None, {"decay_per": "path"})[1][DECAY_PER] == "path"
    fixed = find_measure("blend:pagesim(decay_per=path)+psimrank").components[0]
    assert fixed.choose(None, {})[1][DECAY_PER] == "path"


@pytest.mark.parametrize("when", ["building", "asking"])
def test_unknown_setting_of_measure_without_settings_says_when(when: str) -> None:
    bare = replace(find_measure("cocitation"), ask=(), build=())
    settings = bare.build_settings if when == "building" else bare.ask_settings
    with pytest.raises(UsageError, match=f"no setting 'form' when {when}; it takes no settings"):
        settings({"form": "count"})
