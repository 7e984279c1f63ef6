"""All statements in the order of the paper; each is a module that ends in `STATEMENT`, imported on demand."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from importlib import import_module

from ftprl.errors import InvalidInput
from ftprl.paper.base import Statement

# The name of a statement is its module's name with - for _.
MODULES = (
    "bad_class",
    "bad_class_bound",
    "heavy_tail",
    "square_root_rates",
    "introduction_norms",
    "minimax",
    "hypersphere",
    "regret_theorem",
    "lemma_ftrl",
    "lemma_projection",
    "lemma_contraction",
    "lemma_one_round",
    "lemma_sum",
    "lemma_leader",
    "lemma_regularised_leader",
    "one_matrix",
    "hallucinated_loss",
    "zero_widths",
    "coordinate_constant",
    "diagonal",
    "diagonal_tightness",
    "diagonal_against_constant",
    "arbitrary_sets",
    "lp_post_hoc",
    "black_box",
    "kappa_transfer",
    "sphere",
    "scale_lp",
    "scale_direct",
    "axes_example",
    "algorithm_1",
    "algorithm_2",
    "centring",
    "lazy_restarts",
    "related",
    "clicks",
    "portfolios",
    "arbitrary_sets_gamma",
    "certificate",
    "half",
    "root_two",
    "full_against_diagonal",
    "best_bound",
    "best_bound_limits",
    "centred_best_bound",
    "john_scaling",
    "sketch",
    "hints",
    "composite",
)


def names() -> tuple[str, ...]:
    """Return the names of all statements.

    >>> names()[:2]
    ('bad-class', 'bad-class-bound')
    """
    return tuple(module.replace("_", "-") for module in MODULES)


def find(name: str) -> Statement:
    """Return the statement of this name; raise InvalidInput with the closest name if there is none.

    >>> find("lemma-sum").place
    'Lemma 5'
    """
    if name not in names():
        near = difflib.get_close_matches(name, names(), 1, 0.0)[0]
        raise InvalidInput(f"no statement is called {name!r}; did you mean {near}? ftprl paper list shows all.")
    statement: Statement = import_module(f"ftprl.paper.{name.replace('-', '_')}").STATEMENT
    return statement


def chosen(wanted: Sequence[str]) -> list[Statement]:
    """Return the statements with these names or places, each once, in the order of the paper; all by default.

    >>> [statement.name for statement in chosen(["theorem-5", "half"])]
    ['black-box', 'kappa-transfer', 'half']
    """
    every = names()
    meant = set(wanted) if wanted else set(every)
    for word in meant - set(every):
        place = re.compile(rf"{re.escape(word.replace('-', ' '))}\b", re.IGNORECASE)
        meant |= {name for name in every if word and place.match(find(name).place)} or {find(word).name}
    return [find(name) for name in every if name in meant]
