"""Print the polynomials of ``segtrust.kernels.entropy`` and their largest errors."""

from mpmath import chebyfit, log, mp, mpf, polyval

# Half-width of the interval, and degree.
REST, FRACTION = (mpf(1) / 4, 15), (mpf(1) / 2, 17)


def log_of_rest(v):
    """Give -(1 - m) log2(1 - m) / m at m = v + 1/4."""
    m = mpf(v) + mpf(1) / 4
    return 1 / log(2) if m == 0 else -(1 - m) * log(1 - m) / m / log(2)


def log_of_fraction(w):
    """Give log2 f at f = w + 3/2."""
    return log(mpf(w) + mpf(3) / 2) / log(2)


def show(name, coefficients):
    """Print coefficients, highest power first."""
    print(f"  {name}:")  # noqa: T201
    print("\n".join(f"    {c!r}" for c in coefficients))  # noqa: T201


def main():
    """Fit in 40 digits, round to double, and report the error of the rounded polynomial."""
    mp.dps = 40
    for function, (width, degree) in ((log_of_rest, REST), (log_of_fraction, FRACTION)):
        coefficients = [float(c) for c in chebyfit(function, [-width, width], degree + 1)]
        grid = [width * i / 500 for i in range(-500, 501)]
        error = max(abs(polyval(coefficients, x) - function(x)) for x in grid)
        *others, constant = coefficients
        print(function.__name__, f"error {float(error):.1e}")  # noqa: T201
        show("constant", [constant])
        show("the rest over its variable, even powers", others[degree % 2 == 0 :: 2])
        show("odd powers", others[degree % 2 :: 2])


if __name__ == "__main__":
    main()
