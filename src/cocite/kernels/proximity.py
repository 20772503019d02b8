"""From a push to proximities: residuals counted in, degrees divided out, the error's bound.

After a push (``kernels/push.py``) along links taken either way from u, node v has the estimate p(v)
and the residual r(v), and u's own residual r begins the walk anew:

    share(v) >= (p(v) + (1 - damping) r(v)) / (1 - r)     what v holds stays there in part
    score(v)  = sqrt(d(u) / d(v)) / (1 - damping) * that, 1 at most

and since d(w) share(w, v) = d(v) share(v, w), with e the largest r(w) / d(w) over w other than u,
what share(v) may be above that is  e d(v) / (1 - r)  at most, so that

    score(v) is above it by  sqrt(d(u) d(v)) / (1 - damping) * e / (1 - r)  at most.

Cost: a pass over the nodes reached.
Source: see ``measures/proximity.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.codes import GRAINS
from cocite.kernels._jit import kernel

__all__ = ["finish"]


@kernel
def finish(damping: Any, degrees: Any, values: Any, used: Any, reached: Any) -> Any:
    """Turn the estimates of ``used[:reached]`` into grains, residuals to 0.

    ``values`` float64[nodes, 2] holds estimates and residuals, ``degrees`` float64[nodes]. Returns
    the bound of the error of v over sqrt(d(v)); nan if a degree is not positive.
    """
    source = used[0]
    rest = 1.0 - values[source, 1]
    scale = np.sqrt(degrees[source]) / (1.0 - damping) / rest
    largest, sound = 0.0, degrees[source] > 0.0
    for i in range(reached):
        node = used[i]
        degree = degrees[node]
        residual = values[node, 1]
        sound = sound and degree > 0.0
        if i > 0:
            largest = max(largest, residual / degree)
        share = values[node, 0] + (1.0 - damping) * residual
        values[node, 0] = min(np.rint(scale / np.sqrt(degree) * share * GRAINS), GRAINS)
        values[node, 1] = 0.0
    return scale * largest if sound else np.nan
