// Files in memory, with intact and damaged records.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/records/framing.h"
#include "support/choices.h"

namespace recordkit {

// "0a 01 ff" as three bytes.
std::string unhex(std::string_view text);

// A header with a valid checksum.
std::string header(uint64_t length);

std::string frame(std::string_view payload);

// Five records: "payload-000" to "payload-004", 27 bytes each.
std::string five_records();

// `file` with one bit flipped.
std::string flipped(std::string file, size_t byte, int bit = 0);

// A file of sound frames, frames in frames, damaged and torn frames, wrong lengths with valid checksums,
// noise and zeros. A fuzzer that flips bits would never get past the first checksum; here it chooses what to
// build.
std::string hostile_file(Choices& choices, int depth = 2);

// Bytes at the very end of an allocation, so that the sanitizer catches any access past them.
class Exact {
 public:
  explicit Exact(std::string_view bytes);
  operator Bytes() const { return {data_.get(), size_}; }

 private:
  std::unique_ptr<uint8_t[]> data_;
  size_t size_;
};

// The payloads as framed records in a padded buffer.
Chunk framed_chunk(const std::vector<std::string>& payloads);

// How much may be loaded past the payloads. The decoder takes its fast paths only if whole words may be
// loaded, or expected entries of any length.
enum class Behind { plenty, padding, nothing, pretend_nothing_readable };

// The payloads back to back, without frames, which decoding ignores.
Chunk bare_chunk(const std::vector<std::string>& payloads, Behind behind);

}  // namespace recordkit
