// Copies to memory that will have left the caches before it is next read.
#pragma once

#include <algorithm>

#include "core/memory/bytes.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace recordkit {

// Columns of at least kPastCaches bytes are written past the caches, if the value has at least kLongValue.
constexpr size_t kPastCaches = size_t{2} << 20, kLongValue = 512;

// Copies without fetching the destination first, as ordinary stores do for every cache line. REQUIRES:
// end_past_caches() before another thread reads the copy
inline void copy_past_caches(uint8_t* to, const uint8_t* from, size_t size) {
#if defined(__x86_64__)
  constexpr size_t kLine = 64, kWord = sizeof(__m128i);
  // Partial lines at either end are written the usual way.
  const size_t head = std::min(size, (kLine - reinterpret_cast<uintptr_t>(to) % kLine) % kLine);
  std::memcpy(to, from, head);
  size_t at = head;
  for (; at + kLine <= size; at += kLine) {
    // Whole lines at once: a line written in parts takes as long as several.
    const auto word = [&](size_t i) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at + i * kWord));
    };
    const __m128i words[] = {word(0), word(1), word(2), word(3)};
    __m128i* const line = reinterpret_cast<__m128i*>(to + at);
    _mm_stream_si128(line, words[0]);
    _mm_stream_si128(line + 1, words[1]);
    _mm_stream_si128(line + 2, words[2]);
    _mm_stream_si128(line + 3, words[3]);
  }
  to += at, from += at, size -= at;
#endif
  std::memcpy(to, from, size);
}

inline void end_past_caches() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace recordkit
