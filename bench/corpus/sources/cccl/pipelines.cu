// cuda::pipeline: one thread's own, a whole block's, and with producer and consumer roles.
#include <cooperative_groups.h>

#include <cuda/pipeline>

namespace cg = cooperative_groups;

extern "C" __global__ void own(const float4* in, float4* out, int n) {
  __shared__ float4 stage[2][128];
  auto pipeline = cuda::make_pipeline();
  pipeline.producer_acquire();
  cuda::memcpy_async(&stage[0][threadIdx.x], in + threadIdx.x, sizeof(float4), pipeline);
  pipeline.producer_commit();
  for (int i = 0; i < n; ++i) {
    if (i + 1 < n) {
      pipeline.producer_acquire();
      cuda::memcpy_async(&stage[(i + 1) & 1][threadIdx.x], in + (i + 1) * 128 + threadIdx.x, sizeof(float4), pipeline);
      pipeline.producer_commit();
    }
    pipeline.consumer_wait();
    out[i * 128 + threadIdx.x] = stage[i & 1][threadIdx.x];
    pipeline.consumer_release();
  }
}

extern "C" __global__ void prior(const int* in, int* out, int n) {
  __shared__ int stage[4][256];
  auto pipeline = cuda::make_pipeline();
  for (int s = 0; s < 3; ++s) {
    cuda::memcpy_async(&stage[s][threadIdx.x], in + s * 256 + threadIdx.x, sizeof(int), pipeline);
    pipeline.producer_commit();
  }
  for (int i = 0; i < n; ++i) {
    if (i + 3 < n)
      cuda::memcpy_async(&stage[(i + 3) % 4][threadIdx.x], in + (i + 3) * 256 + threadIdx.x, sizeof(int), pipeline);
    pipeline.producer_commit();
    cuda::pipeline_consumer_wait_prior<3>(pipeline);
    __syncthreads();
    out[i * 256 + threadIdx.x] = stage[i % 4][255 - threadIdx.x];
    __syncthreads();
  }
}

template <int Stages>
__device__ void shared_by_block(const int4* in, int4* out, int n) {
  __shared__ int4 stage[Stages][256];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, Stages> state;
  const auto block = cg::this_thread_block();
  auto pipeline = cuda::make_pipeline(block, &state);
  for (int produced = 0, consumed = 0; consumed < n; ++consumed) {
    for (; produced < n && produced < consumed + Stages; ++produced) {
      pipeline.producer_acquire();
      cuda::memcpy_async(block, stage[produced % Stages], in + produced * 256,
                         cuda::aligned_size_t<16>(sizeof(stage[0])), pipeline);
      pipeline.producer_commit();
    }
    pipeline.consumer_wait();
    out[consumed * 256 + threadIdx.x] = stage[consumed % Stages][255 - threadIdx.x];
    pipeline.consumer_release();
  }
}

extern "C" __global__ void block_of_two(const int4* in, int4* out, int n) { shared_by_block<2>(in, out, n); }
extern "C" __global__ void block_of_five(const int4* in, int4* out, int n) { shared_by_block<5>(in, out, n); }

extern "C" __global__ void roles(const int* in, int* out, int n) {
  __shared__ int stage[3][128];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 3> state;
  const auto block = cg::this_thread_block();
  const auto role = block.thread_rank() < 128 ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
  auto pipeline = cuda::make_pipeline(block, &state, role);
  if (role == cuda::pipeline_role::producer) {
    for (int i = 0; i < n; ++i) {
      pipeline.producer_acquire();
      cuda::memcpy_async(&stage[i % 3][threadIdx.x], in + i * 128 + threadIdx.x, sizeof(int), pipeline);
      pipeline.producer_commit();
    }
  } else {
    for (int i = 0; i < n; ++i) {
      pipeline.consumer_wait();
      out[i * 128 + threadIdx.x - 128] = stage[i % 3][255 - threadIdx.x];
      pipeline.consumer_release();
    }
  }
  pipeline.quit();
}
