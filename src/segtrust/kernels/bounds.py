"""Bounds on the difference between the soft Dice confidence (SDC) and the ideal one (IDC).

Theorem 1 of the paper bounds their ratio by numbers that need only three sums over the
probability map: k, the size of the mask; s = k mu, the sum of the probabilities inside
it; lam, the sum of the probabilities outside it:

    b_L <= IDC / SDC <= b_U,   b_L = (k + s + lam) / (k + s + lam + 1 - mu)
                               b_U = E[(c + lam) / (c + W)]
                               c = k + s,  W ~ Poisson(lam)

On real images both bounds are mostly within 1e-4 of 1, so everything here is computed as
a distance from 1; subtracting 1 from the bounds themselves would leave few digits.

The distance of b_U follows from an identity in which nothing cancels:

    b_U - 1 = lam E[1 / ((c + W)(c + W + 1))]

With G the generating function of W, this mean is

    integral over y > 0 of (1 - exp(-y)) exp(-c y) G(exp(-y)) dy

In z = log y the integrand is analytic for |Im z| < pi/2 and decays at both ends, so the
trapezoidal rule converges like exp(-pi^2 / step): a step of 0.2 has an error of about
1e-21. Scaled by the initial rate of decay, one fixed set of 141 nodes serves all c and
lam. Compared with mpmath, the relative error stays below 1e-15 for lam from 1e-12 to 1e8
and c from 1e-8 to 2e8, without a change of method in between. A similar identity holds
for a binomial count, which goes through the same rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from segtrust.errors import ParameterError

FloatArray = npt.NDArray[np.float64]

_STEP = 0.2
# On the left the integrand falls like y**2, so starting at exp(-20) leaves out 2e-18. On the
# right the slowest tail, exp(-y), has decayed at y = 40; the scale is at most 46 there,
# because beyond lam = 45 that tail has no weight. exp(8) = 2981 covers both.
_NODES: FloatArray = np.exp(np.arange(-100, 41) * _STEP)

# Images computed at once, so that their nodes fit the processor's cache.
_AT_ONCE = 256

# By rounding, a sum of k probabilities can exceed k, in float32 by this share.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class DiceBounds:
    """Bounds of Theorem 1 for one image, and the relative error that they imply.

    Attributes
    ----------
    k : int
        Number of pixels in the mask.
    mu : float
        Mean probability inside the mask, s / k.
    lam : float
        Sum of the probabilities outside the mask.
    s : float
        Sum of the probabilities inside the mask.
    lower, upper : float
        b_L and b_U: lower <= IDC / SDC <= upper.
    relative_error : float
        Largest possible |SDC - IDC| / IDC, accurate to about 1e-15 of its own value even
        where it is far below the spacing of floats near 1.

    Notes
    -----
    For an empty mask (k = 0) the ratio is undefined: `mu`, `lower`, `upper` and
    `relative_error` are NaN. With k > 0 and s = 0 both confidences are 0 and their ratio is
    0 / 0; the fields then hold the values of the formulas at mu = 0, which are their limits
    as s goes to 0.
    """

    k: int
    mu: float
    lam: float
    s: float
    lower: float
    upper: float
    relative_error: float


def dice_bounds_from(k: int, s: float, lam: float) -> DiceBounds:
    """Return the bounds on IDC / SDC from the three sums of a probability map.

    Parameters
    ----------
    k : int
        Number of pixels in the mask.
    s : float
        Sum of the probabilities inside the mask. If it exceeds `k` by rounding, `k` is
        used.
    lam : float
        Sum of the probabilities outside the mask.

    Returns
    -------
    DiceBounds
        With `mu`, the bounds and the error NaN if the mask is empty.

    Raises
    ------
    ParameterError
        If no probability map can have these sums.

    Examples
    --------
    >>> bounds = dice_bounds_from(k=8, s=6.0, lam=2.0)
    >>> print(f"{bounds.lower:.4f} {bounds.upper:.4f} {bounds.relative_error:.4f}")
    0.9846 1.0075 0.0156
    """
    _check_sums(k, s, lam)
    if k == 0:
        nan = math.nan
        return DiceBounds(0, nan, float(lam), 0.0, lower=nan, upper=nan, relative_error=nan)
    # In float64 from here on, whatever scalars were passed.
    k, s, lam = int(k), min(float(s), float(k)), float(lam)
    gap, excess = map(float, bound_distances(k, s, lam))
    return DiceBounds(
        k=k,
        mu=s / k,
        lam=lam,
        s=s,
        lower=1 / (1 + gap),
        upper=1 + excess,
        relative_error=max(gap, excess / (1 + excess)),
    )


def relative_errors_from(k: Any, s: Any, lam: Any) -> FloatArray:
    """Return the largest possible relative error of the SDC for each of many images.

    Parameters
    ----------
    k : array_like of shape (images,)
        Number of pixels in each mask.
    s, lam : array_like of shape (images,)
        Sums of the probabilities inside and outside each mask.

    Returns
    -------
    ndarray of shape (images,)
        As `DiceBounds.relative_error`; NaN where the mask is empty.

    Raises
    ------
    ParameterError
        If no probability map can have the sums of one of the images.

    Examples
    --------
    >>> relative_errors_from([8, 0], [6.0, 0.0], [2.0, 0.3]).round(6)
    array([0.015625,      nan])
    """
    k, s, lam = (np.asarray(sums, np.float64) for sums in (k, s, lam))
    bad = np.flatnonzero(~((s >= 0) & (s <= k * (1 + _ROUNDING)) & (lam >= 0) & (lam < math.inf)))
    if bad.size:
        _check_sums(int(k[bad[0]]), float(s[bad[0]]), float(lam[bad[0]]))
    s = np.minimum(s, k)
    errors = np.full(k.shape, math.nan)
    filled = np.flatnonzero(k > 0)
    for at in (filled[first : first + _AT_ONCE] for first in range(0, filled.size, _AT_ONCE)):
        gap, excess = bound_distances(k[at], s[at], lam[at])
        errors[at] = np.maximum(gap, excess / (1 + excess))
    return errors


def bound_distances(k: Any, s: Any, lam: Any) -> tuple[Any, Any]:
    """Return 1 / b_L - 1 and b_U - 1: how much the SDC can over- and underestimate the IDC.

    Parameters
    ----------
    k : float or ndarray
        Number of pixels in the mask, at least 1.
    s, lam : float or ndarray
        Sums of the probabilities inside and outside the mask.

    Returns
    -------
    tuple of float or ndarray
        The largest possible (SDC - IDC) / IDC, and the largest possible (IDC - SDC) / SDC,
        which is 0 if `lam` is 0.

    Notes
    -----
    The first is (1 - mu) / (k + k mu + lam) with mu = s / k. The second is
    lam / (c (c + 1)) 1F1(2; c + 2; -lam) with c = k + s. SciPy's ``hyp1f1`` agrees to 2e-14
    where c + lam < 80 but has an error of 1e-6 near 1e8, so the rule described in the module
    docstring is used throughout.

    Examples
    --------
    >>> gap, excess = bound_distances(8.0, 6.0, 2.0)
    >>> print(f"{gap} {excess:.12f}")
    0.015625 0.007508084525
    """
    # k - s keeps the digits that 1 - s / k would lose where mu is close to 1.
    return (k - s) / k / (k + s + lam), _poisson_excess(k + s, lam)


def binomial_lower_bound(k: int, mu: float, lam: float) -> float:
    """Return the smallest IDC that `k`, `mu` and `lam` allow, the first bound of the appendix.

    It is tighter than SDC b_L, which follows from it by Jensen's inequality. It is attained
    if all pixels of the mask have probability `mu` and all others 0 or 1.

    Parameters
    ----------
    k : int
        Number of pixels in the mask.
    mu : float
        Mean probability inside the mask.
    lam : float
        Sum of the probabilities outside the mask.

    Returns
    -------
    float
        2 k mu E[1 / (k + 1 + lam + W)] with W ~ Binomial(k - 1, mu); 0 for an empty mask.
        The time does not depend on `k`.

    Examples
    --------
    Two pixels of probability 1/2: Dice 0, 2/3, 2/3 or 1, each with probability 1/4.

    >>> print(f"{binomial_lower_bound(k=2, mu=0.5, lam=0.0):.12f}")
    0.583333333333
    """
    if k == 0:
        return 0.0
    shift = k + 1 + lam
    jensen = 2 * k * mu / (shift + (k - 1) * mu)
    return jensen * (1 + _binomial_excess(shift, k - 1, mu))


def worst_relative_error(s: float) -> float:
    """Return the largest relative error of the SDC over all images with foreground mass `s`.

    Parameters
    ----------
    s : float
        Sum of the probabilities inside the mask.

    Returns
    -------
    float
        max(epsilon1(s), epsilon2(s)); infinite at s = 0, where there is no guarantee.

    Notes
    -----
    On every grid tried, s from 1e-8 to 1e8, `epsilon1` is the larger: s * epsilon2(s)
    rises towards 1/8, while s * epsilon1(s) is 0.1716.

    Examples
    --------
    >>> print(f"{worst_relative_error(17.16):.4f}")
    0.0100
    """
    return max(epsilon1(s), epsilon2(s))


def epsilon1(s: float) -> float:
    """Return the largest 1 / b_L - 1 over all images with foreground mass `s`: (3 - 2 sqrt 2) / s.

    Parameters
    ----------
    s : float
        Sum of the probabilities inside the mask.

    Returns
    -------
    float
        An upper bound for every s; infinite at s = 0.

    Notes
    -----
    As in the paper, k = s / mu may be any real number. The maximum is at lam = 0,
    mu = sqrt 2 - 1, hence k = (1 + sqrt 2) s. So it is attained by a real k >= 1 for
    s >= sqrt 2 - 1 = 0.414, and by an image, whose k is an integer, only if
    (1 + sqrt 2) s is an integer. For smaller s the largest value of an image is
    (1 - s) / (1 + s), at k = 1.

    Examples
    --------
    >>> print(f"{epsilon1(17.16):.6f}")
    0.009998
    """
    _check_mass(s)
    # 3 - 2 sqrt 2 = 1 / (3 + 2 sqrt 2), without the cancellation.
    return 1 / (3 + math.sqrt(8)) / s if s else math.inf


def epsilon2(s: float) -> float:
    """Return the largest 1 - 1 / b_U over all images with foreground mass `s`.

    Parameters
    ----------
    s : float
        Sum of the probabilities inside the mask.

    Returns
    -------
    float
        An upper bound for every s, below 1; 1 at s = 0, its limit.

    Notes
    -----
    b_U decreases with c = k + s, since its derivative by c is the covariance of W and
    1 / (c + W)^2. So the smallest c gives the maximum: mu = 1, k = s, c = 2 s, with k real
    as in the paper (an image attains it if s is an integer). What remains is a maximum
    over lam. It was the only one on every grid tried, s from 1e-8 to 1e8, and lies near 1
    for small s and near 2 s + 2/3 for large s.

    Examples
    --------
    >>> print(f"{epsilon2(17.16):.6f}")
    0.007284
    """
    # Imported here because the bounds of an image need only NumPy.
    from scipy.optimize import minimize_scalar

    _check_mass(s)
    if s == 0:
        return 1.0
    peak = minimize_scalar(
        # 1 - 1 / b_U in this form because the excess itself overflows for the smallest s.
        lambda lam: -1 / (1 + 1 / _poisson_excess(2 * s, lam)),
        bounds=(s, 4 * s + 2),
        method="bounded",
        # The error in the value is of second order, so this is exact to rounding.
        options={"xatol": 1e-8 * (s + 1)},
    )
    return -float(peak.fun)


def _poisson_excess(c: Any, lam: Any) -> Any:
    """Return E[(c + lam) / (c + W)] - 1 for W ~ Poisson(lam) and c > 0, for arrays or numbers."""
    c, lam = np.float64(c), np.float64(lam)
    # W = 0 separately: as c goes to 0 only its term diverges, and its tail exp(-c y) would
    # extend beyond any fixed set of nodes.
    with np.errstate(over="ignore", under="ignore"):
        at_zero = np.exp(-lam) / c / (c + 1)
    rate = lam[..., None]

    def at_least_one(y: FloatArray) -> FloatArray:
        # exp(-lam) (exp(lam t) - 1) at t = exp(-y), in factors that cannot overflow.
        product: FloatArray = np.exp(rate * np.expm1(-y)) * -np.expm1(-rate * np.exp(-y))
        return product

    with np.errstate(over="ignore", under="ignore"):
        return lam * (at_zero + _mean_of_pairs(c, at_least_one, mean=lam))


def _binomial_excess(a: float, n: int, mu: float) -> float:
    """Return E[(a + n mu) / (a + W)] - 1 for W ~ Binomial(n, mu).

    It equals n mu (1 - mu) E[1 / ((a + V)(a + V + 1))] with V ~ Binomial(n - 1, mu).
    """
    # Otherwise the rule would multiply 0 by infinity at mu = 1.
    if n == 0 or mu in (0, 1):
        return 0.0

    def one_trial_fewer(y: FloatArray) -> FloatArray:
        logarithm: FloatArray = (n - 1) * np.log1p(mu * np.expm1(-y))
        return np.exp(logarithm)

    pairs = _mean_of_pairs(np.float64(a), one_trial_fewer, mean=np.float64((n - 1) * mu))
    return n * mu * (1 - mu) * float(pairs)


def _mean_of_pairs(a: Any, generating: Callable[[FloatArray], FloatArray], *, mean: Any) -> Any:
    """Return E[1 / ((a + W)(a + W + 1))] by the trapezoidal rule in log y.

    `generating` is the generating function of W at exp(-y), with the nodes along the last
    axis; `mean` is the mean of W, which sets the scale on which the integrand decays.
    """
    y = _NODES / (a + 1 + mean)[..., None]
    with np.errstate(under="ignore"):
        integrand = -np.expm1(-y) * np.exp(-a[..., None] * y) * generating(y)
        # y is dy / dz.
        return _STEP * np.sum(y * integrand, axis=-1)


def _check_sums(k: int, s: float, lam: float) -> None:
    if not (0 <= s <= k * (1 + _ROUNDING) and 0 <= lam < math.inf):
        raise ParameterError(
            f"expected 0 <= s <= k and 0 <= lam < inf, got k={k}, s={s}, lam={lam}. "
            "k is the number of pixels in the mask; s and lam are the sums of the "
            "probabilities inside and outside the mask."
        )


def _check_mass(s: float) -> None:
    if not 0 <= s < math.inf:
        raise ParameterError(
            f"expected 0 <= s < inf, got s={s}. s is the sum of the probabilities inside the mask."
        )
