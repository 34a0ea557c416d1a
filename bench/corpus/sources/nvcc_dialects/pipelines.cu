// cp.async by hand: groups in a ring, one group a round, the mbarrier form, and a copy that is only waited for at the
// end.
#include <cuda_pipeline.h>

extern "C" __global__ void ring(const float4* in, float4* out, int n) {
  __shared__ float4 stage[3][128];
  for (int s = 0; s < 2; ++s) {
    __pipeline_memcpy_async(&stage[s][threadIdx.x], in + s * 128 + threadIdx.x, 16);
    __pipeline_commit();
  }
  for (int i = 0; i < n; ++i) {
    if (i + 2 < n) __pipeline_memcpy_async(&stage[(i + 2) % 3][threadIdx.x], in + (i + 2) * 128 + threadIdx.x, 16);
    __pipeline_commit();
    __pipeline_wait_prior(2);
    __syncthreads();
    out[i * 128 + threadIdx.x] = stage[i % 3][127 - threadIdx.x];
    __syncthreads();
  }
}

extern "C" __global__ void unrolled(const float* in, float* out, int zero_fill) {
  __shared__ float stage[4][256];
#pragma unroll
  for (int s = 0; s < 4; ++s) {
    __pipeline_memcpy_async(&stage[s][threadIdx.x], in + s * 256 + threadIdx.x, 4, s == 3 ? zero_fill & 4 : 0);
    __pipeline_commit();
  }
  float sum = 0.f;
  __pipeline_wait_prior(3);
  __syncthreads();
  sum += stage[0][255 - threadIdx.x];
  __pipeline_wait_prior(2);
  __syncthreads();
  sum += stage[1][255 - threadIdx.x];
  __pipeline_wait_prior(1);
  __syncthreads();
  sum += stage[2][255 - threadIdx.x];
  __pipeline_wait_prior(0);
  __syncthreads();
  sum += stage[3][255 - threadIdx.x];
  out[threadIdx.x] = sum;
}

extern "C" __global__ void by_barrier(const int4* in, int4* out) {
  __shared__ int4 stage[128];
  __shared__ __mbarrier_t barrier;
  if (threadIdx.x == 0) __mbarrier_init(&barrier, blockDim.x);
  __syncthreads();
  for (int i = 0; i < 8; ++i) {
    __pipeline_memcpy_async(&stage[threadIdx.x], in + i * 128 + threadIdx.x, 16);
    __pipeline_arrive_on(&barrier);
    const __mbarrier_token_t token = __mbarrier_arrive(&barrier);
    while (!__mbarrier_test_wait(&barrier, token)) {
    }
    out[i * 128 + threadIdx.x] = stage[127 - threadIdx.x];
    __syncthreads();
  }
  if (threadIdx.x == 0) __mbarrier_inval(&barrier);
}
