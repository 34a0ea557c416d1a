// Module variables: initialisers of every kind, constant, managed, shared, aligned, of pointers and of a megabyte.
#include <cstdint>

struct Node {
  const Node* next;
  int key;
  const char* name;
};
struct alignas(32) Mixed {
  char c;
  double d;
  short s[3];
  float f;
  bool b;
};

__device__ int plain;
__device__ int numbers[] = {1, -2, 3, -4, 5};
__device__ float floats[] = {1.5f, -0.f, 1e-38f, 3.4028235e38f, __builtin_inff(), __builtin_nanf("")};
__device__ double doubles[] = {0.1, -1e300};
__device__ int8_t bytes[7] = {-1, 2, -3};
__device__ uint64_t big = 0xfedcba9876543210ull;
__device__ Mixed mixed = {'a', 2.5, {1, 2, 3}, -1.f, true};
__device__ Node last = {nullptr, 2, "last"};
__device__ Node first = {&last, 1, "first, with a \"quote\"; and a }"};
__device__ int* into = &numbers[3];
__device__ const char text[] = "a\tstring\n";
__constant__ int fixed[4] = {10, 20, 30, 40};
__constant__ Mixed fixed_mixed = {'z', 1.0, {9}, 2.f, false};
__constant__ Node* chain[2] = {&first, &last};
__managed__ int shared_with_host = 42;
__managed__ double managed_array[16];
__device__ const int never_written = 77;
static __device__ int internal_counter = 3;
__device__ volatile int flag;
__shared__ int module_shared[64];
extern __shared__ uint4 dynamic_shared[];

#ifdef MEGABYTE
#define X4(a) a, (a) + 1, (a) ^ 3, (a) * 5
#define X16(a) X4(a), X4((a) + 7), X4((a) * 3), X4((a) ^ 9)
#define X256(a)                                                                                                       \
  X16(a), X16(a + 1), X16(a + 2), X16(a + 3), X16(a + 4), X16(a + 5), X16(a + 6), X16(a + 7), X16(a + 8), X16(a + 9), \
      X16(a + 10), X16(a + 11), X16(a + 12), X16(a + 13), X16(a + 14), X16(a + 15)
#define X4096(a)                                                                                             \
  X256(a), X256(a + 11), X256(a + 22), X256(a + 33), X256(a + 44), X256(a + 55), X256(a + 66), X256(a + 77), \
      X256(a + 88), X256(a + 99), X256(a + 111), X256(a + 122), X256(a + 133), X256(a + 144), X256(a + 155), \
      X256(a + 166)
__device__ const unsigned table[] = {X4096(1u),  X4096(2u),  X4096(3u),  X4096(4u),  X4096(5u),  X4096(6u),
                                     X4096(7u),  X4096(8u),  X4096(9u),  X4096(10u), X4096(11u), X4096(12u),
                                     X4096(13u), X4096(14u), X4096(15u), X4096(16u)};
#else
__device__ const unsigned table[] = {1, 2, 3};
#endif

extern "C" __global__ void __launch_bounds__(256) touch(int* out, int i) {
  plain += numbers[i] + bytes[i] + fixed[i] + never_written + shared_with_host + table[i];
  floats[i] += static_cast<float>(doubles[i] + managed_array[i] + mixed.d + fixed_mixed.s[i]);
  for (const Node* node = i ? &first : chain[i]; node != nullptr; node = node->next)
    out[0] += node->key + node->name[i];
  *into = text[i] + static_cast<int>(big >> i);
  while (!flag) ++internal_counter;
  module_shared[threadIdx.x] = i;
  dynamic_shared[threadIdx.x] = uint4{1, 2, 3, static_cast<unsigned>(i)};
  __syncthreads();
  static __shared__ double local_static[32];
  local_static[threadIdx.x & 31] = dynamic_shared[i].x;
  __syncthreads();
  out[threadIdx.x] = module_shared[63 - threadIdx.x % 64] + static_cast<int>(local_static[i]);
}
