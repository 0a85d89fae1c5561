"""Print the polynomials of ``segtrust.kernels.uncertainty`` and their largest errors."""

from mpmath import atanh, chebyfit, log, mp, mpf, polyval, sqrt

REST_DEGREE, FRACTION_DEGREE = 15, 6


def log_of_rest(v):
    """Give -(1 - m) log2(1 - m) / m at m = v + 1/4."""
    m = mpf(v) + mpf(1) / 4
    return 1 / log(2) if m == 0 else -(1 - m) * log(1 - m) / m / log(2)


def slope_of_fraction(square):
    """Give (log2 f - 1/2) / w at w² = square, w = (f - √2)/(f + √2), for f between 1 and 2."""
    w = sqrt(square)
    return 2 * (atanh(w) / w if w else 1) / log(2)


def show(name, coefficients):
    """Print coefficients, highest power first."""
    print(f"  {name}:")  # noqa: T201
    print("\n".join(f"    {c!r}" for c in coefficients))  # noqa: T201


def fitted(function, interval, degree):
    """Fit a polynomial, round it to double, and give it with its error at each place of a grid."""
    low, high = interval
    coefficients = [float(c) for c in chebyfit(function, interval, degree + 1)]
    grid = [low + (high - low) * i / 1000 for i in range(1001)]
    return coefficients, {x: abs(polyval(coefficients, x) - function(x)) for x in grid}


def main():
    """Print what `segtrust.kernels.uncertainty` holds, and how far it is from the functions."""
    mp.dps = 40
    (*others, constant), errors = fitted(log_of_rest, [-mpf(1) / 4, mpf(1) / 4], REST_DEGREE)
    print(f"rest: error {float(max(errors.values())):.1e}")  # noqa: T201
    show("constant", [constant])
    show("slope, even powers", others[REST_DEGREE % 2 == 0 :: 2])
    show("slope, odd powers", others[REST_DEGREE % 2 :: 2])
    slope, errors = fitted(slope_of_fraction, [mpf(0), ((sqrt(2) - 1) / (sqrt(2) + 1)) ** 2], FRACTION_DEGREE)
    error = max(sqrt(square) * error for square, error in errors.items())
    print(f"logarithm of the fraction: error {float(error):.1e}")  # noqa: T201
    show("slope, powers of the square", slope)


if __name__ == "__main__":
    main()
