#!/usr/bin/env python3
"""Writes reference.json, the values of numpy and scipy that the statistics are compared with.

Run after `apt-get install python3-scipy` (numpy 1.22 and scipy 1.10 or newer), in this folder:

    python3 reference.py > reference.json

The series are not stored. Series n is made from uniform numbers: number i (from 1) is the SplitMix64 output for the
state n + i * 0x9E3779B97F4A7C15, of which the 53 high bits plus one half are divided by 2^53. The test `reference.rs`
makes the same series.
"""

import json
import math

import numpy
from scipy import optimize, special, stats

SHARES = {"median": 0.5, "p99": 0.99, "p99_9": 0.999, "p99_99": 0.9999}


def uniform(series, count):
    with numpy.errstate(over="ignore"):
        golden = numpy.uint64(0x9E3779B97F4A7C15)
        state = numpy.uint64(series) + numpy.arange(1, count + 1, dtype=numpy.uint64) * golden
        state = (state ^ (state >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        state ^= state >> numpy.uint64(31)
    return ((state >> numpy.uint64(11)).astype(float) + 0.5) / 2.0**53


def series(number, name, count):
    """Values in nanoseconds, as integers."""
    one, other = uniform(number, 2 * count).reshape(2, count)
    value = {
        "uniform": lambda: 1e5 + 1e5 * one,
        "exponential": lambda: -1e5 * numpy.log(one),
        "lognormal": lambda: 1e5 * numpy.exp(0.5 * numpy.sqrt(-2 * numpy.log(one)) * numpy.cos(2 * math.pi * other)),
        "pareto": lambda: 1e5 * one ** (-1 / 2.5),
    }[name]()
    return numpy.floor(value + 0.5).astype(numpy.int64)


def fractional_rank(count, share, probability):
    """Rank r with betainc(r, count + 1 - r, share) = probability; None beyond the sample."""
    def excess(rank):
        return special.betainc(rank, count + 1 - rank, share) - probability
    if excess(1.0) < 0 or excess(float(count)) > 0:
        return None
    return optimize.brentq(excess, 1.0, float(count), xtol=1e-9)


def binomial_ranks(count, share):
    """Ranks, from 1, of the order statistics that enclose the quantile with at least 95 %."""
    return int(stats.binom.ppf(0.025, count, share)), int(stats.binom.ppf(0.975, count, share)) + 1


def summary(number, name, count):
    values = series(number, name, count)
    us = values / 1e3
    pdv = numpy.abs(numpy.diff(values)) / 1e3
    quantiles, order = {}, {}
    for key, share in SHARES.items():
        rank = -(-count * round(share * 1e6) // 1_000_000)
        if count - rank < 10:
            quantiles[key] = None
            continue
        # The rank is exact: share * count may not be, in binary.
        exact = numpy.quantile(us, (rank - 0.5) / count, method="inverted_cdf")
        quantiles[key] = exact
        low, high = binomial_ranks(count, share)
        order[key] = [numpy.sort(us)[low - 1], numpy.sort(us)[high - 1]] if low >= 1 and high <= count else None
    return {
        "series": number,
        "distribution": name,
        "count": count,
        "min": us.min(),
        "max": us.max(),
        "mean": us.mean(),
        "variance": us.var(ddof=1),
        "standard_deviation": us.std(ddof=1),
        "pdv_mean": pdv.mean(),
        "pdv_p99": numpy.quantile(pdv, (-(-(count - 1) * 99 // 100) - 0.5) / (count - 1), method="inverted_cdf"),
        "quantiles": quantiles,
        "independent_95": order,
    }


def ranks():
    """Fractional ranks of independent values; the effective number of values is not an integer."""
    return [
        {
            "count": count,
            "share": share,
            "ranks": [fractional_rank(count, share, probability) for probability in (0.975, 0.025)],
        }
        for count in (20.0, 333.3, 2000.0, 3999.0, 10000.5, 20000.0, 99999.0, 1e6)
        for share in (0.5, 0.99, 0.999)
    ]


def integer_ranks():
    return [
        {"count": count, "share": share, "ranks": binomial_ranks(count, share)}
        for count in (333, 2000, 20000, 99999)
        for share in (0.5, 0.99)
    ]


def ratios():
    """Student's and Welch's intervals of logarithms."""
    one, other = [2.1, 2.9, 1.7, 2.4, 2.0], [1.1, 0.8, 1.4]
    logs, others = numpy.log(one), numpy.log(other)
    paired = stats.ttest_1samp(logs, 0).confidence_interval(0.95)
    parts = [logs.var(ddof=1) / len(logs), others.var(ddof=1) / len(others)]
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / (len(logs) - 1) + parts[1] ** 2 / (len(others) - 1))
    half = stats.t.ppf(0.975, freedom) * math.sqrt(sum(parts))
    middle = logs.mean() - others.mean()
    return {
        "dividend": one,
        "divisor": other,
        "paired": [stats.gmean(one), math.exp(paired.low), math.exp(paired.high)],
        "unpaired": [math.exp(middle), math.exp(middle - half), math.exp(middle + half)],
    }


print(json.dumps({
    "summaries": [
        summary(1, "uniform", 20_000),
        summary(2, "exponential", 20_000),
        summary(3, "lognormal", 20_000),
        summary(4, "pareto", 20_000),
        summary(5, "pareto", 100_000),
        summary(6, "exponential", 777),
    ],
    "ranks": ranks(),
    "integer_ranks": integer_ranks(),
    "ratios": ratios(),
}))
