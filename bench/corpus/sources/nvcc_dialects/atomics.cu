// Atomics, ordered loads and stores, half precision, wide integers and the mathematics that becomes functions.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cuda/atomic>

extern "C" __global__ void atomics(int* i, unsigned long long* l, float* f, double* d, __half2* h) {
  atomicAdd(i, 1);
  atomicSub(i, 2);
  atomicExch(i + 1, 3);
  atomicMin(i + 2, 4);
  atomicMax(i + 3, 5);
  atomicInc(reinterpret_cast<unsigned*>(i) + 4, 6);
  atomicDec(reinterpret_cast<unsigned*>(i) + 5, 7);
  atomicCAS(i + 6, 8, 9);
  atomicAnd(i + 7, 10);
  atomicOr(i + 8, 11);
  atomicXor(i + 9, 12);
  atomicAdd_block(i + 10, 1);
  atomicAdd_system(i + 11, 1);
  atomicCAS(l, 1ull, 2ull);
  atomicMax(l + 1, 3ull);
  f[1] = atomicAdd(f, 1.f);
  d[1] = atomicAdd(d, 1.0);
  h[1] = atomicAdd(h, h[2]);
  __shared__ int shared[32];
  shared[threadIdx.x] = atomicAdd(&shared[threadIdx.x ^ 1], i[12]);
  __syncthreads();
  i[13] = shared[3];
}

extern "C" __global__ void ordered(int* word, int* data) {
  cuda::atomic_ref<int, cuda::thread_scope_device> device(*word);
  cuda::atomic_ref<int, cuda::thread_scope_block> block(word[1]);
  cuda::atomic_ref<int, cuda::thread_scope_system> system(word[2]);
  if (threadIdx.x == 0) {
    data[0] = 1;
    device.store(1, cuda::std::memory_order_release);
  }
  while (device.load(cuda::std::memory_order_acquire) == 0) {
  }
  block.fetch_add(data[0], cuda::std::memory_order_acq_rel);
  int expected = 3;
  system.compare_exchange_strong(expected, 4, cuda::std::memory_order_seq_cst);
  cuda::atomic_thread_fence(cuda::std::memory_order_seq_cst, cuda::thread_scope_system);
  data[1] = block.exchange(expected, cuda::std::memory_order_relaxed) + device.fetch_min(5);
}

extern "C" __global__ void halves(const __half2* a, __nv_bfloat162* b, float* out) {
  __half2 h = __hfma2(a[0], a[1], a[2]);
  h = __hmax2(h2exp2(h), h2rcp(h));
  __nv_bfloat162 v = __hmul2(b[0], b[1]);
#if __CUDA_ARCH__ >= 800
  v = __hfma2_relu(v, v, b[2]);
#endif
  b[3] = v;
  out[0] =
      __low2float(h) + __high2float(h) + __bfloat162float(v.x) + __half2float(hsin(a[3].x)) + __hlt(a[4].x, a[5].y);
}

extern "C" __global__ void mathematics(double* d, float* f, long long* l, __int128* q) {
  d[0] = sin(d[1]) + pow(d[2], d[3]) + fma(d[4], d[5], d[6]) + rsqrt(d[7]) + fmod(d[8], d[9]) + __dadd_ru(d[10], d[11]);
  f[0] = sinf(f[1]) + powf(f[2], f[3]) + f[4] / f[5] + __fdividef(f[6], f[7]) + __fsqrt_rz(f[8]) + tgammaf(f[9]) +
         __saturatef(f[10]);
  f[11] = __expf(f[12]) + __cosf(f[13]) + copysignf(f[14], f[15]) + ldexpf(f[16], 3) + tanhf(f[17]) + rintf(f[18]) +
          truncf(f[19]);
  l[0] = l[1] / l[2] + l[3] % l[4] + __mul64hi(l[5], l[6]) + llrint(d[12]) + __double_as_longlong(d[13]) +
         __ffsll(l[7]) + __popcll(l[8]);
  q[0] = q[1] * q[2] + (q[3] >> 5) / q[4];
}
