// The kernels behind cub's device-wide algorithms, one algorithm a module: -DALGORITHM=name.
#include <cub/cub.cuh>

enum {
  REDUCE = 1,
  SCAN,
  SORT_KEYS,
  SORT_PAIRS,
  SELECT,
  PARTITION,
  HISTOGRAM,
  TRANSFORM,
  MERGE,
  MERGE_SORT,
  SEGMENTED,
  RUNS,
  UNIQUE,
  BY_KEY,
  FOR_EACH,
  BATCHED_COPY,
  ADJACENT
};

struct Odd {
  __host__ __device__ bool operator()(int v) const { return v & 1; }
};
struct Mix {
  __host__ __device__ float operator()(float a, float b) const { return a * b + 1.f; }
};
struct Bump {
  int* to;
  __device__ void operator()(int v) { atomicAdd(to + (v & 7), v); }
};

template <int Algorithm>
cudaError_t launch(void* storage, size_t& bytes, int* in, int* out, float* values, float* results, int* count, int n) {
  if constexpr (Algorithm == REDUCE) return cub::DeviceReduce::Sum(storage, bytes, in, out, n);
  if constexpr (Algorithm == SCAN) return cub::DeviceScan::ExclusiveSum(storage, bytes, in, out, n);
  if constexpr (Algorithm == SORT_KEYS) return cub::DeviceRadixSort::SortKeys(storage, bytes, in, out, n);
  if constexpr (Algorithm == SORT_PAIRS)
    return cub::DeviceRadixSort::SortPairsDescending(storage, bytes, in, out, values, results, n);
  if constexpr (Algorithm == SELECT) return cub::DeviceSelect::If(storage, bytes, in, out, count, n, Odd{});
  if constexpr (Algorithm == PARTITION) return cub::DevicePartition::If(storage, bytes, in, out, count, n, Odd{});
  if constexpr (Algorithm == HISTOGRAM)
    return cub::DeviceHistogram::HistogramEven(storage, bytes, values, count, 65, 0.f, 1.f, n);
  if constexpr (Algorithm == TRANSFORM)
    return cub::DeviceTransform::Transform(cuda::std::make_tuple(values, results), results, n, Mix{});
  if constexpr (Algorithm == MERGE)
    return cub::DeviceMerge::MergeKeys(storage, bytes, in, n, out, n, count, cuda::std::less<int>{});
  if constexpr (Algorithm == MERGE_SORT)
    return cub::DeviceMergeSort::SortKeys(storage, bytes, values, n, cuda::std::less<float>{});
  if constexpr (Algorithm == SEGMENTED)
    return cub::DeviceSegmentedReduce::Max(storage, bytes, values, results, n, in, in + 1);
  if constexpr (Algorithm == RUNS)
    return cub::DeviceRunLengthEncode::Encode(storage, bytes, in, out, count, count + n, n);
  if constexpr (Algorithm == UNIQUE) return cub::DeviceSelect::Unique(storage, bytes, in, out, count, n);
  if constexpr (Algorithm == BY_KEY)
    return cub::DeviceReduce::ReduceByKey(storage, bytes, in, out, values, results, count, cuda::std::plus<float>{}, n);
  if constexpr (Algorithm == FOR_EACH) return cub::DeviceFor::ForEachN(in, n, Bump{out});
  if constexpr (Algorithm == BATCHED_COPY)
    return cub::DeviceCopy::Batched(storage, bytes, reinterpret_cast<int**>(in), reinterpret_cast<int**>(out), count,
                                    n);
  if constexpr (Algorithm == ADJACENT)
    return cub::DeviceAdjacentDifference::SubtractLeftCopy(storage, bytes, values, results, n);
  return cudaSuccess;
}

template cudaError_t launch<ALGORITHM>(void*, size_t&, int*, int*, float*, float*, int*, int);
