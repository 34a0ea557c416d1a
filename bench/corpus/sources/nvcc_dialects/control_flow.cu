// Dense switches (jump tables), nested loops with early leaves, recursion, traps and exits.

__device__ __noinline__ int collatz(int value, int depth) {
  return depth && value > 1 ? collatz(value & 1 ? 3 * value + 1 : value / 2, depth - 1) : value;
}

extern "C" __global__ void dense_switch(const int* choice, float* value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = value[i];
  switch (choice[i]) {
    case 0:
      v = sinf(v);
      break;
    case 1:
      v = v * v;
      break;
    case 2:
      v = sqrtf(v);
      break;
    case 3:
      v = v + 1.f;
    case 4:
      v = v - 3.f;
      break;
    case 5:
      v = 1.f / v;
      break;
    case 6:
      v = fabsf(v);
      break;
    case 7:
      v = floorf(v);
      break;
    case 8:
      v = exp2f(v);
      break;
    case 9:
      v = log2f(v);
      break;
    case 10:
      v = atomicAdd(&value[0], v);
      break;
    case 11:
      v = __shfl_xor_sync(0xffffffffu, v, 1);
      break;
    default:
      v = 0.f;
  }
  value[i] = v;
}

extern "C" __global__ void state_machine(const unsigned char* text, int length, int* counts) {
  int state = 0, n = 0;
#pragma unroll 1
  for (int i = threadIdx.x; i < length; i += blockDim.x) {
    const int c = text[i];
    switch (state) {
      case 0:
        if (c == '"')
          state = 1;
        else if (c == '/')
          state = 2;
        else if (c == 0)
          goto end;
        break;
      case 1:
        if (c == '\\')
          state = 3;
        else if (c == '"')
          state = 0;
        break;
      case 2:
        state = c == '/' ? 4 : 0;
        break;
      case 3:
        state = 1;
        break;
      case 4:
        if (c == '\n') state = 5;
        break;
      case 5:
        ++n;
        state = 0;
        continue;
      default:
        __trap();
    }
  }
end:
  counts[threadIdx.x] = n + state;
}

extern "C" __global__ void nested_loops(float* a, int n, int m) {
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < m; ++j) {
      if (a[i * m + j] < 0.f) break;
      if (a[i * m + j] > 1e9f) return;
#pragma unroll
      for (int k = 0; k < 4; ++k) a[i * m + j] += k * a[k];
    }
    if (__syncthreads_or(a[i] > 5.f)) continue;
    if (__syncthreads_and(a[i] > 6.f)) {
      a[i] = __syncthreads_count(i & 1);
    }
    do {
      a[i] *= 0.5f;
    } while (a[i] > 1.f);
  }
}

extern "C" __global__ void recursion(int* value) { value[threadIdx.x] = collatz(value[threadIdx.x], 99); }

extern "C" __global__ void leaves(int* value) {
  if (value[threadIdx.x] == 7) asm volatile("exit;");
  if (value[threadIdx.x] == 8) __brkpt();
  if (value[threadIdx.x] == 9) __trap();
  if (value[threadIdx.x] == 10) __builtin_unreachable();
  __builtin_assume(value[0] > 0);
  value[threadIdx.x] = value[0] % 3;
}
