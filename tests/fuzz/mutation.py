"""Random changes of bytes, JSON values and arrays: deterministic, given the generator."""

import copy
import math
import struct

import numpy as np

INTEGERS = (0, 1, 2, 3, 4, 7, 8, 127, 128, 255, 256, 65535, 2**16, 2**20, 2**31 - 1, 2**31)
INTEGERS = (*INTEGERS, 2**32 - 1, 2**32, 2**40, 2**63 - 1, 2**63, 2**64 - 1)
VALUES = (None, True, False, -1, 0, 1, 2, 1.5, -0.0, 1e308, math.nan, math.inf, -math.inf)
VALUES = (*VALUES, 10**9, 10**15, 2**63, 10**30, 10**400, "", "x", "1", "\0", "\u00e9" * 50, [], {})
VALUES = (*VALUES, [1], [[1]], [0, -1], [10**9, 10**9], ["a", 1], {"a": 1}, [2] * 70)
DTYPES = ("?", "i1", "u1", "i4", "i8", "u8", "f2", "f4", "f8")


def random_bytes(rng):
    return rng.randbytes(rng.choice((0, 1, 2, 7, 8, 9, 30, 100, 400)))


def integer_bytes(rng):
    """An interesting integer, of a few bytes, in either order."""
    form = rng.choice("<>") + rng.choice("BHIQ")
    number = rng.choice(INTEGERS) + rng.choice((0, 0, 0, 1, -1))
    return struct.pack(form, number % 256 ** struct.calcsize(form))


def change_bytes(rng, content, other):
    """A few changes of a file; parts of another one may get into it."""
    for _ in range(rng.choice((1, 1, 1, 2, 4, 8))):
        start = rng.randrange(len(content) + 1)
        end = min(start + rng.choice((1, 2, 4, 8, 50)), len(content))
        part = content[start:end]
        kind = rng.randrange(8)
        if kind == 0 and part:
            part = bytes([part[0] ^ (1 << rng.randrange(8))]) + part[1:]
        elif kind == 1:
            return content[:start]
        elif kind == 2:
            part = rng.randbytes(rng.choice((1, 2, 8))) + part
        elif kind == 3:
            part = part * rng.choice((0, 2, 20))
        elif kind == 4:
            part, end = integer_bytes(rng), None
            end = start + len(part)
        elif kind == 5:
            return content[:start] + other[rng.randrange(len(other) + 1) :]
        elif kind == 6:
            place = rng.randrange(len(other) + 1)
            part = other[place : place + 50]
        else:
            part = bytes(len(part))
        content = content[:start] + part + content[end:]
    return content


def change_fields(rng, content, places):
    """Interesting integers at some of the places (start, struct format)."""
    changed = bytearray(content)
    for start, form in rng.sample(places, min(len(places), rng.choice((1, 1, 2, 3)))):
        number = rng.choice(INTEGERS) % 256 ** struct.calcsize(form)
        if start + struct.calcsize(form) <= len(changed):
            struct.pack_into(form, changed, start, number)
    return bytes(changed)


def change_value(rng, value):
    """A few changes of a JSON value, anywhere in it."""
    value = copy.deepcopy(value)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        places = list(_places(value))
        if not places:
            return rng.choice(VALUES)
        container, key = rng.choice(places)
        kind = rng.randrange(6)
        if kind == 0:
            del container[key]
        elif kind == 1 and isinstance(container, dict):
            container[rng.choice(("x", "", "class", "machines"))] = container.pop(key)
        elif kind == 2:
            other, name = rng.choice(places)
            container[key] = copy.deepcopy(other[name])
        elif kind == 3 and isinstance(container, list):
            container.append(copy.deepcopy(rng.choice(VALUES)))
        else:
            container[key] = copy.deepcopy(rng.choice(VALUES))
    return value


def _places(value):
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield value, key
        if isinstance(item, dict | list):
            yield from _places(item)


def change_arrays(rng, arrays):
    """A few changes of named arrays."""
    arrays = dict(arrays)
    for _ in range(rng.choice((1, 1, 2, 3))):
        if not arrays:
            break
        name = rng.choice(sorted(arrays))
        array, kind = arrays[name], rng.randrange(7)
        if kind == 0:
            del arrays[name]
        elif kind == 1:
            names = (*NAMES, "coupling.1", f"{name}.0", name.removesuffix(".0"))
            arrays[rng.choice(names)] = array
        elif kind == 2:
            with np.errstate(all="ignore"):
                arrays[name] = array.astype(rng.choice(DTYPES))
        elif kind == 3:
            arrays[name] = np.ones(random_shape(rng), rng.choice(DTYPES))
        elif kind == 4:
            shape = [1] * rng.randrange(4) + list(array.shape)
            arrays[name] = array.reshape(rng.sample(shape, len(shape)))
        elif kind == 5 and array.size:
            array = array.astype(float)
            array.flat[rng.randrange(array.size)] = rng.choice((math.nan, math.inf, 1e308, -1e300))
            arrays[name] = array
        else:
            arrays[name] = arrays[rng.choice(sorted(arrays))]
    return arrays


NAMES = ("label_weights", "label_bias", "visible_bias", "visible_bias.0", "log_variance")
NAMES = (*NAMES, "base_bias", "hidden_bias", "coupling.0", "", "top.coupling.0")


def random_shape(rng):
    return tuple(rng.choice((0, 1, 1, 2, 2, 3)) for _ in range(rng.randrange(6)))


def deep_text(rng):
    """JSON that is nested more deeply than anyone needs."""
    depth = rng.choice((40, 900, 5000, 100_000))
    return rng.choice(('{"a":' + "[" * depth + "]" * depth + "}", '{"a":' * depth, "[" * depth))
