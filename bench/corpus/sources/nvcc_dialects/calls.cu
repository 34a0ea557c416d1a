// Indirect calls and their prototypes, virtual functions, structures by value, alloca, variadic printf, assert.
#include <cassert>
#include <cstdio>

struct Wide {
  double number[5];
  char tag[3];
};
struct alignas(16) Quad {
  float x, y, z, w;
};

typedef float (*Unary)(float);
typedef Wide (*Mixer)(Wide, Quad, char, short, long long);

__device__ __noinline__ float twice(float v) { return 2.f * v; }
__device__ __noinline__ float half(float v) { return 0.5f * v; }
__device__ __noinline__ float minus(float v) { return -v; }
__device__ Unary table[3] = {twice, half, minus};
__constant__ Unary constant_table[3] = {minus, half, twice};

__device__ __noinline__ Wide mix(Wide a, Quad q, char c, short s, long long l) {
  for (int i = 0; i < 5; ++i) a.number[i] += q.x * c + q.w * s + l;
  a.tag[1] = c;
  return a;
}
__device__ Mixer mixer = mix;

struct Shape {
  __device__ virtual float area() const = 0;
  __device__ virtual ~Shape() {}
};
struct Disc : Shape {
  float r;
  __device__ Disc(float r) : r(r) {}
  __device__ float area() const override { return 3.14f * r * r; }
};
struct Box : Shape {
  float a, b;
  __device__ Box(float a, float b) : a(a), b(b) {}
  __device__ float area() const override { return a * b; }
};

extern "C" __global__ void indirect(const int* which, float* value) {
  const int i = threadIdx.x;
  value[i] = table[which[i]](value[i]);
  value[i] += constant_table[which[i + 1]](value[i]);
}

extern "C" __global__ void by_value(Wide* wide, Quad q) {
  wide[threadIdx.x] = mixer(wide[threadIdx.x], q, 'c', 7, 1ll << 40);
}

extern "C" __global__ void virtual_call(float* out, int n) {
  Shape* shape = n & 1 ? static_cast<Shape*>(new Disc(out[0])) : new Box(out[1], out[2]);
  out[threadIdx.x] = shape->area();
  delete shape;
}

extern "C" __global__ void stack(int* out, int n) {
  int* scratch = static_cast<int*>(__builtin_alloca(n * sizeof(int)));
  for (int i = 0; i < n; ++i) scratch[i] = out[i] * i;
  int sum = 0;
  for (int i = n; i-- > 0;) sum += scratch[scratch[i] % n];
  out[threadIdx.x] = sum;
}

extern "C" __global__ void talk(const double* value, int n) {
  printf("no arguments\n");
  printf("%d %s %f \"quoted; {braces}\" // not a comment\n", n, "text /* not a comment */", value[threadIdx.x]);
  assert(n > 0 && "positive");
}

extern "C" __global__ void heap(int** slot, int n) {
  int* memory = static_cast<int*>(malloc(n * sizeof(int)));
  if (memory == nullptr) return;
  memory[n - 1] = n;
  slot[threadIdx.x] = memory;
  if (n & 1) free(memory);
}
