"""Options of Vowpal Wabbit and their equivalents here; imported only for an error message."""

from __future__ import annotations

_TABLE = {
    # Files
    "-d --data": "ftprl train FILE... -o MODEL: files have no option",
    "-f --final_regressor --save_per_pass": "--output MODEL (-o MODEL) of train",
    "-i --initial_regressor": "train --resume MODEL for more rows; predict and evaluate take it without an option",
    "--save_resume --preserve_performance_counters": "not needed: --resume MODEL trains any model further",
    "-t --testonly": "ftprl predict MODEL FILE, or ftprl evaluate MODEL FILE for its loss",
    "-p": "ftprl predict MODEL FILE -o PREDICTIONS; those made while learning: train --predictions FILE",
    "-r --raw_predictions": "ftprl predict MODEL FILE --raw -o SCORES",
    "-c --cache_file": "--cache FILE.batches",
    "-k --kill_cache": "not needed: a cache of other data or options is written anew",
    "--compressed": "not needed: compressed files are recognised",
    "--dsjson": "--format jsonl, a JSON object of columns per line",
    "--no_stdin --stdin_off": "not needed: standard input is read only where - is typed",
    "--readable_model --invert_hash": "ftprl inspect MODEL --export WEIGHTS.csv",
    "-a --audit": "ftprl inspect MODEL --row ROW",
    "-P --progress": "train --events FILE, which ftprl report and watch read",
    "--daemon --foreground --port --num_children --pid_file": "not there: in Python ftprl.load(MODEL).predict(rows)",
    "--examples": "head -N FILE | ftprl train - --format vw -o MODEL",
    "--span_server --total --node --unique_id": "train --engine ray: many machines read, and one learns",
    # Features
    "--quadratic": "--interactions a:b, once for each pair; * is any namespace",
    "--cubic": "--interactions a:b:c",
    "--permutations --leave_duplicate_interactions": "not there: --interactions a:b has each pair once",
    "--ngram": "--ngrams N, or --ngrams NAMESPACE=N",
    "--feature_limit": "not there; train --admit N leaves out rare features",
    "--keep": "not there: leave the other columns out with --ignore, or the other namespaces out of the file",
    "--ignore_linear": "not there: the features of --interactions are added to the others",
    "--redefine": "not there: rename the namespaces in the file",
    "--affix --spelling": "--char-ngrams N",
    "--dictionary --dictionary_path": "not there: write the features into the rows",
    "--noconstant": "--no-intercept",
    "-C --constant": "not needed: the intercept is learned",
    "-b --bit_precision": "--bits N",
    "--hash": "not needed: names are hashed as text, numbers of libsvm data as numbers",
    "--hash_seed": "--seed N",
    "--sort_features --chain_hash --sparse_weights": "not needed",
    "--feature_mask --l1_state": "--resume MODEL continues a model, its settings included",
    # Learning rates and algorithms
    "-l --learning_rate --ftrl_alpha --coin_alpha": "not needed: eight learning-rate scales are trained and mixed;"
    " --scale X sets a single one",
    "--power_t --initial_t --decay_learning_rate": "not needed: learning rates fall with the gradients seen;"
    " --scale X sets a single scale",
    "--adaptive --normalized --invariant --sgd": "not needed: each weight has its own learning rate, and each feature"
    " is divided by its unit",
    "--ftrl --pistol --proximal": "not needed: FTRL-Proximal is the algorithm",
    "--ftrl_beta": "not there on the command line: 1, or ftprl.linear.Spec(beta=...) in Python",
    "--coin": "not needed: coin betting is one of the experts that are mixed",
    "--bfgs --conjugate_gradient --mem --termination --hessian_on --svrg": "not there: train learns online;"
    " --passes N chooses the number of passes on held-out rows",
    "--nn --inpass --dropout --meanfield --lrq --lrqfa --lrqdropout --rank --new_mf --ksvm --stage_poly --boosting"
    " --autolink --OjaNewton": "not there: the models are linear; --interactions a:b adds products of features",
    "--bootstrap": "ftprl predict MODEL FILE --uncertainty",
    "--random_seed": "not needed: all weights begin at 0; --order-seed N seeds the order of the rows",
    "--initial_weight --random_weights --normal_weights": "not needed: all weights begin at 0",
    "--no_bias_regularization": "not needed: --l1 and --l2 leave the intercept out",
    # Losses and labels
    "--loss_function": "--loss NAME: logistic, squared, hinge, quantile, poisson",
    "--quantile_tau": "--loss quantile --tau T",
    "--expectile_q": "not there: --loss quantile --tau T, or --loss huber",
    "--link": "not needed: predictions of --loss logistic are probabilities; predict --raw writes scores",
    "--min_prediction --max_prediction": "not needed: predictions follow the labels",
    "--binary": "not there: predictions are probabilities; evaluate --threshold P counts errors",
    "--classweight": "--weight COL, or the weight behind the label in each row of VW text",
    "--oaa --multilabel_oaa --ect --log_multi --recall_tree --plt": "--loss ovr --classes N, or --loss softmax",
    "--named_labels": "--loss softmax --classes A,B,C: labels may be words",
    "--probabilities --scores": "ftprl predict MODEL FILE --probabilities, or --raw",
    "--csoaa --csoaa_ldf --wap --wap_ldf --cs_active": "not there: --loss softmax learns the best class, not costs",
    "--cb --cb_adf --cb_explore --cb_explore_adf --cb_type --cbify --cb_sample --cats --ccb_explore_adf --slates"
    " --epsilon --bag --squarecb": "not there: train learns labels; decisions with feedback are ftprl.bandit in Python",
    "--lda --search --search_task --active --simulation --marginal --interact --replay_b --automl": "not there",
    # Passes and held-out rows
    "--holdout_off": "--holdout 0; one pass holds nothing out by itself",
    "--holdout_period": "--holdout N",
    "--holdout_after": "not there: --holdout N holds out every N-th row; evaluate measures another file",
    "--early_terminate": "not needed: --passes N chooses the number of passes on held-out rows",
}
INSTEAD = {option: text for options, text in _TABLE.items() for option in options.split()}


def hint(typed: str) -> str:
    """Return what to type instead of an option of Vowpal Wabbit, or an empty text for another option.

    >>> hint("--bit-precision"), hint("--adaptive")[:42]
    (' (an option of vw); type --bits N', ' (an option of vw), which is not needed: e')
    """
    text = INSTEAD.get(typed) or INSTEAD.get("--" + typed[2:].replace("-", "_"))
    if text is None:
        return ""
    return f" (an option of vw){', which is ' if text.startswith('not ') else '; type '}{text}"


def of_pairs(names: str) -> str:
    """Return what to type instead of `-q ab`, where Vowpal Wabbit has the namespaces a and b.

    >>> of_pairs("ab")
    '-q ab: -q is --quiet here; in place of -q ab of vw type --interactions a:b'
    """
    pair = ":".join(names.replace(":", "*") if len(names) == 2 else "AB")
    return f"-q {names}: -q is --quiet here; in place of -q {names} of vw type --interactions {pair}"
