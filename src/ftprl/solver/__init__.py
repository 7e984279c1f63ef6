"""Numerical solvers: PIQP for quadratic programs, Clarabel for cones, HiGHS for linear programs; nothing else calls
them.

A set describes itself as a `Conic`; `minimise_conic` then minimises ½ xᵀHx + z·x + l1·|x|₁ over it. Polyhedra are tried
first from the constraints active at the previous play (a warm start that depends on nothing but its arguments), and a
solver's answer is polished on the constraints it found active. `minimise_by_vertices` needs no description, only the
best point along a slope. Every answer carries a proved upper bound on its gap.
"""

from ftprl.solver.bounded import minimise_between
from ftprl.solver.certified import Solution
from ftprl.solver.conic import Conic
from ftprl.solver.engines import call_clarabel, interior_point, linear_program
from ftprl.solver.frank_wolfe import minimise_by_vertices
from ftprl.solver.linear import axis_bounds
from ftprl.solver.quadratic import Scaled, furthest, is_definite, keep_near, minimise_conic, pull_inside

__all__ = [
    "Conic",
    "Scaled",
    "Solution",
    "axis_bounds",
    "call_clarabel",
    "furthest",
    "interior_point",
    "is_definite",
    "keep_near",
    "linear_program",
    "minimise_between",
    "minimise_by_vertices",
    "minimise_conic",
    "pull_inside",
]
