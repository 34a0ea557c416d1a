"""The sets of mutants that can be made: a sample of all operators, and every deletion of a kind in ten kernels."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from bench.mutants.operators import OPERATORS

_EVERYTHING = frozenset(operator.name for operator in OPERATORS)


@dataclass(frozen=True, slots=True)
class MutantSet:
    """Operators, and whether all of their mutants are made (else a sample); `modules.toml` names the modules."""

    title: str
    operators: frozenset[str]
    is_complete: bool


SETS: Mapping[str, MutantSet] = MappingProxyType(
    {
        "sample": MutantSet("each synchronization instruction dropped or weakened, a sample", _EVERYTHING, False),
        "fences": MutantSet(
            "each fence, commit and wait for a group or a tensor-memory access deleted",
            frozenset(
                {
                    "drop-fence",
                    "drop-proxy-fence",
                    "drop-init-fence",
                    "drop-wgmma-fence",
                    "drop-tcgen05-fence",
                    "drop-group-commit",
                    "drop-wgmma-commit",
                    "drop-tcgen05-commit",
                    "drop-group-wait",
                    "drop-wgmma-wait",
                    "drop-tcgen05-wait",
                }
            ),
            True,
        ),
        "waits": MutantSet(
            "each wait for an mbarrier and each CTA barrier deleted",
            frozenset({"drop-wait", "drop-cta-barrier"}),
            True,
        ),
    }
)
