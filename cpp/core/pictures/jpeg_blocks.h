// Blocks of JPEGs made pixels of the size that is asked for.
//
// Making pixels of a block's waves, giving colours as many pixels as brightness, and resizing are sums of
// products, along one axis after the other. So one matrix for each row and one for each column of blocks does
// all three, and the pixels that would be thrown away again are never made.
#pragma once

#include <span>

#include "core/pictures/jpeg_huffman.h"
#include "core/pictures/resize.h"

namespace recordkit {

inline constexpr size_t kBlockSide = 8;
inline constexpr size_t kMostStrip = 24;  // pixels a side that a block is a part of, if none is made larger

// What each row, or each column, of blocks of a component is a part of: so many pixels, and how.
struct Strips {
  struct Strip {
    uint32_t first, count;
  };
  std::vector<Strip> blocks;  // where a block has no part, the first is the next block's
  size_t stride;              // pixels that each matrix has room for; whole vectors of them across
  std::vector<float> matrices;
};

enum class Direction : uint8_t { down, across };

// How `samples` of a component that stand in `blocks` make up the pixels of an axis. `is_halved`: there are
// half as many as pixels; `is_smooth`: those between are then made as libjpeg does, of the two next to them.
Strips strips_of(const Axis& axis, Direction direction, size_t samples, size_t blocks, bool is_halved,
                 bool is_smooth);

// A row of blocks of one component, and what to add it to.
struct BlockRow {
  std::span<const Strips::Strip> columns;
  const float* across;  // the matrices of the columns
  size_t stride;
  const int16_t* blocks;
  const uint8_t* extents;      // of each: waves either way that are not zero
  const float* steps;          // that coefficients are multiples of
  const float* down;           // the matrix of the row
  std::span<float* const> to;  // rows of pixels, with room for kBlockSide more
};

// All paths give the same sums; `is_portable` is for processors without AVX2, and for tests.
void add_blocks(const BlockRow& row, bool is_portable);

}  // namespace recordkit
