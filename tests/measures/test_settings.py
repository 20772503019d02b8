"""Settings: one type per name, checked values, and what a manifest stores."""

import itertools
from dataclasses import replace

import pytest

from cocite.errors import UsageError
from cocite.measures import DECAY, LENGTH, MEASURES, SAMPLES, Component, PartSettings, find_measure
from cocite.measures.pagesim import DECAY_PER, RADIUS


def test_settings_share_type_by_name_across_measures() -> None:
    """Any setting of the same name may read a value, so their types must be equal."""
    settings = [s for measure in MEASURES.values() for s in measure.build + measure.ask]
    settings.sort(key=lambda setting: setting.name)
    for name, several in itertools.groupby(settings, lambda setting: setting.name):
        assert len({type(setting.default) for setting in several}) == 1, name


def test_part_settings_are_typed_and_checked() -> None:
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


def test_component_narrows_blend_settings() -> None:
    blend = find_measure("blend:xjaccard(bits=8,decay=0.3)+psimrank+cocitation")
    query = blend.ask_settings({"decay": 0.5, "form": "count"})
    settings = [component.ask_settings(query).to_json() for component in blend.components]
    assert settings[0] == {"decay": 0.3, "normalized": False}
    assert settings[1:] == [
        {"decay": 0.5, "meeting_weight": "decay ** t"},
        {"form": "count", "idf": False},
    ]
    for component in blend.components:
        assert isinstance(component, Component)
        assert type(component.choose(None, {"samples": 9})[1]) is PartSettings


def test_part_settings_omit_late_setting_unless_chosen() -> None:
    """Older manifests lack the setting and keep their meaning."""
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
def test_measure_without_settings_refuses_unknown_setting(when: str) -> None:
    bare = replace(find_measure("cocitation"), ask=(), build=())
    settings = bare.build_settings if when == "building" else bare.ask_settings
    with pytest.raises(UsageError, match=f"no setting 'form' when {when}; it takes no settings"):
        settings({"form": "count"})
