"""Every option of training in one table: name, group, help and default, for the command line, Python and the docs.

Nothing heavy is imported here: the command line reads the table before anything else is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, NamedTuple, final

Group = Literal["data", "model", "learning", "run", "output"]
Home = Literal["Spec", "open", "train", "cli"]

GROUPS: tuple[Group, ...] = ("data", "model", "learning", "run", "output")


@final
class Option(NamedTuple):
    """One option; in `help`, `{name}` stands for another option, spelled as the reader would type it.

    `home` says what takes it: a field of `Spec`, an argument of `ftprl.data.open`, `train` itself, or the command
    line alone. `default` is what is shown; None is "not set". A switch has a spelling of its own on the command
    line, such as `--no-header` for `header=False`, and may have a `switch_help` that fits it.

    >>> BY_NAME["beta"].typed, BY_NAME["header"].typed
    ('--beta', '--no-header')
    >>> print(BY_NAME["every"].line())
    Checkpoint interval: rows such as 100000, or a time such as 30s, 5m or 1h [default: 30s]
    """

    name: str
    group: Group
    home: Home
    metavar: str
    help: str
    default: str | None = None
    switch: str | None = None
    switch_help: str | None = None
    short: str | None = None

    @property
    def typed(self) -> str:
        """As it is typed on the command line."""
        return (self.switch or "--" + self.name.replace("_", "-")).split("/")[0]

    def line(self, spelled: Callable[[str], str] | None = None) -> str:
        """The help text with the default, for Python unless another spelling of options is passed."""
        text = self.help if spelled is None else self.switch_help or self.help
        text = re.sub(r"\{(\w+)\}", lambda match: (spelled or _in_python)(match[1]), text)
        shown = self.default if spelled is None or self.switch_help is None else None
        return text + (f" [default: {shown}]" if shown is not None else "")


def _in_python(name: str) -> str:
    return "a name in `ftprl.losses.LOSSES`" if name == "losses" else f"`{name}`"


_TABLE = (
    # ---- data ----
    Option(
        "format",
        "data",
        "open",
        "TEXT",
        "File format: csv, tsv, jsonl, parquet, arrow, orc, vw, vwjson, libsvm or batches",
        "inferred from the file extension",
    ),
    Option("label", "data", "open", "COL", "Column with the label; csv and tsv files need one"),
    Option(
        "positive",
        "data",
        "open",
        "TEXT",
        "Label of the positive class; all others are negative",
        "1 (against 0 or -1), yes, true, y or t",
    ),
    Option("weight", "data", "open", "COL", "Column with the weight of the row", "every weight is 1"),
    Option(
        "delay_column",
        "data",
        "open",
        "COL",
        "Column that says after how many rows the label of a row arrives, instead of {delay}",
    ),
    Option(
        "ignore",
        "data",
        "open",
        "COL",
        "Columns to leave out",
        switch_help="Columns to leave out: repeat the option or put commas between names; a name that has a comma"
        " goes into double quotes, '\"a,b\",c'. The same for the other options that take columns",
    ),
    Option("categorical", "data", "open", "COL", "Columns of categories", "inferred from the first 10000 rows"),
    Option("numeric", "data", "open", "COL", "Columns of numbers", "inferred from the first 10000 rows"),
    Option("text", "data", "open", "COL", "Columns of text, split into lower-case words"),
    Option(
        "boolean", "data", "open", "COL", "Columns of true and false, or 1 and 0", "inferred from the first 10000 rows"
    ),
    Option(
        "date", "data", "open", "COL", "Columns of dates or times in ISO 8601", "inferred from the first 10000 rows"
    ),
    Option(
        "bucket",
        "data",
        "open",
        "COL[=N]",
        "Columns of numbers to cut into N quantile buckets of the first 10000 rows, each a feature",
        "N is 32",
    ),
    Option(
        "missing",
        "data",
        "open",
        "TEXT",
        "What a missing value becomes: indicator (a feature 'COL is missing') or ignore (nothing)",
        "indicator; ignore for dicts that lack most keys",
    ),
    Option(
        "interactions",
        "data",
        "open",
        "A:B",
        "Products of features of 2 to 4 columns or VW namespaces, such as user:ad; * is any column or namespace",
    ),
    Option(
        "ngrams",
        "data",
        "open",
        "[COL=]N",
        "Longest n-gram of words, of all text columns and VW namespaces or of one: 2 makes pairs of neighbouring words",
    ),
    Option("skips", "data", "open", "[COL=]N", "How many words an n-gram may leave out, as {ngrams}", "0"),
    Option(
        "char_ngrams",
        "data",
        "open",
        "[COL=]N[-M]",
        "Characters of the pieces of words that are features as well: 3, or 3-5, as {ngrams}",
    ),
    Option(
        "sep",
        "data",
        "open",
        "CHAR",
        "Character between columns; \\t is a tab",
        "a comma in csv, or ; tab | if the header has no comma; a tab in tsv",
    ),
    Option("quote", "data", "open", "CHAR", "Quote character; '' for none", '" in csv, none in tsv'),
    Option(
        "header",
        "data",
        "open",
        "",
        "Whether the first row has the names of the columns; otherwise they are 1, 2, ...",
        "True",
        switch="--no-header",
        switch_help="Read the first row as data; columns are named 1, 2, ...",
    ),
    Option(
        "on_bad_row",
        "data",
        "open",
        "TEXT",
        "What to do at a row that cannot be read or learned: raise (an error) or skip (and count it)",
        "raise",
    ),
    Option("max_row", "data", "open", "BYTES", "Longest row, in bytes", "16000000"),
    # ---- model ----
    Option("loss", "model", "Spec", "TEXT", "Loss function: {losses}", "logistic"),
    Option(
        "classes",
        "model",
        "train",
        "N",
        "Classes with the losses softmax and ovr: how many there may be, or their labels, with commas between them",
        "the labels of data in memory; otherwise any labels, up to 100",
    ),
    Option(
        "tau",
        "model",
        "Spec",
        "FLOAT",
        "Quantile that the quantile loss estimates, from 0 to 1; with no other loss",
        "0.5",
    ),
    Option("bits", "model", "train", "INT", "Size of the weight table: 2^bits cells", "22"),
    Option("dim", "model", "Spec", "INT", "Size of the weight table in cells, instead of {bits}", "2^22"),
    Option("seed", "model", "Spec", "INT", "Seed of the hash that assigns features to cells", "0"),
    Option(
        "intercept",
        "model",
        "Spec",
        "",
        "Whether to learn an intercept",
        "True",
        switch="--no-intercept",
        switch_help="Learn no intercept",
    ),
    Option(
        "float64",
        "model",
        "Spec",
        "",
        "Whether to use double precision, which takes twice the memory",
        "False",
        switch="--float64",
        switch_help="Use double precision, which takes twice the memory",
    ),
    Option("lower", "model", "Spec", "FLOAT", "Lower bound of every weight but the intercept"),
    Option("upper", "model", "Spec", "FLOAT", "Upper bound of every weight but the intercept"),
    Option(
        "bounds",
        "model",
        "Spec",
        "NAME=LO:HI",
        "Bounds of weights by the names of their features, such as price*=0: (at least 0), x=:0 or x=-1:1; in Python"
        " also as {'price*': (0, None)}. A name is a feature, a column, a namespace, a column number or a pattern with"
        " * and ?",
        switch="--bound",
    ),
    # ---- learning ----
    Option(
        "scale",
        "learning",
        "Spec",
        "H[,H...]",
        "Learning-rate scale: a number, several to learn side by side and mix, or auto for eight of them",
        "auto",
    ),
    Option(
        "beta",
        "learning",
        "Spec",
        "FLOAT",
        "Initial regularisation, for smaller first steps: the learning rate of a weight is H / (beta + sqrt(sum of its"
        " squared gradients)), with the feature in its unit",
        "0.3; 1 with a single scale",
    ),
    Option(
        "l1",
        "learning",
        "Spec",
        "FLOAT",
        "L1 penalty l1 sum |unit w|, for sparse weights, with each weight times the unit of its feature (its root mean"
        " square; with one scale its largest value): added once to the total loss, not per row; not on the intercept",
        "0",
    ),
    Option(
        "l2",
        "learning",
        "Spec",
        "FLOAT",
        "L2 penalty l2/2 sum (unit w)^2, for small weights: as {l1}",
        "0",
    ),
    Option(
        "share",
        "learning",
        "Spec",
        "TEXT",
        "Part of every mixture weight that is shared out evenly over all experts after row t, so that each can"
        " recover: a number, auto for 1/(t+1), or capped for min(2^-10, 1/(t+1))",
        "capped",
    ),
    Option(
        "stack",
        "learning",
        "Spec",
        "",
        "Whether to add to the mixture a combination of all scales that is learned too",
        "True",
        switch="--no-stack",
        switch_help="Mix the scales alone, without a learned combination of them",
    ),
    Option(
        "level",
        "learning",
        "Spec",
        "",
        "Whether predictions also follow the level of the latest labels, for a stream whose mean moves; not for a model"
        " that is saved and applied later, and not with logistic loss",
        "False",
        switch="--level",
        switch_help="Let predictions also follow the level of the latest labels, for a stream whose mean moves; not for"
        " a model that is saved and applied later, and not with logistic loss",
    ),
    Option(
        "coin",
        "learning",
        "Spec",
        "",
        "Whether to add a coin-betting expert, for streams with many features that do not matter; not with penalties"
        " or bounds",
        "True",
        switch="--no-coin",
        switch_help="Mix without the coin-betting expert, which is for streams with many features that do not matter",
    ),
    Option(
        "dense",
        "learning",
        "Spec",
        "",
        "Whether the combination of all scales also sees the columns of numbers that most rows have; not with"
        " penalties or bounds",
        "True",
        switch="--no-dense",
        switch_help="Keep the columns of numbers that most rows have out of the combination of all scales",
    ),
    Option(
        "calibrate",
        "learning",
        "Spec",
        "TEXT",
        "Calibrate probabilities while rows are learned: platt (three numbers), isotonic (bins of scores) or none; with"
        " logistic loss, in one pass, without a receipt and without delays",
        "none",
    ),
    Option(
        "round_rows",
        "learning",
        "Spec",
        "INT",
        "Most rows that are learned together, in rounds that grow with the rows learned so far: a power of two; above 1"
        " with logistic loss alone, and without coin and dense",
        "1",
    ),
    Option(
        "retire",
        "learning",
        "train",
        "",
        "Whether to drop scales that no longer contribute, decided at row 131072 and each doubling",
        "True",
        switch="--no-retire",
        switch_help="Never drop a scale; by default those that no longer contribute are dropped at row 131072 and each"
        " doubling",
    ),
    Option(
        "admit",
        "learning",
        "train",
        "RULE",
        "Leave rare features out, so that they take no memory: count:N learns a feature from its N+1st row on,"
        " bloom:N[:SIZE] the same with counts in a Bloom filter of SIZE, such as 64KB (1MB by default), poisson:P with"
        " probability P from each row that has it; not with a receipt",
        "every feature is learned",
    ),
    # ---- run ----
    Option(
        "passes",
        "run",
        "train",
        "INT",
        "Number of passes over the data; above 1, up to so many are compared by their held-out loss, then all rows are"
        " learned in the best number of passes",
        "1",
    ),
    Option(
        "holdout",
        "run",
        "train",
        "N",
        "Hold out every N-th row: predict it, do not learn it, and report its loss separately; 0 for none. With several"
        " passes held-out rows are learned in the end",
        "none; 20 with several passes, unless a receipt is kept",
    ),
    Option(
        "delay",
        "run",
        "train",
        "ROWS",
        "After how many rows a label arrives: a row is predicted when it arrives, and learned when its label would"
        " have; not with several passes or a receipt",
        "at once",
    ),
    Option(
        "delay_memory",
        "run",
        "train",
        "SIZE",
        "Memory for the rows that wait for their labels: a size such as 4GB",
        "1GB",
    ),
    Option(
        "receipt",
        "run",
        "train",
        "",
        "Whether to keep what `certify` needs to bound the regret; one pass learns the same model",
        "False",
        switch="--receipt/--no-receipt",
        switch_help="Keep what certify needs to bound the regret; one pass learns the same model [default: no-receipt]",
    ),
    Option(
        "checkpoint",
        "run",
        "train",
        "PATH",
        "File to save the run to, so that it can be resumed, or a path of another file system, such as"
        " s3://bucket/run, which becomes a folder; on a cluster a learner that dies is replaced from it",
    ),
    Option(
        "every",
        "run",
        "train",
        "TEXT",
        "Checkpoint interval: rows such as 100000, or a time such as 30s, 5m or 1h",
        "30s",
    ),
    Option(
        "cache",
        "run",
        "train",
        "PATH",
        "File of hashed batches (.batches) that is made of the data first and learned from, in every pass and in later"
        " runs: as long as data and options are the same it is not parsed again",
    ),
    Option(
        "resume",
        "run",
        "train",
        "PATH",
        "Checkpoint to continue with the same data, given again, or model to continue with more data",
    ),
    Option(
        "threads",
        "run",
        "train",
        "INT",
        "Number of threads that parse the data and, with more than four scales, learn it; the result does not depend on"
        " it",
        "from the number of processors",
    ),
    Option(
        "engine",
        "run",
        "train",
        "NAME",
        "Who reads the data: local (threads of this process) or ray (workers of a Ray cluster, for files on paths that"
        " all of them have); the result does not depend on it",
        "local",
    ),
    Option(
        "address",
        "run",
        "train",
        "ADDRESS",
        "With {engine} ray: address of the cluster, such as auto or 10.0.0.1:6379",
        "a cluster on this machine, started for the run",
    ),
    Option(
        "workers",
        "run",
        "train",
        "INT",
        "With {engine} ray: number of files, or parts of files, that are read at the same time",
        "the processors of the cluster, one of them left out",
    ),
    Option(
        "names",
        "run",
        "train",
        "SIZE",
        "Memory for the names of features, which `inspect` shows: a size such as 64MB; 0 for no names",
        "64MB",
    ),
    Option(
        "no_names",
        "run",
        "cli",
        "",
        "Keep no names of features, which makes the model file smaller: the same as --names 0",
        switch="--no-names",
    ),
    # ---- output ----
    Option("output", "output", "train", "PATH", "File to save the model to", short="-o"),
    Option(
        "predictions",
        "output",
        "train",
        "PATH",
        "File to write the prediction of each row before it is learned to, one per line, compressed if it ends in"
        " .gz or .zst; - for stdout; of several passes the first",
    ),
    Option("events", "output", "train", "PATH", "File to log the run to, in JSON lines, for `report` and `watch`"),
    Option("listener", "output", "train", "", "Function that is called with each event of the run"),
    Option("as_json", "output", "cli", "", "Print the result as one line of JSON on stdout", switch="--json"),
    Option("quiet", "output", "cli", "", "Print errors and warnings only", switch="--quiet", short="-q"),
)

# Options of other commands than `train`, as messages of the library name them and as they are typed.
OF_OTHER_COMMANDS = {
    name: f"--{name}" for name in ("alpha", "drift", "exact", "norm", "port", "radius", "rounds", "rows")
}
OF_OTHER_COMMANDS |= {"path": "--output", "by": "--by", "predictions_are": "--predictions-are"}
OF_OTHER_COMMANDS |= {"threshold": "--threshold", "predictions": "--predictions"}
OF_OTHER_COMMANDS |= {"probabilities": "--probabilities", "uncertainty": "--uncertainty"}

BY_NAME = {option.name: option for option in _TABLE}
TRAIN = tuple(option for option in _TABLE if option.home != "cli")  # the keywords of `train`
COMMAND = tuple(option for option in _TABLE if option.name != "listener")  # the options of `ftprl train`


def names(home: Home) -> tuple[str, ...]:
    """The options that `home` takes."""
    return tuple(option.name for option in _TABLE if option.home == home)


def as_typed(message: str, options: tuple[str, ...]) -> str:
    """A message with its options as they are typed on the command line; in Python they are `label=`, `bits=10`.

    Only the options that an error names are replaced, or one that its message begins with: the rest may be data.

    >>> as_typed("use bits= or dim=, got bits=10 and dim=5", ("bits", "dim"))
    'use --bits or --dim, got --bits 10 and --dim 5'
    """
    first = re.match(r"(\w+)(?==| needs )", message)
    if first is not None and first[1] in BY_NAME:
        message = _replaced(f"{first[1]}={message[first.end() :].removeprefix('=')}", first[1], count=1)
    elif first is not None and first[1] in OF_OTHER_COMMANDS:
        message = OF_OTHER_COMMANDS[first[1]] + message[first.end() :].removeprefix("=")
    for name in options:
        message = _replaced(message, name)
    return message


def _of_other_command(name: str, match: re.Match[str]) -> str:
    """An option of another command than `train`, as it is typed; one that is not known stays as it is."""
    typed = OF_OTHER_COMMANDS.get(name, match[0])
    return typed + (" " if match[1] and typed != match[0] else "")


def _replaced(message: str, name: str, count: int = 0) -> str:
    option = BY_NAME.get(name)
    if option is None:
        return re.sub(rf"(?<![\w-]){name}=(?=(\S)?)", lambda match: _of_other_command(name, match), message)
    value = r"(?:True|False)?" if option.switch else ""  # a switch has no value

    def typed(match: re.Match[str]) -> str:
        typed = option.switch.split("/")[-1] if option.switch and match[0].endswith("False") else option.typed
        return typed + (" " if message[match.end() : match.end() + 1].strip(" ,;.:") else "")

    return re.sub(rf"(?<![\w-]){name}={value}", typed, message, count=count)
