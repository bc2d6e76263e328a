// Rows of differing length laid into a rectangle.
#pragma once

#include <span>

#include "core/bytes.h"

namespace recordkit {

// Copies rows of values behind each other into rows of `width` bytes, and fills up each with `fill` over and
// over.
//
// Row i is `values[starts[i] * item, starts[i + 1] * item)`, where `item` is fill.size(), the bytes of a
// value.
//
// REQUIRES: starts is not empty and does not fall, its last * item <= values.size(), no row is longer than
// `width`, width is a multiple of item, and rectangle.size() == (starts.size() - 1) * width
void pad_rows(std::span<const uint8_t> values, std::span<const int64_t> starts, std::span<const uint8_t> fill,
              size_t width, std::span<uint8_t> rectangle);

}  // namespace recordkit
