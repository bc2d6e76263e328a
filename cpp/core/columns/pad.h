// Rows of differing length laid into a rectangle.
#pragma once

#include <span>

#include "core/memory/array.h"

namespace recordkit {

// Rows as wide as the longest of them, all others filled up with `fill` over and over.
//
// Row i is `values[starts[i] * item, starts[i + 1] * item)`, where `item` is fill.size(), the bytes of a
// value. Throws std::bad_alloc where that is more than can be had.
//
// REQUIRES: starts is not empty and does not fall, its last * item <= values.size(), and fill is not empty
Buffer pad_rows(std::span<const uint8_t> values, std::span<const int64_t> starts,
                std::span<const uint8_t> fill);

}  // namespace recordkit
