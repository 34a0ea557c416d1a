// Device functions with linkage of every kind, for a relocatable build.
#include <cstdint>

__device__ int counted;
static __device__ int hidden[4] = {1, 2, 3, 4};
__device__ __attribute__((weak)) int weak_variable = 5;

extern "C" __device__ __noinline__ int visible(int a) { return a * counted + hidden[a & 3]; }
static __device__ __noinline__ int internal(int a) { return a - weak_variable; }
__device__ __attribute__((weak)) int weak_function(int a) { return a ^ 1; }
__device__ __noinline__ double many(double a, float b, int64_t c, int16_t d, bool e) { return e ? a * b : c + d; }
__device__ __noinline__ float3 triple(float3 v, const float (&w)[3]) { return {v.x * w[0], v.y * w[1], v.z * w[2]}; }
__device__ __noinline__ void nothing() { __syncthreads(); }
template <typename T>
__device__ __noinline__ T larger(T a, T b) {
  return a > b ? a : b;
}
__device__ __forceinline__ int inlined(int a) { return larger(a, 3) + internal(a); }

extern "C" __global__ void kernel(double* out, int n) {
  nothing();
  const float weight[3] = {1.f, 2.f, static_cast<float>(n)};
  const float3 t = triple({1.f, 2.f, 3.f}, weight);
  out[threadIdx.x] =
      visible(n) + inlined(n) + weak_function(n) + many(out[0], t.x, n, 4, n & 1) + larger(1.0, out[1]) + t.z;
}
