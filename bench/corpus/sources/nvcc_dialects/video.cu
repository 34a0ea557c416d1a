// The video instructions, in the ways the manual lists them.
#include <cstdint>

extern "C" __global__ void scalar(const uint32_t* in, int32_t* out) {
  const uint32_t a = in[0], b = in[1], c = in[2];
  asm volatile("vadd.s32.s32.s32 %0, %1.b0, %2.h1;" : "=r"(out[0]) : "r"(a), "r"(b));
  asm volatile("vsub.s32.u32.s32.sat %0, %1, %2.b3, %3;" : "=r"(out[1]) : "r"(a), "r"(b), "r"(c));
  asm volatile("vabsdiff.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(out[2]) : "r"(a), "r"(b), "r"(c));
  asm volatile("vmin.s32.s32.s32.min %0, %1.h0, %2.h1, %3;" : "=r"(out[3]) : "r"(a), "r"(b), "r"(c));
  asm volatile("vmax.u32.u32.u32.max %0, %1.b1, %2.b2, %3;" : "=r"(out[4]) : "r"(a), "r"(b), "r"(c));
  asm volatile("vadd.s32.s32.s32 %0.b2, %1, %2, %3;" : "=r"(out[5]) : "r"(a), "r"(b), "r"(c));
  asm volatile("vshl.u32.u32.u32.clamp %0, %1, %2.b0;" : "=r"(out[6]) : "r"(a), "r"(b));
  asm volatile("vshr.u32.u32.u32.wrap.add %0, %1, %2.b0, %3;" : "=r"(out[7]) : "r"(a), "r"(b), "r"(c));
  asm volatile("vmad.s32.u32.s32 %0, %1.b0, %2.h1, -%3;" : "=r"(out[8]) : "r"(a), "r"(b), "r"(c));
  asm volatile("vmad.u32.u32.u32.po.shr7 %0, %1.h0, %2.h1, %3;" : "=r"(out[9]) : "r"(a), "r"(b), "r"(c));
  asm volatile("vset.u32.u32.lt %0, %1, %2;" : "=r"(out[10]) : "r"(a), "r"(b));
}

extern "C" __global__ void packed(const uint32_t* in, uint32_t* out) {
  const uint32_t a = in[0], b = in[1], c = in[2];
  asm volatile("vadd2.s32.s32.s32.sat %0, %1, %2, %3;" : "=r"(out[0]) : "r"(a), "r"(b), "r"(c));
  asm volatile("vadd2.s32.s32.s32.add %0.h10, %1.h20, %2.h31, %3;" : "=r"(out[1]) : "r"(a), "r"(b), "r"(c));
  asm volatile("vavrg2.u32.u32.u32 %0.h0, %1.h12, %2.h13, %3;" : "=r"(out[2]) : "r"(a), "r"(b), "r"(c));
  asm volatile("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(out[3]) : "r"(a), "r"(b), "r"(c));
  asm volatile("vadd4.u32.u32.u32 %0.b210, %1.b3210, %2.b7531, %3;" : "=r"(out[4]) : "r"(a), "r"(b), "r"(c));
  asm volatile("vset4.u32.u32.ne %0, %1, %2, %3;" : "=r"(out[5]) : "r"(a), "r"(b), "r"(c));
  asm volatile("vset2.s32.s32.ge.add %0, %1, %2, %3;" : "=r"(out[6]) : "r"(a), "r"(b), "r"(c));
  asm volatile("vmin4.s32.s32.s32 %0, %1, %2, %3;" : "=r"(out[7]) : "r"(a), "r"(b), "r"(c));
}

extern "C" __global__ void intrinsics(const uint32_t* in, uint32_t* out) {
  const uint32_t a = in[0], b = in[1];
  out[0] = __vabsdiffu4(a, b);
  out[1] = __vaddss2(a, b);
  out[2] = __vcmpgts4(a, b);
  out[3] = __vsadu2(a, b);
  out[4] = __vmaxs2(a, b);
  out[5] = __byte_perm(a, b, 0x3715);
  out[6] = __funnelshift_rc(a, b, 9);
  out[7] = __viaddmax_s16x2_relu(a, b, a);
  out[8] = __vimax3_s32(a, b, a);
}
