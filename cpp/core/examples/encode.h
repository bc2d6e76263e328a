// Encoding: columns to framed records, one tf.train.Example or SequenceExample per row.
//
// Writes only what every reader agrees on: name before value, both present; one kind; one packed chunk;
// unique names; features in the order of the columns.
#pragma once

#include <string>
#include <vector>

#include "core/examples/example.h"
#include "core/records/framing.h"

namespace recordkit {

// One field of many rows, in the caller's memory. The counterpart of decode's Column.
struct SourceColumn {
  std::string name;
  Kind kind;
  bool steps;     // a feature list
  int64_t count;  // values per row (or step); -1: see value_offsets
  const int64_t* ints = nullptr;
  const float* floats = nullptr;
  const uint8_t* bytes = nullptr;
  const int64_t* byte_offsets = nullptr;  // value -> bytes
  std::vector<Bytes> views;               // or each byte string where it is
  bool has_views = false;
  const int64_t* value_offsets = nullptr;  // row (or step) -> values
  const int64_t* step_offsets = nullptr;   // row -> steps
  const State* states = nullptr;  // null: every row has it. missing and no_kind leave the feature out.
  // How many elements the pointers point to; checked before anything is read.
  size_t value_total = 0, byte_total = 0, value_offset_total = 0, step_offset_total = 0;

  Bytes byte_string(int64_t i) const {
    if (has_views) return views[static_cast<size_t>(i)];
    return {bytes + byte_offsets[i], static_cast<size_t>(byte_offsets[i + 1] - byte_offsets[i])};
  }
};

// Protobuf's limit for one message.
inline constexpr uint64_t kMaxPayload = (uint64_t{1} << 31) - 1;

struct EncodeResult {
  enum class Why : uint8_t { none, bad_offsets, payload_too_large };
  Why fault = Why::none;
  size_t at = 0;  // the column for bad_offsets, the row for payload_too_large
  Chunk chunk;
};

EncodeResult encode(const std::vector<SourceColumn>& columns, size_t rows, bool sequence);

}  // namespace recordkit
