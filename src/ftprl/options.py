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
    Option("weight", "data", "open", "COL", "Column with the weight of the row in the loss", "every weight is 1"),
    Option(
        "delay_column",
        "data",
        "open",
        "COL",
        "Column with the number of rows after which the label of the row arrives, instead of {delay}",
    ),
    Option(
        "ignore",
        "data",
        "open",
        "COL",
        "Columns to leave out",
        switch_help="Columns to leave out: repeat the option, or separate names by commas; put a name that has a comma"
        " in double quotes, '\"a,b\",c'. All options that take columns work this way",
    ),
    Option("categorical", "data", "open", "COL", "Columns of categories", "inferred from the first 10000 rows"),
    Option("numeric", "data", "open", "COL", "Columns of numbers", "inferred from the first 10000 rows"),
    Option("text", "data", "open", "COL", "Columns of text, to split into lower-case words", "none; never inferred"),
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
        "Columns of numbers to split into N buckets at the quantiles of the first 10000 rows; each bucket is a feature",
        "N is 32",
    ),
    Option(
        "missing",
        "data",
        "open",
        "TEXT",
        "How to treat missing values: indicator (add a feature 'COL is missing') or ignore (add none)",
        "indicator; ignore for dicts that lack most of the keys",
    ),
    Option(
        "interactions",
        "data",
        "open",
        "A:B",
        "Products of the features of 2 to 4 columns or VW namespaces, such as user:ad; * stands for any of them",
        "none",
    ),
    Option(
        "ngrams",
        "data",
        "open",
        "[COL=]N",
        "Longest word n-gram, for all text columns and VW namespaces or for COL: 2 adds pairs of neighbouring words",
        "1",
    ),
    Option("skips", "data", "open", "[COL=]N", "Most words that an n-gram may skip, in the form of {ngrams}", "0"),
    Option(
        "char_ngrams",
        "data",
        "open",
        "[COL=]N[-M]",
        "Length of character n-grams to add, such as 3 or 3-5, in the form of {ngrams}",
        "none",
    ),
    Option(
        "sep",
        "data",
        "open",
        "CHAR",
        "Character between columns; \\t for a tab",
        "a comma in csv, or one of ; tab | if the header has no comma; a tab in tsv",
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
        "What to do with a row that cannot be read or learned: raise (stop with an error) or skip (and count it)",
        "raise",
    ),
    Option("max_row", "data", "open", "BYTES", "Longest allowed row, in bytes", "16000000"),
    # ---- model ----
    Option("loss", "model", "Spec", "TEXT", "Loss function: {losses}", "logistic"),
    Option(
        "classes",
        "model",
        "train",
        "N",
        "Classes of the losses softmax and ovr: how many there may be, or their labels separated by commas",
        "the labels of data in memory; otherwise up to 100, learned from the data",
    ),
    Option(
        "tau",
        "model",
        "Spec",
        "FLOAT",
        "Quantile to estimate with the quantile loss, from 0 to 1; for no other loss",
        "0.5",
    ),
    Option(
        "bits",
        "model",
        "train",
        "INT",
        "Size of the weight table: 2^bits cells; features whose hashes collide share a cell",
        "22",
    ),
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
        "Bounds of single weights, such as price*=0: (at least 0), x=:0 (at most 0) or x=-1:1; in Python also as"
        " {'price*': (0, None)}. NAME is a feature, a column, a namespace, a column number or a pattern with * and ?",
        "none",
        switch="--bound",
    ),
    # ---- learning ----
    Option(
        "scale",
        "learning",
        "Spec",
        "H[,H...]",
        "Learning-rate scale: a number, several to train side by side and mix, or auto for a grid of eight",
        "auto",
    ),
    Option(
        "beta",
        "learning",
        "Spec",
        "FLOAT",
        "Initial regularisation, for smaller first steps: the learning rate of a weight is H / (beta + sqrt(sum of its"
        " squared gradients)), with H the {scale} and each feature divided by its unit",
        "0.3; 1 with a single scale",
    ),
    Option(
        "l1",
        "learning",
        "Spec",
        "FLOAT",
        "L1 penalty, for sparse weights: adds l1 * sum |unit * weight| to the total loss, once and not per row, without"
        " the intercept. The unit of a feature is its root mean square (with a single scale its largest value)",
        "0",
    ),
    Option(
        "l2",
        "learning",
        "Spec",
        "FLOAT",
        "L2 penalty, for small weights: adds l2/2 * sum (unit * weight)^2 to the total loss, as {l1} does",
        "0",
    ),
    Option(
        "share",
        "learning",
        "Spec",
        "TEXT",
        "Fraction of the mixture weights that is redistributed equally over all experts after row t, so that each can"
        " recover: a number, auto for 1/(t+1), or capped for min(2^-10, 1/(t+1))",
        "capped",
    ),
    Option(
        "stack",
        "learning",
        "Spec",
        "",
        "Whether to add the stack to the mixture: a learned combination of all scales",
        "True",
        switch="--no-stack",
        switch_help="Mix without the stack, a learned combination of all scales",
    ),
    Option(
        "level",
        "learning",
        "Spec",
        "",
        "Whether predictions also follow the level of the latest labels, for data whose mean drifts; not for a model"
        " that is saved and applied later, and not with logistic loss",
        "False",
        switch="--level",
        switch_help="Let predictions also follow the level of the latest labels, for data whose mean drifts; not for"
        " a model that is saved and applied later, and not with logistic loss",
    ),
    Option(
        "coin",
        "learning",
        "Spec",
        "",
        "Whether to add a coin-betting expert to the mixture, for data with many irrelevant features; not with"
        " penalties or bounds",
        "True",
        switch="--no-coin",
        switch_help="Leave out the coin-betting expert (it helps on data with many irrelevant features)",
    ),
    Option(
        "dense",
        "learning",
        "Spec",
        "",
        "Whether the stack also uses the numeric columns that most rows have; not with penalties or bounds",
        "True",
        switch="--no-dense",
        switch_help="Leave the dense columns (numeric, in most rows) out of the stack",
    ),
    Option(
        "calibrate",
        "learning",
        "Spec",
        "TEXT",
        "Online calibration of probabilities: platt (three parameters), isotonic (bins of scores) or none; only with"
        " logistic loss, in one pass, without a receipt or delays",
        "none",
    ),
    Option(
        "round_rows",
        "learning",
        "Spec",
        "INT",
        "Most rows to learn together, in rounds (mini-batches) that grow with the rows learned so far: a power of two;"
        " above 1 only with logistic loss, and without coin and dense",
        "1",
    ),
    Option(
        "retire",
        "learning",
        "train",
        "",
        "Whether to drop scales that no longer contribute, at row 131072 and at each doubling",
        "True",
        switch="--no-retire",
        switch_help="Keep all scales; by default those that no longer contribute are dropped at row 131072 and at each"
        " doubling",
    ),
    Option(
        "admit",
        "learning",
        "train",
        "RULE",
        "Rule that keeps rare features out, to save memory: count:N learns a feature from its N+1st row on,"
        " bloom:N[:SIZE] does the same with a Bloom filter of SIZE, such as 64KB (1MB by default), poisson:P starts"
        " with probability P at each row that has it; not with a receipt",
        "every feature is learned",
    ),
    # ---- run ----
    Option(
        "passes",
        "run",
        "train",
        "INT",
        "Number of passes over the data; above 1 the largest number to try: the best one on held-out rows is chosen,"
        " and then all rows are learned in that many passes",
        "1",
    ),
    Option(
        "holdout",
        "run",
        "train",
        "N",
        "Hold out every N-th row: predict it without learning it, and report its loss separately; 0 for none. With"
        " several passes all rows are learned in the end",
        "none; 20 with several passes, unless a receipt is kept",
    ),
    Option(
        "delay",
        "run",
        "train",
        "ROWS",
        "Number of rows after which a label arrives: a row is predicted at once and learned when its label is there;"
        " not with several passes or a receipt",
        "0",
    ),
    Option(
        "delay_memory",
        "run",
        "train",
        "SIZE",
        "Memory for rows that wait for their labels, such as 4GB",
        "1GB",
    ),
    Option(
        "receipt",
        "run",
        "train",
        "",
        "Whether to store what `certify` needs to bound the regret; a run of one pass gives the same model without it",
        "False",
        switch="--receipt/--no-receipt",
        switch_help="Store what certify needs to bound the regret; a run of one pass gives the same model without it"
        " [default: off]",
    ),
    Option(
        "checkpoint",
        "run",
        "train",
        "PATH",
        "File to save the run to at intervals, so that it can be resumed; or a URI such as s3://bucket/run, which"
        " becomes a folder. On a cluster a learner that dies is restarted from it",
        "none",
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
        "File (.batches) for the parsed and hashed data: written first, then read in every pass and in later runs with"
        " the same data and options, which need not parse again",
        "none",
    ),
    Option(
        "resume",
        "run",
        "train",
        "PATH",
        "Checkpoint to continue with the same data, or model to continue with more data",
        "none",
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
        "Where the data is read: local (threads of this process) or ray (workers of a Ray cluster, which all need the"
        " paths of the files); the result does not depend on it",
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
        "all processors of the cluster but one",
    ),
    Option(
        "servers",
        "run",
        "train",
        "INT",
        "With {engine} ray and {round_rows}: number of servers that share the table, for one that is larger than the"
        " memory of a machine, or for more rows per second than one process learns; the result is that of {round_rows}",
        "none, one process has the table",
    ),
    Option(
        "names",
        "run",
        "train",
        "SIZE",
        "Memory for feature names, which `inspect` shows, such as 64MB; 0 for no names",
        "64MB",
    ),
    Option(
        "no_names",
        "run",
        "cli",
        "",
        "Store no feature names, for a smaller model file: the same as --names 0",
        switch="--no-names",
    ),
    # ---- output ----
    Option("output", "output", "train", "PATH", "File to save the model to", short="-o"),
    Option(
        "compact",
        "output",
        "train",
        "",
        "Whether to keep only what predictions need, for a smaller model file, above all with {l1}; such a model"
        " predicts the same and cannot be trained further or certified",
        "False",
        switch="--compact",
        switch_help="Save only what predictions need, for a smaller file, above all with --l1; the model predicts the"
        " same and cannot be trained further or certified",
    ),
    Option(
        "predictions",
        "output",
        "train",
        "PATH",
        "File for the progressive predictions, each made before its row is learned, one per line; compressed if it"
        " ends in .gz or .zst, - for stdout; with several passes those of the first",
        "none",
    ),
    Option(
        "events",
        "output",
        "train",
        "PATH",
        "File for the log of the run, in JSON lines, which `report` and `watch` read",
        "none",
    ),
    Option("listener", "output", "train", "", "Function to call with each event of the run", "none"),
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
