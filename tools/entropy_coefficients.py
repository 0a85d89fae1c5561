"""Print the polynomials of ``segtrust.kernels.entropy`` and their largest errors."""

from mpmath import chebyfit, log, mp, mpf, polyval

DEGREE_OF_REST, DEGREE_OF_FRACTION = 15, 17


def log_of_rest(v):
    """Give -(1 - m) log2(1 - m) / m at m = (v + 1) / 4."""
    m = (mpf(v) + 1) / 4
    return 1 / log(2) if m == 0 else -(1 - m) * log(1 - m) / m / log(2)


def log_of_fraction(w):
    """Give log2 f at f = (w + 3) / 2."""
    return log((mpf(w) + 3) / 2) / log(2)


def main():
    """Fit in 40 digits, round to double, and report the error of the rounded polynomial."""
    mp.dps = 40
    for function, degree in ((log_of_rest, DEGREE_OF_REST), (log_of_fraction, DEGREE_OF_FRACTION)):
        coefficients = [float(c) for c in chebyfit(function, [-1, 1], degree + 1)]
        grid = [mpf(i) / 500 for i in range(-500, 501)]
        error = max(abs(polyval(coefficients, x) - function(x)) for x in grid)
        print(function.__name__, f"error {float(error):.1e}, highest power first:")  # noqa: T201
        print("\n".join(f"  {c!r}" for c in coefficients))  # noqa: T201


if __name__ == "__main__":
    main()
