// Textures and surfaces by handle, and by .texref through inline assembly.
#include <cuda_fp16.h>

extern "C" __global__ void sample(cudaTextureObject_t texture, float* out, int lod) {
  const int i = threadIdx.x;
  const float x = i * 0.25f;
  float4 v = tex1D<float4>(texture, x);
  v.x += tex2D<float>(texture, x, x);
  v.y += tex3D<float2>(texture, x, x, x).y;
  v.z += tex1Dfetch<int>(texture, i);
  v.w += tex2DLayered<float>(texture, x, x, 3);
  v.x += texCubemap<float4>(texture, x, x, x).w;
  v.y += texCubemapLayered<float>(texture, x, x, x, 2);
  v.z += tex2DLod<float>(texture, x, x, lod);
  v.w += tex2DGrad<float>(texture, x, x, make_float2(x, 1), make_float2(1, x));
  v.x += tex2Dgather<float4>(texture, x, x, 2).z;
  v.y += tex1DLayered<uchar4>(texture, x, 1).x;
  v.z += tex3DLod<short2>(texture, x, x, x, lod).y;
  bool resident;
  v.w += tex2D<float>(texture, x, x, &resident);
  out[i] = v.x + v.y + v.z + v.w + resident;
}

extern "C" __global__ void paint(cudaSurfaceObject_t surface, int n) {
  const int i = threadIdx.x;
  float4 v = surf2Dread<float4>(surface, i * 16, i);
  surf2Dwrite(v, surface, i * 16, i + 1, cudaBoundaryModeZero);
  surf1Dwrite(surf1Dread<short>(surface, i * 2, cudaBoundaryModeClamp), surface, i * 2);
  surf3Dwrite(surf3Dread<uchar2>(surface, i * 2, 1, 2), surface, i * 2, 3, 4);
  surf2DLayeredwrite(surf2DLayeredread<int2>(surface, i * 8, 1, n), surface, i * 8, 2, n);
  surfCubemapwrite(v.x, surface, i * 4, 1, 3);
}

extern "C" __global__ void queries(cudaTextureObject_t texture, cudaSurfaceObject_t surface, unsigned* out) {
  asm volatile("txq.width.b32 %0, [%1];" : "=r"(out[0]) : "l"(texture));
  asm volatile("txq.num_mipmap_levels.b32 %0, [%1];" : "=r"(out[1]) : "l"(texture));
  asm volatile("suq.height.b32 %0, [%1];" : "=r"(out[2]) : "l"(surface));
  asm volatile("suq.channel_data_type.b32 %0, [%1];" : "=r"(out[3]) : "l"(surface));
  asm volatile("{ .reg .pred p; istypep.texref p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(out[4]) : "l"(texture));
  asm volatile("sured.b.2d.add.u32.trap [%0, {%1, %2}], %3;" ::"l"(surface), "r"(4), "r"(1), "r"(out[5]));
  asm volatile("suld.b.a2d.v4.b32.clamp {%0, %1, %2, %3}, [%4, {%5, %6, %7, %7}];"
               : "=r"(out[6]), "=r"(out[7]), "=r"(out[8]), "=r"(out[9])
               : "l"(surface), "r"(0), "r"(1), "r"(2));
}
