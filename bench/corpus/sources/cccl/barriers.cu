// cuda::barrier at block scope: plain rounds, split arrive and wait, drops, bulk copies counted in bytes, asynchronous
// copies.
#include <cooperative_groups.h>
#include <cuda.h>

#include <cuda/barrier>

using Barrier = cuda::barrier<cuda::thread_scope_block>;
namespace cde = cuda::device::experimental;

extern "C" __global__ void rounds(float* data, int n) {
  __shared__ Barrier barrier;
  __shared__ float shared[256];
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();
  for (int i = 0; i < n; ++i) {
    shared[threadIdx.x] = data[i * blockDim.x + threadIdx.x];
    barrier.arrive_and_wait();
    data[i * blockDim.x + threadIdx.x] = shared[threadIdx.x ^ 1];
    Barrier::arrival_token token = barrier.arrive();
    data[i] += 1.f;
    barrier.wait(std::move(token));
  }
}

extern "C" __global__ void halves(float* data, int n) {
  __shared__ Barrier full, empty;
  __shared__ float buffer[128];
  if (threadIdx.x == 0) {
    init(&full, 256);
    init(&empty, 256);
  }
  __syncthreads();
  if (threadIdx.x < 128) {
    for (int i = 0; i < n; ++i) {
      if (i > 0) empty.arrive_and_wait();
      buffer[threadIdx.x] = data[i * 128 + threadIdx.x];
      full.arrive();
    }
  } else {
    float sum = 0.f;
    for (int i = 0; i < n; ++i) {
      full.arrive_and_wait();
      sum += buffer[threadIdx.x - 128];
      if (i + 1 < n) empty.arrive();
    }
    data[threadIdx.x] = sum;
  }
}

extern "C" __global__ void leaver(int* data, int n) {
  __shared__ Barrier barrier;
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();
  for (int i = 0; i < n; ++i) {
    if (data[threadIdx.x] == i) {
      barrier.arrive_and_drop();
      return;
    }
    barrier.arrive_and_wait();
  }
}

extern "C" __global__ void copied(const int4* in, int4* out, int n) {
  __shared__ alignas(16) int4 buffer[2][256];
  __shared__ Barrier barrier[2];
  auto block = cooperative_groups::this_thread_block();
  if (block.thread_rank() == 0) {
    init(&barrier[0], block.size());
    init(&barrier[1], block.size());
  }
  block.sync();
  cuda::memcpy_async(block, buffer[0], in, cuda::aligned_size_t<16>(sizeof(buffer[0])), barrier[0]);
  for (int i = 0; i < n; ++i) {
    if (i + 1 < n)
      cuda::memcpy_async(block, buffer[(i + 1) & 1], in + (i + 1) * 256, cuda::aligned_size_t<16>(sizeof(buffer[0])),
                         barrier[(i + 1) & 1]);
    barrier[i & 1].arrive_and_wait();
    out[i * 256 + threadIdx.x] = buffer[i & 1][255 - threadIdx.x];
    block.sync();
  }
}

extern "C" __global__ void unaligned(const char* in, char* out) {
  __shared__ char buffer[1024];
  __shared__ Barrier barrier;
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();
  cuda::memcpy_async(buffer + 4 * threadIdx.x, in + 4 * threadIdx.x, 4, barrier);
  barrier.arrive_and_wait();
  out[threadIdx.x] = buffer[1023 - threadIdx.x];
}

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void bulk(const float* in, float* out, int n) {
  __shared__ alignas(128) float buffer[2][1024];
  __shared__ Barrier barrier[2];
  if (threadIdx.x == 0) {
    init(&barrier[0], blockDim.x);
    init(&barrier[1], blockDim.x);
    cde::fence_proxy_async_shared_cta();
  }
  __syncthreads();
  for (int i = 0; i < n; ++i) {
    Barrier& now = barrier[i & 1];
    Barrier::arrival_token token;
    if (threadIdx.x == 0) {
      cuda::memcpy_async(buffer[i & 1], in + i * 1024, cuda::aligned_size_t<16>(sizeof(buffer[0])), now);
      token = cuda::device::barrier_arrive_tx(now, 1, 0);
    } else {
      token = now.arrive();
    }
    now.wait(std::move(token));
    buffer[i & 1][threadIdx.x] *= 2.f;
    cde::fence_proxy_async_shared_cta();
    __syncthreads();
    if (threadIdx.x == 0) {
      cde::cp_async_bulk_shared_to_global(out + i * 1024, buffer[i & 1], sizeof(buffer[0]));
      cde::cp_async_bulk_commit_group();
      cde::cp_async_bulk_wait_group_read<0>();
    }
    __syncthreads();
  }
}

extern "C" __global__ void tensor(const __grid_constant__ CUtensorMap map, int tiles) {
  __shared__ alignas(128) int tile[64][64];
  __shared__ Barrier barrier;
  if (threadIdx.x == 0) {
    init(&barrier, blockDim.x);
    cde::fence_proxy_async_shared_cta();
  }
  __syncthreads();
  for (int i = blockIdx.x; i < tiles; i += gridDim.x) {
    Barrier::arrival_token token;
    if (threadIdx.x == 0) {
      cde::cp_async_bulk_tensor_2d_global_to_shared(tile, &map, 0, i * 64, barrier);
      token = cuda::device::barrier_arrive_tx(barrier, 1, sizeof(tile));
    } else {
      token = barrier.arrive();
    }
    barrier.wait(std::move(token));
    tile[threadIdx.x % 64][threadIdx.x / 64] += i;
    cde::fence_proxy_async_shared_cta();
    __syncthreads();
    if (threadIdx.x == 0) {
      cde::cp_async_bulk_tensor_2d_shared_to_global(&map, 0, i * 64, tile);
      cde::cp_async_bulk_commit_group();
      cde::cp_async_bulk_wait_group_read<0>();
    }
    __syncthreads();
  }
}
#endif
