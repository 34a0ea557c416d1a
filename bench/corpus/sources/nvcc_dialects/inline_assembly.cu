// PTX written by hand inside CUDA: nested scopes, comments, labels, call, vectors, every way to write an immediate.
#include <cstdint>

extern "C" __global__ void scopes(uint32_t* out) {
  uint32_t r = out[threadIdx.x];
  asm volatile(
      "{\n\t"
      "  .reg .pred p, q;      // one line; with a semicolon } and a brace\n\t"
      "  .reg .b32 t<4>;\n\t"
      "  /* a block { of ; comment\n     over two lines */\n\t"
      "  mov.b32 t0, 0x7f; mov.b32 t1, 0b101; mov.b32 t2, 0777; mov.u32 t3, 42U;\n\t"
      "  {\n\t"
      "    .reg .b32 t0;        // hides the outer one\n\t"
      "    mov.b32 t0, %0;\n\t"
      "    setp.lt.and.u32 p|q, t0, 10, !p;\n\t"
      "    @p add.u32 %0, t0, 1;\n\t"
      "    @!q sub.u32 %0, t0, -1;\n\t"
      "    { .reg .b64 wide; mov.b64 wide, {t0, t1}; mov.b64 {t2, _}, wide; }\n\t"
      "  }\n\t"
      "  xor.b32 %0, %0, t0;\n\t"
      "LOOP_%=:\n\t"
      "  add.u32 t1, t1, 1; setp.ne.u32 p, t1, 9;\n\t"
      "  @p bra LOOP_%=;\n\t"
      "  @q bra.uni DONE_%=;\n\t"
      "  add.u32 %0, %0, t3;\n\t"
      "DONE_%=:\n\t"
      "}\n"
      : "+r"(r));
  out[threadIdx.x] = r;
}

extern "C" __global__ void immediates(double* d, float* f, int64_t* i) {
  asm volatile("mov.f32 %0, 0f3F800000;" : "=f"(f[0]));
  asm volatile("mov.f32 %0, 1.5;" : "=f"(f[1]));
  asm volatile("mov.f32 %0, 1.0e-3;" : "=f"(f[2]));
  asm volatile("mov.f64 %0, 0d3FF0000000000000;" : "=d"(d[0]));
  asm volatile("mov.f64 %0, 0D7FF0000000000000;" : "=d"(d[1]));
  asm volatile("mov.s64 %0, -9223372036854775807;" : "=l"(i[0]));
  asm volatile("mov.u64 %0, 0xFFFFFFFFFFFFFFFFU;" : "=l"(i[1]));
  asm volatile("mov.b64 %0, (1 << 4) | 3 + 2 * (7 - 5);" : "=l"(i[2]));
  asm volatile("mov.s64 %0, (-5 > 3) ? 1 : ~7;" : "=l"(i[3]));
}

extern "C" __global__ void vectors(const float4* in, float4* out) {
  float4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {%0, %1, %2, %3}, [%4 + 16];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(in));
  asm volatile("{ .reg .v4 .f32 q; mov.v4.f32 q, {%1, %2, %3, %4}; st.global.v4.f32 [%0+-16], q; }" ::"l"(out + 2),
               "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
               : "memory");
  asm volatile(
      "{ .reg .v2 .f32 q; mov.v2.f32 q, {%1, %2}; st.global.f32 [%0], q.x; st.global.f32 [%0+4], q.y; }" ::"l"(out),
      "f"(v.x), "f"(v.y)
      : "memory");
  asm volatile("prefetch.global.L2 [%0]; prefetchu.L1 [%0];" ::"l"(in));
#if __CUDA_ARCH__ >= 800
  asm volatile("discard.global.L2 [%0], 128;" ::"l"(out) : "memory");
#endif
}

extern "C" __global__ void calls(uint32_t* out) {
  uint32_t result;
  asm volatile("{ .reg .b32 x; mov.b32 x, %%clock; mov.b32 %0, x; }" : "=r"(result));
  asm volatile("barrier.sync 3, 64; barrier.arrive 4, 64; bar.sync 0; bar.warp.sync 0xffffffff;" ::: "memory");
  asm volatile(
      "{ .reg .pred p; .reg .b32 n; setp.ne.b32 p, %0, 0; barrier.red.popc.u32 n, 1, 64, p; barrier.red.and.pred p, 2, "
      "!p;"
      " @p st.global.u32 [%1], n; }" ::"r"(result),
      "l"(out)
      : "memory");
  asm volatile("pmevent 7; nanosleep.u32 20; membar.gl; membar.cta; fence.acq_rel.gpu; fence.sc.sys;" ::: "memory");
  out[1] = result;
}

extern "C" __global__ void arithmetic(uint32_t* o, uint64_t* w) {
  const uint32_t a = o[0], b = o[1], c = o[2];
  asm volatile("{ .reg .b32 l, h; add.cc.u32 l, %1, %2; addc.cc.u32 h, %2, %3; addc.u32 %0, h, 0; }"
               : "=r"(o[3])
               : "r"(a), "r"(b), "r"(c));
  asm volatile("mad.lo.cc.u32 %0, %1, %2, %3; madc.hi.u32 %0, %1, %2, %0;" : "=&r"(o[4]) : "r"(a), "r"(b), "r"(c));
  asm volatile("bfe.u32 %0, %1, 3, 5; bfi.b32 %0, %0, %2, 8, 8;" : "=&r"(o[5]) : "r"(a), "r"(b));
  asm volatile("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(o[6]) : "r"(a), "r"(b), "r"(c));
  asm volatile("shf.l.wrap.b32 %0, %1, %2, %3;" : "=r"(o[7]) : "r"(a), "r"(b), "r"(c));
  asm volatile("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(o[8]) : "r"(a), "r"(b), "r"(c));
  asm volatile("dp2a.lo.s32.u32 %0, %1, %2, %3;" : "=r"(o[9]) : "r"(a), "r"(b), "r"(c));
  asm volatile("sad.u32 %0, %1, %2, %3; brev.b32 %0, %0; clz.b32 %0, %0; popc.b32 %0, %0; bfind.shiftamt.s32 %0, %0;"
               : "=&r"(o[10])
               : "r"(a), "r"(b), "r"(c));
  asm volatile("szext.wrap.s32 %0, %1, 7; bmsk.clamp.b32 %0, %0, %2;" : "=&r"(o[11]) : "r"(a), "r"(b));
  asm volatile("mul.wide.u32 %0, %1, %2; mad.wide.s32 %0, %1, %2, %0;" : "=&l"(w[0]) : "r"(a), "r"(b));
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "{ .reg .f16x2 h; .reg .b16 x, y; mov.b32 h, %1; fma.rn.relu.f16x2 h, h, h, h; mov.b32 {x, y}, h; mov.b32 %0, "
      "{y, x}; }"
      : "=r"(o[12])
      : "r"(a));
#endif
}

extern "C" __global__ void branch_table(uint32_t* out) {
  uint32_t value = out[threadIdx.x];
  asm volatile(
      "{\n\t"
      "  .reg .b32 index;\n\t"
      "  and.b32 index, %0, 3;\n\t"
      "TABLE_%=: .branchtargets ONE_%=, TWO_%=, ONE_%=,\n\t"
      "    END_%=;\n\t"
      "  brx.idx index, TABLE_%=;\n\t"
      "ONE_%=:\n\t"
      "  add.u32 %0, %0, 1;\n\t"
      "  bra.uni END_%=;\n\t"
      "TWO_%=:\n\t"
      "  shl.b32 %0, %0, 1;\n\t"
      "END_%=:\n\t"
      "}\n"
      : "+r"(value));
  out[threadIdx.x] = value;
}
