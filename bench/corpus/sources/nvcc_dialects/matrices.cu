// Warp matrices: wmma, mma.sync and ldmatrix of many shapes, redux, match, votes.
#include <cuda_bf16.h>
#include <mma.h>

#include <cstdint>

using namespace nvcuda;

extern "C" __global__ void wmma_half(const half* a, const half* b, float* c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 0.f);
  for (int k = 0; k < 4; ++k) {
    wmma::load_matrix_sync(fa, a + 16 * k, 64);
    wmma::load_matrix_sync(fb, b + 16 * k, 64);
    wmma::mma_sync(fc, fa, fb, fc);
  }
  wmma::store_matrix_sync(c, fc, 64, wmma::mem_row_major);
}

extern "C" __global__ void wmma_bytes(const signed char* a, const signed char* b, int* c) {
  wmma::fragment<wmma::matrix_a, 32, 8, 16, signed char, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 32, 8, 16, signed char, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 32, 8, 16, int> fc;
  wmma::load_matrix_sync(fa, a, 16);
  wmma::load_matrix_sync(fb, b, 16);
  wmma::fill_fragment(fc, 1);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(c, fc, 8, wmma::mem_col_major);
}

extern "C" __global__ void mma_half(const uint32_t* in, float* out) {
  __shared__ alignas(128) half tile[64 * 64];
  uint32_t a[4], b[2];
  float c[4] = {0.f, 0.f, 0.f, 0.f};
  const uint32_t address = static_cast<uint32_t>(__cvta_generic_to_shared(tile)) + threadIdx.x * 16;
  tile[threadIdx.x] = __float2half(static_cast<float>(in[threadIdx.x]));
  __syncthreads();
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
               : "r"(address));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2 + 2048];"
               : "=r"(b[0]), "=r"(b[1])
               : "r"(address));
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(b[0]));
  asm volatile("mma.sync.aligned.m8n8k16.row.col.satfinite.s32.s8.u8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+r"(a[0]), "+r"(a[1])
               : "r"(a[2]), "r"(b[1]));
  out[threadIdx.x] = c[0] + c[1] + c[2] + c[3] + a[0] + a[1];
}

#if __CUDA_ARCH__ >= 800
extern "C" __global__ void mma_ampere(const uint32_t* in, float* out) {
  uint32_t a[4] = {in[0], in[1], in[2], in[3]}, b[2] = {in[4], in[5]}, meta = in[6];
  float c[4] = {out[0], out[1], out[2], out[3]};
  int d[4] = {1, 2, 3, 4};
  double e[2] = {0.5, 0.25};
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  asm volatile(
      "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6, %7}, {%0, %1, %2, %3}, "
      "%8, 0x1;"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(b[1]), "r"(meta));
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  asm volatile(
      "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, "
      "%1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+d"(e[0]), "+d"(e[1])
               : "d"(1.0), "d"(2.0));
  out[threadIdx.x] = c[0] + c[1] + c[2] + c[3] + d[0] + d[1] + d[2] + d[3] + static_cast<float>(e[0] + e[1]);
}

extern "C" __global__ void reductions(const uint32_t* in, uint32_t* out) {
  const uint32_t v = in[threadIdx.x];
  out[0] = __reduce_add_sync(0xffffffffu, v) + __reduce_min_sync(0xffffffffu, v) +
           __reduce_max_sync(0xffffu, static_cast<int>(v));
  out[1] = __reduce_and_sync(0xffu, v) ^ __reduce_or_sync(0xff00u, v) ^ __reduce_xor_sync(0xffffffffu, v);
}
#endif

extern "C" __global__ void votes(const int* in, unsigned* out) {
  const int v = in[threadIdx.x];
  int all;
  out[0] = __ballot_sync(0xffffffffu, v > 0) + __any_sync(0xffffffffu, v) + __all_sync(0xffffffffu, v) + __activemask();
  out[1] = __match_any_sync(0xffffffffu, v) + __match_all_sync(0xffffffffu, v, &all) + all;
  out[2] =
      __shfl_up_sync(0xffffffffu, v, 3, 16) + __shfl_down_sync(0xffffffffu, v, 5) + __shfl_sync(0xffffffffu, v, v & 31);
}
