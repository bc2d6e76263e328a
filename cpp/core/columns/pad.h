// Padding: ragged rows to a rectangle.
#pragma once

#include <span>

#include "core/memory/array.h"

namespace recordkit {

// Returns all rows at the length of the longest, padded with copies of `fill`.
//
// Row i is `values[starts[i] * item, starts[i + 1] * item)`, where `item` is fill.size(), the size of a
// value. Throws std::bad_alloc if the result is too large.
//
// REQUIRES: starts is not empty and does not fall, its last * item <= values.size(), and fill is not empty
Buffer pad_rows(std::span<const uint8_t> values, std::span<const int64_t> starts,
                std::span<const uint8_t> fill);

}  // namespace recordkit
