// CRC-32C (Castagnoli), the checksum of the record format, at the speed of memory.
//
// The code path is chosen once, from what the processor supports. All paths give the same result; the tests
// run each.
#pragma once

#include <string_view>
#include <vector>

#include "core/memory/bytes.h"

namespace recordkit {

// The CRC of the concatenation: extend(crc(a), b) == crc(a + b), and crc of nothing is 0.
uint32_t crc32c_extend(uint32_t crc, const uint8_t* data, size_t size);

inline uint32_t crc32c(Bytes data) { return crc32c_extend(0, data.data(), data.size()); }

// Whether the source goes on with what is copied next, so that prefetching beyond the end pays.
enum class Prefetch : bool { none, ahead };

// Copies, and returns the CRC of the copy. The source may be a mapped file and may change meanwhile.
uint32_t crc32c_copy(uint8_t* to, const uint8_t* from, size_t size, Prefetch prefetch);

// The CRC of 8 bytes. Fast, for it is computed for every record's header, and at every byte when salvaging.
uint32_t crc32c_of_u64(uint64_t value);

// crc(a + b) from crc(a), crc(b) and the length of b, in O(log size_b).
uint32_t crc32c_combine(uint32_t crc_a, uint32_t crc_b, uint64_t size_b);

// Files store masked CRCs, because CRCs of data that contains CRCs are weak.
inline constexpr uint32_t kMaskDelta = 0xa282ead8;
inline uint32_t mask_crc(uint32_t crc) { return std::rotr(crc, 15) + kMaskDelta; }
inline uint32_t unmask_crc(uint32_t masked) { return std::rotl(masked - kMaskDelta, 15); }

// The paths this processor can run, best first; the last is always "portable".
std::vector<std::string_view> crc32c_paths();
std::string_view crc32c_path();

// Selects a path for the whole process. False if this processor does not support it.
bool crc32c_use_path(std::string_view name);

}  // namespace recordkit
