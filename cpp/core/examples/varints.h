// Decodes many consecutive varints, faster than one by one.
//
// Finding the end of a varint and joining its bits have a latency each, and the next one cannot start before
// the end of this one is known. So all ends within 64 bytes are found first.
#pragma once

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "core/examples/wire.h"
#include "core/records/crc32c.h"

namespace recordkit {

// Whether the processor has a fast instruction for joining the bits of a varint. The path of the checksum
// says whether special instructions may be used at all.
inline bool has_quick_pext() {
#if defined(__x86_64__)
  static const bool quick =
      __builtin_cpu_supports("bmi2") && !__builtin_cpu_is("znver1") && !__builtin_cpu_is("znver2");
  return quick && crc32c_path() != "portable";
#else
  return false;
#endif
}

template <bool quick_pext>
[[gnu::always_inline]] inline uint64_t join_varint(uint64_t word) {
#if defined(__x86_64__)
  if constexpr (quick_pext) {
    // Assembler, because an intrinsic would need the whole loop around it compiled for such processors.
    uint64_t joined;
    asm("pext %2, %1, %0" : "=r"(joined) : "r"(word), "r"(~kContinuation));
    return joined;
  }
#endif
  return join_sevens(word);
}

inline constexpr size_t kVarintWindow = 64;
// How many bytes are loaded from the start of a window.
inline constexpr ptrdiff_t kVarintsLoaded = kVarintWindow + 8;

// Bit i is set if byte i of the 64 is the last of a varint.
inline uint64_t varint_ends(const uint8_t* p) {
  uint64_t goes_on = 0;
  for (size_t at = 0; at < kVarintWindow;) {
#if defined(__x86_64__)
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + at));
    goes_on |= static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(bytes))) << at;
    at += 16;
#else
    // The top bits of eight bytes, brought together in the top byte of a product.
    goes_on |= ((load<uint64_t>(p + at) & kContinuation) >> 7) * 0x0102040810204080 >> 56 << at;
    at += 8;
#endif
  }
  return ~goes_on;
}

// Reads the varints of up to eight bytes that end within `size` bytes and within 64, stops at the first
// longer one, and moves `to` past their values. Returns where the next one starts.
//
// REQUIRES: kVarintsLoaded bytes from `p` on may be loaded, and `to` has room for as many values as there are
// bytes
template <bool quick_pext>
inline const uint8_t* read_varints(const uint8_t* p, size_t size, int64_t*& to) {
  uint64_t ends = varint_ends(p);
  if (size < kVarintWindow) ends &= (uint64_t{1} << size) - 1;
  if (ends == ~uint64_t{0}) {
    for (size_t i = 0; i < kVarintWindow; ++i) to[i] = p[i];
    to += kVarintWindow;
    return p + kVarintWindow;
  }
  const uint8_t* from = p;
  for (; ends != 0; ends &= ends - 1) {
    const uint8_t* const next = p + std::countr_zero(ends) + 1;
    const ptrdiff_t bytes = next - from;
    if (bytes > 8) break;
    const uint64_t word = load<uint64_t>(from) & ~uint64_t{0} >> (64 - 8 * bytes);
    *to++ = static_cast<int64_t>(join_varint<quick_pext>(word));
    from = next;
  }
  return from;
}

// Whether this processor can read sixteen varints at once, of up to four bytes each.
bool has_wide_varints();

// Reads varints of up to four bytes that end before `end`, stops at the first longer one or where fewer than
// kVarintWindow bytes may be loaded, and moves `to` past their values. Returns where the next one starts.
//
// REQUIRES: has_wide_varints(), and `to` has room for as many values as there are bytes, plus kMoreStored
inline constexpr size_t kMoreStored = 15;
const uint8_t* read_varints_wide(const uint8_t* p, const uint8_t* end, const uint8_t* readable_end,
                                 int64_t*& to);

}  // namespace recordkit
