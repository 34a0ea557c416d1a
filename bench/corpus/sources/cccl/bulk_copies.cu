// cuda::ptx as programs use it: TMA rings, cluster multicast, remote arrivals, reductions in bulk and persistent work
// stealing.
#include <cuda.h>

#include <cuda/ptx>

namespace ptx = cuda::ptx;

constexpr int stages = 4;
enum : unsigned { tile_bytes = 64 * 64 * 2 };

extern "C" __global__ void __launch_bounds__(160) ring(const __grid_constant__ CUtensorMap map, float* out, int tiles) {
  extern __shared__ __align__(1024) unsigned short tile[];
  __shared__ uint64_t full[stages], empty[stages];
  if (threadIdx.x == 0) {
    for (int s = 0; s < stages; ++s) {
      ptx::mbarrier_init(&full[s], 1);
      ptx::mbarrier_init(&empty[s], 128);
    }
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
  if (threadIdx.x / 32 == 4) {
    if (ptx::elect_sync(~0u)) {
      for (int i = 0; i < tiles; ++i) {
        const int s = i % stages;
        while (!ptx::mbarrier_try_wait_parity(&empty[s], ((i / stages) & 1) ^ 1)) {
        }
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full[s], tile_bytes);
        const int corner[2] = {0, i * 64};
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile + s * 4096, &map, corner, &full[s]);
      }
    }
  } else {
    float sum = 0.f;
    for (int i = 0; i < tiles; ++i) {
      const int s = i % stages;
      while (!ptx::mbarrier_try_wait_parity(&full[s], (i / stages) & 1)) {
      }
      for (int k = threadIdx.x; k < 4096; k += 128) sum += tile[s * 4096 + k];
      ptx::mbarrier_arrive(&empty[s]);
    }
    out[threadIdx.x] = sum;
  }
}

extern "C" __global__ void __cluster_dims__(2, 1, 1)
    multicast(const __grid_constant__ CUtensorMap map, float* out, int tiles) {
  __shared__ alignas(128) unsigned short tile[2][4096];
  __shared__ uint64_t full[2], empty[2];
  const unsigned rank = ptx::get_sreg_cluster_ctarank();
  if (threadIdx.x == 0) {
    for (int s = 0; s < 2; ++s) {
      ptx::mbarrier_init(&full[s], 1);
      ptx::mbarrier_init(&empty[s], 2);
    }
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  ptx::barrier_cluster_arrive();
  ptx::barrier_cluster_wait();
  float sum = 0.f;
  for (int i = 0; i < tiles; ++i) {
    const int s = i & 1;
    const uint32_t parity = (i >> 1) & 1;
    if (threadIdx.x == 0) {
      while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &empty[s], parity ^ 1)) {
      }
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full[s], tile_bytes);
      const int corner[2] = {static_cast<int>(rank) * 32, i * 64};
      ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile[s] + rank * 2048, &map, corner, &full[s],
                                uint16_t{3});
    }
    while (!ptx::mbarrier_try_wait_parity(&full[s], parity)) {
    }
    for (int k = threadIdx.x; k < 4096; k += blockDim.x) sum += tile[s][k];
    __syncthreads();
    if (threadIdx.x < 2) {
      uint64_t* remote = static_cast<uint64_t*>(__cluster_map_shared_rank(&empty[s], threadIdx.x));
      ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster, remote);
    }
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
  ptx::barrier_cluster_arrive();
  ptx::barrier_cluster_wait();
}

extern "C" __global__ void reduction(int* out, const int* in, int n) {
  __shared__ alignas(128) int part[512];
  __shared__ uint64_t loaded;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&loaded, 1);
    ptx::fence_proxy_async(ptx::space_shared);
  }
  __syncthreads();
  for (int i = 0; i < n; ++i) {
    if (threadIdx.x == 0) {
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &loaded, sizeof(part));
      ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, part, in + i * 512, sizeof(part), &loaded);
    }
    while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cta, &loaded, i & 1)) {
    }
    part[threadIdx.x] *= 3;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
      ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_add, out, part, sizeof(part));
      ptx::cp_async_bulk_commit_group();
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) ptx::cp_async_bulk_wait_group(ptx::n32_t<0>{});
}

#if __CUDA_ARCH__ >= 1000
extern "C" __global__ void stealing(float* data) {
  __shared__ uint4 answer;
  __shared__ uint64_t ready;
  uint32_t block = blockIdx.x, parity = 0;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&ready, 1);
    ptx::fence_proxy_async(ptx::space_shared);
  }
  while (true) {
    __syncthreads();
    if (threadIdx.x == 0) {
      ptx::fence_proxy_async_generic_sync_restrict(ptx::sem_acquire, ptx::space_cluster, ptx::scope_cluster);
      ptx::clusterlaunchcontrol_try_cancel(&answer, &ready);
      ptx::mbarrier_arrive_expect_tx(ptx::sem_relaxed, ptx::scope_cta, ptx::space_shared, &ready, sizeof(answer));
    }
    data[block * blockDim.x + threadIdx.x] += 1.f;
    while (!ptx::mbarrier_try_wait_parity(&ready, parity)) {
    }
    parity ^= 1;
    if (!ptx::clusterlaunchcontrol_query_cancel_is_canceled(answer)) break;
    block = ptx::clusterlaunchcontrol_query_cancel_get_first_ctaid_x<uint32_t>(answer);
    ptx::fence_proxy_async_generic_sync_restrict(ptx::sem_release, ptx::space_shared, ptx::scope_cluster);
  }
}
#endif
