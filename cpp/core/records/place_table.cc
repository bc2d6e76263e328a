#include "core/records/place_table.h"

namespace recordkit {

// Where each frame ends, relative to `start`: 4 bytes each, unless the records are huge.
struct PlaceTable::Block {
  uint64_t start = 0;
  Array<uint32_t> near;
  Array<uint64_t> far;

  uint64_t end_of(uint64_t i) const { return near.empty() ? far.data()[i] : near.data()[i]; }
};

PlaceTable::PlaceTable(uint64_t records, uint64_t block_records)
    : records_(records),
      block_records_(block_records),
      blocks_(records / block_records + (records % block_records != 0)),
      table_(std::make_unique<std::atomic<const Block*>[]>(blocks_)) {}

PlaceTable::~PlaceTable() {
  for (uint64_t i = 0; i < blocks_; ++i) delete table_[i].load();
}

uint64_t PlaceTable::records_in(uint64_t block) const {
  return std::min(block_records_, records_ - block * block_records_);
}

bool PlaceTable::fits(uint64_t block, const Packed& packed) const {
  const uint32_t width = packed.width;
  const bool known = width == 0 || width == 1 || width == 2 || width == 4 || width == 8;
  return known && packed.above.size() == width * records_in(block);
}

void PlaceTable::put(uint64_t block, const Packed& packed) {
  const uint64_t count = records_in(block);
  auto made = std::make_unique<Block>();
  made->start = packed.start;
  const uint8_t* above = packed.above.data();
  uint64_t end = 0;
  made->far.reserve(count);
  for (uint64_t i = 0; i < count; ++i, above += packed.width) {
    uint64_t more = 0;
    if (packed.width != 0) std::memcpy(&more, above, packed.width);
    made->far.push(end += packed.least + more);
  }
  if (end <= UINT32_MAX) {
    made->near.reserve(count);
    for (uint64_t i = 0; i < count; ++i) made->near.push(static_cast<uint32_t>(made->far.data()[i]));
    made->far = {};
  }
  const size_t size = sizeof(Block) + count * (end <= UINT32_MAX ? sizeof(uint32_t) : sizeof(uint64_t));
  const Block* none = nullptr;
  if (!table_[block].compare_exchange_strong(none, made.get())) return;  // another thread was faster
  made.release();
  nbytes_ += size;
}

bool PlaceTable::find(uint64_t number, Place& place) const {
  const Block* const block = table_[number / block_records_].load(std::memory_order_acquire);
  if (block == nullptr) return false;
  const uint64_t at = number % block_records_;
  const uint64_t start = at == 0 ? 0 : block->end_of(at - 1);
  place.offset = block->start + start;
  place.size = block->end_of(at) - start;
  return true;
}

}  // namespace recordkit
