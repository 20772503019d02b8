"""XJaccard: two pages are similar if the same pages reach both within a few links.

    xjac(u, v) = sum over k = 1, ..., length of decay**k (1 - decay) J_k(u, v)
    J_k(u, v)  = |I_k(u) & I_k(v)| / |I_k(u) | I_k(v)|

with I_k(v) the nodes that reach v in at most k links, v included. A sample is a random order of all
nodes: the first nodes of I_k(u) and of I_k(v) in it are equal with probability J_k(u, v) (Lemma 4).

Convention: in-links. A node scores decay - decay**(length + 1) with itself; ``normalized`` divides
by that. A larger decay moves weight to larger k, and may lower a score. With ``bits``, the index
stores b bits of a hash of each first node. Different nodes then match with probability 2**-b, which
is subtracted: estimates stay unbiased, but vary more, and scatter about 0 for unrelated nodes.
Source: Fogaras, Racz, *Scaling link-based similarity search*, 2.3 (Definition 3, Lemma 4); Li,
Koenig 2010, *b-bit minwise hashing*.
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
    "how many bits of each min-hash to store (layout sketch); 0: all (layout minhash)",
    0,
    16,
)
RINGS = replace(LENGTH, default=4, text="the radius of neighborhoods, in links")
NORMALIZED = Setting("normalized", False, "divide scores by the score of a node with itself")


def ring_weights(settings: PartSettings, length: int) -> list[float]:
    """Return the weights of rings 1, ..., length."""
    decay = settings[DECAY]
    weights = [decay**k * (1 - decay) for k in range(1, length + 1)]
    whole = decay - decay ** (length + 1)
    return [weight / whole for weight in weights] if settings[NORMALIZED] else weights


def _choose(
    layout: str | None, given: Mapping[str, object], settings: WholeSettings
) -> tuple[str, WholeSettings]:
    """Choose layout and bits together: nonzero bits mean layout sketch, and conversely."""
    bits = settings[BITS]
    found = layout or ("sketch" if bits else "minhash")
    if found == "minhash" and bits:
        raise UsageError(
            f"bits is {bits}, and layout minhash holds whole min-hashes; omit one of the two"
        )
    if found == "sketch" and not bits:
        if BITS.name in given:
            raise UsageError("bits is 0; layout sketch holds 1 to 16 bits of each min-hash")
        return found, settings.changed(BITS, _BITS)
    return found, settings


XJACCARD = Measure(
    name="xjaccard",
    summary="similar if the same pages are 1, 2, ... links before both (Fogaras, Racz)",
    layouts=("minhash", "sketch"),
    build=(SAMPLES, RINGS, SEED, BITS),
    ask=(DECAY, NORMALIZED),
    monotone=False,
    noisy=("sketch",),
    chooses=_choose,
)
