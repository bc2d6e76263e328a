// Copies for memory that will not be in the caches when it is next looked at.
#pragma once

#include <algorithm>

#include "core/memory/bytes.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace recordkit {

// Columns of so many bytes are written past the caches, values of so many at least.
constexpr size_t kPastCaches = size_t{2} << 20, kLongValue = 512;

// Copies without fetching what is written over: a line that is only written is otherwise read first, and a
// processor waits for few lines at a time. REQUIRES: end_past_caches before another thread may look
inline void copy_past_caches(uint8_t* to, const uint8_t* from, size_t size) {
#if defined(__x86_64__)
  constexpr size_t kLine = 64, kWord = sizeof(__m128i);
  // Lines that are shared with what stands before and behind are written the usual way.
  const size_t head = std::min(size, (kLine - reinterpret_cast<uintptr_t>(to) % kLine) % kLine);
  std::memcpy(to, from, head);
  size_t at = head;
  for (; at + kLine <= size; at += kLine) {
    // A line in one go, for one that is written in parts takes as long as several.
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
