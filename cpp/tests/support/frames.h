// Files in memory: records whole, damaged and made up.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/records/framing.h"
#include "support/choices.h"

namespace recordkit {

// "0a 01 ff" as three bytes.
std::string unhex(std::string_view text);

// A header whose checksum is right, whatever follows it.
std::string header(uint64_t length);

std::string frame(std::string_view payload);

// The five records of SCENARIOS.md: "payload-000" to "payload-004", 27 bytes each.
std::string five_records();

// `file` with one bit of one byte turned over.
std::string flipped(std::string file, size_t byte, int bit = 0);

// A file of sound frames, frames in frames, damaged and torn frames, lengths that lie under a right checksum,
// noise and zeros. A fuzzer that flips bits would never get past the first checksum; here it chooses what to
// build.
std::string hostile_file(Choices& choices, int depth = 2);

// Bytes at the very end of their memory, so that the sanitizer sees any step beyond.
class Exact {
 public:
  explicit Exact(std::string_view bytes);
  operator Bytes() const { return {data_.get(), size_}; }

 private:
  std::unique_ptr<uint8_t[]> data_;
  size_t size_;
};

// The payloads as framed records in a buffer of ours.
Chunk framed_chunk(const std::vector<std::string>& payloads);

// What may be loaded behind the payloads. The decoder takes its fast ways only where whole words can be, or
// where all entries that it expects could be as long as they like.
enum class Behind { plenty, padding, nothing, pretend_nothing_readable };

// The payloads back to back without frames: all that decoding looks at.
Chunk bare_chunk(const std::vector<std::string>& payloads, Behind behind);

}  // namespace recordkit
