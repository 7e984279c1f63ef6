"""The table of all options of training: one entry per option, with its type, its help and its default.

An entry belongs to the class of its group, which also decides whether the data, the model or the run reads it.
Annotations are evaluated here, so no heavy module is imported: the command line reads the table before anything else is
loaded.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from ftprl.options.option import Bounds, Columns, Grams, Interactions, Option, Path, Rule, Scale, one_of, whole

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
else:
    ArrayLike = Any

Listener = Callable[[dict[str, Any]], None]


class DataOptions(TypedDict, total=False):
    """Options of how the data is read."""

    format: Annotated[
        str | None,
        Option(
            "File format: csv, tsv, jsonl, parquet, arrow, orc, vw or libsvm",
            default="inferred from the file extension",
        ),
    ]
    label: Annotated[
        str | int | None,
        Option(
            "Column with the label; data with columns needs one, VW text and libsvm have the label in each line",
            default="none",
        ),
    ]
    positive: Annotated[
        str | float | None,
        Option(
            "Label of the positive class; all others are negative",
            default="1 (against 0 or -1), yes, true, y or t, in any case",
        ),
    ]
    weight: Annotated[
        str | int | ArrayLike | None,
        Option("Column with the weight of the row in the loss, at least 0", default="every weight is 1", metavar="COL"),
    ]
    ignore: Annotated[
        Columns | None,
        Option(
            "Columns to leave out",
            default="none",
            switch_help="Columns to leave out: repeat the option, or separate names by commas; put a name that has a"
            " comma in double quotes, '\"a,b\",c'. All options that take columns work this way",
        ),
    ]
    categorical: Annotated[
        Columns | None, Option("Columns of categories", default="inferred from the first 10000 rows")
    ]
    numeric: Annotated[Columns | None, Option("Columns of numbers", default="inferred from the first 10000 rows")]
    text: Annotated[
        Columns | None, Option("Columns of text, to split into lower-case words", default="none; never inferred")
    ]
    boolean: Annotated[
        Columns | None, Option("Columns of true and false, or 1 and 0", default="inferred from the first 10000 rows")
    ]
    date: Annotated[
        Columns | None, Option("Columns of dates or times in ISO 8601", default="inferred from the first 10000 rows")
    ]
    bucket: Annotated[
        Columns | None,
        Option(
            "Columns of numbers to split into N buckets (2 to 1000) at the quantiles of the first 10000 rows; each"
            " bucket is a feature",
            default="no buckets; N is 32",
            metavar="COL[=N]",
        ),
    ]
    missing: Annotated[
        str | None,
        Option(
            "How to treat missing values: indicator (add a feature 'COL is missing') or ignore (add none)",
            default="indicator; ignore for dicts that lack most of the keys",
            rule=one_of("indicator", "ignore"),
        ),
    ]
    interactions: Annotated[
        Interactions | None,
        Option(
            "Products of the features of 2 to 4 columns or VW namespaces, such as user:ad; * matches all of them",
            default="none",
            metavar="A:B",
        ),
    ]
    ngrams: Annotated[
        Grams | None,
        Option(
            "Longest word n-gram, 2 to 8, for all text columns and VW namespaces or for COL: 2 adds pairs of"
            " neighbouring words",
            default="single words",
            metavar="[COL=]N",
        ),
    ]
    skips: Annotated[
        Grams | None,
        Option(
            "Most words that an n-gram may skip, 1 to 8, in the form of {ngrams}", default="none", metavar="[COL=]N"
        ),
    ]
    char_ngrams: Annotated[
        Grams | None,
        Option(
            "Length of character n-grams to add, 1 to 16, such as 3 or 3-5, in the form of {ngrams}",
            default="none",
            metavar="[COL=]N[-M]",
        ),
    ]
    sep: Annotated[
        str | None,
        Option(
            "Character between columns; \\t for a tab",
            default="a comma in csv, or one of ; tab | if the header has no comma; a tab in tsv",
            metavar="CHAR",
        ),
    ]
    quote: Annotated[
        str | None, Option("Quote character; '' for none", default='" in csv, none in tsv', metavar="CHAR")
    ]
    header: Annotated[
        bool | None,
        Option(
            "Whether the first row has the names of the columns; otherwise they are 1, 2, ...",
            default="True",
            switch="--no-header",
            switch_help="Read the first row as data; columns are named 1, 2, ...",
        ),
    ]
    on_bad_row: Annotated[
        str | None,
        Option(
            "What to do with a row that cannot be read or learned: raise (stop with an error) or skip (and count it)",
            default="raise",
            rule=one_of("raise", "skip"),
        ),
    ]
    max_row: Annotated[
        int | None,
        Option(
            "Longest allowed row, in bytes",
            default="16000000",
            metavar="BYTES",
            rule=whole(1, 2**40, wanted="a number of bytes from 1 to 2**40"),
        ),
    ]


class ModelOptions(TypedDict, total=False):
    """Options that describe the model."""

    loss: Annotated[str | None, Option("Loss function: {losses}", default="logistic")]
    classes: Annotated[
        int | str | Sequence[str | float] | None,
        Option(
            "Classes of the losses softmax and ovr: how many there may be, 2 to 10000, or their labels separated by"
            " commas",
            default="the labels of data in memory; otherwise up to 100, learned from the data",
            metavar="N",
        ),
    ]
    tau: Annotated[
        float | None,
        Option("Quantile to estimate with the quantile loss, above 0 and below 1; for no other loss", default="0.5"),
    ]
    bits: Annotated[
        int | None,
        Option(
            "Size of the weight table: 2^bits cells, 1 to 32 bits; features whose hashes collide share a cell",
            default="22",
            rule=whole(1, 32, "the table has 2**bits cells"),
        ),
    ]
    seed: Annotated[
        int | None,
        Option(
            "Seed of the hash that assigns features to cells",
            default="0",
            rule=whole(0, 2**64 - 1, wanted="a whole number from 0 to 2**64 - 1"),
        ),
    ]
    intercept: Annotated[
        bool | None,
        Option(
            "Whether to learn an intercept",
            default="True",
            switch="--no-intercept",
            switch_help="Learn no intercept",
        ),
    ]
    float64: Annotated[
        bool | None,
        Option(
            "Whether to use double precision, which takes twice the memory",
            default="False",
            switch="--float64",
            switch_help="Use double precision, which takes twice the memory",
        ),
    ]
    bounds: Annotated[
        Bounds | None,
        Option(
            "Bounds of weights, such as price*=0: (at least 0), x=:0 (at most 0), x=-1:1, or *=0: for all but the"
            " intercept; in Python also as {'price*': (0, None)}. NAME is a feature, a column, a namespace, a column"
            " number or a pattern with * and ?",
            default="none",
            metavar="NAME=LO:HI",
            switch="--bound",
            off=(),
        ),
    ]


class LearningOptions(TypedDict, total=False):
    """Options of the learning algorithm."""

    scale: Annotated[
        Scale | None,
        Option(
            "Learning-rate scale: a number above 0, up to 16 in increasing order to train side by side and mix, or"
            " auto for a grid of eight, from 0.02 to 29",
            default="auto",
            metavar="H[,H...]",
        ),
    ]
    l1: Annotated[
        float | None,
        Option(
            "L1 penalty, for sparse weights: adds l1 * sum |unit * weight| to the total loss, once and not per row,"
            " without the intercept. The unit of a feature is its root mean square (with a single scale its largest"
            " value)",
            default="0",
        ),
    ]
    l2: Annotated[
        float | None,
        Option(
            "L2 penalty, for small weights: adds l2/2 * sum (unit * weight)^2 to the total loss, as {l1} does",
            default="0",
        ),
    ]
    calibrate: Annotated[
        str | None,
        Option(
            "Online calibration of probabilities: platt (three parameters), isotonic (bins of scores) or none; only"
            " with logistic loss, in one pass, and not with {receipt} or {delay}",
            default="none",
            rule=one_of("none", "platt", "isotonic", wanted="one of none, platt, isotonic"),
            off="none",
            excludes={
                "passes": "calibrate= learns from predictions of rows that are new, got passes={passes}; drop one.",
                "delay": "calibrate= does not support labels that arrive late yet, got delay={delay}; drop one.",
            },
        ),
    ]
    admit: Annotated[
        int | None,
        Option(
            "Keep rare features out, to save memory: learn a feature from its N+1st row on, N from 1 to 254",
            default="every feature is learned",
            metavar="N",
            rule=whole(1, 254),
            excludes={
                "receipt": "admit= leaves features out that a receipt counts, got admit={admit} with a receipt; drop"
                " one."
            },
        ),
    ]


class RunOptions(TypedDict, total=False):
    """Options of one run: passes, receipts, checkpoints, processes."""

    passes: Annotated[
        int | None,
        Option(
            "Number of passes over the data; above 1 the largest number to try: the best one on held-out rows is"
            " chosen, and then all rows are learned in that many passes",
            default="1",
            rule=whole(1, remedy="pass a larger one"),
            off=1,
        ),
    ]
    holdout: Annotated[
        int | None,
        Option(
            "Hold out every N-th row, N at least 2 (with several passes also every tenth of the first 2000): predict"
            " it without learning it, and report its loss separately; 0 for none. With several passes all rows are"
            " learned in the end",
            default="none; 20 with several passes, unless a receipt is kept",
            metavar="N",
            rule=Rule(
                "a whole number from 2 to 2**53, or 0 for none",
                lambda value: whole(0, 0).fits(value) or whole(2, 2**53).fits(value),
                "hold out every N-th row, such as 10 for a tenth",
            ),
        ),
    ]
    delay: Annotated[
        int | None,
        Option(
            "Number of rows after which a label arrives: a row is predicted at once and learned when its label is"
            " there; not with several passes, {receipt}, {bounds} or {calibrate}",
            default="0",
            off=0,
            metavar="ROWS",
            rule=whole(0, 2**53, "pass after how many rows a label arrives", wanted="a number of rows from 0 to 2**53"),
            excludes={
                "receipt": "delay= learns rows later than they are predicted, which no receipt covers, got it with a"
                " receipt; drop one.",
                "bounds": "delay= learns rows in another order than bounds= expects, got both; drop one.",
                "passes": "delay= is for one pass over a stream, got passes={passes}; drop one.",
            },
        ),
    ]
    order: Annotated[
        str | None,
        Option(
            "Order in which rows are learned: random (for a model that is saved and applied: rows in memory are"
            " shuffled, and of more rows a random sample is learned last) or given (that of the data, for a model that"
            " goes on learning; {predictions} and {delay} need it)",
            default="random; given with {predictions} or {delay}",
            rule=one_of("random", "given"),
            off="given",
            excludes={
                "predictions": "order= is random, but predictions= are written in the order of the data; drop one.",
                "delay": "order= is random, but delay= learns rows in the order of their labels; drop one.",
            },
        ),
    ]
    waiting: Annotated[
        int | None,
        Option(
            "Rows that wait in memory at most (256 MB at most) to be learned last in random order; fewer rows are all"
            " shuffled",
            default="131072",
            metavar="ROWS",
            rule=whole(10, 2**40, wanted="a number of rows from 10 to 2**40"),
        ),
    ]
    order_seed: Annotated[
        int | None,
        Option("Seed of the random order of the rows", default="0", rule=whole(0, 2**64 - 1)),
    ]
    receipt: Annotated[
        bool | None,
        Option(
            "Whether to store what `certify` needs to bound the regret; the model of a run of one pass is the same"
            " without it",
            default="False",
            switch="--receipt/--no-receipt",
            switch_help="Store what certify needs to bound the regret; the model of a run of one pass is the same"
            " without it [default: off]",
            excludes={
                "calibrate": "receipt= covers predictions as they are before calibration, got calibrate={calibrate}"
                " as well; drop one."
            },
        ),
    ]
    checkpoint: Annotated[
        Path | None,
        Option(
            "File to save the run to at intervals, so that it can be continued with {resume} if it is interrupted",
            default="none",
        ),
    ]
    every: Annotated[
        str | int | None,
        Option(
            "Checkpoint interval: rows such as 100000, or a time such as 30s, 5m or 1h; needs {checkpoint}",
            default="30s",
            metavar="TEXT",
            requires={
                "checkpoint": "every= is the checkpoint interval, got every={every!r} without a checkpoint; pass"
                " checkpoint= as well."
            },
        ),
    ]
    cache: Annotated[
        Path | None,
        Option(
            "File for the parsed and hashed data, whose name ends in .batches: written first, then read in every pass"
            " and in later runs with the same data and options, which need not parse again; written anew where these"
            " differ",
            default="none",
        ),
    ]
    resume: Annotated[
        Path | None,
        Option("Checkpoint to continue with the same data, or model to continue with more data", default="none"),
    ]
    threads: Annotated[
        int | None,
        Option(
            "Number of threads that parse the data, at most 1024, and of threads that learn its rows; 0 parses in the"
            " thread that learns. With {engine} ray the number of workers, each of which reads a file or a part of one."
            " The result does not depend on it",
            default="from the number of processors",
            rule=whole(0, 1024, "pass 1"),
        ),
    ]
    engine: Annotated[
        str | None,
        Option(
            "Where the data is read: local (threads of this process) or ray (workers of a Ray cluster, which all need"
            " the paths of the files): that of the environment variable RAY_ADDRESS, such as auto or 10.0.0.1:6379,"
            " otherwise one that is started on this machine for the run. The result does not depend on it",
            default="local",
            metavar="NAME",
            rule=one_of("local", "ray", wanted="one of local, ray"),
            off="local",
        ),
    ]
    names: Annotated[
        str | int | None,
        Option(
            "Memory for feature names, which `inspect` shows, such as 64MB; 0 for no names",
            default="64MB",
            metavar="SIZE",
        ),
    ]


class OutputOptions(TypedDict, total=False):
    """Options that name the outputs of a run."""

    output: Annotated[
        Path | None,
        Option(
            "File to save the model to",
            default="none, the model is only returned",
            switch_help="File to save the model to",
            short="-o",
        ),
    ]
    compact: Annotated[
        bool | None,
        Option(
            "Whether to keep only what predictions need, for a smaller model file, above all with {l1}; such a model"
            " predicts the same and cannot be trained further or certified",
            default="False",
            switch="--compact",
            switch_help="Save only what predictions need, for a smaller file, above all with --l1; the model predicts"
            " the same and cannot be trained further or certified",
            excludes={
                "receipt": "compact= leaves out what certify needs, got a receipt as well; drop one, or make a"
                " compact copy of the model with ftprl compact.",
            },
        ),
    ]
    predictions: Annotated[
        Path | None,
        Option(
            "File for the progressive predictions, each made before its row is learned, one per line; compressed if"
            " it ends in .gz or .zst, - for stdout; with several passes those of the first",
            default="none",
        ),
    ]
    events: Annotated[
        Path | None,
        Option("File for the log of the run, in JSON lines, which `report` and `watch` read", default="none"),
    ]
    listener: Annotated[Listener | None, Option("Function to call with each event of the run", default="none")]


class TrainOptions(DataOptions, ModelOptions, LearningOptions, RunOptions, OutputOptions, total=False):
    """All options of `ftprl.train`."""
