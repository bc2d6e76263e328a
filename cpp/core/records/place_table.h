// Where the records of a file are, held so that any of them is found at once.
#pragma once

#include <atomic>
#include <memory>

#include "core/records/header_scan.h"

namespace recordkit {

// The places of all records of a file, filled a block of records at a time as they are asked for: about 4
// bytes a record that is there. Safe to use from many threads.
class PlaceTable {
 public:
  // `block_records` records a block, fewer in the last one. REQUIRES: block_records > 0
  PlaceTable(uint64_t records, uint64_t block_records);
  ~PlaceTable();

  uint64_t records() const { return records_; }
  uint64_t block_records() const { return block_records_; }
  uint64_t blocks() const { return blocks_; }
  size_t nbytes() const { return nbytes_.load(std::memory_order_relaxed); }

  // How many records block number `block` has. REQUIRES: block < blocks()
  uint64_t records_in(uint64_t block) const;

  // A block as an index holds it: where its first frame starts, and what each is longer than the shortest, in
  // `width` bytes each.
  struct Packed {
    uint64_t start;
    uint64_t least;
    uint32_t width;  // 0, 1, 2, 4 or 8
    Bytes above;
  };

  // Whether it has what a block of so many records needs.
  bool fits(uint64_t block, const Packed& packed) const;

  // Takes a block; if it is there already, nothing changes. REQUIRES: block < blocks(), and it fits
  void put(uint64_t block, const Packed& packed);

  // Whether the block of a record is there; if so, sets offset and size of the place.
  // REQUIRES: number < records()
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
