"""Convex sets of allowed points: exact quadratic and linear minimisers, and the geometry that bounds need."""

from ftprl.sets.balls import L1Ball, L2Ball, LpBall
from ftprl.sets.base import ConvexSet, Quantity
from ftprl.sets.box import Box
from ftprl.sets.ellipsoid import Ellipsoid
from ftprl.sets.flow import FlowPolytope
from ftprl.sets.hindsight import Family, PostHoc
from ftprl.sets.intersection import Intersection
from ftprl.sets.matrices import Birkhoff, NuclearBall, Spectrahedron
from ftprl.sets.oracle import OracleSet
from ftprl.sets.permutahedron import Permutahedron
from ftprl.sets.polytope import Halfspace, Polytope
from ftprl.sets.simplex import CappedSimplex, Simplex
from ftprl.sets.transforms import Preimage, Product
from ftprl.solver import Solution

__all__ = [
    "Birkhoff",
    "Box",
    "CappedSimplex",
    "ConvexSet",
    "Ellipsoid",
    "Family",
    "FlowPolytope",
    "Halfspace",
    "Intersection",
    "L1Ball",
    "L2Ball",
    "LpBall",
    "NuclearBall",
    "OracleSet",
    "Permutahedron",
    "Polytope",
    "PostHoc",
    "Preimage",
    "Product",
    "Quantity",
    "Simplex",
    "Solution",
    "Spectrahedron",
]
