// Salvage: finds every record of a damaged file that is provably intact, and where the damage is.
//
// Header and payload have a checksum each. A record found by sliding over bytes is accepted if both match: 64
// bits. See docs/format/records.md.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "core/records/framing.h"

namespace recordkit {

struct Found {
  enum class How : uint8_t {
    sound,
    bad_length_crc,  // the length's checksum is damaged; the payload's confirms both
  };
  uint64_t offset;  // of the header
  uint64_t length;  // of the payload
  How how = How::sound;
  bool nested = false;  // inside the payload of a damaged record

  bool operator==(const Found&) const = default;
};

// Bytes [offset, offset + length) that belong to no record.
struct Lost {
  enum class What : uint8_t {
    bad_length,   // a bad header, and everything up to the next record
    bad_payload,  // a whole frame whose payload or checksum is damaged
    torn,         // the file ends inside a record
    zeros,        // nothing but zero bytes
  };
  uint64_t offset;
  uint64_t length;
  What what;
  uint64_t before;  // how many records were found before it

  bool operator==(const Lost&) const = default;
};

struct Salvage {
  std::vector<Found> found;
  std::vector<Lost> lost;
  uint64_t decided = 0;   // everything before this offset is in `found` or `lost`
  uint64_t searched = 0;  // no sound record starts between `decided` and here
};

// A record with a damaged length is distinguished from records inside its payload only if its frame is no
// larger than this. Without a limit, nothing after a damaged header could be decided before the end of the
// file.
inline constexpr uint64_t kNestedReach = uint64_t{16} << 20;

// A view of bytes that are in memory, or that are read a piece at a time.
class ByteWindow {
 public:
  static constexpr uint64_t kPiece = uint64_t{256} << 10;

  // Reads `size` bytes at `offset` into `to`; throws if it cannot. May be called again for the same bytes.
  using Read = std::function<void(uint64_t offset, uint8_t* to, uint64_t size)>;

  explicit ByteWindow(Bytes bytes) : size_(bytes.size()), data_(bytes.data()), end_(bytes.size()) {}
  ByteWindow(uint64_t size, Read read, uint64_t piece = kPiece)
      : size_(size), piece_size_(piece), read_(std::move(read)) {}

  // A second view of the same bytes, with its own position.
  ByteWindow(const ByteWindow& other)
      : size_(other.size_),
        piece_size_(other.piece_size_),
        read_(other.read_),
        data_(other.read_ ? nullptr : other.data_),
        end_(other.read_ ? 0 : other.size_) {}
  ByteWindow& operator=(const ByteWindow&) = delete;

  uint64_t size() const { return size_; }

  // Returns these bytes; they are valid until the next call. REQUIRES: offset + count <= size()
  const uint8_t* at(uint64_t offset, uint64_t count) {
    if (offset < start_ || offset + count > end_) bring(offset, count);
    return data_ + (offset - start_);
  }

 private:
  void bring(uint64_t offset, uint64_t count) {
    const uint64_t size = std::min(std::max(count, piece_size_), size_ - offset);
    piece_.reserve(size);
    end_ = start_ = 0;  // if reading fails, nothing is in memory
    read_(offset, piece_.data(), size);
    data_ = piece_.data();
    start_ = offset;
    end_ = offset + size;
  }

  uint64_t size_, piece_size_ = 0;
  Read read_;
  const uint8_t* data_ = nullptr;
  uint64_t start_ = 0, end_ = 0;  // the range in memory
  Buffer piece_;
};

// `window` is a file, or a part of it followed by `beyond` more bytes. What is decided for a part holds for
// the whole file; the rest needs more bytes. With nothing beyond, everything is decided.
//
// Time is linear in the size of the window, whatever its bytes; memory grows with what is found, plus 0.1% of
// the window.
//
// REQUIRES: window.size() + beyond < 2^64; a part starts where the file starts, or where an earlier part was
// decided
Salvage salvage(const ByteWindow& window, uint64_t beyond = 0, uint64_t nested_reach = kNestedReach);

inline Salvage salvage(Bytes window, uint64_t beyond = 0, uint64_t nested_reach = kNestedReach) {
  return salvage(ByteWindow(window), beyond, nested_reach);
}

}  // namespace recordkit
