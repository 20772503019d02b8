"""XJaccard: two pages are similar if the same pages reach both within a few links.

    xjac(u, v) = sum over k = 1, ..., length of decay**k (1 - decay) J_k(u, v)
    J_k(u, v)  = |I_k(u) & I_k(v)| / |I_k(u) | I_k(v)|

I_k(v) are the nodes that reach v in at most k links, including v. A sample is a random order of all
nodes. The first nodes of I_k(u) and I_k(v) in this order are equal with probability J_k(u, v)
(Lemma 4).

Convention: in-links. ``normalized`` divides by decay - decay**(length + 1), the score of a node
with itself. A larger decay moves weight to larger k, which can lower a score. With ``bits``, the
index stores b bits of a hash of each first node. Different nodes then match with probability 2**-b.
Subtracting this probability keeps estimates unbiased, but increases their variance: estimates for
unrelated nodes scatter around 0. Source: Fogaras, Racz, *Scaling link-based similarity search*,
section 2.3 (Definition 3, Lemma 4); Li, Koenig 2010, *b-bit minwise hashing*.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cocite.errors import UsageError
from cocite.measures.measure import Measure
from cocite.measures.settings import (
    DECAY,
    LENGTH,
    SAMPLES,
    SEED,
    PartSettings,
    Setting,
    WholeSettings,
)

_BITS = 8
BITS = Setting(
    "bits",
    0,
    "bits to store of each min-hash (layout sketch); 0: all (layout minhash)",
    0,
    16,
)
RINGS = replace(LENGTH, default=4, text="the radius of neighborhoods, in links")
NORMALIZED = Setting("normalized", False, "divide scores by the score of a node with itself")


def ring_weights(settings: PartSettings, length: int) -> list[float]:
    """Return the weights of J_1, ..., J_length."""
    decay = settings[DECAY]
    weights = [decay**k * (1 - decay) for k in range(1, length + 1)]
    whole = decay - decay ** (length + 1)
    return [weight / whole for weight in weights] if settings[NORMALIZED] else weights


def _choose(
    layout: str | None, given: Mapping[str, object], settings: WholeSettings
) -> tuple[str, WholeSettings]:
    """Choose layout and bits together: only the layout sketch has nonzero bits."""
    bits = settings[BITS]
    found = layout or ("sketch" if bits else "minhash")
    if found == "minhash" and bits:
        raise UsageError(
            f"bits is {bits}, but layout minhash stores whole min-hashes; omit one of the two"
        )
    if found == "sketch" and not bits:
        if BITS.name in given:
            raise UsageError("bits is 0, but layout sketch stores 1 to 16 bits of each min-hash")
        return found, settings.changed(BITS, _BITS)
    return found, settings


XJACCARD = Measure(
    name="xjaccard",
    summary="similar if the same pages reach both within 1, 2, ... links (Fogaras, Racz)",
    layouts=("minhash", "sketch"),
    build=(SAMPLES, RINGS, SEED, BITS),
    ask=(DECAY, NORMALIZED),
    monotone=False,
    noisy=("sketch",),
    chooses=_choose,
)
