// Cooperative groups: tiles, coalesced, grid-wide, memcpy_async, reduce and scan.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include <cuda/barrier>

namespace cg = cooperative_groups;

extern "C" __global__ void tiles(float* data) {
  const auto block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<16>(block);
  float v = data[block.thread_rank()];
  v = cg::reduce(tile, v, cg::plus<float>());
  v += tile.shfl_xor(v, 3) + tile.meta_group_rank();
  if (v > 0.f) {
    const auto active = cg::coalesced_threads();
    v = cg::reduce(active, v, cg::greater<float>());
    if (active.thread_rank() == 0) atomicAdd(data, v);
  }
  data[block.thread_rank()] = cg::inclusive_scan(tile, v);
}

extern "C" __global__ void grid_wide(int* data) {
  const auto grid = cg::this_grid();
  data[grid.thread_rank()] += 1;
  grid.sync();
  data[grid.thread_rank()] += data[grid.size() - 1 - grid.thread_rank()];
  auto token = cg::this_thread_block().barrier_arrive();
  data[0] += 2;
  cg::this_thread_block().barrier_wait(std::move(token));
}

extern "C" __global__ void copies(const int4* in, int4* out, int n) {
  extern __shared__ int4 staged[];
  const auto block = cg::this_thread_block();
  for (int i = 0; i < n; i += 64) {
    cg::memcpy_async(block, staged, in + i, sizeof(int4) * 64);
    cg::memcpy_async(block, staged + 64, in + i + 64, cuda::aligned_size_t<16>(sizeof(int4) * 64));
    cg::wait_prior<1>(block);
    out[i + block.thread_rank()] = staged[block.thread_rank() % 64];
    cg::wait(block);
    out[i + 64 + block.thread_rank()] = staged[64 + block.thread_rank() % 64];
    block.sync();
  }
}

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __cluster_dims__(4, 1, 1) cluster(float* data) {
  __shared__ float mine[128];
  const auto cluster = cg::this_cluster();
  mine[threadIdx.x] = data[cluster.thread_rank()];
  cluster.sync();
  const float* theirs = cluster.map_shared_rank(mine, (cluster.block_rank() + 1) % cluster.num_blocks());
  float sum = theirs[threadIdx.x] + cluster.query_shared_rank(theirs);
  auto token = cluster.barrier_arrive();
  sum *= 2.f;
  cluster.barrier_wait(std::move(token));
  data[cluster.thread_rank()] = sum;
}
#endif
