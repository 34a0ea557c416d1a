"""A kernel that overwrites the shared memory of all multiprocessors, so that no launch finds what the last one left."""

from ptxlint.validate.fixture import Launch
from ptxlint.validate.problem import POISON

BYTES = 224 * 1024
THREADS = 512

PTX = f"""
.version 8.0
.target sm_90
.address_size 64
.extern .shared .align 16 .b8 memory[];
.visible .entry poison()
{{
    .reg .pred %p<2>;
    .reg .b32 %r<5>;
    mov.u32 %r1, %tid.x;
    shl.b32 %r1, %r1, 2;
    mov.u32 %r2, memory;
    add.u32 %r2, %r2, %r1;
    mov.u32 %r3, {POISON};
AGAIN:
    st.volatile.shared.u32 [%r2], %r3;
    add.u32 %r2, %r2, {4 * THREADS};
    add.u32 %r1, %r1, {4 * THREADS};
    setp.lt.u32 %p1, %r1, {BYTES};
    @%p1 bra AGAIN;
    ret;
}}
"""


def launch_on(multiprocessors: int) -> Launch:
    """One CTA for each multiprocessor, each with as much shared memory as there is."""
    return Launch(grid=(multiprocessors, 1, 1), block=(THREADS, 1, 1), dynamic_smem=BYTES)
