#include "core/records/crc32c.h"

#include <array>
#include <atomic>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#define RECORDKIT_X86 1
#endif

namespace recordkit {
namespace {

// Polynomials are bit-reflected, as the format has them: the top bit is the coefficient of x^0.
constexpr uint32_t kPolynomial = 0x82f63b78;
constexpr uint32_t kOne = 0x80000000;

constexpr uint32_t times_x(uint32_t p) { return (p & 1) ? (p >> 1) ^ kPolynomial : p >> 1; }

// The product of two polynomials, modulo kPolynomial.
constexpr uint32_t multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = kOne; bit != 0; bit >>= 1) {
    if (a & bit) product ^= b;
    b = times_x(b);
  }
  return product;
}

// x^(2^k) for every k a 64-bit count of bits can need.
constexpr auto kPowers = [] {
  std::array<uint32_t, 67> powers{};
  powers[0] = kOne >> 1;
  for (size_t k = 1; k < powers.size(); ++k) powers[k] = multiply(powers[k - 1], powers[k - 1]);
  return powers;
}();

constexpr uint32_t x_to_the(uint64_t exponent, size_t first = 0) {
  uint32_t power = kOne;
  for (size_t k = first; exponent != 0; ++k, exponent >>= 1)
    if (exponent & 1) power = multiply(power, kPowers[k]);
  return power;
}

constexpr auto kTables = [] {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = times_x(crc);
    tables[0][byte] = crc;
  }
  for (size_t t = 1; t < 8; ++t)
    for (size_t byte = 0; byte < 256; ++byte)
      tables[t][byte] = (tables[t - 1][byte] >> 8) ^ tables[0][tables[t - 1][byte] & 0xff];
  return tables;
}();

uint32_t step_u64_portable(uint32_t state, uint64_t word) {
  word ^= state;
  uint32_t next = 0;
  for (size_t i = 0; i < 8; ++i) next ^= kTables[7 - i][(word >> (8 * i)) & 0xff];
  return next;
}

uint32_t extend_portable(uint32_t crc, const uint8_t* data, size_t size) {
  uint32_t state = ~crc;
  for (; size >= 8; size -= 8, data += 8) state = step_u64_portable(state, load<uint64_t>(data));
  for (; size > 0; --size, ++data) state = (state >> 8) ^ kTables[0][(state ^ *data) & 0xff];
  return ~state;
}

uint32_t u64_portable(uint64_t value) { return ~step_u64_portable(~uint32_t{0}, value); }

#if RECORDKIT_X86

// Folding: a 128-bit lane is carried forward over `bits` of message by multiplying its two halves with
// constants congruent to x^(bits + 64) and x^bits. The product of two reflected numbers is off by one bit,
// and a 32-bit constant in the low half of a register represents x^32 times itself: hence the odd exponents.
struct Fold {
  int64_t low, high;
  constexpr explicit Fold(uint64_t bits) : low(x_to_the(bits + 31)), high(x_to_the(bits - 33)) {}
};

#define RECORDKIT_TARGET_SSE __attribute__((target("sse4.2,pclmul")))
#define RECORDKIT_TARGET_AVX __attribute__((target("avx2,sse4.2,pclmul,vpclmulqdq")))
#define RECORDKIT_TARGET_AVX512 \
  __attribute__((target("avx512f,avx512bw,avx512vl,bmi2,sse4.2,pclmul,vpclmulqdq")))

// The last few bytes, and short data: one crc32 instruction per word.
RECORDKIT_TARGET_SSE inline uint32_t words_sse(uint32_t state, const uint8_t* data, size_t size) {
  uint64_t wide = state;
  for (; size >= 8; size -= 8, data += 8) wide = _mm_crc32_u64(wide, load<uint64_t>(data));
  state = static_cast<uint32_t>(wide);
  if (size & 4) {
    state = _mm_crc32_u32(state, load<uint32_t>(data));
    data += 4;
  }
  if (size & 2) {
    state = _mm_crc32_u16(state, load<uint16_t>(data));
    data += 2;
  }
  if (size & 1) state = _mm_crc32_u8(state, *data);
  return state;
}

RECORDKIT_TARGET_SSE inline __m128i load_lane(const uint8_t* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

RECORDKIT_TARGET_SSE inline __m128i fold_lane(__m128i lane, __m128i by, __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(lane, by, 0x00);
  const __m128i high = _mm_clmulepi64_si128(lane, by, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

// A lane is congruent to the message it represents, so both have the same CRC.
RECORDKIT_TARGET_SSE inline uint32_t reduce_lane(__m128i lane) {
  const uint64_t first = _mm_crc32_u64(0, static_cast<uint64_t>(_mm_cvtsi128_si64(lane)));
  return static_cast<uint32_t>(_mm_crc32_u64(first, static_cast<uint64_t>(_mm_extract_epi64(lane, 1))));
}

RECORDKIT_TARGET_SSE uint32_t extend_sse42(uint32_t crc, const uint8_t* data, size_t size) {
  uint32_t state = ~crc;
  if (size >= 128) {
    // The odd bytes come first, so that nothing is left after the fold.
    const size_t odd = size % 16;
    state = words_sse(state, data, odd);
    data += odd;
    size -= odd;

    constexpr Fold kFar(512), kNear(128);
    const __m128i far = _mm_set_epi64x(kFar.high, kFar.low);
    const __m128i near = _mm_set_epi64x(kNear.high, kNear.low);
    __m128i a = _mm_xor_si128(load_lane(data), _mm_cvtsi32_si128(static_cast<int>(state)));
    __m128i b = load_lane(data + 16), c = load_lane(data + 32), d = load_lane(data + 48);
    for (data += 64, size -= 64; size >= 64; data += 64, size -= 64) {
      a = fold_lane(a, far, load_lane(data));
      b = fold_lane(b, far, load_lane(data + 16));
      c = fold_lane(c, far, load_lane(data + 32));
      d = fold_lane(d, far, load_lane(data + 48));
    }
    __m128i lane = fold_lane(fold_lane(fold_lane(a, near, b), near, c), near, d);
    for (; size > 0; data += 16, size -= 16) lane = fold_lane(lane, near, load_lane(data));
    return ~reduce_lane(lane);
  }
  return ~words_sse(state, data, size);
}

RECORDKIT_TARGET_AVX inline __m256i load_pair(const uint8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

RECORDKIT_TARGET_AVX inline __m256i fold_pair(__m256i pair, __m256i by, __m256i next) {
  const __m256i low = _mm256_clmulepi64_epi128(pair, by, 0x00);
  const __m256i high = _mm256_clmulepi64_epi128(pair, by, 0x11);
  return _mm256_xor_si256(_mm256_xor_si256(low, high), next);
}

RECORDKIT_TARGET_AVX inline __m256i spread(Fold fold) {
  return _mm256_set_epi64x(fold.high, fold.low, fold.high, fold.low);
}

// Four pairs of lanes, 32 bytes apart, into one lane.
RECORDKIT_TARGET_AVX inline __m128i join_pairs(__m256i a, __m256i b, __m256i c, __m256i d) {
  constexpr Fold kNear(256), kTwo(512), kHalf(128);
  const __m256i pair =
      fold_pair(fold_pair(a, spread(kNear), b), spread(kTwo), fold_pair(c, spread(kNear), d));
  return fold_lane(_mm256_castsi256_si128(pair), _mm_set_epi64x(kHalf.high, kHalf.low),
                   _mm256_extracti128_si256(pair, 1));
}

// The product of a state and a power of x, which is off by 33 bits, as with Fold.
RECORDKIT_TARGET_SSE inline uint32_t shift_state(uint32_t state, uint32_t power) {
  const __m128i product = _mm_clmulepi64_si128(_mm_cvtsi32_si128(static_cast<int>(state)),
                                               _mm_cvtsi32_si128(static_cast<int>(power)), 0);
  return static_cast<uint32_t>(_mm_crc32_u64(0, static_cast<uint64_t>(_mm_cvtsi128_si64(product))));
}

// The state after `bytes` more zero bytes.
template <uint64_t bytes>
RECORDKIT_TARGET_SSE inline uint32_t shift_state(uint32_t state) {
  constexpr uint32_t kPower = x_to_the(8 * bytes - 33);
  return shift_state(state, kPower);
}

// A block is split between two execution units with separate ports: folding takes 128 bytes per turn, and
// three streams of crc32 instructions take 40 each.
//
//     | folded: turns * 128 | stream: turns * 40 | stream | stream |
constexpr uint64_t kFolded = 128, kStream = 40;
constexpr uint64_t block_size(uint64_t turns) { return turns * (kFolded + 3 * kStream); }

template <uint64_t turns>
RECORDKIT_TARGET_AVX uint32_t block_avx2(uint32_t state, const uint8_t* data) {
  constexpr Fold kFar(8 * kFolded);
  const __m256i far = spread(kFar);
  const uint8_t* folded = data;
  const uint8_t* stream = data + turns * kFolded;
  constexpr uint64_t kStride = turns * kStream;
  __m256i a = load_pair(folded), b = load_pair(folded + 32), c = load_pair(folded + 64),
          d = load_pair(folded + 96);
  uint64_t x = 0, y = 0, z = 0;
  const auto step_streams = [&]() __attribute__((target("sse4.2"), always_inline)) {
    for (uint64_t i = 0; i < kStream; i += 8) {
      x = _mm_crc32_u64(x, load<uint64_t>(stream + i));
      y = _mm_crc32_u64(y, load<uint64_t>(stream + kStride + i));
      z = _mm_crc32_u64(z, load<uint64_t>(stream + 2 * kStride + i));
    }
    stream += kStream;
  };
  step_streams();
  for (uint64_t turn = 1; turn < turns; ++turn) {
    folded += kFolded;
    a = fold_pair(a, far, load_pair(folded));
    b = fold_pair(b, far, load_pair(folded + 32));
    c = fold_pair(c, far, load_pair(folded + 64));
    d = fold_pair(d, far, load_pair(folded + 96));
    step_streams();
  }
  // Nothing above depends on `state`, so that a block can start before the one in front of it is done.
  return shift_state<block_size(turns)>(state) ^
         shift_state<3 * kStride>(reduce_lane(join_pairs(a, b, c, d))) ^
         shift_state<2 * kStride>(static_cast<uint32_t>(x)) ^ shift_state<kStride>(static_cast<uint32_t>(y)) ^
         static_cast<uint32_t>(z);
}

RECORDKIT_TARGET_AVX uint32_t extend_avx2(uint32_t crc, const uint8_t* data, size_t size) {
  if (size < 256) return extend_sse42(crc, data, size);

  uint32_t state = ~crc;
  for (; size >= block_size(8); data += block_size(8), size -= block_size(8))
    state = block_avx2<8>(state, data);
  if (size >= block_size(4)) {
    state = block_avx2<4>(state, data);
    data += block_size(4);
    size -= block_size(4);
  }
  if (size < 256) {
    // Compilers omit this before a tail call, and on many processors the SSE instructions there would then
    // take ten times as long.
    _mm256_zeroupper();
    return extend_sse42(~state, data, size);
  }

  const size_t odd = size % 32;
  state = words_sse(state, data, odd);
  data += odd;
  size -= odd;
  constexpr Fold kFar(1024), kNear(256);
  const __m256i far = spread(kFar);
  const __m256i first = _mm256_zextsi128_si256(_mm_cvtsi32_si128(static_cast<int>(state)));
  __m256i a = _mm256_xor_si256(load_pair(data), first);
  __m256i b = load_pair(data + 32), c = load_pair(data + 64), d = load_pair(data + 96);
  for (data += 128, size -= 128; size >= 128; data += 128, size -= 128) {
    a = fold_pair(a, far, load_pair(data));
    b = fold_pair(b, far, load_pair(data + 32));
    c = fold_pair(c, far, load_pair(data + 64));
    d = fold_pair(d, far, load_pair(data + 96));
  }
  // 0 to 3 pairs of lanes are left: the earliest of the four move on over them.
  const __m256i near = spread(kNear);
  for (; size > 0; data += 32, size -= 32) {
    const __m256i next = load_pair(data);
    b = fold_pair(a, near, b);
    a = b;
    b = c;
    c = d;
    d = next;
  }
  return ~reduce_lane(join_pairs(a, b, c, d));
}

RECORDKIT_TARGET_AVX512 inline __m512i spread_wide(Fold fold) {
  return _mm512_broadcast_i32x4(_mm_set_epi64x(fold.high, fold.low));
}

RECORDKIT_TARGET_AVX512 inline __m512i fold_four(__m512i lanes, __m512i by, __m512i next) {
  constexpr int kXorAll = 0x96;
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(lanes, by, 0x00),
                                   _mm512_clmulepi64_epi128(lanes, by, 0x11), next, kXorAll);
}

// Moves a state back over that many bytes, as shift_state moves it forward. x to the kOrder is 1.
constexpr auto kBack = [] {
  constexpr uint64_t kOrder = (uint64_t{1} << 31) - 1;
  constexpr uint32_t kOneByte = x_to_the(kOrder - 8);
  std::array<uint32_t, 256> powers{};
  powers[0] = x_to_the(kOrder - 33);
  for (size_t bytes = 1; bytes < powers.size(); ++bytes)
    powers[bytes] = multiply(powers[bytes - 1], kOneByte);
  return powers;
}();

// Processes whole cache lines, from the first line of the data to its last, with zeros around the data. The
// initial state makes up for the zeros before it; moving the final state back, for those after it. So lengths
// that differ from record to record cause no mispredicted branches. The copy is what was checksummed: each
// byte is loaded once.
template <bool copies, Prefetch prefetch = Prefetch::none>
RECORDKIT_TARGET_AVX512 inline uint32_t lines_avx512(uint32_t crc, const uint8_t* data, size_t size,
                                                     [[maybe_unused]] uint8_t* to) {
  constexpr size_t kLine = 64, kBlock = 2 * kLine;
  const size_t before = reinterpret_cast<uintptr_t>(data) % kLine, end = before + size;
  const size_t last = (end - 1) / kBlock * kBlock;  // start of the last block
  const uintptr_t start = reinterpret_cast<uintptr_t>(data) - before;
  const uintptr_t target = reinterpret_cast<uintptr_t>(to) - before;
  // Hardware prefetching stops at the end of a page, and maps have small pages. Prefetching here saves a
  // fifth of the time it takes to read and check a file.
  const auto call_ahead = [&](size_t at) __attribute__((always_inline)) {
    constexpr size_t kAhead = 8 << 10;
    if constexpr (prefetch == Prefetch::ahead)
      __builtin_prefetch(reinterpret_cast<const void*>(start + at + kAhead));
  };
  const auto line = [&](size_t at) __attribute__((target("avx512f"), always_inline)) {
    call_ahead(at);
    __m512i found = _mm512_load_si512(reinterpret_cast<const void*>(start + at));
    if constexpr (copies) {
      asm volatile("" : "+v"(found));  // keeps it from being loaded again
      _mm512_storeu_si512(reinterpret_cast<void*>(target + at), found);
    }
    return found;
  };
  // Masked bytes are not accessed.
  const auto line_until_end = [&](size_t at, uint64_t mask = ~uint64_t{0}) __attribute__((
                                  target("avx512f,avx512bw,bmi2"), always_inline)) {
    call_ahead(at);
    const size_t left = end > at ? end - at : 0;
    mask &= _bzhi_u64(~uint64_t{0}, static_cast<uint32_t>(left < kLine ? left : kLine));
    __m512i found = _mm512_maskz_loadu_epi8(mask, reinterpret_cast<const void*>(start + at));
    if constexpr (copies) {
      asm volatile("" : "+v"(found));
      _mm512_mask_storeu_epi8(reinterpret_cast<void*>(target + at), mask, found);
    }
    return found;
  };
  const auto state = static_cast<int>(shift_state(~crc, kBack[before]));
  __m512i a = _mm512_xor_si512(line_until_end(0, ~uint64_t{0} << before),
                               _mm512_zextsi128_si512(_mm_cvtsi32_si128(state)));
  __m512i b = line_until_end(kLine);
  constexpr Fold kFar(8 * kBlock), kNear(8 * kLine);
  const __m512i far = spread_wide(kFar), near = spread_wide(kNear);
  if (last != 0) {
    for (size_t at = kBlock; at < last; at += kBlock) {
      a = fold_four(a, far, line(at));
      b = fold_four(b, far, line(at + kLine));
    }
    a = fold_four(a, far, line_until_end(last));
    b = fold_four(b, far, line_until_end(last + kLine));
  }
  const __m512i lanes = fold_four(a, near, b);
  // All lanes but the last move on to the last at once.
  constexpr Fold kThree(384), kTwo(256), kNext(128);
  const __m512i on =
      _mm512_set_epi64(0, 0, kNext.high, kNext.low, kTwo.high, kTwo.low, kThree.high, kThree.low);
  const __m512i moved = fold_four(lanes, on, _mm512_maskz_mov_epi64(0xc0, lanes));
  const __m256i two = _mm256_xor_si256(_mm512_castsi512_si256(moved), _mm512_extracti64x4_epi64(moved, 1));
  const __m128i lane = _mm_xor_si128(_mm256_castsi256_si128(two), _mm256_extracti128_si256(two, 1));
  return ~shift_state(reduce_lane(lane), kBack[last + kBlock - end]);
}

constexpr size_t kShort = 128;

RECORDKIT_TARGET_AVX512 uint32_t extend_avx512(uint32_t crc, const uint8_t* data, size_t size) {
  return size < kShort ? ~words_sse(~crc, data, size) : lines_avx512<false>(crc, data, size, nullptr);
}

template <Prefetch prefetch>
RECORDKIT_TARGET_AVX512 uint32_t copy_avx512(uint8_t* to, const uint8_t* from, size_t size) {
  if (size >= kShort) return lines_avx512<true, prefetch>(0, from, size, to);
  std::memcpy(to, from, size);
  return ~words_sse(~uint32_t{0}, to, size);
}

RECORDKIT_TARGET_SSE uint32_t u64_sse42(uint64_t value) {
  return ~static_cast<uint32_t>(_mm_crc32_u64(~uint32_t{0}, value));
}

#endif

// In small pieces, which are then still in the L1 cache.
template <auto extend>
uint32_t copy_first(uint8_t* to, const uint8_t* from, size_t size) {
  constexpr size_t kLittle = 4096;
  uint32_t crc = 0;
  for (size_t done = 0; done < size; done += kLittle) {
    const size_t some = size - done < kLittle ? size - done : kLittle;
    std::memcpy(to + done, from + done, some);
    crc = extend(crc, to + done, some);
  }
  return crc;
}

struct Path {
  std::string_view name;
  uint32_t (*extend)(uint32_t, const uint8_t*, size_t);
  uint32_t (*copy)(uint8_t*, const uint8_t*, size_t);
  uint32_t (*copy_before_next)(uint8_t*, const uint8_t*, size_t);
  uint32_t (*of_u64)(uint64_t);
  bool (*runs_here)();
};

// Best first. The last runs anywhere.
constexpr Path kPaths[] = {
#if RECORDKIT_X86
    {"avx512", extend_avx512, copy_avx512<Prefetch::none>, copy_avx512<Prefetch::ahead>, u64_sse42,
     [] {
       return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
              __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2") &&
              __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("sse4.2") &&
              __builtin_cpu_supports("pclmul");
     }},
    {"avx2", extend_avx2, copy_first<extend_avx2>, copy_first<extend_avx2>, u64_sse42,
     [] {
       return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("vpclmulqdq") &&
              __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
     }},
    {"sse4.2", extend_sse42, copy_first<extend_sse42>, copy_first<extend_sse42>, u64_sse42,
     [] { return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul"); }},
#endif
    {"portable", extend_portable, copy_first<extend_portable>, copy_first<extend_portable>, u64_portable,
     [] { return true; }},
};

const Path* best_path() {
  for (const Path& path : kPaths)
    if (path.runs_here()) return &path;
  return &kPaths[std::size(kPaths) - 1];
}

std::atomic<const Path*>& chosen() {
  static std::atomic<const Path*> path = best_path();
  return path;
}

inline const Path& current() { return *chosen().load(std::memory_order_relaxed); }

}  // namespace

uint32_t crc32c_extend(uint32_t crc, const uint8_t* data, size_t size) {
  return current().extend(crc, data, size);
}

uint32_t crc32c_copy(uint8_t* to, const uint8_t* from, size_t size, Prefetch prefetch) {
  const Path& path = current();
  return (prefetch == Prefetch::ahead ? path.copy_before_next : path.copy)(to, from, size);
}

uint32_t crc32c_of_u64(uint64_t value) { return current().of_u64(value); }

uint32_t crc32c_combine(uint32_t crc_a, uint32_t crc_b, uint64_t size_b) {
  // Eight bits per byte: start from x^(2^3).
  return multiply(x_to_the(size_b, 3), crc_a) ^ crc_b;
}

std::vector<std::string_view> crc32c_paths() {
  std::vector<std::string_view> names;
  for (const Path& path : kPaths)
    if (path.runs_here()) names.push_back(path.name);
  return names;
}

std::string_view crc32c_path() { return current().name; }

bool crc32c_use_path(std::string_view name) {
  for (const Path& path : kPaths) {
    if (path.name == name && path.runs_here()) {
      chosen().store(&path, std::memory_order_relaxed);
      return true;
    }
  }
  return false;
}

}  // namespace recordkit
