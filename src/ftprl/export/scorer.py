"""Scores of a linear model trained by ftprl, in plain Python: this file is all that is needed.

    from scorer import predict, score

    predict({"price": 3.5, "city": "Oslo"})  # the probability, or the mean of the label
    score({"price": 3.5, "city": "Oslo"})  # the score: log-odds, the log of the mean, or the mean itself

With several classes `predict` gives a dict with the probability of each, and `score` the logarithms of what the model
gives the classes that it knows, in their order.

A row is a dict: of columns for a model of tables or dicts; of features for a model of VW text, such as
{"user^42": 1, "price": 3.5}, a feature of a namespace with ^ between them. For a model of arrays or libsvm files it is
a dict of column numbers, or a sequence with a number for each column. `score_cells` takes pairs of a cell of the table
and a value, as a row is after hashing.

As a program it reads one JSON object per line and prints one prediction per line: python scorer.py < rows.jsonl
"""

import base64
import bisect
import itertools
import json
import math
import re
import struct
import sys
import zlib
from array import array
from datetime import datetime, timedelta, timezone

SETTINGS = {}  # as JSON: how rows are read and scores are mixed
CELLS = ""  # the cells and their weights, packed

_MASK = (1 << 64) - 1
_K0 = math.isqrt(2 << 128) & _MASK  # the first 64 fractional bits of sqrt(2)
_K1 = math.isqrt(3 << 128) & _MASK  # and of sqrt(3)
_LARGEST = 1e30
_COLUMN_CUT = 8.0
_LOWEST_LOG = -8.0
_LOG_SCORE = 60.0
_SHIFT = 1.5 * 2.0**52
_LN2 = (float.fromhex("0x1.62e42feep-1"), float.fromhex("0x1.a39ef35793c76p-33"))
_FACTORIALS = [1.0 / math.factorial(n) for n in range(13, 2, -1)] + [0.5, 1.0, 1.0]
# log(1 + e) is 2 atanh(e / (2 + e)), by this polynomial.
_ATANH = [
    float.fromhex(digits)
    for digits in (
        *("0x1.5555555555555p-1", "0x1.9999999999944p-2", "0x1.2492492499d46p-2", "0x1.c71c71bedea97p-3"),
        *("0x1.745d19937b1fcp-3", "0x1.3b13515f6f9efp-3", "0x1.111abdc8abe16p-3", "0x1.e0a2d581ab68fp-4"),
        *("0x1.bc37f0140c19ep-4", "0x1.32e0d25c9c761p-4", "0x1.401d3e65cdc48p-3"),
    )
]
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_BESIDE = ("ignore", "label", "weight")  # columns that are no features
_ABSENT = {"", "na", "nan", "n/a", "#n/a", "null", "none", "?"}
_TRUE, _FALSE = {"true", "t", "yes", "y", "1"}, {"false", "f", "no", "n", "0"}
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_DATE = re.compile(
    r"(?P<year>[0-9]{4})(?P<dash>-?)(?P<month>[0-9]{2})(?P=dash)(?P<day>[0-9]{2})"
    r"([Tt ](?P<hour>[0-9]{2})((?P<colon>:?)(?P<minute>[0-9]{2})((?P=colon)(?P<second>[0-9]{2})([.,][0-9]+)?)?)?"
    r"(?P<zone>[Zz]|[+-][0-9]{2}(:?[0-9]{2})?)?)?"
)


# ---- from a row to cells and values ----


def _mix(x):
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & _MASK
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & _MASK
    return x ^ x >> 31


def feature_hash(name, seed=0):
    """The hash of a name, as bytes."""
    h = _mix(seed + _K0 & _MASK)
    for first in range(0, len(name), 8):
        product = (h ^ int.from_bytes(name[first : first + 8].ljust(8, b"\0"), "little")) * _K1
        h = (product >> 64) ^ (product & _MASK)
    return _mix(h ^ len(name))


def _cell_of(number):
    dim = SETTINGS["dim"]
    return number & (dim - 1) if dim & (dim - 1) == 0 else number * dim >> 64


def cells_of(row):
    """The cells and values of a row, in the order of its features."""
    if SETTINGS["kind"] == "numbers":
        return row.items() if hasattr(row, "items") else enumerate(row)
    features = _table_features(row) if SETTINGS["kind"] == "columns" else _named_features(row)
    crossed = _products(features) if SETTINGS["interactions"] else []
    return [(_cell_of(number), value) for _, number, value in features] + [(_cell_of(h), v) for h, v in crossed]


def _named_features(row):
    """Features of VW text: their namespaces, hashes and values."""
    features, seed = [], SETTINGS["seed"]
    for name, value in row.items():
        group, joint, rest = name.partition("^")
        text = rest if joint else name
        start = feature_hash(group.encode(), seed) if joint and group else seed
        features.append((group if joint else "", feature_hash(text.encode(), start), float(value)))
    return features


def _table_features(row):
    """Features of columns: their columns, hashes and values."""
    features, columns, pairs = [], SETTINGS["columns"], _flat(row)
    if SETTINGS["missing"] == "indicator":  # then what a row lacks counts, and columns have their order
        first, repeated = {}, []
        for name, value in pairs:
            if name in first:
                repeated.append((name, value))
            else:
                first[name] = value
        others = [pair for pair in first.items() if pair[0] not in columns]
        pairs = [(name, first.get(name)) for name in columns] + others + repeated
    for name, value in pairs:
        if name in columns or SETTINGS["reads_others"]:
            kind = columns.get(name)
            several = isinstance(value, (dict, list, tuple))
            made = _element_features(name, kind, value) if several else _cell_features(name, kind, value)
            features += [(name, feature_hash(text.encode(), SETTINGS["seed"]), value) for text, value in made]
    return features


def _flat(row, before=""):
    """Names and values of a row: those of dicts within it follow their keys and a dot, unless the model has a map."""
    columns, pairs = SETTINGS["columns"], []
    for key, value in row.items():
        name = before + str(key)
        kind = columns.get(name)
        if isinstance(value, (list, tuple)) and kind is None and _is_object(name):
            pairs += _split(name, value)
        elif not isinstance(value, dict) or kind in _BESIDE or (kind is not None and _is_map(name)):
            pairs.append((name, value))
        else:
            if kind is not None:
                pairs.append((name, []))  # not missing, and without a value of its own
            pairs += _flat(value, name + ".")
    return pairs


def _split(name, elements):
    """A list where the model has columns within its name: elements with no column of theirs, then the columns."""
    others, known = [], {}
    for element in elements:
        own = next(_elements(name, [element]), (0, None))[0] if isinstance(element, dict) else 0
        is_column = isinstance(own, str) and name + "." + own in SETTINGS["columns"]
        if is_column:
            known[name + "." + own] = element.get("value")
        others.append(None if is_column else element)
    return [(name, others), *known.items()]


def _is_object(name):
    return any(other.startswith(name + ".") for other in SETTINGS["columns"])


def _is_map(name):
    return not SETTINGS["reads_others"] and not _is_object(name)


def _element_features(column, kind, value):
    """Features of a list, whose elements have positions or names, or of a map."""
    if kind in _BESIDE:
        return []
    if kind not in (None, "categorical", "numeric", "text"):
        raise ValueError("expected one value, got several in column %r" % column)
    features = []
    for name, element in _elements(column, value):
        if element is None or element == "" or element != element:
            continue  # an element that is missing does not make the column missing
        is_number = isinstance(element, (int, float)) and not isinstance(element, bool)
        inside = column + "." + str(name)
        if kind == "numeric" or (kind is None and is_number):
            made = _cell_features(inside, "numeric", element if is_number or isinstance(element, str) else int(element))
            features += [pair for pair in made if pair[0] == inside]
        elif isinstance(name, str):
            features.append((inside + "=" + _text(element), 1.0))
        else:
            features += _cell_features(column, kind or "categorical", element)
    return features


def _elements(column, value, before=""):
    """Names, or positions, and values of a list or a map."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, (list, tuple)):
                raise ValueError("expected numbers or text in a dict, got a list in column %r" % column)
            inside = _elements(column, inner, before + str(key) + ".") if isinstance(inner, dict) else ()
            yield from inside or [(before + str(key), inner)]
        return
    for number, element in enumerate(value):
        if isinstance(element, (list, tuple)) or (
            isinstance(element, dict) and set(element) - {"name", "key", "value"}
        ):
            raise ValueError("expected numbers, text, or names and values in a list, got %r" % (element,))
        if not isinstance(element, dict):
            yield number, element
        elif isinstance(element.get("value"), (dict, list, tuple)):
            raise ValueError("expected a number or text as the value of a name, got %r" % (element,))
        elif element.get("name", element.get("key")) is not None:
            yield _text(element.get("name", element.get("key"))), element.get("value")


def _cell_features(column, kind, value):
    if kind in _BESIDE:
        return []
    if kind is None:  # a key that is no known column is read by the type of its value
        return _unknown_features(column, value)
    is_number = isinstance(value, (int, float))
    if is_number and kind in ("numeric", "bucket"):
        value = "" if math.isnan(value) else repr(float(value))
    text = _text(value)
    stripped = text.strip(" \t")
    if text == "" if kind in ("categorical", "text") else stripped.lower() in _ABSENT:
        return [(column + " is missing", 1.0)] if SETTINGS["missing"] == "indicator" else []
    if kind == "categorical":
        return [(column + "=" + text, 1.0)]
    if kind == "text":
        return [(column + "=" + word, 1.0) for word in re.findall(r"\w+", text.lower())]
    if kind == "boolean":
        return [(column + ("=true" if _truth(column, stripped) else "=false"), 1.0)]
    sampled = SETTINGS["sampled"].get(column, [])
    if kind in ("date", "timestamp"):
        return list(_date_features(column, stripped, sampled[0], kind == "timestamp"))
    if not _NUMBER.fullmatch(stripped) or not math.isfinite(float(stripped)):
        raise ValueError("expected a number, got %r in column %r" % (value, column))
    number = float(stripped)
    return [(column, number)] if kind == "numeric" else [(_bucket(column, number, sampled[1:]), 1.0)]


def _unknown_features(column, value):
    if value is None or value == "" or value != value:
        return []
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return [(column, float(value))]
    return [(column + "=" + _text(value), 1.0)]


def _text(value):
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return "" if math.isnan(value) else float.__repr__(value)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _truth(column, text):
    number = float(text) if _NUMBER.fullmatch(text) and len(text) < 6 else None
    if text.lower() in _TRUE or number == 1:
        return True
    if text.lower() in _FALSE or number == 0:
        return False
    raise ValueError("expected true or false, got %r in column %r" % (text, column))


def _spelled(edge):
    return repr(float(edge))[:-2] if repr(float(edge)).endswith(".0") else repr(float(edge))


def _bucket(column, number, edges):
    below = [edge for edge in edges if edge <= number]
    above = [edge for edge in edges if edge > number]
    if not below and not above:
        return column + " any"
    if not below:
        return column + "<" + _spelled(above[0])
    if not above:
        return column + ">=" + _spelled(below[-1])
    return column + " " + _spelled(below[-1]) + ".." + _spelled(above[0])


def _date_features(column, text, origin, has_hour):
    moment = _moment(column, text)
    seconds = (moment - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(seconds=1)
    day = moment.weekday()
    yield column + " trend", (seconds - origin) / (365.25 * 86400)
    sine, cosine = _circle(day, 7)
    yield column + " weekday sin", sine
    yield column + " weekday cos", cosine
    yield column + " weekday=" + _DAYS[day], 1.0
    if has_hour:
        sine, cosine = _circle(60 * moment.hour + moment.minute, 1440)
        yield column + " hour sin", sine
        yield column + " hour cos", cosine
        yield column + " hour=%d" % moment.hour, 1.0
        yield column + " hour of week=%s %d" % (_DAYS[day], moment.hour), 1.0


def _moment(column, text):
    match = _DATE.fullmatch(text)
    if match is None:
        raise ValueError("expected a date such as 2024-05-31, got %r in column %r" % (text, column))
    numbers = {name: int(match[name] or 0) for name in ("year", "month", "day", "hour", "minute", "second")}
    zone = timezone.utc
    if match["zone"] and match["zone"] not in "zZ":
        digits = match["zone"][1:].replace(":", "").ljust(4, "0")
        east = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
        zone = timezone(-east if match["zone"][0] == "-" else east)
    return datetime(**numbers, tzinfo=zone).astimezone(timezone.utc)


def _circle(part, parts):
    angle = 2 * math.pi * part / parts
    return round(math.sin(angle) * 1e9) / 1e9, round(math.cos(angle) * 1e9) / 1e9


def _products(features):
    """The hash and the value of every product of features that interact."""
    namespaces = SETTINGS["kind"] == "features"
    products = []
    for terms in SETTINGS["interactions"]:
        seen = set()
        members = [[i for i in range(len(features)) if _is_meant(term, features[i][0], namespaces)] for term in terms]
        for chosen in itertools.product(*members):
            key = frozenset(chosen)
            if len(key) < len(terms) or key in seen:
                continue
            seen.add(key)
            value = 1.0
            for i in chosen:
                value *= features[i][2]
            total = sum(features[i][1] for i in chosen) + len(terms) * _K0
            products.append((_mix(total & _MASK), value))
    return products


def _is_meant(term, group, namespaces):
    return term in ("*", group) or (namespaces and len(term) == 1 and group.startswith(term))


# ---- from cells and values to a score ----


def score_cells(pairs):
    """The score of a row of cells and values; those of a cell that repeats are added up."""
    sums = {}
    for cell, value in pairs:
        sums[cell] = sums[cell] + value if cell in sums else float(value)
    entries = []
    for cell, value in sums.items():
        if not abs(value) <= _LARGEST:
            raise ValueError("expected a value of at most 1e30, got %r in cell %r" % (value, cell))
        if not 0 <= cell < SETTINGS["dim"]:
            raise ValueError("expected a cell from 0 to %d, got %r" % (SETTINGS["dim"] - 1, cell))
        stored = value if SETTINGS["float64"] else struct.unpack("f", struct.pack("f", value))[0]
        if stored != 0.0:
            entries.append((cell, stored))
    if SETTINGS["link"] == "classes":
        return _log_chances(entries)
    return _calibrated(_mixture(_scores(entries), dict(entries)))


def _scores(entries):
    """The score of each scale, and then of the coin: every fourth product from the first, the second, ... on."""
    intercepts, idle, width = SETTINGS["intercepts"], SETTINGS["idle"], len(SETTINGS["intercepts"])
    rows = [(_ROWS.get(cell), value) for cell, value in entries]
    scores = []
    for k in range(width):
        sums = [0.0, 0.0, 0.0, 0.0]
        for i, (row, value) in enumerate(rows):
            sums[i % 4] += (idle[k] if row is None else _WEIGHTS[row + k]) * value
        scores.append((sums[0] + sums[1]) + (sums[2] + sums[3]))
    offset, scales = SETTINGS["offset"], SETTINGS["scales"]
    own = [(score + offset) + intercept for score, intercept in zip(scores[:scales], intercepts)]
    return own + [offset + SETTINGS["unit"] * (bet + intercepts[scales]) for bet in scores[scales:]]


def _cut(value, low, high):
    return low if value < low else high if value > high else value


def _columns_score(values, weights):
    """The score of a constant and the columns, of which a Newton expert may have none."""
    inputs = [1.0]
    for cell, mean, deviation in SETTINGS["dense"]:
        inputs.append(_cut((values.get(cell, 0.0) - mean) / deviation, -_COLUMN_CUT, _COLUMN_CUT))
    sums = [0.0, 0.0, 0.0, 0.0]
    for i, (u, value) in enumerate(zip(weights, inputs)):
        sums[i % 4] += u * value
    return (sums[0] + sums[1]) + (sums[2] + sums[3])


def _combined(expert, scores):
    """The scores that a Newton expert sees, times its coefficients."""
    total = 0.0
    for u, score in zip(expert["u"], scores):
        total += u * score
    return total


def _mixture(scores, values):
    """The score of the mixture of what all experts say."""
    (low, high), (low_seen, high_seen, centre) = SETTINGS["range"], SETTINGS["seen"]
    seen, said = [_cut(score, low_seen, high_seen) - centre for score in scores], []
    for expert in SETTINGS["experts"]:
        if "says" in expert:
            said.append(expert["says"])
        elif "score" in expert:
            said.append(_cut(scores[expert["score"]], low, high))
        else:
            f = SETTINGS["offset"] + _combined(expert, seen)
            if expert["columns"]:
                f = f + SETTINGS["unit"] * _columns_score(values, expert["columns"])
            said.append(_cut(SETTINGS["gain"] * f, low, high))
    if SETTINGS["mixes_odds"]:
        return _mixed_odds(said) if len(said) > 1 else said[0]
    mean = 0.0
    for expert, one in zip(SETTINGS["experts"], said):
        mean += expert["weight"] * one
    return mean


def _mixed_odds(experts):
    """The log-odds of the mixed probability."""
    yes = no = 0.0
    for expert, s in zip(SETTINGS["experts"], experts):
        e = math.exp(-abs(s))
        likely, unlikely = 1.0 / (1.0 + e), e / (1.0 + e)
        yes += expert["weight"] * (likely if s >= 0.0 else unlikely)
        no += expert["weight"] * (unlikely if s >= 0.0 else likely)
    if yes >= 2.0**-900 and no >= 2.0**-900:
        return math.log(yes) - math.log(no)
    return _unlikely_odds(experts)


def _unlikely_odds(experts):
    """The same where one of the two has hardly any probability."""
    yes, no = [], []
    for s in experts:
        e = math.exp(-abs(s))
        t = e / (2.0 + e)
        w = t * t
        q = _ATANH[10]
        for a in _ATANH[9::-1]:
            q = q * w + a
        tail = t * (2.0 + w * q)
        yes.append(max(-s, 0.0) + tail)
        no.append(tail + max(s, 0.0))
    return _mixed_loss(no) - _mixed_loss(yes)


def _mixed_loss(losses):
    """-ln sum w e^-l."""
    total, low = 0.0, min(losses)
    for expert, loss in zip(SETTINGS["experts"], losses):
        total += expert["weight"] * math.exp(low - loss)
    return low - math.log(total)


# ---- several classes ----


def _exp_below(x):
    """e^x of a number of at most 0, by a polynomial; e^-700 below that."""
    t = x if x > -700.0 else -700.0
    whole = (t * 1.4426950408889634 + _SHIFT) - _SHIFT
    r = (t - whole * _LN2[0]) - whole * _LN2[1]
    p = _FACTORIALS[0]
    for term in _FACTORIALS[1:]:
        p = p * r + term
    return math.ldexp(p, int(whole))


def _softmax(numbers):
    """Logarithms and values of the softmax over all classes; the last number may stand for several."""
    high = max(numbers)
    logs = [t - high for t in numbers]
    chances = [_exp_below(t) for t in logs]
    total = 0.0
    for times, chance in zip(SETTINGS["copies"], chances):
        total += times * chance
    low = math.log(total)
    return [t - low for t in logs], [chance / total for chance in chances]


def _class_scores(entries):
    """The score of each class by each scale."""
    intercepts, idle = SETTINGS["intercepts"], SETTINGS["idle"]
    rows = [(_ROWS.get(cell), value) for cell, value in entries]
    scores = []
    for k in range(len(intercepts)):
        total = 0.0
        for row, value in rows:
            total += (idle[k] if row is None else _WEIGHTS[row + k]) * value
        scores.append(total + intercepts[k])
    return scores


def _log_chances(entries):
    """The logarithms of the probabilities of the classes that are known."""
    count, columns, scores = SETTINGS["scales"], len(SETTINGS["copies"]), _class_scores(entries)
    if SETTINGS["one_vs_rest"]:
        scores = [min(s, 0.0) - math.log1p(_exp_below(-abs(s))) for s in scores]
    of_scales = [_softmax([scores[c * count + k] for c in range(columns)]) for k in range(count)]
    seen = [[max(logs[c], _LOWEST_LOG) for logs, _ in of_scales] for c in range(columns)]
    values, experts = dict(entries), []
    for expert in SETTINGS["experts"]:
        if "score" in expert:
            experts.append(of_scales[expert["score"]])
            continue
        f = [_combined(expert, own) for own in seen]
        if expert["columns"]:
            f = [one + _columns_score(values, own) for one, own in zip(f, expert["columns"])]
        experts.append(_softmax(f))
    result = []
    for c in range(len(SETTINGS["class_labels"])):
        total = 0.0
        for expert, (_, chances) in zip(SETTINGS["experts"], experts):
            total += expert["weight"] * chances[c]
        result.append(math.log(total) if total >= 2.0**-900 else -_mixed_loss([-logs[c] for logs, _ in experts]))
    return result


def _calibrated(score):
    """The score of a model that calibrates its probabilities."""
    map = SETTINGS["calibration"]
    if map is None:
        return score
    if "shift" in map:
        return map["shift"] + score * (map["above"] if score >= 0.0 else map["below"])
    x, odds = map["before"], map["after"]
    if score < x[0]:
        return score + (odds[0] - x[0])
    if score >= x[-1]:
        return score + (odds[-1] - x[-1])
    i = bisect.bisect_right(x, score)
    return odds[i - 1] + (odds[i] - odds[i - 1]) * ((score - x[i - 1]) / (x[i] - x[i - 1]))


def score(row):
    """The score of a row."""
    return score_cells(cells_of(row))


def mean_of(score):
    """What a score predicts: a probability, e^score, or the score itself."""
    if SETTINGS["link"] == "logit":
        return 0.5 * (1.0 + math.tanh(0.5 * score))
    return math.exp(_cut(score, -_LOG_SCORE, _LOG_SCORE)) if SETTINGS["link"] == "log" else score


def predict(row):
    """The probability of the positive class, or the mean of the label; with several classes that of each, as a dict."""
    if SETTINGS["link"] != "classes":
        return mean_of(score(row))
    logs = score(row)
    chances = [math.exp(log - max(logs)) for log in logs]
    return {label: chance / math.fsum(chances) for label, chance in zip(SETTINGS["class_labels"], chances)}


def _unpacked(packed, width):
    """Where the weights of each cell begin, and all weights."""
    data = zlib.decompress(base64.b85decode(packed)) if packed else b""
    count = len(data) // (4 + 8 * width) if width else 0
    cells, weights = array("I", data[: 4 * count]), array("d", data[4 * count :])
    if sys.byteorder == "big":
        cells.byteswap()
        weights.byteswap()
    return {cell: width * i for i, cell in enumerate(cells)}, weights


_ROWS, _WEIGHTS = _unpacked(CELLS, len(SETTINGS.get("intercepts", ())))


def _main():
    """Predict the rows of standard input; one that cannot be read ends it with one line that says which."""
    for number, line in enumerate(sys.stdin, 1):
        try:
            prediction = predict(json.loads(line))
        except (AttributeError, TypeError, ValueError) as error:  # of JSON, too
            reason = " ".join(str(error).split())[:200]
            sys.exit(f"line {number}: expected a row as a JSON object, got {line.strip()[:80]!r} ({reason}).")
        print(json.dumps(prediction) if isinstance(prediction, dict) else repr(prediction))


if __name__ == "__main__":
    _main()
