// cub in one block and one warp: load, store, exchange, reduce, scan, sort, histogram, merge, adjacent differences.
#include <cub/cub.cuh>

constexpr int threads = 128, items = 5;

extern "C" __global__ void __launch_bounds__(threads) sort_block(unsigned* keys, float* values) {
  using Load = cub::BlockLoad<unsigned, threads, items, cub::BLOCK_LOAD_TRANSPOSE>;
  using LoadValues = cub::BlockLoad<float, threads, items, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
  using Sort = cub::BlockRadixSort<unsigned, threads, items, float>;
  using Store = cub::BlockStore<unsigned, threads, items, cub::BLOCK_STORE_VECTORIZE>;
  __shared__ union {
    Load::TempStorage load;
    LoadValues::TempStorage load_values;
    Sort::TempStorage sort;
    Store::TempStorage store;
  } shared;
  unsigned key[items];
  float value[items];
  Load(shared.load).Load(keys + blockIdx.x * threads * items, key);
  __syncthreads();
  LoadValues(shared.load_values).Load(values + blockIdx.x * threads * items, value);
  __syncthreads();
  Sort(shared.sort).Sort(key, value, 3, 27);
  __syncthreads();
  Store(shared.store).Store(keys + blockIdx.x * threads * items, key);
  values[threadIdx.x] = value[0];
}

template <cub::BlockReduceAlgorithm Algorithm>
__device__ void reduce_block(float* data) {
  using Reduce = cub::BlockReduce<float, threads, Algorithm>;
  __shared__ typename Reduce::TempStorage shared;
  const float sum = Reduce(shared).Sum(data[threadIdx.x]);
  __syncthreads();
  const float largest = Reduce(shared).Reduce(data[threadIdx.x], cuda::maximum<>{}, 77);
  if (threadIdx.x == 0) data[0] = sum + largest;
}
extern "C" __global__ void reduce_raking(float* data) { reduce_block<cub::BLOCK_REDUCE_RAKING>(data); }
extern "C" __global__ void reduce_commutative(float* data) {
  reduce_block<cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY>(data);
}
extern "C" __global__ void reduce_warps(float* data) { reduce_block<cub::BLOCK_REDUCE_WARP_REDUCTIONS>(data); }

template <cub::BlockScanAlgorithm Algorithm>
__device__ void scan_block(int* data) {
  using Scan = cub::BlockScan<int, threads, Algorithm>;
  __shared__ typename Scan::TempStorage shared;
  int value[3], total;
  for (int i = 0; i < 3; ++i) value[i] = data[threadIdx.x * 3 + i];
  Scan(shared).ExclusiveSum(value, value, total);
  for (int i = 0; i < 3; ++i) data[threadIdx.x * 3 + i] = value[i] + total;
}
extern "C" __global__ void scan_raking(int* data) { scan_block<cub::BLOCK_SCAN_RAKING_MEMOIZE>(data); }
extern "C" __global__ void scan_warps(int* data) { scan_block<cub::BLOCK_SCAN_WARP_SCANS>(data); }

extern "C" __global__ void histogram(const unsigned char* data, unsigned* bins) {
  using Histogram = cub::BlockHistogram<unsigned char, threads, items, 256, cub::BLOCK_HISTO_SORT>;
  __shared__ Histogram::TempStorage shared;
  __shared__ unsigned count[256];
  unsigned char value[items];
  for (int i = 0; i < items; ++i) value[i] = data[i * threads + threadIdx.x];
  Histogram(shared).Histogram(value, count);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += threads) atomicAdd(bins + i, count[i]);
}

extern "C" __global__ void merge_sort(double* data) {
  using Sort = cub::BlockMergeSort<double, threads, items>;
  using Difference = cub::BlockAdjacentDifference<double, threads>;
  using Head = cub::BlockDiscontinuity<double, threads>;
  __shared__ union {
    Sort::TempStorage sort;
    Difference::TempStorage difference;
    Head::TempStorage head;
  } shared;
  double value[items];
  int flag[items];
  for (int i = 0; i < items; ++i) value[i] = data[threadIdx.x * items + i];
  Sort(shared.sort).StableSort(value, cuda::std::less<double>{});
  __syncthreads();
  Head(shared.head).FlagHeads(flag, value, cuda::std::not_equal_to<double>{});
  __syncthreads();
  Difference(shared.difference).SubtractLeft(value, value, cuda::std::minus<double>{});
  for (int i = 0; i < items; ++i) data[threadIdx.x * items + i] = value[i] + flag[i];
}

extern "C" __global__ void warps(int* data) {
  using Reduce = cub::WarpReduce<int, 16>;
  using Scan = cub::WarpScan<int>;
  using Sort = cub::WarpMergeSort<int, 4>;
  __shared__ Reduce::TempStorage reduce[threads / 16];
  __shared__ Scan::TempStorage scan[threads / 32];
  __shared__ Sort::TempStorage sort[threads / 32];
  int value = Reduce(reduce[threadIdx.x / 16]).Sum(data[threadIdx.x]), total;
  Scan(scan[threadIdx.x / 32]).InclusiveScan(value, value, cuda::maximum<>{}, total);
  int several[4] = {value, total, data[1], data[2]};
  Sort(sort[threadIdx.x / 32]).Sort(several, cuda::std::less<int>{});
  data[threadIdx.x] = several[0] + several[3];
}

extern "C" __global__ void exchange(float4* data) {
  using Exchange = cub::BlockExchange<float4, threads, 4>;
  __shared__ Exchange::TempStorage shared;
  float4 value[4];
  for (int i = 0; i < 4; ++i) value[i] = data[threadIdx.x * 4 + i];
  Exchange(shared).BlockedToStriped(value);
  for (int i = 0; i < 4; ++i) data[i * threads + threadIdx.x] = value[i];
}
