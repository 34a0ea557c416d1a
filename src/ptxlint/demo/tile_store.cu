// Doubles a matrix tile by tile: the block fills a tile in shared memory, one thread sends it out with a bulk copy.
// The bug: nothing waits until the copy has read the tile before the next round of the loop fills it again. On many
// machines every run passes, because the copy is usually quicker than the next round.
#include <cstdint>

namespace {

constexpr int kTile = 1024;
constexpr int kBytes = kTile * sizeof(float);

__device__ void store_tile(float* out, const float* tile) {
    uint32_t from = static_cast<uint32_t>(__cvta_generic_to_shared(tile));
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(out), "r"(from), "n"(kBytes) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256) double_tiles(const float* in, float* out, int tiles) {
    __shared__ alignas(128) float tile[kTile];
    for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
#pragma unroll 1
        for (int i = threadIdx.x; i < kTile; i += 256) {
            tile[i] = 2.0f * in[t * kTile + i];
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (threadIdx.x == 0) {
            store_tile(out + t * kTile, tile);
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
