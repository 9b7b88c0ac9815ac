#!/usr/bin/env python3
"""Computes every number of the paper once more, from the raw rows, with Python's standard library alone.

    check.py PAPER [--data DIR] [--sitting NAME] [--generated DIR]

PAPER is the folder with plan.toml. The program fails if a number differs from generated/numbers.json in its last
printed digit, or if one of the two has a number that the other has not. Its random numbers are specified:

- SplitMix64, whose state begins with FNV-1a (64 bits) of the text "PHASE/CELL/FIGURE"; the hash begins with the usual
  basis exclusive-or the plan's seed.
- One of n: the upper 64 bits of the product of the next number and n.
- A draw of the bootstrap takes n pairs, one after the other, in the order of the numbers.
"""

import argparse
import csv
import json
import math
import sys
import tomllib
from pathlib import Path
from statistics import NormalDist
from typing import NamedTuple

MASK = (1 << 64) - 1
UNKNOWN = "not measured yet"
TOO_FEW = "–"
NORMAL = NormalDist()
MIB = float(1 << 20)
# Word, title, column, divisor, digits, of which jobs.
COLUMNS = [
    ("job", "job", "job_ms", 1.0, 1, "all"),
    ("run", "job without its wait in the queue", "run_ms", 1.0, 1, "all"),
    ("time", "connection", "connection_ms", 1.0, 1, "all"),
    ("cpu", "processor time", "fd_cpu_s", 1.0, 3, "all"),
    ("sd", "processor time of the Storage Daemon", "sd_cpu_s", 1.0, 3, "all"),
    ("all", "processor time of all three daemons", "all_cpu_s", 1.0, 3, "all"),
    ("memory", "memory", "peak_rss_bytes", MIB, 1, "all"),
    ("volume", "bytes on the volume", "bytes", MIB, 2, "backup"),
    ("first", "first file", "first_file_ms", 1.0, 1, "restore"),
]


def seed_of(seed, text):
    value = 0xCBF29CE484222325 ^ seed
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 & MASK
    return value


class Draws:
    def __init__(self, seed):
        self.state = seed

    def number(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        mixed = (self.state ^ self.state >> 30) * 0xBF58476D1CE4E5B9 & MASK
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & MASK
        return mixed ^ mixed >> 31

    def below(self, limit):
        return self.number() * limit >> 64


def total(values):
    """In their order; Python's own sum compensates."""
    result = 0.0
    for value in values:
        result += value
    return result


def quotient(left, right):
    if right == 0.0:
        return 1.0 if left == 0.0 else math.inf
    return left / right


def quantile(ordered, thousandths):
    if not ordered:
        return 0.0
    at, rest = divmod((len(ordered) - 1) * thousandths, 1000)
    low = ordered[at]
    high = ordered[at + 1] if at + 1 < len(ordered) else low
    return low + (high - low) * (rest / 1000)


def median(values):
    return quantile(sorted(values), 500)


def p90(values):
    return quantile(sorted(values), 900)


def mean(values):
    return total(values) / max(len(values), 1)


def deviation(values):
    middle = mean(values)
    return math.sqrt(total((value - middle) * (value - middle) for value in values) / max(len(values) - 1, 1))


def ratio_of_medians(pairs):
    return quotient(median([ours for ours, _ in pairs]), median([stock for _, stock in pairs]))


def between(ordered, part):
    last = len(ordered) - 1
    place = min(max(part, 0.0), 1.0) * last
    at = min(math.floor(place), last)
    low = ordered[at]
    high = ordered[at + 1] if at < last else low
    return low + (high - low) * (place - at)


def bca(pairs, times, seed, confidence):
    """Efron and Tibshirani, chapter 14. Draws that equal the estimate count half."""
    value = ratio_of_medians(pairs)
    if len(pairs) < 2 or times == 0:
        return value, value, value
    random = Draws(seed)
    drawn = sorted(ratio_of_medians([pairs[random.below(len(pairs))] for _ in pairs]) for _ in range(times))
    below = (sum(one < value for one in drawn) + 0.5 * sum(one == value for one in drawn)) / times
    bias = NORMAL.inv_cdf(min(max(below, 0.5 / times), 1.0 - 0.5 / times))
    without = [ratio_of_medians(pairs[:at] + pairs[at + 1 :]) for at in range(len(pairs))]
    middle = total(without) / len(without)
    squares = total((middle - one) * (middle - one) for one in without)
    cubes = total((middle - one) * (middle - one) * (middle - one) for one in without)
    scale = 6.0 * squares * math.sqrt(squares)
    acceleration = cubes / scale if scale else 0.0

    def end(part):
        shifted = bias + NORMAL.inv_cdf(part)
        return between(drawn, NORMAL.cdf(bias + shifted / (1.0 - acceleration * shifted)))

    half = (1.0 - confidence) / 2.0
    return value, end(half), end(1.0 - half)


def binomial_up_to(count, part, most):
    return math.fsum(math.comb(count, at) * part**at * (1 - part) ** (count - at) for at in range(most + 1))


def ranks_around(count, part, confidence):
    up_to = [0.0] + [binomial_up_to(count, part, most) for most in range(count)]
    for distance in range(1, count):
        best = max(range(1, count - distance + 1), key=lambda low: up_to[low + distance] - up_to[low])
        if up_to[best + distance] - up_to[best] >= confidence:
            return best, best + distance
    return None


def sign_test(differences):
    positive = sum(one > 0 for one in differences)
    negative = sum(one < 0 for one in differences)
    return min(2.0 * binomial_up_to(positive + negative, 0.5, min(positive, negative)), 1.0)


def chances_of_sums(ranks):
    chances = [1.0]
    for rank in ranks:
        size = len(chances)
        chances = [
            ((chances[at] if at < size else 0.0) + (chances[at - rank] if 0 <= at - rank < size else 0.0)) / 2.0
            for at in range(size + rank)
        ]
    return chances


def wilcoxon(differences):
    sizes = sorted(abs(one) for one in differences)
    doubled, positive = [], 0
    for one in sorted(differences, key=abs):
        if one == 0:
            continue
        first = sizes.index(abs(one))
        rank = 2 * first + sizes.count(abs(one)) + 1
        doubled.append(rank)
        positive += rank if one > 0 else 0
    chances = chances_of_sums(doubled)
    return min(2.0 * min(total(chances[: positive + 1]), total(chances[positive:])), 1.0)


def hodges_lehmann(differences, confidence):
    means = sorted((left + right) / 2.0 for at, left in enumerate(differences) for right in differences[at:])
    value = quantile(means, 500)
    outside, left_out = 0.0, 0
    for chance in chances_of_sums(range(1, len(differences) + 1)):
        outside += chance
        if outside > (1.0 - confidence) / 2.0:
            break
        left_out += 1
    if left_out == 0 or left_out > len(means):
        return value, None
    return value, (means[left_out - 1], means[len(means) - left_out])


def cliffs_delta(left, right):
    more = sum((one > other) - (one < other) for one in left for other in right)
    return more / max(len(left) * len(right), 1)


def holm(probabilities):
    order = sorted(range(len(probabilities)), key=lambda at: probabilities[at])
    corrected, least = [0.0] * len(probabilities), 0.0
    for done, at in enumerate(order):
        least = min(max(least, probabilities[at] * (len(probabilities) - done)), 1.0)
        corrected[at] = least
    return corrected


def probability(value):
    if value >= 0.001:
        return f"{value:.3f}"
    digits, power = f"{value:.1e}".split("e")
    return f"{digits}e{int(power)}"


class Sitting(NamedTuple):
    """A host and a commit, and the folder of all data."""

    data: Path
    name: str


def sitting_of(data, wanted):
    """The folder of every phase that the text is about: the wanted one if a phase has it, else that of most phases."""
    counts = {}
    for phase in data.iterdir() if data.is_dir() else []:
        for one in phase.iterdir():
            counts[one.name] = counts.get(one.name, 0) + 1
    if wanted in counts:
        return wanted
    return max(counts, key=lambda name: (counts[name], name), default="")


def read(sitting, phase):
    raw = sitting.data / phase / sitting.name / "raw.csv"
    if not raw.exists():
        return []
    with raw.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    for row in rows:
        # What the job takes less its wait in the Director's queue.
        if row.get("job_ms") and row.get("queued_ms"):
            row["run_ms"] = repr(float(row["job_ms"]) - float(row["queued_ms"]))
        if row.get("dir_cpu_s"):
            row["all_cpu_s"] = repr(float(row["fd_cpu_s"]) + float(row["sd_cpu_s"]) + float(row["dir_cpu_s"]))
    return rows


def good(row):
    return row["outcome"] in ("T", "W")


def pairs_of(rows, cell):
    sides = {"ours": {}, "stock": {}}
    for row in rows:
        if row["cell"] == cell and good(row) and row["daemon"] in sides:
            sides[row["daemon"]][int(row["replica"])] = row
    both = sorted(set(sides["ours"]) & set(sides["stock"]))
    return [(sides["ours"][replica], sides["stock"][replica]) for replica in both]


def key_of(phase, cell):
    tree, level, variant = cell.split(" ")
    return ".".join([phase["name"], tree, level] + ([] if variant == "default" else [variant]))


def effect(pairs, plan, seed):
    """Everything about one column of a cell; without a seed there is no interval."""
    ours, stock = [one for one, _ in pairs], [other for _, other in pairs]
    logarithms = [math.log(quotient(one, other)) for one, other in pairs]
    has_interval = seed is not None and len(pairs) > 1
    if has_interval:
        value, low, high = bca(pairs, plan["draws"], seed, plan["confidence"])
    else:
        value = low = high = ratio_of_medians(pairs)
    each = 1.0 - (1.0 - plan["confidence"]) / 2.0
    ranks = ranks_around(len(pairs), 0.9, each)
    tails = [(ordered[ranks[0] - 1], ordered[ranks[1] - 1]) if ranks else None for ordered in (sorted(ours), sorted(stock))]
    return {
        "pairs": pairs,
        "ours": ours,
        "stock": stock,
        "logarithms": logarithms,
        "ratio": value,
        "low": low,
        "high": high,
        "has_interval": has_interval,
        "tails": tails,
        "tail": quotient(p90(ours), p90(stock)),
        "ends": (quotient(tails[0][0], tails[1][1]), quotient(tails[0][1], tails[1][0])) if ranks else None,
        "wilcoxon": wilcoxon(logarithms),
    }


def effect_numbers(one, plan, digits, depth, name, numbers):
    """As printed: medians, with depth 1 the interval, with depth 2 everything."""
    texts = {}
    sides = list(zip(("ours", "stock"), (one["ours"], one["stock"]), one["tails"]))
    for word, values, _ in sides:
        texts[f"{word}.median"] = f"{median(values):.{digits}f}"
    texts["ratio"] = f"{one['ratio']:.3f}"
    if depth >= 1:
        for word in ("low", "high"):
            texts[f"ratio.{word}"] = f"{one[word]:.3f}" if one["has_interval"] else TOO_FEW
    if depth >= 2:
        for word, values, tail in sides:
            texts[f"{word}.mean"] = f"{mean(values):.{digits}f}"
            texts[f"{word}.deviation"] = f"{deviation(values):.{digits}f}" if len(values) > 1 else TOO_FEW
            texts[f"{word}.most"] = f"{max(values, default=0.0):.{digits}f}"
            texts[f"{word}.p90"] = f"{p90(values):.{digits}f}" if tail else TOO_FEW
            texts[f"{word}.p90.low"] = f"{tail[0]:.{digits}f}" if tail else TOO_FEW
            texts[f"{word}.p90.high"] = f"{tail[1]:.{digits}f}" if tail else TOO_FEW
        ends = one["ends"]
        texts["p90.ratio"] = f"{one['tail']:.3f}" if ends else TOO_FEW
        texts["p90.ratio.low"] = f"{ends[0]:.3f}" if ends else TOO_FEW
        texts["p90.ratio.high"] = f"{ends[1]:.3f}" if ends else TOO_FEW
        shift, interval = hodges_lehmann(one["logarithms"], plan["confidence"])
        texts["shift"] = f"{math.exp(shift):.3f}"
        texts["shift.low"] = f"{math.exp(interval[0]):.3f}" if interval else TOO_FEW
        texts["shift.high"] = f"{math.exp(interval[1]):.3f}" if interval else TOO_FEW
        texts["sign"] = probability(sign_test(one["logarithms"]))
        texts["wilcoxon"] = probability(one["wilcoxon"])
        texts["delta"] = f"{cliffs_delta(one['ours'], one['stock']):.3f}"
    for word, text in texts.items():
        numbers[f"{name}.{word}"] = text if one["pairs"] else UNKNOWN


def cell_numbers(phase, cell, rows, numbers):
    """What is no column."""
    pairs = pairs_of(rows, cell)
    name = key_of(phase, cell)
    is_restore = cell.split(" ")[1].startswith("restore")
    numbers[f"{name}.n"] = str(len(pairs))
    failed = {}
    for side, word in enumerate(("ours", "stock")):
        bad = [row for row in rows if row["cell"] == cell and row["daemon"] == word and not good(row)]
        numbers[f"{name}.bad.{word}"] = str(len(bad))
        failed[word] = {row["replica"] for row in bad}
        mine = [pair[side] for pair in pairs]
        column = "bytes" if is_restore else "read_bytes"
        rate = median([quotient(float(one["bytes"]), float(one["connection_ms"])) * 1000.0 / MIB for one in mine])
        fd = median([quotient(float(one["fd_cpu_s"]), float(one[column]) / (1 << 30)) for one in mine])
        whole = median(
            [
                quotient(
                    float(one["fd_cpu_s"]) + float(one["sd_cpu_s"]) + float(one["dir_cpu_s"]),
                    float(one[column]) / (1 << 30),
                )
                for one in mine
            ]
        )
        packed = median([quotient(float(one["bytes"]), float(one["read_bytes"])) for one in mine])
        has_data = all(float(one[column]) / (1 << 30) >= 0.001 for one in mine)
        numbers[f"{name}.rate.{word}"] = f"{rate:.1f}" if pairs else UNKNOWN
        numbers[f"{name}.gib.{word}"] = (f"{fd:.2f}" if has_data else TOO_FEW) if pairs else UNKNOWN
        numbers[f"{name}.gib.all.{word}"] = (f"{whole:.2f}" if has_data else TOO_FEW) if pairs else UNKNOWN
        numbers[f"{name}.packed.{word}"] = f"{packed:.3f}" if pairs else UNKNOWN
    only_one_failed(failed, name, numbers)


def only_one_failed(failed, name, numbers):
    """How likely it is by chance whose jobs fail, of pairs in which one did."""
    one_of = [1.0 if one in failed["ours"] else -1.0 for one in failed["ours"] ^ failed["stock"]]
    numbers[f"{name}.bad.sign"] = probability(sign_test(one_of))


def has_intervals(plan, phase):
    return phase["replicas"] >= plan["intervals_from"]


def family_effects(plan, phase, family, rows):
    """Of each cell and column its effect."""
    found = []
    for cell in family["cells"]:
        pairs = pairs_of(rows, cell)
        kind = "restore" if cell.split(" ")[1].startswith("restore") else "backup"
        for word, _, column, divisor, digits, of in COLUMNS:
            if of not in ("all", kind):
                continue
            both = [(ours.get(column), stock.get(column)) for ours, stock in pairs]
            values = [(float(ours) / divisor, float(stock) / divisor) for ours, stock in both if ours and stock]
            enough = len(values) >= plan["intervals_from"]
            seed = seed_of(plan["seed"], f"{phase['name']}/{cell}/{word}") if enough else None
            found.append({"cell": cell, "word": word, "digits": digits, "phase": phase, **effect(values, plan, seed)})
    return found


def family_numbers(plan, phase, family, found, numbers):
    intervals = has_intervals(plan, phase)
    for one in found:
        depth = (2 if one["word"] in ("job", "run", "time") else 1) if intervals else 0
        effect_numbers(one, plan, one["digits"], depth, f"{key_of(phase, one['cell'])}.{one['word']}", numbers)
    for word, limits in (("job", None), ("run", "run"), ("time", "connection")):
        mine = [one for one in found if one["word"] == word]
        if intervals and word != "job":
            for one, value in zip(mine, holm([one["wilcoxon"] for one in mine])):
                text = probability(value) if one["pairs"] else UNKNOWN
                numbers[f"{key_of(phase, one['cell'])}.{word}.wilcoxon.holm"] = text
        name = f"{phase['name']}.{family['name']}.{word}"
        summary(plan, phase, name, family.get(limits, {}), mine, numbers)
        if word == "run":
            known = all(one["pairs"] for one in mine)
            # As if all jobs had waited a second in the queue.
            evened = [quotient(median(one["ours"]) + 1000.0, median(one["stock"]) + 1000.0) for one in mine]
            numbers[f"{name}.evened"] = f"{geometric_mean(evened):.3f}" if known else UNKNOWN


def geometric_mean(values):
    return math.exp(total(math.log(one) for one in values) / len(values))


def geometric_interval(cells, plan, seed):
    if not all(cells):
        return math.nan, math.nan
    random = Draws(seed)
    means = sorted(
        geometric_mean([ratio_of_medians([pairs[random.below(len(pairs))] for _ in pairs]) for pairs in cells])
        for _ in range(plan["draws"])
    )
    half = (1.0 - plan["confidence"]) / 2.0
    return between(means, half), between(means, 1.0 - half)


def summary(plan, phase, name, limits, found, numbers):
    known = all(one["pairs"] for one in found)
    ratios = [one["ratio"] for one in found]
    geometric = geometric_mean(ratios)
    texts = {"geometric": f"{geometric:.3f}", "faster": str(sum(ratio < 1.0 for ratio in ratios))}
    numbers[f"{name}.cells"] = str(len(found))
    if has_intervals(plan, phase):
        low, high = geometric_interval([one["pairs"] for one in found], plan, seed_of(plan["seed"], f"{name}/geometric"))
        below = limits.get("interval_below", 1.0)
        by_median = sum(one["has_interval"] and one["high"] < below for one in found)
        kept = geometric <= limits.get("geometric_mean", math.inf)
        kept = kept and ("interval_below" not in limits or by_median == len(found))
        texts |= {
            "geometric.low": f"{low:.3f}",
            "geometric.high": f"{high:.3f}",
            "geometric.p90": f"{geometric_mean([one['tail'] for one in found]):.3f}",
            "below": str(by_median),
            "below.p90": str(sum(one["ends"] is not None and one["ends"][1] < below for one in found)),
            "verdict": "kept" if kept else "missed",
        }
        for word, limit in (("geometric.limit", "geometric_mean"), ("below.limit", "interval_below")):
            numbers[f"{name}.{word}"] = f"{limits[limit]:.2f}" if limit in limits else TOO_FEW
    for word, text in texts.items():
        numbers[f"{name}.{word}"] = text if known else UNKNOWN


def lost_numbers(found, numbers):
    """Where ours takes more than the stock daemon. A job that several phases have in the same circumstances is that of the
    first; one of which more jobs have failed than pairs are left is left out."""
    cells, jobs = {}, set()
    for one in found:
        bad, more, left = (int(numbers[f"{key_of(one['phase'], one['cell'])}.{word}"]) for word in ("bad.stock", "bad.ours", "n"))
        job = (one["word"], one["cell"], one["phase"].get("acknowledged", False), one["phase"].get("memory", False))
        if not one["pairs"] or bad + more > left or job in jobs:
            continue
        jobs.add(job)
        interval = (one["low"], one["high"]) if one["has_interval"] else None
        name = f"{one['phase']['name']}: {one['cell'].replace(' default', '')}"
        cells.setdefault(one["word"], []).append((one["ratio"], interval, name))
    for word in [column[0] for column in COLUMNS]:
        mine = cells.get(word, [])
        lost = [one for one in mine if one[0] > 1.0]
        worst = max(lost, key=lambda one: one[0], default=None)
        digits = 4 if word == "volume" else 2
        texts = {
            "of": str(len(mine)),
            "cells": str(len(lost)),
            "able": str(sum(one[1] is not None for one in mine)),
            "clear": str(sum(one[1] is not None and one[1][0] > 1.0 for one in lost)),
            "middle": f"{median([one[0] for one in lost]):.{digits}f}" if lost else TOO_FEW,
            "most": f"{worst[0]:.{digits}f}" if lost else TOO_FEW,
            "most.cell": worst[2] if lost else TOO_FEW,
        }
        for key, text in texts.items():
            numbers[f"lost.{word}.{key}"] = text if mine else UNKNOWN


def calls_numbers(plan, sitting, numbers):
    rows = read(sitting, "calls")
    for cell in plan["calls"]["cells"]:
        for word in ("calls", "switches", "faults"):
            middles = {}
            for side in ("stock", "ours"):
                mine = [row for row in rows if row["cell"] == cell and row["daemon"] == side]
                each = [quotient(float(row[word]), float(row["entries"])) for row in mine]
                middles[side] = median(each) if each else None
            name = f"calls.{cell.replace(' default', '').replace(' ', '.')}.{word}"
            for side, middle in middles.items():
                numbers[f"{name}.{side}"] = UNKNOWN if middle is None else f"{middle:.2f}"
            known = None not in middles.values()
            numbers[f"{name}.ratio"] = f"{quotient(middles['ours'], middles['stock']):.2f}" if known else UNKNOWN


def model_points(names, plan, sitting, side):
    points = []
    for name in names:
        phase, cell = name.split(": ")
        pairs = pairs_of(read(sitting, phase), cell)
        if not pairs:
            return None
        mine = [pair[0 if side == "ours" else 1] for pair in pairs]
        variant = cell.split(" ")[2]
        round_trip = float(variant.removeprefix("far").split("ms")[0]) if variant.startswith("far") else 0.0
        parts = [1.0, float(mine[0]["files"]), float(mine[0]["read_bytes"]) / MIB, round_trip]
        points.append((parts, median([float(one["connection_ms"]) for one in mine])))
    return points


def fitted(points):
    """Least squares of relative errors, by Gauss and Jordan."""
    rows = [[0.0] * 5 for _ in range(4)]
    for parts, time in points:
        scaled = [part / time for part in parts]
        for at in range(4):
            for other, right in enumerate(scaled + [1.0]):
                rows[at][other] += scaled[at] * right
    for at in range(4):
        head = rows[at][at]
        own = [one / head for one in rows[at]]
        for other in range(4):
            factor = rows[other][at]
            rows[other] = own if other == at else [one - factor * mine for one, mine in zip(rows[other], own)]
    return [row[4] for row in rows]


def model_numbers(plan, sitting, numbers):
    for side in ("stock", "ours"):
        name = f"model.{side}"
        sets = {word: model_points(plan["model"][word], plan, sitting, side) for word in ("fitted", "judged")}
        parts = fitted(sets["fitted"]) if sets["fitted"] else None
        words = (("constant", 1.0, 1), ("file", 1000.0, 1), ("mebibyte", 1.0, 2), ("round-trips", 1.0, 1))
        for at, (word, factor, digits) in enumerate(words):
            numbers[f"{name}.{word}"] = f"{parts[at] * factor:.{digits}f}" if parts else UNKNOWN
        for word, points in sets.items():
            most = near = None
            for at, cell in enumerate(plan["model"][word]):
                texts = {"measured": UNKNOWN, "predicted": UNKNOWN, "off": UNKNOWN}
                if parts and points:
                    time = points[at][1]
                    predicted = total(part * much for part, much in zip(parts, points[at][0]))
                    off = (predicted / time - 1.0) * 100.0
                    most = max(abs(off), most or 0.0)
                    near = near if cell.startswith("far: ") else max(abs(off), near or 0.0)
                    texts = {"measured": f"{time:.0f}", "predicted": f"{predicted:.0f}", "off": f"{off:+.0f}"}
                for key, text in texts.items():
                    numbers[f"{name}.{cell.replace(': ', '.').replace(' ', '.')}.{key}"] = text
            numbers[f"{name}.{word}.most"] = UNKNOWN if most is None else f"{most:.0f}"
            numbers[f"{name}.{word}.near.most"] = UNKNOWN if near is None else f"{near:.0f}"


def variation_numbers(phase, family, rows, numbers):
    """Jain, chapter 21: parts of the sum of squares of logarithms, pairs as blocks."""
    cells = []
    for cell in family["cells"]:
        pairs = pairs_of(rows, cell)
        cells.append([tuple(math.log(float(one["connection_ms"])) for one in pair) for pair in pairs])
    known = all(cells)
    everything = [pair for cell in cells for pair in cell]
    count = len(everything)
    daemons = [quotient(total(pair[side] for pair in everything), count) for side in (0, 1)]
    middle = (daemons[0] + daemons[1]) / 2.0
    parts = {"daemon": count * sum((one - middle) ** 2 for one in daemons), "cell": 0.0, "both": 0.0, "replica": 0.0, "rest": 0.0}
    for cell in cells:
        means = [quotient(total(pair[side] for pair in cell), len(cell)) for side in (0, 1)]
        own = (means[0] + means[1]) / 2.0
        parts["cell"] += 2.0 * len(cell) * (own - middle) ** 2
        for one, daemon in zip(means, daemons):
            parts["both"] += len(cell) * (one - daemon - own + middle) ** 2
        for pair in cell:
            shared = (pair[0] + pair[1]) / 2.0 - own
            parts["replica"] += 2.0 * shared**2
            parts["rest"] += sum((one - mean - shared) ** 2 for one, mean in zip(pair, means))
    whole = total(parts.values())
    for word, part in parts.items():
        value = part / whole * 100.0 if whole > 0.0 else 0.0
        numbers[f"{phase['name']}.{family['name']}.variation.{word}"] = f"{value:.1f}" if known else UNKNOWN


def middle_of(rows, cell, side, column):
    values = [float(pair[0 if side == "ours" else 1][column]) for pair in pairs_of(rows, cell)]
    return median(values) if values else None


def floor_numbers(phase, family, rows, numbers):
    """Which part of the stock daemon's time above a client that does nothing ours takes."""
    for cell in family["cells"]:
        floors = [float(row["connection_ms"]) for row in rows if row["cell"] == cell and row["daemon"] == "floor" and good(row)]
        ours, stock = (middle_of(rows, cell, side, "connection_ms") for side in ("ours", "stock"))
        name = key_of(phase, cell)
        floor = median(floors)
        known = floors and ours is not None
        numbers[f"{name}.floor.time"] = f"{floor:.1f}" if floors else UNKNOWN
        numbers[f"{name}.floor.above"] = f"{quotient(ours - floor, stock - floor):.2f}" if known else UNKNOWN


def above_numbers(phase, family, rows, numbers):
    """What each cell takes more than the same with the base's variant."""
    for cell in family["cells"]:
        base = " ".join(cell.split(" ")[:2] + [family["base"]])
        for side in ("stock", "ours"):
            for word, column, digits in (("cpu", "fd_cpu_s", 3), ("time", "connection_ms", 1)):
                one, other = middle_of(rows, cell, side, column), middle_of(rows, base, side, column)
                text = UNKNOWN if one is None or other is None else f"{one - other:.{digits}f}"
                numbers[f"{key_of(phase, cell)}.above.{word}.{side}"] = text
            text = UNKNOWN if one is None or other is None else f"{(quotient(one, other) - 1.0) * 100.0:.0f}"
            numbers[f"{key_of(phase, cell)}.above.percent.{side}"] = text


def choice_numbers(phase, family, rows, numbers):
    """The compression with which a Full ends first over a line."""
    fulls = {}
    for cell in family["cells"]:
        tree, level, variant = cell.split(" ")
        if level == "full":
            fulls.setdefault(tree, []).append((cell, "none" if variant == "default" else variant))
    for tree, cells in fulls.items():
        for side in ("stock", "ours"):
            for rate in family["rates"]:
                found = []
                for cell, word in cells:
                    # The stock daemon of Debian has no ZSTD.
                    if side == "stock" and word == "zstd":
                        continue
                    time = middle_of(rows, cell, side, "connection_ms")
                    size = middle_of(rows, cell, side, "bytes")
                    found.append(None if time is None else (max(time / 1000.0, size * 8.0 / (rate * 1e6)), word))
                best = None if None in found else min(found, key=lambda one: one[0])
                name = f"{phase['name']}.{family['name']}.choice.{tree}.{rate}.{side}"
                numbers[f"{name}.codec"] = best[1] if best else UNKNOWN
                numbers[f"{name}.seconds"] = f"{best[0]:.1f}" if best else UNKNOWN


STEPS = ("initial", "unchanged", "onefile", "more", "duplicate", "restore")


def rivals_numbers(plan, paper, sitting, numbers):
    rows = read(sitting, "rivals")
    for word in ("replicas", "minutes", "mebibytes"):
        numbers[f"rivals.{word}"] = str(plan["rivals"][word])
    numbers["rivals.host"] = sitting.name if rows else UNKNOWN
    systems = ["stock", "ours"] + sorted(path.stem for path in (paper / "rivals").glob("*.toml"))
    for system in systems:
        last = [row["outcome"] for row in rows if row["system"] == system and row["step"] == "readonly"]
        numbers[f"rivals.{system}.readonly"] = ("yes" if set(last) == {"T"} else "no") if last else UNKNOWN
        for step in STEPS:
            chosen = [row for row in rows if row["system"] == system and row["step"] == step]
            some = [row for row in chosen if good(row)]

            def middle(column, divisor=1):
                return median([float(row[column]) for row in some]) / divisor

            texts = {
                "wall": f"{middle('wall_s'):.2f}",
                "cpu": f"{middle('cpu_s'):.2f}",
                "memory": f"{middle('peak_rss_bytes', 1 << 20):.0f}",
                "stored": f"{middle('stored_bytes', 1 << 20):.1f}",
            }
            for word, text in texts.items():
                numbers[f"rivals.{system}.{step}.{word}"] = text if some else UNKNOWN
            numbers[f"rivals.{system}.{step}.n"] = str(len(some))
            numbers[f"rivals.{system}.{step}.bad"] = str(len(chosen) - len(some))


def tail_numbers(tail, sitting, numbers):
    name = tail["name"]
    rows = read(sitting, name)
    for word in ("replicas", "minutes"):
        numbers[f"{name}.{word}"] = str(tail[word])
    columns = [("job", "job_s", 2), ("transactions", "transactions", 0), ("slow", "slow", 0)]
    columns += [("p50", "p50_ms", 3), ("p90", "p90_ms", 2), ("p99", "p99_ms", 2)]
    for daemon in ("stock", "ours"):
        some = [row for row in rows if row["daemon"] == daemon]
        numbers[f"{name}.{daemon}.n"] = str(len(some))
        for word, column, digits in columns:
            values = [float(row[column]) for row in some]
            value = total(values) if word in ("transactions", "slow") else median(values)
            numbers[f"{name}.{daemon}.{word}"] = f"{value:.{digits}f}" if some else UNKNOWN
        # The class in which the last of 99 in a hundred transactions of all replicas ends.
        classes = {}
        for path in (sitting.data / name / sitting.name / "times").glob("*.csv"):
            for row in csv.DictReader(path.read_text().splitlines()):
                if row["daemon"] == daemon:
                    classes[float(row["up_to_ms"])] = classes.get(float(row["up_to_ms"]), 0) + int(row["transactions"])
        left = count = sum(classes.values())
        p99 = None
        for step in range(-20, 81):
            left -= classes.get(float(f"{10 ** (step / 20):.4f}"), 0)
            if count and left / count <= 1.0 - 0.99:
                p99 = 10 ** (step / 20)
                break
        numbers[f"{name}.{daemon}.all.p99"] = UNKNOWN if p99 is None else f"{p99:.1f}"
    for word in ("p50", "p90", "p99"):
        times = {daemon: {row["replica"]: float(row[f"{word}_ms"]) for row in rows if row["daemon"] == daemon} for daemon in ("stock", "ours")}
        more = [time - times["stock"][replica] for replica, time in times["ours"].items() if replica in times["stock"]]
        numbers[f"{name}.{word}.longer"] = str(sum(one > 0.0 for one in more)) if more else UNKNOWN
        numbers[f"{name}.{word}.sign"] = probability(sign_test(more)) if more else UNKNOWN


def profile_numbers(profile, numbers):
    for daemon in ("stock", "ours"):
        text = numbers.get(f"{profile['key']}.job.{daemon}.mean", UNKNOWN)
        known = text != UNKNOWN
        mean = float(text) if known else 1.0
        jobs = profile["jobs"] * profile["clients"]
        name = f"profile.{profile['name']}"
        numbers[f"{name}.seconds.{daemon}"] = f"{mean / 1000.0:.2f}" if known else UNKNOWN
        numbers[f"{name}.hour.{daemon}"] = f"{3600000.0 / mean:.0f}" if known else UNKNOWN
        numbers[f"{name}.minutes.{daemon}"] = f"{mean * jobs / 60000.0:.1f}" if known else UNKNOWN


def queue_numbers(phase, rows, numbers):
    """How long Fulls and restores wait in the Director's queue."""
    for daemon in ("stock", "ours"):
        waits, restores = (
            [
                float(row["queued_ms"])
                for row in rows
                if row["daemon"] == daemon and row["cell"].split(" ")[1].startswith(kind) and row.get("queued_ms")
            ]
            for kind in ("full", "restore")
        )
        texts = {"fulls": str(len(waits)), "whole": str(sum(wait >= 1990.0 for wait in waits))}
        texts |= {word: f"{mean(some):.0f}" if some else TOO_FEW for word, some in (("mean", waits), ("restores", restores))}
        for word, text in texts.items():
            numbers[f"{phase}.queue.{daemon}.{word}"] = text if rows else UNKNOWN


def sitting_numbers(plan, sitting, numbers):
    """When each phase was measured and by which states of the harness; cells with few pairs."""
    phases = {phase["name"]: read(sitting, phase["name"]) for phase in plan["phase"]}
    every = [int(row["began"]) for rows in phases.values() for row in rows]
    states = set()
    for name, rows in phases.items():
        began = [int(row["began"]) for row in rows]
        for word, chosen in (("from", min), ("to", max)):
            numbers[f"{name}.{word}"] = f"{(chosen(began) - min(every)) / 3600.0:.1f}" if rows else UNKNOWN
        mine = {row["harness"][:8] for row in rows if row.get("harness")}
        numbers[f"{name}.harness"] = " ".join(sorted(mine)) if mine else UNKNOWN
        states |= mine
    numbers["sitting.hours"] = f"{(max(every) - min(every)) / 3600.0:.1f}" if every else UNKNOWN
    numbers["sitting.harnesses"] = str(len(states)) if states else UNKNOWN
    cells = [(phase, cell) for phase in plan["phase"] for family in phase["family"] for cell in family["cells"]]
    pairs = [(phase["replicas"], len(pairs_of(phases[phase["name"]], cell))) for phase, cell in cells if phases[phase["name"]]]
    numbers["plan.short"] = str(sum(0 < count < planned for planned, count in pairs))


def contrast_numbers(plan, found, numbers):
    """What a ratio is of that of the same job by default in the first phase."""
    first = plan["phase"][0]["name"]
    plain = {(one["cell"], one["word"]): one for one in found if one["phase"]["name"] == first}
    for one in found:
        words = one["cell"].split(" ")
        base = plain.get((" ".join(words[:2] + ["default"]), one["word"]))
        wanted = one["word"] in ("time", "cpu") and has_intervals(plan, one["phase"]) and words[2] != "default"
        if not wanted or base is None:
            continue
        name = f"{key_of(one['phase'], one['cell'])}.{one['word']}.contrast"
        if not one["pairs"] or not base["pairs"]:
            numbers |= {f"{name}{end}": UNKNOWN for end in ("", ".low", ".high")}
            continue
        random = Draws(seed_of(plan["seed"], f"{name}/contrast"))

        def drawn(pairs):
            return ratio_of_medians([pairs[random.below(len(pairs))] for _ in pairs])

        ratios = sorted(quotient(drawn(one["pairs"]), drawn(base["pairs"])) for _ in range(plan["draws"]))
        half = (1.0 - plan["confidence"]) / 2.0
        numbers[name] = f"{quotient(one['ratio'], base['ratio']):.3f}"
        numbers[f"{name}.low"], numbers[f"{name}.high"] = (f"{between(ratios, part):.3f}" for part in (half, 1.0 - half))


def share_numbers(plan, found, numbers):
    """Which part of what ours saves by default is gone where all daemons acknowledge at once."""
    first = plan["phase"][0]["name"]
    bases = {one["cell"]: one for one in found if one["phase"]["name"] == first and one["word"] == "time"}
    for one in found:
        base = bases.get(one["cell"])
        if not one["phase"].get("acknowledged") or one["word"] != "time" or base is None:
            continue
        name = f"{key_of(one['phase'], one['cell'])}.share"
        if not one["pairs"] or not base["pairs"]:
            numbers |= {f"{name}{end}": UNKNOWN for end in ("", ".low", ".high", ".default", ".acknowledged")}
            continue
        random = Draws(seed_of(plan["seed"], name))

        def saved(pairs):
            return median([stock for _, stock in pairs]) - median([ours for ours, _ in pairs])

        def drawn(pairs):
            return saved([pairs[random.below(len(pairs))] for _ in pairs])

        parts = []
        for _ in range(plan["draws"]):
            default = drawn(base["pairs"])
            parts.append(1.0 - quotient(drawn(one["pairs"]), default))
        parts.sort()
        half = (1.0 - plan["confidence"]) / 2.0
        numbers[name] = f"{1.0 - quotient(saved(one['pairs']), saved(base['pairs'])):.2f}"
        numbers[f"{name}.low"], numbers[f"{name}.high"] = (f"{between(parts, part):.2f}" for part in (half, 1.0 - half))
        numbers[f"{name}.default"] = f"{saved(base['pairs']):.0f}"
        numbers[f"{name}.acknowledged"] = f"{saved(one['pairs']):.0f}"


def faults_numbers(paper, numbers):
    classes = ["memory", "concurrency", "logic", "interface", "all"]
    harms = ["data", "end", "access", "hold", "message"]
    lines = (paper / "faults.csv").read_text().splitlines()[1:]
    faults = [line.split(",", 4)[:3] for line in lines]
    for daemon in ("stock", "ours"):
        for word in classes:
            mine = [harm for whose, about, harm in faults if whose == daemon and word in (about, "all")]
            numbers[f"faults.{daemon}.{word}"] = str(len(mine))
            for harm in harms:
                numbers[f"faults.{daemon}.{word}.{harm}"] = str(mine.count(harm))


def gates_numbers(plan, sitting, numbers):
    rows = read(sitting, "gates")
    by_name = {row["gate"]: row for row in rows}
    for gate in plan["gate"]:
        for word in ("result", "seconds"):
            numbers[f"gates.{gate['name']}.{word}"] = by_name.get(gate["name"], {}).get(word, UNKNOWN)


def counts_numbers(plan, sitting, numbers):
    rows = read(sitting, "counts")
    by_name = {row["count"]: row["number"] for row in rows}
    for count in plan["count"]:
        numbers[f"counts.{count['name']}"] = by_name.get(count["name"], UNKNOWN)


def all_numbers(plan, paper, sitting):
    numbers = {
        "plan.seed": str(plan["seed"]),
        "plan.draws": str(plan["draws"]),
        "plan.confidence": f"{plan['confidence'] * 100.0:.0f}",
        "plan.block": str(plan["block"]),
        "plan.intervals": str(plan["intervals_from"]),
    }
    everything = []
    for phase in plan["phase"]:
        name = phase["name"]
        rows = read(sitting, name)
        loads = [float(row["load"]) for row in rows]
        texts = {
            "host": sitting.name,
            "load.least": f"{min(loads, default=0.0):.2f}",
            "load.most": f"{max(loads, default=0.0):.2f}",
            "jobs": str(len(rows)),
            "jobs.bad": str(sum(not good(row) for row in rows)),
        }
        for word, text in texts.items():
            numbers[f"{name}.{word}"] = text if rows else UNKNOWN
        numbers[f"{name}.replicas"] = str(phase["replicas"])
        numbers[f"{name}.minutes"] = str(phase["minutes"])
        queue_numbers(name, rows, numbers)
        for family in phase["family"]:
            found = family_effects(plan, phase, family, rows)
            everything += found
            for cell in family["cells"]:
                cell_numbers(phase, cell, rows, numbers)
            family_numbers(plan, phase, family, found, numbers)
            variation_numbers(phase, family, rows, numbers)
            if phase.get("floor"):
                floor_numbers(phase, family, rows, numbers)
            if "base" in family:
                above_numbers(phase, family, rows, numbers)
            if "rates" in family:
                choice_numbers(phase, family, rows, numbers)
    sitting_numbers(plan, sitting, numbers)
    contrast_numbers(plan, everything, numbers)
    share_numbers(plan, everything, numbers)
    lost_numbers(everything, numbers)
    model_numbers(plan, sitting, numbers)
    calls_numbers(plan, sitting, numbers)
    rivals_numbers(plan, paper, sitting, numbers)
    for tail in plan["tail"]:
        tail_numbers(tail, sitting, numbers)
    for profile in plan["profile"]:
        profile_numbers(profile, numbers)
    faults_numbers(paper, numbers)
    gates_numbers(plan, sitting, numbers)
    counts_numbers(plan, sitting, numbers)
    numbers.update({f"published.{key}": text for key, text in plan["published"].items()})
    return numbers


def main():
    parser = argparse.ArgumentParser(description="Computes the paper's numbers once more.")
    parser.add_argument("paper", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sitting")
    parser.add_argument("--generated", type=Path)
    words = parser.parse_args()
    plan = tomllib.loads((words.paper / "plan.toml").read_text())
    data = words.data or words.paper / "data"
    sitting = Sitting(data, sitting_of(data, words.sitting or plan.get("sitting")))
    generated = words.generated or words.paper / "generated"
    mine = all_numbers(plan, words.paper, sitting)
    theirs = json.loads((generated / "numbers.json").read_text())
    problems = [f"{key}: {theirs[key]!r} there, {mine[key]!r} here" for key in mine if mine[key] != theirs.get(key, mine[key])]
    problems += [f"{key}: only there" for key in theirs if key not in mine]
    problems += [f"{key}: only here" for key in mine if key not in theirs]
    for problem in problems:
        print(problem)
    measured = sum(text != UNKNOWN for text in mine.values())
    print(f"{len(mine)} numbers, {measured} of them measured or planned, {len(problems)} differences")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
