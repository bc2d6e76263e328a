// A compact table of where the records of a file are.
#pragma once

#include <atomic>
#include <memory>

#include "core/records/header_scan.h"

namespace recordkit {

// The places of all records of a file, filled in blocks on demand. Takes about 4 bytes per record.
// Thread-safe.
class PlaceTable {
 public:
  // A block has `block_records` records, the last one fewer. REQUIRES: block_records > 0
  PlaceTable(uint64_t records, uint64_t block_records);
  ~PlaceTable();

  uint64_t records() const { return records_; }
  uint64_t block_records() const { return block_records_; }
  uint64_t blocks() const { return blocks_; }
  size_t nbytes() const { return nbytes_.load(std::memory_order_relaxed); }

  // How many records block number `block` has. REQUIRES: block < blocks()
  uint64_t records_in(uint64_t block) const;

  // A block as stored in an index: the offset of its first frame, the smallest frame size, and for each frame
  // how much larger it is, in `width` bytes.
  struct Packed {
    uint64_t start;
    uint64_t least;
    uint32_t width;  // 0, 1, 2, 4 or 8
    Bytes above;
  };

  // Whether `packed` has the right size for this block.
  bool fits(uint64_t block, const Packed& packed) const;

  // Stores a block, unless it is there already. REQUIRES: block < blocks(), and it fits
  void put(uint64_t block, const Packed& packed);

  // Sets offset and size of the place. False if the block of this record is not stored yet. REQUIRES: number
  // < records()
  bool find(uint64_t number, Place& place) const;

 private:
  struct Block;

  uint64_t records_;
  uint64_t block_records_;
  uint64_t blocks_;
  std::unique_ptr<std::atomic<const Block*>[]> table_;
  std::atomic<size_t> nbytes_ = 0;
};

}  // namespace recordkit
