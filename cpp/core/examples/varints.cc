#include "core/examples/varints.h"

#include <array>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace recordkit {

#if defined(__x86_64__)

bool has_wide_varints() {
  static const bool has = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi") &&
                          __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("bmi2");
  return has && crc32c_path() == "avx512";
}

// Compresses the continuation bits into the positions of all varints, gathers the bytes of sixteen at once,
// four for each, and joins their groups of seven bits by multiplication.
[[gnu::target("avx512f,avx512bw,avx512vbmi,avx512vbmi2,bmi,bmi2,lzcnt,popcnt")]] const uint8_t*
read_varints_wide(const uint8_t* p, const uint8_t* end, const uint8_t* readable_end, int64_t*& to) {
  alignas(64) static constexpr auto kPlaces = [] {
    std::array<uint8_t, kVarintWindow> places{};
    for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<uint8_t>(i);
    return places;
  }();
  const __m512i places = _mm512_load_si512(kPlaces.data());
  const __m512i four_times = _mm512_set4_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0x00000000);
  const __m512i next_ones = _mm512_set1_epi32(0x03020100);
  const __m512i sevens = _mm512_set1_epi8(0x7f);
  const __m512i by_pairs = _mm512_set1_epi16(static_cast<int16_t>(0x8001));  // 1 and 128
  const __m512i by_fours = _mm512_set1_epi32(0x40000001);                    // 1 and 2^14
  while (p < end && readable_end - p >= static_cast<ptrdiff_t>(kVarintWindow)) {
    const __m512i window = _mm512_loadu_si512(p);
    uint64_t ends = ~_mm512_movepi8_mask(window);
    if (end - p < static_cast<ptrdiff_t>(kVarintWindow))
      ends = _bzhi_u64(ends, static_cast<uint32_t>(end - p));
    // Stop at the first one of more than four bytes.
    const uint64_t go_on = ~ends & ~ends >> 1 & ~ends >> 2 & ~ends >> 3;
    if (go_on != 0) ends = _bzhi_u64(ends, static_cast<uint32_t>(_tzcnt_u64(go_on)));
    if (ends == 0) break;
    __m512i starts_at = _mm512_maskz_compress_epi8(ends << 1 | 1, places);
    __m512i ends_at = _mm512_maskz_compress_epi8(ends, places);
    const int64_t count = _mm_popcnt_u64(ends);
    for (int64_t done = 0; done < count; done += 16) {
      const __m512i first = _mm512_cvtepu8_epi32(_mm512_castsi512_si128(starts_at));
      const __m512i last = _mm512_cvtepu8_epi32(_mm512_castsi512_si128(ends_at));
      const __m512i at = _mm512_add_epi8(_mm512_shuffle_epi8(first, four_times), next_ones);
      const __mmask64 own = _mm512_cmple_epu8_mask(at, _mm512_shuffle_epi8(last, four_times));
      const __m512i bytes = _mm512_and_si512(_mm512_maskz_permutexvar_epi8(own, at, window), sevens);
      const __m512i joined = _mm512_madd_epi16(_mm512_maddubs_epi16(by_pairs, bytes), by_fours);
      _mm512_storeu_si512(to + done, _mm512_cvtepu32_epi64(_mm512_castsi512_si256(joined)));
      _mm512_storeu_si512(to + done + 8, _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(joined, 1)));
      constexpr int kNextLanes = 0x39;
      starts_at = _mm512_shuffle_i64x2(starts_at, starts_at, kNextLanes);
      ends_at = _mm512_shuffle_i64x2(ends_at, ends_at, kNextLanes);
    }
    to += count;
    p += kVarintWindow - _lzcnt_u64(ends);
  }
  return p;
}

#else

bool has_wide_varints() { return false; }
const uint8_t* read_varints_wide(const uint8_t* p, const uint8_t*, const uint8_t*, int64_t*&) { return p; }

#endif

}  // namespace recordkit
