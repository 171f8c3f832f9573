"""Compares casts of the command with numpy, ml_dtypes and exact arithmetic.

    casts.py TENARC DIR

The numbers are all floats of the new dtype (of f32: some of each exponent), the middles between two of them, the neighbours of
each in the old dtype, and some numbers of each exponent or bit length of the old dtype.

What is right is computed by Python, which compares integers and floats exactly: the nearest float, and of two the one
whose last bit is 0. numpy must give the same bits. ml_dtypes rounds twice if the old dtype is not f32: first to f32. So for
bf16 and FP8 it must give the same bits where f32 has the number, and otherwise what it makes of the number in f32.
"""

import bisect
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np

NEW = {
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f8_e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8_e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "f8_e4m3fnuz": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "f8_e5m2fnuz": np.dtype(ml_dtypes.float8_e5m2fnuz),
}
OLD = {name: np.dtype(name) for name in ("float64", "float32", "int64", "uint64")}
UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32}


def positive(dtype):
    """The finite floats from zero on, as doubles, whose bits are their positions; then what would come next."""
    bits = np.arange(1 << (8 * dtype.itemsize - 1)).astype(UNSIGNED[dtype.itemsize])
    with np.errstate(all="ignore"):
        values = bits.view(dtype).astype(np.float64)
    values = values[np.isfinite(values)]
    return [*values.tolist(), 2 * values[-1] - values[-2]]


def neighbours(values, dtype):
    """The values in another float dtype, and those beside them."""
    with np.errstate(all="ignore"):
        values = np.asarray(values, np.float64).astype(dtype)
        return np.concatenate([values, np.nextafter(values, dtype.type(np.inf)), np.nextafter(values, dtype.type(0))])


def inputs(old, new):
    """The numbers that are cast."""
    rng = np.random.default_rng(1)
    if new.itemsize == 4:
        exponents = np.arange(0, 255, dtype=np.uint32)[:, None] << 23
        mantissas = np.array([0, 1, 2, 3, (1 << 22) - 1, 1 << 22, (1 << 23) - 2, (1 << 23) - 1], np.uint32)
        random = rng.integers(0, 1 << 23, (255, 8), np.uint32)
        bits = np.concatenate([(exponents | mantissas).ravel(), (exponents | random).ravel()])
        low, high = bits.view(np.float32).astype(np.float64), (bits + 1).view(np.float32).astype(np.float64)
        high[~np.isfinite(high)] = 2.0**128
        ends = np.concatenate([low, (low + high) / 2])
    else:
        floats = np.array(positive(new))
        ends = np.concatenate([floats, (floats[1:] + floats[:-1]) / 2])
    if old.kind == "f":
        width, bits = old.itemsize * 8, np.finfo(old).nmant
        exponents = np.arange(0, 1 << (width - 1 - bits), dtype=np.uint64)[:, None] << np.uint64(bits)
        mantissas = np.array([0, 1, 1 << (bits - 1), (1 << (bits - 1)) + 1, (1 << bits) - 1], np.uint64)
        each = (exponents | mantissas).ravel().astype(f"u{old.itemsize}").view(old)
        found = np.concatenate([neighbours(ends, old), each])
        return np.concatenate([found, -found])
    most, numbers = np.iinfo(old).max, set()
    wide = [1 << length for length in range(64)] + [int(end) for end in ends[ends < 2.0**63].tolist()]
    for number in wide:
        numbers |= {number - 1, number, number + 1}
        # The middles above a power of two, for mantissas of each length.
        numbers |= {number + (number >> bits) + near for bits in (3, 4, 8, 9, 11, 12, 24, 25) for near in (-1, 0, 1)}
        numbers |= {number + 3 * (number >> bits) + near for bits in (4, 9, 12, 25) for near in (-1, 0, 1)}
    numbers = {number for number in numbers if 0 <= number <= most}
    negative = {-number for number in numbers} if old.kind == "i" else set()
    return np.array(sorted(numbers | negative), old)


def exact(values, new):
    """The bits of the nearest floats. Python compares integers and floats exactly."""
    if new.itemsize == 4:
        return exact_f32(values)
    floats = positive(new)
    # Middles are exact doubles: they have one bit more than the floats.
    middles = [(low + high) / 2 for low, high in zip(floats, floats[1:])]
    last, sign_bit = len(floats) - 1, 1 << (8 * new.itemsize - 1)
    with np.errstate(all="ignore"):
        large = int(np.array(np.inf).astype(new).view(UNSIGNED[new.itemsize]))
    has_negative_zero = "fnuz" not in new.name
    found = []
    for value in values.tolist():
        # Not `value < 0`, which is false for the negative zero.
        negative = value < 0 or str(value) == "-0.0"
        size = abs(value)
        if size != size:
            found.append(None)
            continue
        at = bisect.bisect_left(middles, size)
        # In the middle, the float with an even last bit.
        at += at < last and size == middles[at] and at % 2
        if at == last:
            at = large & (sign_bit - 1) if has_negative_zero else large
            found.append(at | sign_bit if negative and has_negative_zero else at)
        else:
            found.append(at | sign_bit if negative and (at or has_negative_zero) else at)
    return found


def exact_f32(values):
    """Like `exact`, for f32, which has too many floats for a list."""
    found = []
    for value in values.tolist():
        if value != value:
            found.append(None)
            continue
        negative, size = value < 0 or str(value) == "-0.0", abs(value)
        if size == 0 or size >= 2**128:
            bits = 0x7F800000 if size else 0
        else:
            above, below = size.as_integer_ratio()
            exponent = above.bit_length() - below.bit_length()
            exponent -= size < 2.0**exponent
            exponent = max(exponent, -126)
            # The mantissa as a fraction of integers: size / 2**(exponent - 23).
            shift = 23 - exponent
            above, below = (above << shift, below) if shift > 0 else (above, below << -shift)
            mantissa, rest = divmod(above, below)
            mantissa += 2 * rest > below or (2 * rest == below and mantissa % 2)
            # A mantissa without the leading 1 is that of a subnormal, and one that overflows adds to the exponent.
            bits = min(((exponent + 126) << 23) + mantissa, 0x7F800000)
        found.append(bits | negative << 31)
    return found


def same(found, expected, is_nan):
    """Whether bits are equal, except for those of NaN, which have many."""
    return (found == expected) | is_nan


def compare(command, directory, old, name):
    new, unsigned = NEW[name], UNSIGNED[NEW[name].itemsize]
    values = inputs(OLD[old], new)
    source, cast, out = (directory / f"{old}.{name}.{end}" for end in ("npz", "tenarc", "raw"))
    np.savez(source, x=values)
    run = [command, "--quiet"]
    subprocess.run([*run, "edit", source, "-o", cast, "--cast", f"x={name}"], check=True)
    subprocess.run([*run, "get", cast, "x", "--as", "raw", "-o", out], check=True)
    found = np.fromfile(out, unsigned)
    direct = directory / f"{old}.{name}.direct"
    subprocess.run([*run, "get", source, "x", "--cast", name, "--as", "raw", "-o", direct], check=True)
    if direct.read_bytes() != out.read_bytes():
        return ["edit and get cast differently"], 0
    with np.errstate(all="ignore"):
        theirs = values.astype(new).view(unsigned)
        in_f32 = values.astype(np.float32)
        twice = in_f32.astype(new).view(unsigned)
    right = exact(values, new)
    is_nan = np.array([bits is None for bits in right])
    right = np.array([bits or 0 for bits in right], unsigned)
    problems = []
    with np.errstate(all="ignore"):
        stay_nan = np.isnan(found.view(new).astype(np.float64))[is_nan]
    if not stay_nan.all():
        problems.append("a NaN became a number")

    def report(what, wrong):
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            text = f"{what}: {int(wrong.sum())} of {len(values)}, the first is {values[at]!r}: found "
            problems.append(text + f"{found[at]:#x}, exact {right[at]:#x}, theirs {theirs[at]:#x}")

    report("not the nearest", ~same(found, right, is_nan))
    by_numpy = name in ("f32", "f16")
    other = ~same(found, theirs, is_nan)
    # ml_dtypes is wrong only where it rounds twice.
    report("unlike the library", other if by_numpy else other & (theirs != twice))
    rounded_twice = 0 if by_numpy else int((other & (theirs == twice)).sum())
    if old == "float32" and rounded_twice:
        problems.append(f"{rounded_twice} numbers in f32 are unlike those of ml_dtypes")
    return problems, rounded_twice


def main(command, directory):
    directory.mkdir(parents=True, exist_ok=True)
    passed = failed = 0
    for old in OLD:
        for name in NEW:
            problems, twice = compare(command, directory, old, name)
            for problem in problems:
                print(f"{old} to {name}: {problem}")
            if twice:
                print(f"{old} to {name}: ml_dtypes rounds {twice} numbers twice")
            passed, failed = passed + (not problems), failed + bool(problems)
    print(f"passed={passed} failed={failed}")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]))
