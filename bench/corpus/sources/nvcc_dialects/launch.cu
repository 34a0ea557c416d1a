// What a kernel says of its launch: bounds, registers, clusters, constant parameters, parameters of every shape.
#include <cstdint>

struct Parameters {
  float scale;
  int shape[4];
  const float* input;
  float* output;
};
struct alignas(64) Descriptor {
  uint64_t word[16];
};
struct Empty {};

extern "C" __global__ void __launch_bounds__(128) bounded(float* a) { a[threadIdx.x] += 1.f; }
extern "C" __global__ void __launch_bounds__(256, 4) bounded_twice(float* a) { a[threadIdx.x] += 2.f; }
extern "C" __global__ void __maxnreg__(40) few_registers(float* a) { a[threadIdx.x] += 3.f; }

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __block_size__((64, 2, 1)) block_size(float* a) { a[threadIdx.x + 64 * threadIdx.y] += 4.f; }
extern "C" __global__ void __cluster_dims__(2, 1, 1) clustered(float* a) { a[threadIdx.x] += 5.f; }
extern "C" __global__ void __launch_bounds__(128, 1, 8) cluster_bound(float* a) { a[threadIdx.x] += 6.f; }
extern "C" __global__ void __block_size__((128, 1, 1), (2, 2, 1)) blocks_are_clusters(float* a) {
  a[threadIdx.x] += 7.f;
}
#endif

extern "C" __global__ void constant_parameter(const __grid_constant__ Parameters p,
                                              const __grid_constant__ Descriptor d) {
  const float* in = p.input;
  p.output[threadIdx.x] = in[threadIdx.x] * p.scale + p.shape[threadIdx.x & 3];
#if __CUDA_ARCH__ >= 900
  asm volatile("prefetch.tensormap [%0];" ::"l"(&d));
#endif
}

extern "C" __global__ void copied_parameter(Parameters p, int i) {
  p.shape[i] = 3;
  p.output[i] = p.shape[threadIdx.x & 3];
}

extern "C" __global__ void many(bool b, char c, unsigned char u, short s, unsigned short w, int i, unsigned n,
                                long long l, unsigned long long g, float f, double d, float2 v2, float3 v3, int4 v4,
                                Empty, int (*array)[8], void* out) {
  static_cast<double*>(out)[threadIdx.x] = b + c + u + s + w + i + n + l + g + f + d + v2.y + v3.z + v4.w + array[1][2];
}

extern "C" __global__ void pointers(float* __restrict__ out, const float* __restrict__ in,
                                    const volatile int* __restrict__ flag) {
  while (*flag == 0) __nanosleep(100);
  out[threadIdx.x] = __ldg(in + threadIdx.x) + __ldcs(in + 1) + __ldca(in + 2) + __ldcv(in + 3);
  __stcg(out + 9, 1.f);
  __stwt(out + 10, 2.f);
  __threadfence();
}

extern "C" __global__ void special(unsigned* out) {
  unsigned v;
#define READ(name)                                   \
  asm volatile("mov.u32 %0, %%" name ";" : "=r"(v)); \
  out[n++] = v
  int n = 0;
  READ("laneid");
  READ("warpid");
  READ("nwarpid");
  READ("smid");
  READ("nsmid");
  READ("lanemask_lt");
  READ("lanemask_ge");
  READ("clock");
  READ("clock_hi");
  READ("dynamic_smem_size");
  READ("total_smem_size");
  READ("envreg0");
  READ("pm0");
  READ("globaltimer_lo");
  READ("ntid.z");
  READ("nctaid.y");
#if __CUDA_ARCH__ >= 900
  READ("cluster_ctarank");
  READ("cluster_nctarank");
  READ("clusterid.x");
  READ("nclusterid.y");
  READ("cluster_ctaid.z");
  READ("aggr_smem_size");
#endif
  asm volatile("mov.u64 %0, %%gridid;" : "=l"(*reinterpret_cast<uint64_t*>(out)));
}

template <int Width, typename T>
__global__ void templated(T* data) {
#pragma unroll
  for (int i = 0; i < Width; ++i) data[i * blockDim.x + threadIdx.x] *= T(Width);
}
template __global__ void templated<4, float>(float*);
template __global__ void templated<7, double>(double*);
template __global__ void templated<1, unsigned long long>(unsigned long long*);
