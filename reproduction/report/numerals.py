"""Numbers as people read them."""

import re

MINUS, EN_DASH, THIN_SPACE, HARD_SPACE = "\u2212", "\u2013", "\u2009", "\u00a0"


def decimal(number: float, digits: int) -> str:
    """A number with so many digits after the point; zero has no sign.

    >>> decimal(26.96, 1), decimal(-0.01, 1)
    ('27.0', '0.0')
    """
    return f"{number:z.{digits}f}".replace("-", MINUS)


def interval(low: float, high: float, digits: int) -> str:
    """Write an interval between two numbers.

    >>> interval(-0.62, 1.2, 1).encode("ascii", "replace")
    b'?0.6 to 1.2'
    """
    ends = decimal(low, digits), decimal(high, digits)
    # A dash beside a minus sign would confuse.
    return (" to " if MINUS in "".join(ends) else EN_DASH).join(ends)


def count(number: int) -> str:
    """A whole number in groups of three digits."""
    return f"{number:,}".replace(",", THIN_SPACE)


def keep_units(text: str) -> str:
    """A text in which no line ends between a number and its unit."""
    return re.sub(r"(?<=\d) (?=%|dB\b)", HARD_SPACE, text)


def duration(seconds: float) -> str:
    """A time in its two largest units.

    >>> duration(5400.0), duration(75.2), duration(0.25)
    ('1 h 30 min', '1 min 15 s', '0.2 s')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    if (whole := round(seconds)) < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min"
