// Rows and runs of values, swapped and gathered.
#pragma once

#include <span>

#include "core/memory/bytes.h"

namespace recordkit {

// Swaps each row of `rows` with its slot of `buffer`, in order: a row put into a slot is what the next row
// with the same slot gets back. REQUIRES: width > 0, rows.size() == slots.size() * width, and (slot + 1) *
// width <= buffer.size() for all
void swap_rows(std::span<uint8_t> buffer, std::span<uint8_t> rows, size_t width,
               std::span<const int64_t> slots);

// Concatenates runs of values: run i starts at `values[starts[i] * item]` and goes to `out[offsets[i] * item,
// offsets[i + 1] * item)`. REQUIRES: offsets has one more than starts and does not fall, and all runs are
// within values and out
void pick_runs(Bytes values, std::span<const int64_t> starts, std::span<const int64_t> offsets, size_t item,
               std::span<uint8_t> out);

}  // namespace recordkit
