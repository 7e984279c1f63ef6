"""The table of all options of training, in the order of the help text."""

from __future__ import annotations

from ftprl.options.option import Option

TABLE = (
    # ---- data ----
    Option(
        "format",
        "data",
        "open",
        "TEXT",
        "File format: csv, tsv, jsonl, parquet, arrow, orc, vw, vwjson, libsvm or batches",
        "inferred from the file extension",
    ),
    Option(
        "label",
        "data",
        "open",
        "COL",
        "Column with the label; data with columns needs one, VW text and libsvm have the label in each line",
        "none",
    ),
    Option(
        "positive",
        "data",
        "open",
        "TEXT",
        "Label of the positive class; all others are negative",
        "1 (against 0 or -1), yes, true, y or t, in any case",
    ),
    Option(
        "weight",
        "data",
        "open",
        "COL",
        "Column with the weight of the row in the loss, at least 0",
        "every weight is 1",
    ),
    Option(
        "delay_column",
        "data",
        "open",
        "COL",
        "Column with the number of rows after which the label of the row arrives, instead of {delay}",
        "none",
    ),
    Option(
        "ignore",
        "data",
        "open",
        "COL",
        "Columns to leave out",
        "none",
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
        "Columns of numbers to split into N buckets (2 to 1000) at the quantiles of the first 10000 rows; each bucket"
        " is a feature",
        "no buckets; N is 32",
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
        "Products of the features of 2 to 4 columns or VW namespaces, such as user:ad; * matches all of them",
        "none",
    ),
    Option(
        "ngrams",
        "data",
        "open",
        "[COL=]N",
        "Longest word n-gram, 2 to 8, for all text columns and VW namespaces or for COL: 2 adds pairs of neighbouring"
        " words",
        "single words",
    ),
    Option(
        "skips",
        "data",
        "open",
        "[COL=]N",
        "Most words that an n-gram may skip, 1 to 8, in the form of {ngrams}",
        "none",
    ),
    Option(
        "char_ngrams",
        "data",
        "open",
        "[COL=]N[-M]",
        "Length of character n-grams to add, 1 to 16, such as 3 or 3-5, in the form of {ngrams}",
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
        "Classes of the losses softmax and ovr: how many there may be, 2 to 10000, or their labels separated by commas",
        "the labels of data in memory; otherwise up to 100, learned from the data",
    ),
    Option(
        "tau",
        "model",
        "Spec",
        "FLOAT",
        "Quantile to estimate with the quantile loss, above 0 and below 1; for no other loss",
        "0.5",
    ),
    Option(
        "bits",
        "model",
        "train",
        "INT",
        "Size of the weight table: 2^bits cells, 1 to 32 bits; features whose hashes collide share a cell",
        "22",
    ),
    Option("dim", "model", "Spec", "INT", "Size of the weight table in cells, 2 to 2^32, instead of {bits}", "2^22"),
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
    Option("lower", "model", "Spec", "FLOAT", "Lower bound of every weight but the intercept", "none"),
    Option("upper", "model", "Spec", "FLOAT", "Upper bound of every weight but the intercept", "none"),
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
        "Learning-rate scale: a number above 0, up to 16 in increasing order to train side by side and mix, or auto"
        " for a grid of eight, from 0.02 to 29",
        "auto",
    ),
    Option(
        "beta",
        "learning",
        "Spec",
        "FLOAT",
        "Initial regularisation, for smaller first steps: the learning rate of a weight is H / (beta + sqrt(sum of its"
        " squared gradients)), with H the {scale} and each feature divided by its unit (see {l1})",
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
        "Fraction of the mixture weights that is redistributed equally over all experts (scales, stack, coin) after row"
        " t, so that each can recover: a number from 0 to below 1, auto for 1/(t+1), or capped for min(2^-10, 1/(t+1))",
        "capped",
    ),
    Option(
        "stack",
        "learning",
        "Spec",
        "",
        "Whether to add the stack to the mixture: a learned combination of all scales; not with {bounds}",
        "True",
        switch="--no-stack",
        switch_help="Mix without the stack, a learned combination of all scales (always so with --bound)",
    ),
    Option(
        "level",
        "learning",
        "Spec",
        "",
        "Whether predictions also follow the level of the latest labels, for data whose mean drifts; not for a model"
        " that is saved and applied later. Needs the stack, and another loss than logistic",
        "False",
        switch="--level",
        switch_help="Let predictions also follow the level of the latest labels, for data whose mean drifts; not for"
        " a model that is saved and applied later. Needs the stack, and another loss than logistic",
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
        switch_help="Leave out the coin-betting expert, which helps on data with many irrelevant features (always left"
        " out with penalties, bounds, rounds of several rows, a single scale or several classes)",
    ),
    Option(
        "dense",
        "learning",
        "Spec",
        "",
        "Whether the stack also uses the numeric columns that most rows have; not with penalties or bounds",
        "True",
        switch="--no-dense",
        switch_help="Leave the dense columns (numeric, in most rows) out of the stack (always left out with penalties,"
        " bounds, rounds of several rows or a single scale)",
    ),
    Option(
        "calibrate",
        "learning",
        "Spec",
        "TEXT",
        "Online calibration of probabilities: platt (three parameters), isotonic (bins of scores) or none; only with"
        " logistic loss, in one pass, and not with {receipt}, {delay} or {round_rows}",
        "none",
    ),
    Option(
        "round_rows",
        "learning",
        "Spec",
        "INT",
        "Most rows to learn together, in rounds (mini-batches) that grow with the rows learned so far: a power of two,"
        " at most 2^20; above 1 only with logistic loss, without coin and dense, and not with {bounds}, {delay} or"
        " {calibrate}",
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
        "Rule that keeps rare features out, to save memory: count:N (N from 1 to 254) learns a feature from its"
        " N+1st row on, bloom:N[:SIZE] does the same with a Bloom filter of SIZE, such as 64KB (1MB by default),"
        " poisson:P starts to learn a feature with probability P at each row that has it; not with a receipt",
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
        "Hold out every N-th row, N at least 2 (with several passes also every tenth of the first 2000): predict it"
        " without learning it, and report its loss separately; 0 for none. With several passes all rows are learned in"
        " the end",
        "none; 20 with several passes, unless a receipt is kept",
    ),
    Option(
        "delay",
        "run",
        "train",
        "ROWS",
        "Number of rows after which a label arrives: a row is predicted at once and learned when its label is there;"
        " not with several passes, {receipt}, {bounds}, {calibrate} or {round_rows}",
        "0",
    ),
    Option(
        "delay_memory",
        "run",
        "train",
        "SIZE",
        "Memory for rows that wait for their labels, such as 4GB; a run that needs more stops with an error",
        "1GB",
    ),
    Option(
        "receipt",
        "run",
        "train",
        "",
        "Whether to store what `certify` needs to bound the regret; the model of a run of one pass is the same without"
        " it",
        "False",
        switch="--receipt/--no-receipt",
        switch_help="Store what certify needs to bound the regret; the model of a run of one pass is the same without"
        " it [default: off]",
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
        "Checkpoint interval: rows such as 100000, or a time such as 30s, 5m or 1h; needs {checkpoint}",
        "30s",
    ),
    Option(
        "cache",
        "run",
        "train",
        "PATH",
        "File (.batches) for the parsed and hashed data: written first, then read in every pass and in later runs with"
        " the same data and options, which need not parse again; written anew where these differ",
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
        "Number of threads that parse the data and, with more than four scales, learn it, at most 1024; 0 parses in the"
        " thread that learns. The result does not depend on it",
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
    Option(
        "output",
        "output",
        "train",
        "PATH",
        "File to save the model to",
        "none, the model is only returned",
        switch_help="File to save the model to",
        short="-o",
    ),
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
