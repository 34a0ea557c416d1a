"""CuTe DSL kernels of ours: rings of bulk copies, warpgroup and tcgen05 products, cp.async groups, clusters.

Imported only after the target has been set: the DSL reads it once. Each class is one kernel; its call builds the copy
atoms and launches.
"""

import cutlass
import cutlass.cute as cute
import cutlass.utils.blackwell_helpers as blackwell
import cutlass.utils.hopper_helpers as hopper
from cutlass import pipeline
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, tcgen05, warpgroup
from cutlass.utils import LayoutEnum, SmemAllocator

HALF, SINGLE = cutlass.Float16, cutlass.Float32


def threads(count: int) -> pipeline.CooperativeGroup:
    """A group that arrives ``count`` times."""
    return pipeline.CooperativeGroup(pipeline.Agent.Thread, count)


class CopyRing:
    """A loading warp, four warps that double the tiles, bulk stores; over a cluster, tiles are multicast."""

    def __init__(self, stages: int, cluster: int = 1) -> None:
        self.stages, self.cluster = stages, cluster

    @cute.jit
    def __call__(self, x: cute.Tensor, out: cute.Tensor):
        tile = cute.make_ordered_layout((64, 64), order=(1, 0))
        staged = cute.make_ordered_layout((64, 64, self.stages), order=(1, 0, 2))
        if cutlass.const_expr(self.cluster > 1):
            operation = cpasync.CopyBulkTensorTileG2SMulticastOp()
        else:
            operation = cpasync.CopyBulkTensorTileG2SOp()
        load, x_tiles = cpasync.make_tiled_tma_atom(operation, x, tile, (64, 64), num_multicast=self.cluster)
        store, out_tiles = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), out, tile, (64, 64))
        self.kernel(load, x_tiles, store, out_tiles, tile, staged).launch(
            grid=(cute.size(x, mode=[0]) // 64, 1, 1), block=(160, 1, 1), cluster=(self.cluster, 1, 1)
        )

    @cute.kernel
    def kernel(self, load: cute.CopyAtom, x: cute.Tensor, store: cute.CopyAtom, out: cute.Tensor, tile: cute.Layout,
               staged: cute.Layout):  # fmt: skip
        thread, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        block, _, _ = cute.arch.block_idx()
        memory = SmemAllocator()
        tiles = memory.allocate_tensor(HALF, staged, byte_alignment=128)
        staging = memory.allocate_tensor(HALF, tile, byte_alignment=128)
        barriers = memory.allocate_array(cutlass.Int64, 2 * self.stages)
        members = cute.make_layout((1, 1, self.cluster, 1))
        ring = pipeline.PipelineTmaAsync.create(
            num_stages=self.stages,
            producer_group=threads(1),
            consumer_group=threads(4 * self.cluster),
            tx_count=64 * 64 * 2,
            barrier_storage=barriers,
            cta_layout_vmnk=members,
        )
        rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
        row = block // self.cluster if cutlass.const_expr(self.cluster > 1) else block
        x_rows = cute.local_tile(x, (64, 64), (row, None))
        out_rows = cute.local_tile(out, (64, 64), (block, None))
        steps = cute.size(x_rows, mode=[2])
        to, source = cpasync.tma_partition(load, rank, cute.make_layout(self.cluster), cute.group_modes(tiles, 0, 2), cute.group_modes(x_rows, 0, 2))  # fmt: skip  # noqa: E501
        origin, goal = cpasync.tma_partition(store, 0, cute.make_layout(1), cute.group_modes(staging, 0, 2), cute.group_modes(out_rows, 0, 2))  # fmt: skip  # noqa: E501
        if warp == 4:
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.stages)
            for step in cutlass.range(steps, unroll=1):
                ring.producer_acquire(state)
                if cutlass.const_expr(self.cluster > 1):
                    mask = cpasync.create_tma_multicast_mask(members, (0, 0, rank, 0), mcast_mode=2)
                    cute.copy(load, source[None, step], to[None, state.index], tma_bar_ptr=ring.producer_get_barrier(state), mcast_mask=mask)  # fmt: skip  # noqa: E501
                else:
                    cute.copy(load, source[None, step], to[None, state.index], tma_bar_ptr=ring.producer_get_barrier(state))  # fmt: skip  # noqa: E501
                ring.producer_commit(state)
                state.advance()
            ring.producer_tail(state)
        else:
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
            for step in cutlass.range(steps, unroll=1):
                ring.consumer_wait(state)
                if warp == 0:
                    cute.arch.cp_async_bulk_wait_group(0, read=True)
                cute.arch.barrier(barrier_id=1, number_of_threads=128)
                for i in cutlass.range_constexpr(32):
                    y, z = i * 2 + thread // 64, thread % 64
                    staging[y, z] = tiles[y, z, state.index] + tiles[y, z, state.index]
                cute.arch.sync_warp()
                ring.consumer_release(state)
                state.advance()
                cute.arch.fence_proxy("async.shared", space="cta")
                cute.arch.barrier(barrier_id=1, number_of_threads=128)
                if warp == 0:
                    cute.copy(store, origin, goal[None, step])
                    cute.arch.cp_async_bulk_commit_group()
            if warp == 0:
                cute.arch.cp_async_bulk_wait_group(0, read=True)


class WarpgroupProduct:
    """A warpgroup product: loading warp, one or two multiplying warpgroups, plain stores."""

    def __init__(self, stages: int, groups: int, columns: int, pending: int, kind=HALF) -> None:
        self.stages, self.groups, self.pending, self.kind = stages, groups, pending, kind
        self.tiler = (64 * groups, columns, 128 * 8 // kind.width)

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        m, n, k = self.tiler
        product = hopper.make_trivial_tiled_mma(
            self.kind,
            self.kind,
            warpgroup.OperandMajorMode.K,
            warpgroup.OperandMajorMode.K,
            SINGLE,
            (self.groups, 1, 1),
            (64, n),
        )
        a_layout = hopper.make_smem_layout_a(LayoutEnum.ROW_MAJOR, self.tiler, self.kind, self.stages)
        b_layout = hopper.make_smem_layout_b(LayoutEnum.ROW_MAJOR, self.tiler, self.kind, self.stages)
        operation = cpasync.CopyBulkTensorTileG2SOp()
        a_load, a_tiles = cpasync.make_tiled_tma_atom(operation, a, cute.slice_(a_layout, (None, None, 0)), (m, k))
        b_load, b_tiles = cpasync.make_tiled_tma_atom(operation, b, cute.slice_(b_layout, (None, None, 0)), (n, k))
        self.kernel(product, a_load, a_tiles, b_load, b_tiles, c, a_layout, b_layout).launch(
            grid=(cute.size(a, mode=[0]) // m, cute.size(b, mode=[0]) // n, 1), block=(128 * self.groups + 128, 1, 1)
        )

    @cute.kernel
    def kernel(
        self,
        product: cute.TiledMma,
        a_load: cute.CopyAtom,
        a: cute.Tensor,
        b_load: cute.CopyAtom,
        b: cute.Tensor,
        c: cute.Tensor,
        a_layout: cute.ComposedLayout,
        b_layout: cute.ComposedLayout,
    ):
        m, n, k = self.tiler
        thread, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        down, across, _ = cute.arch.block_idx()
        memory = SmemAllocator()
        a_slots = memory.allocate_tensor(self.kind, a_layout.outer, byte_alignment=1024, swizzle=a_layout.inner)
        b_slots = memory.allocate_tensor(self.kind, b_layout.outer, byte_alignment=1024, swizzle=b_layout.inner)
        barriers = memory.allocate_array(cutlass.Int64, 2 * self.stages)
        ring = pipeline.PipelineTmaAsync.create(
            num_stages=self.stages,
            producer_group=threads(1),
            consumer_group=threads(4 * self.groups),
            tx_count=(m + n) * k * self.kind.width // 8,
            barrier_storage=barriers,
            cta_layout_vmnk=cute.make_layout((1, 1, 1, 1)),
        )
        a_rows = cute.local_tile(a, (m, k), (down, None))
        b_rows = cute.local_tile(b, (n, k), (across, None))
        c_tile = cute.local_tile(c, (m, n), (down, across))
        one = cute.make_layout(1)
        a_to, a_from = cpasync.tma_partition(a_load, 0, one, cute.group_modes(a_slots, 0, 2), cute.group_modes(a_rows, 0, 2))  # fmt: skip  # noqa: E501
        b_to, b_from = cpasync.tma_partition(b_load, 0, one, cute.group_modes(b_slots, 0, 2), cute.group_modes(b_rows, 0, 2))  # fmt: skip  # noqa: E501
        steps = cute.size(a_rows, mode=[2])
        if warp >= 4 * self.groups:
            cute.arch.setmaxregister_decrease(40)
            if warp == 4 * self.groups:
                state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.stages)
                for step in cutlass.range(steps, unroll=1):
                    ring.producer_acquire(state)
                    barrier = ring.producer_get_barrier(state)
                    cute.copy(a_load, a_from[None, step], a_to[None, state.index], tma_bar_ptr=barrier)
                    cute.copy(b_load, b_from[None, step], b_to[None, state.index], tma_bar_ptr=barrier)
                    ring.producer_commit(state)
                    state.advance()
                ring.producer_tail(state)
        else:
            cute.arch.setmaxregister_increase(232)
            mine = product.get_slice(thread)
            left = product.make_fragment_A(mine.partition_A(a_slots))
            right = product.make_fragment_B(mine.partition_B(b_slots))
            goal = mine.partition_C(c_tile)
            sums = cute.make_rmem_tensor(goal.shape, SINGLE)
            read = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
            free = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
            product.set(warpgroup.Field.ACCUMULATE, False)
            for step in cutlass.range(steps, unroll=1):
                ring.consumer_wait(read)
                warpgroup.fence()
                for block in cutlass.range_constexpr(cute.size(left, mode=[2])):
                    at = (None, None, block, read.index)
                    cute.gemm(product, sums, left[at], right[at], sums)
                    product.set(warpgroup.Field.ACCUMULATE, True)
                warpgroup.commit_group()
                warpgroup.wait_group(self.pending)
                read.advance()
                if step >= self.pending:
                    ring.consumer_release(free)
                    free.advance()
            warpgroup.wait_group(0)
            if cutlass.const_expr(self.pending > 0):
                ring.consumer_release(free)
            result = cute.make_rmem_tensor(goal.shape, HALF)
            result.store(sums.load().to(HALF))
            cute.autovec_copy(result, goal)


class TensorMemoryProduct:
    """A tcgen05 product: loading warp, multiplying warp, four warps that empty tensor memory."""

    def __init__(self, stages: int, rows: int, columns: int) -> None:
        self.stages, self.tiler = stages, (rows, columns, 64)

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        m, n, _ = self.tiler
        product = blackwell.make_trivial_tiled_mma(
            HALF, HALF, OperandMajorMode.K, OperandMajorMode.K, SINGLE, tcgen05.CtaGroup.ONE, (m, n)
        )
        a_layout = blackwell.make_smem_layout_a(product, self.tiler, HALF, self.stages)
        b_layout = blackwell.make_smem_layout_b(product, self.tiler, HALF, self.stages)
        operation = cpasync.CopyBulkTensorTileG2SOp(tcgen05.CtaGroup.ONE)
        a_load, a_tiles = cute.nvgpu.make_tiled_tma_atom_A(operation, a, cute.slice_(a_layout, (None, None, None, 0)), self.tiler, product)  # fmt: skip  # noqa: E501
        b_load, b_tiles = cute.nvgpu.make_tiled_tma_atom_B(operation, b, cute.slice_(b_layout, (None, None, None, 0)), self.tiler, product)  # fmt: skip  # noqa: E501
        self.kernel(product, a_load, a_tiles, b_load, b_tiles, c, a_layout, b_layout).launch(
            grid=(cute.size(a, mode=[0]) // m, cute.size(b, mode=[0]) // n, 1), block=(192, 1, 1)
        )

    @cute.kernel
    def kernel(
        self,
        product: cute.TiledMma,
        a_load: cute.CopyAtom,
        a: cute.Tensor,
        b_load: cute.CopyAtom,
        b: cute.Tensor,
        c: cute.Tensor,
        a_layout: cute.ComposedLayout,
        b_layout: cute.ComposedLayout,
    ):
        m, n, k = self.tiler
        thread, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        down, across, _ = cute.arch.block_idx()
        memory = SmemAllocator()
        a_slots = memory.allocate_tensor(HALF, a_layout.outer, byte_alignment=1024, swizzle=a_layout.inner)
        b_slots = memory.allocate_tensor(HALF, b_layout.outer, byte_alignment=1024, swizzle=b_layout.inner)
        barriers = memory.allocate_array(cutlass.Int64, 2 * self.stages)
        done = memory.allocate_array(cutlass.Int64, 2)
        address = memory.allocate_array(cutlass.Int32, 1)
        ring = pipeline.PipelineTmaUmma.create(
            num_stages=self.stages,
            producer_group=threads(1),
            consumer_group=threads(1),
            tx_count=(m + n) * k * 2,
            barrier_storage=barriers,
        )
        sums_ready = pipeline.PipelineUmmaAsync.create(
            num_stages=1, producer_group=threads(1), consumer_group=threads(128), barrier_storage=done
        )
        if warp == 0:
            cute.arch.alloc_tmem(n if n > 32 else 32, address)
        cute.arch.sync_threads()
        mine = product.get_slice(0)
        shape = product.partition_shape_C((m, n))
        sums = cute.make_tensor(cute.arch.retrieve_tmem_ptr(SINGLE, 16, address), product.make_fragment_C(shape).layout)
        a_rows = mine.partition_A(cute.local_tile(a, (m, k), (down, None)))
        b_rows = mine.partition_B(cute.local_tile(b, (n, k), (across, None)))
        one = cute.make_layout(1)
        a_to, a_from = cpasync.tma_partition(a_load, 0, one, cute.group_modes(a_slots, 0, 3), cute.group_modes(a_rows, 0, 3))  # fmt: skip  # noqa: E501
        b_to, b_from = cpasync.tma_partition(b_load, 0, one, cute.group_modes(b_slots, 0, 3), cute.group_modes(b_rows, 0, 3))  # fmt: skip  # noqa: E501
        steps = cute.size(a_rows, mode=[3])
        if warp == 5:
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.stages)
            for step in cutlass.range(steps, unroll=1):
                ring.producer_acquire(state)
                barrier = ring.producer_get_barrier(state)
                cute.copy(a_load, a_from[None, step], a_to[None, state.index], tma_bar_ptr=barrier)
                cute.copy(b_load, b_from[None, step], b_to[None, state.index], tma_bar_ptr=barrier)
                state.advance()
            ring.producer_tail(state)
        if warp == 4:
            left, right = product.make_fragment_A(a_slots), product.make_fragment_B(b_slots)
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
            whole = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 1)
            sums_ready.producer_acquire(whole)
            product.set(tcgen05.Field.ACCUMULATE, False)
            for _ in cutlass.range(steps, unroll=1):
                ring.consumer_wait(state)
                for block in cutlass.range_constexpr(cute.size(left, mode=[2])):
                    at = (None, None, block, state.index)
                    cute.gemm(product, sums, left[at], right[at], sums)
                    product.set(tcgen05.Field.ACCUMULATE, True)
                ring.consumer_release(state)
                state.advance()
            sums_ready.producer_commit(whole)
        if warp < 4:
            whole = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 1)
            sums_ready.consumer_wait(whole)
            load = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition(32)), SINGLE)
            goal = mine.partition_C(cute.local_tile(c, (m, n), (down, across)))
            flat = sums[(None, None), 0, 0]
            reader = tcgen05.make_tmem_copy(load, flat).get_slice(thread)
            source, target = reader.partition_S(flat), reader.partition_D(goal[(None, None), 0, 0])
            values = cute.make_rmem_tensor(target.shape, SINGLE)
            cute.copy(reader, source, values)
            cute.arch.fence_view_async_tmem_load()
            sums_ready.consumer_release(whole)
            result = cute.make_rmem_tensor(target.shape, HALF)
            result.store(values.load().to(HALF))
            cute.autovec_copy(result, target)
        cute.arch.sync_threads()
        if warp == 0:
            cute.arch.relinquish_tmem_alloc_permit()
            cute.arch.dealloc_tmem(cute.arch.retrieve_tmem_ptr(SINGLE, 16, address), n if n > 32 else 32)


class GroupRing:
    """cp.async in commit groups, every thread copying what it will read."""

    def __init__(self, stages: int) -> None:
        self.stages = stages

    @cute.jit
    def __call__(self, x: cute.Tensor, out: cute.Tensor):
        self.kernel(x, out).launch(grid=(cute.size(x, mode=[0]), 1, 1), block=(128, 1, 1))

    @cute.kernel
    def kernel(self, x: cute.Tensor, out: cute.Tensor):
        thread, _, _ = cute.arch.thread_idx()
        row, _, _ = cute.arch.block_idx()
        memory = SmemAllocator()
        slots = memory.allocate_tensor(SINGLE, cute.make_layout((512, self.stages)), byte_alignment=128)
        atom = cute.make_copy_atom(
            cpasync.CopyG2SOp(cache_mode=cpasync.LoadCacheMode.GLOBAL), SINGLE, num_bits_per_copy=128
        )
        source, goal = cute.local_tile(x[row, None], (512,), (None,)), cute.local_tile(out[row, None], (512,), (None,))
        steps = cute.size(source, mode=[1])
        mine = (4,), (thread,)
        for i in cutlass.range_constexpr(self.stages - 1):
            if i < steps:
                cute.copy(atom, cute.local_tile(source[None, i], *mine), cute.local_tile(slots[None, i], *mine))
            cute.arch.cp_async_commit_group()
        for step in cutlass.range(steps, unroll=1):
            cute.arch.cp_async_wait_group(self.stages - 2)
            cute.arch.sync_threads()
            held = cute.local_tile(slots[None, step % self.stages], (4,), (127 - thread,))
            values = held.load()
            place = cute.local_tile(goal[None, step], (4,), (127 - thread,))
            place.store(values * values)
            ahead = step + self.stages - 1
            if ahead < steps:
                to = cute.local_tile(slots[None, ahead % self.stages], *mine)
                cute.copy(atom, cute.local_tile(source[None, ahead], *mine), to)
            cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)


class Neighbours:
    """Barriers by hand: each CTA of a cluster arrives on its neighbour's; two barriers, so that none laps a waiter."""

    def __init__(self, cluster: int, rounds: int) -> None:
        self.cluster, self.rounds = cluster, rounds

    @cute.jit
    def __call__(self, x: cute.Tensor, out: cute.Tensor):
        grid = (cute.size(x, mode=[0]), 1, 1)
        self.kernel(x, out).launch(grid=grid, block=(128, 1, 1), cluster=(self.cluster, 1, 1))

    @cute.kernel
    def kernel(self, x: cute.Tensor, out: cute.Tensor):
        thread, _, _ = cute.arch.thread_idx()
        row, _, _ = cute.arch.block_idx()
        rank = cute.arch.block_idx_in_cluster()
        barriers = SmemAllocator().allocate_array(cutlass.Int64, 2)
        if thread < 2:
            cute.arch.mbarrier_init(barriers + thread, 128)
            cute.arch.mbarrier_init_fence()
        cute.arch.cluster_arrive_relaxed()
        cute.arch.cluster_wait()
        value = x[row, thread]
        for turn in cutlass.range(self.rounds, unroll=1):
            cute.arch.mbarrier_arrive(barriers + turn % 2, (rank + 1) % self.cluster)
            cute.arch.mbarrier_wait(barriers + turn % 2, turn // 2 % 2)
            value = value * value + SINGLE(1.0)
        out[row, thread] = value
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
