"""The one table of all that ptxlint knows of opcodes, one row for each form of an instruction.

Names of operand roles, wherever a row has such an operand:

| instructions | roles |
|---|---|
| mbarrier.* | `mbarrier` (the address), `count`, `tx` (bytes), `token` (result of an arrive, operand of a wait), `parity`, `done` (result of a wait), `report`, `hint` (nanoseconds), `mask` |
| cp.async | `destination`, `source`, `size`, `source_size` or `ignore` (a predicate), `policy` |
| bulk copies and reductions | `destination`, `source`, `size`, `mbarrier`, `mask` (multicast, or bytes under `.cp_mask`), `policy`, `offsets` (im2col) |
| tensor copies | the same; the tensor map with its coordinates is the `source` of a load and the `destination` of a store |
| st.async, red.async | `address`, `value`, `mbarrier` |
| cp.async.wait_group, cp.async.bulk.wait_group, wgmma.wait_group | `count` |
| bar, barrier | `barrier`, `count`, `predicate`, `result` |
| bar.warp.sync; elect | `mask`; `leader`, `mask` |
| shfl; vote, match, redux | `destination`, `value`, `lane`, `clamp`, `mask`; `destination`, `value`, `mask` |
| wgmma.mma_async | `accumulator`, `a` (register vector or descriptor), `b`, `metadata`, `selector`, `scale_d`, `scale_a`, `scale_b`, `transpose_a`, `transpose_b` |
| tcgen05.* | `taddr`, `destination`, `columns`, `a`, `b`, `sparsity`, `idesc`, `scale_a`, `scale_b`, `lanes`, `enable`, `scale_d`, `zero_columns`, `sdescriptor`, `mbarrier`, `mask`, `offset`, `value`, `reduction` |
| mapa; setmaxnreg | `destination`, `address`, `rank`; `registers` |
| clusterlaunchcontrol | `destination`, `mbarrier`; `destination`, `response` |
| tensormap.replace; fence.proxy.tensormap acquire | `address`, `ordinal`, `value`; `address`, `size` |
| ld, st, atom, red, ldmatrix, stmatrix, tex, prefetch ... | `destination`, `address`, `value`, `compare` (cas), `policy`, `size`, `stride` |
| bra; brx.idx; call | `target`; `index`, `table`; `results`, `callee`, `arguments`, `prototype` |
| everything else | `destination`, `a`, `b`, `c` ... |

An operand that no reading has a place for is `extra0`, `extra1`...; an unknown opcode has `destination`, `operand1`...
"""  # noqa: E501

from ptxlint.isa.access import access_bytes, accesses, naming_lanes, space, type_width, vector_length
from ptxlint.isa.operands import fits, reads, roles, writes
from ptxlint.isa.order import Coverage, aborts, covers, is_aligned, scope, semantics
from ptxlint.isa.row import Access, Flow, Mode, Proxy, Row, Tracking
from ptxlint.isa.table import ROWS, row

__all__ = [
    "ROWS",
    "Access",
    "Coverage",
    "Flow",
    "Mode",
    "Proxy",
    "Row",
    "Tracking",
    "aborts",
    "access_bytes",
    "accesses",
    "covers",
    "fits",
    "is_aligned",
    "naming_lanes",
    "reads",
    "roles",
    "row",
    "scope",
    "semantics",
    "space",
    "type_width",
    "vector_length",
    "writes",
]
