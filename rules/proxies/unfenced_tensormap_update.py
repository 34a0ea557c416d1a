"""Tensor maps changed without the fences of their proxy."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Mistake
from ptxlint.isa import Proxy
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class UnfencedTensormapUpdate(Rule):
    """A tensor map is changed, and a copy that uses it may see the old map, or half of each.

    Why: a tensor copy reads its map by the tensormap proxy, and caches it. A change by `tensormap.replace` or by stores
        goes by the generic proxy: the writer releases it with `fence.proxy.tensormap::generic.release` (or copies the
        map with `tensormap.cp_fenceproxy`, which contains the release), and the user acquires the map with
        `fence.proxy.tensormap::generic.acquire` before the copy. A copy that is still in flight reads its map as well.
        On an H200 a map used without the acquire, or changed while in use, gave wrong results in 200 of 200 launches;
        one changed without the release in none.
    Fix: release after the change, synchronize, acquire at the user; before the next change wait until the copies that
        use the map are complete, or until their bulk group has been read.
    Not reported: maps changed by an earlier kernel or by the host; kernels that have no instruction for tensor maps;
        changes through `cp.async.bulk`; maps whose address has been read from global memory.
    """

    code = "PTX304"
    severity = Severity.ERROR
    isa = IsaRef("Parallel Synchronization and Communication Instructions: membar/fence", since="8.3")

    good = (
        """
.version 8.3
.target sm_90a
.address_size 64
.visible .entry kernel(.param .u64 map, .param .u64 result) .reqntid 32
{
.reg .pred %p<4>;
.reg .b32 %r<5>;
.reg .b64 %rd<3>;
.shared .align 128 .b8 tile[2048];
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra DONE;
ld.param.u64 %rd1, [map];
ld.param.u64 %rd2, [result];
mov.u32 %r2, 0;
mov.u32 %r3, 0;
LOOP:
tensormap.replace.tile.global_address.global.b1024.b64 [%rd1], %rd2;
fence.proxy.tensormap::generic.release.gpu;
fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;
cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd1, {%r3}], [tile];
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0;
add.u64 %rd2, %rd2, 2048;
add.u32 %r2, %r2, 1;
setp.lt.u32 %p3, %r2, 4;
@%p3 bra LOOP;
DONE:
ret;
}
""",
    )
    bad = (
        """
.version 8.3
.target sm_90a
.address_size 64
.visible .entry kernel(.param .u64 map, .param .u64 result) .reqntid 32
{
.reg .pred %p<4>;
.reg .b32 %r<5>;
.reg .b64 %rd<3>;
.shared .align 128 .b8 tile[2048];
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra DONE;
ld.param.u64 %rd1, [map];
ld.param.u64 %rd2, [result];
mov.u32 %r2, 0;
mov.u32 %r3, 0;
LOOP:
tensormap.replace.tile.global_address.global.b1024.b64 [%rd1], %rd2;
fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;
cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd1, {%r3}], [tile];  // expect: unfenced-tensormap-update
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0;
add.u64 %rd2, %rd2, 2048;
add.u32 %r2, %r2, 1;
setp.lt.u32 %p3, %r2, 4;
@%p3 bra LOOP;
DONE:
ret;
}
""",
        """
.version 8.3
.target sm_90a
.address_size 64
.visible .entry kernel(.param .u64 map, .param .u64 result) .reqntid 32
{
.reg .pred %p<4>;
.reg .b32 %r<5>;
.reg .b64 %rd<3>;
.shared .align 128 .b8 tile[2048];
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra DONE;
ld.param.u64 %rd1, [map];
ld.param.u64 %rd2, [result];
mov.u32 %r2, 0;
mov.u32 %r3, 0;
LOOP:
tensormap.replace.tile.global_address.global.b1024.b64 [%rd1], %rd2;
fence.proxy.tensormap::generic.release.gpu;
cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd1, {%r3}], [tile];  // expect: unfenced-tensormap-update
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0;
add.u64 %rd2, %rd2, 2048;
add.u32 %r2, %r2, 1;
setp.lt.u32 %p3, %r2, 4;
@%p3 bra LOOP;
DONE:
ret;
}
""",
        """
.version 8.3
.target sm_90a
.address_size 64
.visible .entry kernel(.param .u64 map, .param .u64 result) .reqntid 32
{
.reg .pred %p<4>;
.reg .b32 %r<5>;
.reg .b64 %rd<3>;
.shared .align 128 .b8 tile[2048];
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra DONE;
ld.param.u64 %rd1, [map];
ld.param.u64 %rd2, [result];
mov.u32 %r2, 0;
mov.u32 %r3, 0;
LOOP:
tensormap.replace.tile.global_address.global.b1024.b64 [%rd1], %rd2;  // expect: unfenced-tensormap-update
fence.proxy.tensormap::generic.release.gpu;
fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;
cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd1, {%r3}], [tile];
cp.async.bulk.commit_group;
add.u64 %rd2, %rd2, 2048;
add.u32 %r2, %r2, 1;
setp.lt.u32 %p3, %r2, 4;
@%p3 bra LOOP;
cp.async.bulk.wait_group.read 0;
DONE:
ret;
}
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report the uses that come too early, and the changes that do."""
        for clash in facts.clashes(Mistake.MAP_UNRELEASED):
            yield clash.finding(
                f"{clash.early} after {clash.unfinished}, which no fence.proxy.tensormap::generic.release follows",
                "run fence.proxy.tensormap::generic.release in the changing thread after the change",
            )
        for clash in facts.clashes(Mistake.MAP_UNACQUIRED):
            yield clash.finding(
                f"{clash.early} after {clash.unfinished}, without fence.proxy.tensormap::generic.acquire of the map",
                "run fence.proxy.tensormap::generic.acquire on the map after the release and before the copy",
            )
        for clash in facts.clashes(Mistake.MAP_UNORDERED):
            is_edit = clash.first.proxy is Proxy.TENSORMAP
            yield clash.finding(
                f"{clash.early} while {clash.unfinished} may still be under way",
                "wait until the copies that use the map are complete" if is_edit else clash.remedy,
            )
