// Turns blocks of coefficients into pixels of the requested size.
//
// The inverse DCT, the upsampling of colours and the resizing are all sums of products along one axis after
// the other. So one matrix for each row and one for each column of blocks does all three, and pixels that
// would be discarded are never computed.
#pragma once

#include <span>

#include "core/pictures/jpeg_huffman.h"
#include "core/pictures/resize.h"

namespace recordkit {

inline constexpr size_t kBlockSide = 8;
inline constexpr size_t kMostStrip = 24;  // pixels a side that a block contributes to, if nothing is enlarged

// Which pixels each row, or each column, of blocks of a component contributes to, and how.
struct Strips {
  struct Strip {
    uint32_t first, count;
  };
  std::vector<Strip> blocks;  // if a block contributes to none, `first` is the next block's
  size_t stride;              // pixels each matrix has room for; whole vectors across
  std::vector<float> matrices;
};

enum class Direction : uint8_t { down, across };

// How `samples` of a component, stored in `blocks`, contribute to the pixels of an axis. `is_halved`: there
// are half as many samples as pixels; `is_smooth`: interpolate those between as libjpeg does.
Strips strips_of(const Axis& axis, Direction direction, size_t samples, size_t blocks, bool is_halved,
                 bool is_smooth);

// A row of blocks of one component, and where to add it.
struct BlockRow {
  std::span<const Strips::Strip> columns;
  const float* across;  // the matrices of the columns
  size_t stride;
  const int16_t* blocks;
  const uint8_t* extents;      // of each: how many frequencies either way are not zero
  const float* steps;          // quantization steps
  const float* down;           // the matrix of the row
  std::span<float* const> to;  // rows of pixels, with room for kBlockSide more
};

// All paths give the same sums. `is_portable`: do without AVX2.
void add_blocks(const BlockRow& row, bool is_portable);

}  // namespace recordkit
