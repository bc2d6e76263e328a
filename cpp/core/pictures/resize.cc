#include "core/pictures/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

#include "core/memory/bytes.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define RECORDKIT_X86 1
#endif

namespace recordkit {
namespace {

// Code inlined into a function for a newer processor is compiled for that processor.
#define RECORDKIT_INLINE __attribute__((always_inline)) inline

using Four = float __attribute__((vector_size(16)));
constexpr size_t kLanes = 4;

RECORDKIT_INLINE Four load_four(const float* from) {
  Four values;
  std::memcpy(&values, from, sizeof values);
  return values;
}

RECORDKIT_INLINE void store_four(float* to, Four values) { std::memcpy(to, &values, sizeof values); }

// Computes positions in single precision, in the same steps as TensorFlow: in wide pictures the rounding is
// visible.
float ratio(size_t from, size_t to) { return static_cast<float>(from) / static_cast<float>(to); }

uint32_t within(float position, size_t size) {
  return static_cast<uint32_t>(position <= 0 ? 0 : std::min(static_cast<size_t>(position), size - 1));
}

Axis nearest_axis(size_t from, size_t to) {
  Axis axis{{}, {1.0f}};
  const float step = ratio(from, to);
  for (size_t i = 0; i < to; ++i) {
    const uint32_t at = within((static_cast<float>(i) + 0.5f) * step, from);
    axis.taps.push_back({at, at, 0, 0});
  }
  return axis;
}

Axis bilinear_axis(size_t from, size_t to) {
  Axis axis;
  const float step = ratio(from, to);
  for (size_t i = 0; i < to; ++i) {
    const float position = (static_cast<float>(i) + 0.5f) * step - 0.5f, below = std::floor(position);
    const uint32_t first = within(below, from), last = within(below + 1, from);
    axis.taps.push_back({first, last, first == last ? 0 : position - below, 0});
  }
  return axis;
}

// In wide pictures the weights of a pixel do not quite add up to 1; nor do TensorFlow's.
Axis area_axis(size_t from, size_t to) {
  Axis axis;
  const float step = ratio(from, to);
  for (size_t i = 0; i < to; ++i) {
    const float start = static_cast<float>(i) * step, end = static_cast<float>(i + 1) * step;
    const uint32_t first = within(start, from), last = std::max(first, within(std::ceil(end) - 1, from));
    axis.taps.push_back({first, last, 0, static_cast<uint32_t>(axis.weights.size())});
    for (uint32_t at = first; at <= last; ++at) {
      const float left = static_cast<float>(at);
      // Rounding may end up past the last pixel; that counts as the last.
      const float right = at + 1 < from ? left + 1 : std::max(left + 1, end);
      const float covered = left < start && right > end ? step : std::min(right, end) - std::max(left, start);
      axis.weights.push_back(covered / step);
    }
  }
  return axis;
}

// One row of floats of the rows of a picture.
template <typename From>
RECORDKIT_INLINE void blend_rows(const Pixels<const From>& from, const Axis& axis, const Taps& taps,
                                 float* __restrict to) {
  const size_t count = from.width * from.channels;
  const auto row = [&](size_t number) {
    return from.data + static_cast<ptrdiff_t>(number) * from.row_stride;
  };
  const From* __restrict first = row(taps.first);
  if (axis.is_between_two()) {
    const From* __restrict last = row(taps.last);
    for (size_t i = 0; i < count; ++i) {
      const float value = static_cast<float>(first[i]);
      to[i] = value + (static_cast<float>(last[i]) - value) * taps.part;
    }
    return;
  }
  const float* weight = axis.weights.data() + taps.weights;
  for (size_t i = 0; i < count; ++i) to[i] = static_cast<float>(first[i]) * *weight;
  for (size_t number = taps.first + size_t{1}; number <= taps.last; ++number) {
    const From* __restrict next = row(number);
    ++weight;
    for (size_t i = 0; i < count; ++i) to[i] += static_cast<float>(next[i]) * *weight;
  }
}

// The pixels of a new row. Always writes four values; the next pixel overwrites the excess, or it lies past
// the row.
RECORDKIT_INLINE void blend_columns(const float* row, size_t channels, const Axis& axis, float* to) {
  if (axis.is_between_two()) {
    for (const Taps& taps : axis.taps) {
      for (size_t channel = 0; channel < channels; channel += kLanes) {
        const Four value = load_four(row + taps.first * channels + channel);
        const Four next = load_four(row + taps.last * channels + channel);
        store_four(to + channel, value + (next - value) * taps.part);
      }
      to += channels;
    }
    return;
  }
  for (const Taps& taps : axis.taps) {
    for (size_t channel = 0; channel < channels; channel += kLanes) {
      const float* weight = axis.weights.data() + taps.weights;
      Four sum = load_four(row + taps.first * channels + channel) * *weight;
      for (size_t at = taps.first + size_t{1}; at <= taps.last; ++at)
        sum += load_four(row + at * channels + channel) * *++weight;
      store_four(to + channel, sum);
    }
    to += channels;
  }
}

RECORDKIT_INLINE void finish(const float* __restrict row, const float* __restrict scale,
                             const float* __restrict shift, size_t count, float* __restrict to) {
  for (size_t i = 0; i < count; ++i) to[i] = row[i] * scale[i] + shift[i];
}

RECORDKIT_INLINE void finish(const float* __restrict row, const float* __restrict scale,
                             const float* __restrict shift, size_t count, uint8_t* __restrict to) {
  for (size_t i = 0; i < count; ++i) {
    const float value = row[i] * scale[i] + shift[i] + 0.5f;
    // In this order, so that NaN becomes 0.
    to[i] = static_cast<uint8_t>(static_cast<int32_t>(std::min(255.0f, std::max(0.0f, value))));
  }
}

template <typename From, typename To>
struct Work {
  Pixels<const From> from;
  Pixels<To> to;
  Axis down, across;
  std::vector<float> scale, shift;  // for every value of a row
  std::vector<float> wide, narrow;  // a row before and after its columns are blended
};

template <typename From, typename To>
RECORDKIT_INLINE void run(Work<From, To>& work) {
  To* to = work.to.data;
  for (const Taps& taps : work.down.taps) {
    blend_rows(work.from, work.down, taps, work.wide.data());
    if (work.from.channels == 3)  // a constant for the compiler
      blend_columns(work.wide.data(), 3, work.across, work.narrow.data());
    else
      blend_columns(work.wide.data(), work.from.channels, work.across, work.narrow.data());
    finish(work.narrow.data(), work.scale.data(), work.shift.data(), work.scale.size(), to);
    to += work.to.row_stride;
  }
}

#if RECORDKIT_X86

#define RECORDKIT_TARGET_AVX __attribute__((target("avx2")))

// Two pixels of three bytes, and two more bytes that are ignored. REQUIRES: size >= 8, so at least three
// pixels (run_avx2 sees to it); at + 3 <= size
RECORDKIT_TARGET_AVX RECORDKIT_INLINE __m256 load_two_pixels(const uint8_t* row, size_t at, size_t size) {
  __m128i bytes;
  if (at + 8 <= size) [[likely]]
    bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(row + at));
  else  // the last eight bytes of the row, shifted
    bytes = _mm_cvtsi64_si128(static_cast<int64_t>(load<uint64_t>(row + size - 8) >> (8 * (at + 8 - size))));
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
}

// blend_rows and blend_columns in one, for the most common pictures. Two pixels at a time would take a
// quarter less time, but wide registers lower the clock of some processors for a while, and slow down
// decoding.
RECORDKIT_TARGET_AVX void blend_pixels(const Pixels<const uint8_t>& from, const Taps& down,
                                       const Axis& across, float* to) {
  const size_t size = 3 * from.width;
  const uint8_t* const first = from.data + static_cast<ptrdiff_t>(down.first) * from.row_stride;
  const uint8_t* const last = from.data + static_cast<ptrdiff_t>(down.last) * from.row_stride;
  const __m256 part = _mm256_set1_ps(down.part);
  const __m256i second = _mm256_setr_epi32(3, 4, 5, 6, 6, 6, 6, 6);
  for (const Taps& taps : across.taps) {
    const __m256 above = load_two_pixels(first, 3 * taps.first, size);
    const __m256 below = load_two_pixels(last, 3 * taps.first, size);
    const __m256 both = _mm256_add_ps(above, _mm256_mul_ps(_mm256_sub_ps(below, above), part));
    const Four left = _mm256_castps256_ps128(both);
    const Four right = _mm256_castps256_ps128(_mm256_permutevar8x32_ps(both, second));
    store_four(to, left + (right - left) * taps.part);
    to += 3;
  }
}

// A picture of this size has left the caches before it is read again.
constexpr size_t kFarBytes = size_t{1} << 18;

// The same as `finish`, but past the caches: ordinary stores would fetch the destination first.
RECORDKIT_TARGET_AVX void finish_far(const float* row, const float* scale, const float* shift, size_t count,
                                     float* to) {
  constexpr size_t lanes = 2 * kLanes;
  const size_t odd = -reinterpret_cast<uintptr_t>(to) / sizeof(float) % lanes, first = std::min(count, odd);
  finish(row, scale, shift, first, to);
  size_t i = first;
  for (; i + lanes <= count; i += lanes) {
    const __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(row + i), _mm256_loadu_ps(scale + i));
    _mm256_stream_ps(to + i, _mm256_add_ps(scaled, _mm256_loadu_ps(shift + i)));
  }
  finish(row + i, scale + i, shift + i, count - i, to + i);
}

// Bytes are few.
RECORDKIT_INLINE void finish_far(const float* row, const float* scale, const float* shift, size_t count,
                                 uint8_t* to) {
  finish(row, scale, shift, count, to);
}

// The same as `run`, for pixels of three bytes between two pixels each way.
template <typename To>
RECORDKIT_TARGET_AVX void run_pixels(Work<uint8_t, To>& work) {
  const float *const row = work.narrow.data(), *const scale = work.scale.data(),
                     *const shift = work.shift.data();
  const size_t count = work.scale.size();
  const bool is_far = work.to.height * count * sizeof(To) >= kFarBytes;
  To* to = work.to.data;
  for (const Taps& taps : work.down.taps) {
    blend_pixels(work.from, taps, work.across, work.narrow.data());
    if (is_far)
      finish_far(row, scale, shift, count, to);
    else
      finish(row, scale, shift, count, to);
    to += work.to.row_stride;
  }
  if (is_far) _mm_sfence();  // before another thread may read the picture
}

template <typename From, typename To>
RECORDKIT_TARGET_AVX void run_avx2(Work<From, To>& work) {
  if constexpr (std::is_same_v<From, uint8_t>) {
    if (work.from.channels == 3 && work.from.width >= 3 && work.across.is_between_two())
      return run_pixels(work);
  }
  run(work);
}
#endif

template <typename From, typename To>
void run_portable(Work<From, To>& work) {
  run(work);
}

// One value per channel, repeated over a row.
std::vector<float> repeated(const float* values, size_t channels, size_t width) {
  std::vector<float> row(channels * width);
  for (size_t i = 0; i < row.size(); ++i) row[i] = i < channels ? values[i] : row[i - channels];
  return row;
}

}  // namespace

Axis axis_of(Resampling how, size_t from, size_t to) {
  switch (how) {
    case Resampling::nearest:
      return nearest_axis(from, to);
    case Resampling::bilinear:
      return bilinear_axis(from, to);
    case Resampling::area:
      break;
  }
  return area_axis(from, to);
}

template <typename From, typename To>
void resize(const Pixels<const From>& from, const Pixels<To>& to, Resampling how, bool mirrored,
            const float* scale, const float* shift) {
  Work<From, To> work{from,
                      to,
                      axis_of(how, from.height, to.height),
                      axis_of(how, from.width, to.width),
                      repeated(scale, to.channels, to.width),
                      repeated(shift, to.channels, to.width),
                      std::vector<float>(from.width * from.channels + kLanes),
                      std::vector<float>(to.width * to.channels + kLanes)};
  if (mirrored) std::reverse(work.across.taps.begin(), work.across.taps.end());
#if RECORDKIT_X86
  if (__builtin_cpu_supports("avx2")) return run_avx2(work);
#endif
  run_portable(work);
}

template void resize(const Pixels<const uint8_t>&, const Pixels<uint8_t>&, Resampling, bool, const float*,
                     const float*);
template void resize(const Pixels<const uint8_t>&, const Pixels<float>&, Resampling, bool, const float*,
                     const float*);
template void resize(const Pixels<const float>&, const Pixels<uint8_t>&, Resampling, bool, const float*,
                     const float*);
template void resize(const Pixels<const float>&, const Pixels<float>&, Resampling, bool, const float*,
                     const float*);

template <typename To>
RowWriter<To>::RowWriter(const Pixels<To>& to, const float* scale, const float* shift)
    : to_(to),
      scale_(repeated(scale, to.channels, to.width)),
      shift_(repeated(shift, to.channels, to.width)) {
#if RECORDKIT_X86
  is_far_ = to.height * scale_.size() * sizeof(To) >= kFarBytes && __builtin_cpu_supports("avx2");
#endif
}

template <typename To>
RowWriter<To>::~RowWriter() {
#if RECORDKIT_X86
  if (is_far_) _mm_sfence();
#endif
}

template <typename To>
void RowWriter<To>::write(size_t row, const float* values) const {
  To* const to = to_.data + static_cast<ptrdiff_t>(row) * to_.row_stride;
#if RECORDKIT_X86
  if (is_far_) return finish_far(values, scale_.data(), shift_.data(), scale_.size(), to);
#endif
  finish(values, scale_.data(), shift_.data(), scale_.size(), to);
}

template class RowWriter<uint8_t>;
template class RowWriter<float>;

}  // namespace recordkit
