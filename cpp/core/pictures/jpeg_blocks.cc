#include "core/pictures/jpeg_blocks.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#if defined(__x86_64__)
#include <immintrin.h>
#define RECORDKIT_X86 1
#endif

namespace recordkit {
namespace {

// The values of each frequency at each pixel of a block, along an axis.
using Waves = std::array<std::array<float, kBlockSide>, kBlockSide>;

Waves made_waves() {
  Waves waves;
  for (size_t pixel = 0; pixel < kBlockSide; ++pixel)
    for (size_t wave = 0; wave < kBlockSide; ++wave) {
      const double angle = static_cast<double>((2 * pixel + 1) * wave) * std::numbers::pi / 16;
      waves[pixel][wave] = static_cast<float>(std::cos(angle) * (wave == 0 ? std::sqrt(0.125) : 0.5));
    }
  return waves;
}

// Calls `add(sample, weight)` for each sample that contributes to a pixel.
template <typename Add>
void for_each_sample(const Axis& axis, const Taps& taps, size_t samples, bool is_halved, bool is_smooth,
                     Add add) {
  for (uint32_t pixel = taps.first; pixel <= taps.last; ++pixel) {
    const float weight = !axis.is_between_two() ? axis.weights[taps.weights + pixel - taps.first]
                         : pixel == taps.first  ? 1 - taps.part
                                                : taps.part;
    const size_t nearer = is_halved ? pixel / 2 : pixel;
    const size_t other = pixel % 2 ? std::min(nearer + 1, samples - 1) : nearer - (nearer > 0);
    const float part = is_halved && is_smooth ? 0.25f : 0;
    add(nearer, weight * (1 - part));
    if (part > 0) add(other, weight * part);
  }
}

}  // namespace

Strips strips_of(const Axis& axis, Direction direction, size_t samples, size_t blocks, bool is_halved,
                 bool is_smooth) {
  static const Waves waves = made_waves();
  const auto pixels = static_cast<uint32_t>(axis.taps.size());
  Strips strips{std::vector<Strips::Strip>(blocks, {pixels, 0}), 0, {}};
  for (uint32_t pixel = 0; pixel < pixels; ++pixel)
    for_each_sample(axis, axis.taps[pixel], samples, is_halved, is_smooth, [&](size_t sample, float) {
      Strips::Strip& strip = strips.blocks[sample / kBlockSide];
      strip.first = std::min(strip.first, pixel);
      strip.count = pixel + 1 - strip.first;
    });
  for (size_t i = blocks; i-- > 0;) {
    strips.stride = std::max<size_t>(strips.stride, strips.blocks[i].count);
    if (i > 0) strips.blocks[i - 1].first = std::min(strips.blocks[i - 1].first, strips.blocks[i].first);
  }
  const bool is_across = direction == Direction::across;
  if (is_across) strips.stride = (strips.stride + kBlockSide - 1) / kBlockSide * kBlockSide;
  strips.matrices.resize(blocks * strips.stride * kBlockSide);
  for (uint32_t pixel = 0; pixel < pixels; ++pixel)
    for_each_sample(axis, axis.taps[pixel], samples, is_halved, is_smooth, [&](size_t sample, float weight) {
      const size_t block = sample / kBlockSide, row = pixel - strips.blocks[block].first;
      float* const matrix = strips.matrices.data() + block * strips.stride * kBlockSide;
      for (size_t i = 0; i < kBlockSide; ++i)
        matrix[is_across ? i * strips.stride + row : row * kBlockSide + i] +=
            waves[sample % kBlockSide][i] * weight;
    });
  return strips;
}

namespace {

using Four = float __attribute__((vector_size(16)));

struct Eight {
  Four low, high;
};

RECORDKIT_INLINE void load_eight(const float* from, Eight& to) { std::memcpy(&to, from, sizeof to); }

// The weighted sum of lines, in two independent parts, to hide the latency of additions.
template <size_t Count>
RECORDKIT_INLINE void sum_up(const Eight* lines, const float* by, Eight& sum) {
  Eight odd{lines[1].low * by[1], lines[1].high * by[1]};
  sum = {lines[0].low * by[0], lines[0].high * by[0]};
  for (size_t i = 2; i < Count; i += 2) {
    sum.low += lines[i].low * by[i], sum.high += lines[i].high * by[i];
    odd.low += lines[i + 1].low * by[i + 1], odd.high += lines[i + 1].high * by[i + 1];
  }
  sum.low += odd.low, sum.high += odd.high;
}

// Adds a block with this many frequencies either way: first along columns, then along rows.
template <size_t Waves>
void add_block(const BlockRow& row, size_t column) {
  const int16_t* const block = row.blocks + column * kBlockSize;
  const float* const across = row.across + column * row.stride * kBlockSide;
  const Strips::Strip strip = row.columns[column];
  float lines[kMostStrip][kBlockSide];
  Eight from[Waves], sum;
  for (size_t i = 0; i < Waves; ++i) {
    float values[kBlockSide];
    for (size_t k = 0; k < kBlockSide; ++k)
      values[k] = block[i * kBlockSide + k] * row.steps[i * kBlockSide + k];
    load_eight(values, from[i]);
  }
  for (size_t i = 0; i < row.to.size(); ++i) {
    sum_up<Waves>(from, row.down + i * kBlockSide, sum);
    std::memcpy(lines[i], &sum, sizeof sum);
  }
  for (size_t lane = 0; lane < strip.count; lane += kBlockSide) {
    for (size_t i = 0; i < Waves; ++i) load_eight(across + i * row.stride + lane, from[i]);
    for (size_t i = 0; i < row.to.size(); ++i) {
      float* const to = row.to[i] + strip.first + lane;
      Eight made;
      load_eight(to, made);
      sum_up<Waves>(from, lines[i], sum);
      made.low += sum.low, made.high += sum.high;
      std::memcpy(to, &made, sizeof made);
    }
  }
}

#if RECORDKIT_X86

#define RECORDKIT_TARGET_AVX __attribute__((target("avx2")))

template <size_t Count>
RECORDKIT_TARGET_AVX RECORDKIT_INLINE __m256 sum_of(const __m256* lines, const float* by) {
  const auto product = [&](size_t i) RECORDKIT_TARGET_AVX {
    return _mm256_mul_ps(lines[i], _mm256_broadcast_ss(by + i));
  };
  __m256 even = product(0), odd = product(1);
#pragma GCC unroll 8
  for (size_t i = 2; i < Count; i += 2) {
    even = _mm256_add_ps(even, product(i));
    odd = _mm256_add_ps(odd, product(i + 1));
  }
  return _mm256_add_ps(even, odd);
}

// The same as add_block. Written with intrinsics, because compilers split vectors that the baseline processor
// lacks.
template <size_t Waves>
RECORDKIT_TARGET_AVX void add_block_avx(const BlockRow& row, size_t column) {
  const int16_t* const block = row.blocks + column * kBlockSize;
  const float* const across = row.across + column * row.stride * kBlockSide;
  const Strips::Strip strip = row.columns[column];
  alignas(32) float lines[kMostStrip][kBlockSide];
  __m256 from[Waves];
#pragma GCC unroll 8
  for (size_t i = 0; i < Waves; ++i) {
    const __m128i values = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + i * kBlockSide));
    from[i] = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(values)),
                            _mm256_loadu_ps(row.steps + i * kBlockSide));
  }
  for (size_t i = 0; i < row.to.size(); ++i)
    _mm256_store_ps(lines[i], sum_of<Waves>(from, row.down + i * kBlockSide));
  for (size_t lane = 0; lane < strip.count; lane += kBlockSide) {
#pragma GCC unroll 8
    for (size_t i = 0; i < Waves; ++i) from[i] = _mm256_loadu_ps(across + i * row.stride + lane);
    for (size_t i = 0; i < row.to.size(); ++i) {
      float* const to = row.to[i] + strip.first + lane;
      _mm256_storeu_ps(to, _mm256_add_ps(_mm256_loadu_ps(to), sum_of<Waves>(from, lines[i])));
    }
  }
}
#endif

using AddBlock = void (*)(const BlockRow& row, size_t column);

}  // namespace

void add_blocks(const BlockRow& row, bool is_portable) {
  constexpr size_t few = kBlockSide / 2;
  AddBlock add_few = add_block<few>, add_many = add_block<kBlockSide>;
#if RECORDKIT_X86
  if (!is_portable) add_few = add_block_avx<few>, add_many = add_block_avx<kBlockSide>;
#endif
  for (size_t column = 0; column < row.columns.size(); ++column)
    if (row.columns[column].count > 0) (row.extents[column] <= few ? add_few : add_many)(row, column);
}

}  // namespace recordkit
