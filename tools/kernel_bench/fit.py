#!/usr/bin/python3
"""Fits the polynomials of core/kernels/vector (math.inl, trig.inl) and prints their f32 coefficients.

Minimises the largest weighted error by reweighted least squares (Lawson), rounds the lowest
coefficient to f32, and fits the rest again until all are rounded. Needs numpy only.
"""
import math

import numpy as np

NODES = 4000
ROUNDS = 60


def fit(function, weight, low, high, degree):
    angles = np.pi * (np.arange(NODES) + 0.5) / NODES
    x = 0.5 * (low + high) + 0.5 * (high - low) * np.cos(angles)
    y = np.array([function(v) for v in x])
    weights = np.array([weight(v) for v in x])
    coefficients = []
    for first in range(degree + 1):
        rest = y - sum(c * x**i for i, c in enumerate(coefficients))
        powers = np.stack([x**i for i in range(first, degree + 1)], 1)
        importance = np.ones(NODES)
        for _ in range(ROUNDS):
            scale = np.sqrt(importance) * weights
            solution = np.linalg.lstsq(powers * scale[:, None], rest * scale, rcond=None)[0]
            importance *= np.abs((powers @ solution - rest) * weights) + 1e-30
            importance /= importance.sum()
        coefficients.append(float(np.float32(solution[0])))
    error = np.abs((sum(c * x**i for i, c in enumerate(coefficients)) - y) * weights).max()
    return coefficients, math.log2(error)


def show(name, coefficients, error):
    print(f"{name}: error 2^{error:.1f}")
    for c in coefficients:
        print(f"    {c.hex()}f")


def exp_tail(r):  # (e^r - 1 - r) / r^2 as a series: no cancellation
    return sum(r**k / math.factorial(k + 2) for k in range(16))


def log_tail(f):  # (log(1 + f) - f + f^2 / 2) / f^3
    if abs(f) < 0.02:
        return sum((-1) ** k * f**k / (k + 3) for k in range(12))
    return (math.log1p(f) - f + f * f / 2) / f**3


def erf_slope(t):
    return math.erf(t) / t if t > 1e-8 else 2 / math.sqrt(math.pi)


def odd_tail(function):  # (f(x) / x - 1) / x^2 of z = x^2, and its weight: relative to f
    def ratio(z):
        return function(math.sqrt(z)) / math.sqrt(z)
    return lambda z: (ratio(z) - 1) / z, lambda z: z / ratio(z)


def main():
    half = math.log(2) / 2 * 1.001
    show("exp tail", *fit(exp_tail, lambda r: r * r / math.exp(r), -half, half, 4))
    show("log tail", *fit(log_tail, lambda f: abs(f) ** 3 / max(abs(math.log1p(f)), 1e-12),
                          math.sqrt(0.5) - 1, math.sqrt(2) - 1, 8))
    # The first interval keeps erf(0) = 0, is relative to the slope, and leaves t out, which is added
    # exactly.
    show("erf(t) - t, from 0 (times t)", *fit(lambda t: erf_slope(t) - 1,
                                              lambda t: 1 / erf_slope(t), 0, 0.5, 6))
    for i in range(1, 8):
        base = i / 2
        show(f"erf, from {base}", *fit(lambda t: math.erf(base + t),
                                       lambda t: 1 / math.erf(base + t), 0, 0.5, 7))
    show("atan tail", *fit(*odd_tail(math.atan), 0, 1, 9))
    show("asin tail", *fit(*odd_tail(math.asin), 0, 0.25, 5))
    show("tan tail", *fit(*odd_tail(math.tan), 0, (math.pi / 4 * 1.001) ** 2, 6))


if __name__ == "__main__":
    main()
