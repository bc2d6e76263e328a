#include "core/encode.h"

namespace recordkit {
namespace {

constexpr size_t kRoom =
    64;  // more than all tags and lengths around one value, and a word stored past its end

constexpr uint8_t tag_of(Kind kind) { return static_cast<uint8_t>(static_cast<int>(kind) << 3 | 2); }

// Offsets must start inside, never fall, and end inside.
bool offsets_fit(const int64_t* offsets, size_t count, size_t total) {
  if (offsets[0] < 0) return false;
  for (size_t i = 0; i < count; ++i)
    if (offsets[i + 1] < offsets[i]) return false;
  return static_cast<uint64_t>(offsets[count]) <= total;
}

bool fits(const SourceColumn& column, size_t rows) {
  size_t groups = rows;
  if (column.steps) {
    if (column.step_offset_total != rows + 1) return false;
    // One level down, the groups are steps.
    groups = column.count >= 0 ? SIZE_MAX : column.value_offset_total - 1;
    if (column.count < 0 && column.value_offset_total == 0) return false;
    if (groups == SIZE_MAX) groups = static_cast<size_t>(std::max<int64_t>(column.step_offsets[rows], 0));
    if (!offsets_fit(column.step_offsets, rows, groups)) return false;
  }
  size_t values;
  if (column.count >= 0) {
    if (column.count != 0 && groups > column.value_total / static_cast<size_t>(column.count)) return false;
    values = groups * static_cast<size_t>(column.count);
  } else {
    if (column.value_offset_total != groups + 1 ||
        !offsets_fit(column.value_offsets, groups, column.value_total))
      return false;
    values = static_cast<size_t>(column.value_offsets[groups]);
  }
  return column.kind != Kind::bytes || offsets_fit(column.byte_offsets, values, column.byte_total);
}

class Encoder {
 public:
  Encoder(const std::vector<SourceColumn>& columns, size_t rows) : columns_(columns) {
    for (const SourceColumn& column : columns) {
      // Everything of a short entry up to the value, with the lengths still to be set.
      std::string start{'\x0a', '\0', '\x0a', static_cast<char>(column.name.size())};
      start += column.name;
      start.resize((start.size() + 15) / 16 * 16);
      starts_.push_back(std::move(start));
    }
    spans_.reserve(rows);
  }

  // False if the row's payload is too large.
  bool row(size_t row, bool sequence) {
    const size_t begin = out_.size();
    out_.grow(kHeaderSize + kRoom);
    out_.set_size(begin + kHeaderSize);
    const size_t features = open(0x0a, features_guess_);
    for (size_t c = 0; c < columns_.size(); ++c)
      if (!columns_[c].steps && present(columns_[c], row)) entry(c, row);
    features_guess_ = close(features, features_guess_);
    if (sequence) {
      const size_t lists = open(0x12, lists_guess_);
      for (const SourceColumn& column : columns_)
        if (column.steps && present(column, row)) list_entry(column, row);
      lists_guess_ = close(lists, lists_guess_);
    }

    const uint64_t length = out_.size() - begin - kHeaderSize;
    if (length > kMaxPayload) return false;
    out_.grow(kFooterSize);
    uint8_t* const frame = out_.data() + begin;
    store_header(frame, length);
    store_footer(out_.end(), crc32c({frame + kHeaderSize, length}));
    out_.set_size(out_.size() + kFooterSize);
    spans_.push_back({begin + kHeaderSize, length});
    return true;
  }

  Chunk finish() { return chunk_of(std::move(out_), std::move(spans_)); }

 private:
  static bool present(const SourceColumn& column, size_t row) {
    return column.states == nullptr || column.states[row] >= State::empty;
  }

  // A message whose length is not known yet: room for a length of `guess` bytes is left, the size of the one
  // before.
  size_t open(uint8_t tag, size_t guess) {
    *out_.grow(kRoom) = tag;
    out_.set_size(out_.size() + 1 + guess);
    return out_.size();
  }

  size_t close(size_t start, size_t guess) {
    const size_t length = out_.size() - start;
    const size_t needed = varint_size(length);
    if (needed != guess) {
      out_.grow(kRoom);
      std::memmove(out_.data() + start - guess + needed, out_.data() + start, length);
      out_.set_size(out_.size() - guess + needed);
    }
    store_varint(out_.data() + start - guess, length);
    return needed;
  }

  void entry(size_t c, size_t row) {
    const SourceColumn& column = columns_[c];
    if (column.count == 1 && column.name.size() <= 100 && column.kind != Kind::bytes)
      return short_entry(c, row);
    const auto [first, last] = range(column, row);
    const size_t list = list_size(column, first, last);
    const size_t feature = 1 + varint_size(list) + list;
    const size_t name = column.name.size();
    const size_t whole = 1 + varint_size(name) + name + 1 + varint_size(feature) + feature;
    uint8_t* p = out_.grow(whole + kRoom);
    p = named(p, whole, column.name);
    *p++ = 0x12;
    p = store_varint(p, feature);
    p = put_list(p, column, list, first, last);
    out_.set_size(static_cast<size_t>(p - out_.data()));
  }

  // One number under a short name: all lengths are single bytes and follow from the value's size.
  void short_entry(size_t c, size_t row) {
    const SourceColumn& column = columns_[c];
    const std::string& start = starts_[c];
    uint8_t* const p = out_.grow(start.size() + kRoom);
    for (size_t i = 0; i < start.size(); i += 16) std::memcpy(p + i, start.data() + i, 16);
    uint8_t* value = p + 4 + column.name.size() + 6;
    size_t size = 4;
    if (column.kind == Kind::floats) {
      store(value, column.floats[row]);
    } else {
      const uint64_t number = static_cast<uint64_t>(column.ints[row]);
      size = varint_size(number);
      if (size <= 8)
        store(value, split_sevens(number) | (kContinuation & ((uint64_t{1} << (8 * (size - 1))) - 1)));
      else
        store_varint(value, number);
    }
    const uint8_t feature = static_cast<uint8_t>(size + 4);
    p[1] = static_cast<uint8_t>(column.name.size() + 4 + feature);
    value[-6] = 0x12;
    value[-5] = feature;
    value[-4] = tag_of(column.kind);
    value[-3] = static_cast<uint8_t>(feature - 2);
    value[-2] = 0x0a;
    value[-1] = static_cast<uint8_t>(size);
    out_.set_size(static_cast<size_t>(value + size - out_.data()));
  }

  void list_entry(const SourceColumn& column, size_t row) {
    const int64_t first = column.step_offsets[row], last = column.step_offsets[row + 1];
    size_t total = 0;
    step_sizes_.clear();
    for (int64_t step = first; step < last; ++step) {
      const auto [from, to] = range(column, static_cast<size_t>(step));
      const size_t list = list_size(column, from, to);
      step_sizes_.push_back(list);
      const size_t feature = 1 + varint_size(list) + list;
      total += 1 + varint_size(feature) + feature;
    }
    const size_t name = column.name.size();
    const size_t whole = 1 + varint_size(name) + name + 1 + varint_size(total) + total;
    uint8_t* p = out_.grow(whole + kRoom);
    p = named(p, whole, column.name);
    *p++ = 0x12;
    p = store_varint(p, total);
    for (int64_t step = first; step < last; ++step) {
      const auto [from, to] = range(column, static_cast<size_t>(step));
      const size_t list = step_sizes_[static_cast<size_t>(step - first)];
      *p++ = 0x0a;
      p = store_varint(p, 1 + varint_size(list) + list);
      p = put_list(p, column, list, from, to);
    }
    out_.set_size(static_cast<size_t>(p - out_.data()));
  }

  static uint8_t* named(uint8_t* p, size_t whole, const std::string& name) {
    *p++ = 0x0a;
    p = store_varint(p, whole);
    *p++ = 0x0a;
    p = store_varint(p, name.size());
    std::memcpy(p, name.data(), name.size());
    return p + name.size();
  }

  static std::pair<int64_t, int64_t> range(const SourceColumn& column, size_t group) {
    const int64_t g = static_cast<int64_t>(group);
    if (column.count >= 0) return {g * column.count, (g + 1) * column.count};
    return {column.value_offsets[g], column.value_offsets[g + 1]};
  }

  static size_t packed_size(const SourceColumn& column, int64_t first, int64_t last) {
    if (column.kind == Kind::floats) return static_cast<size_t>(last - first) * 4;
    size_t size = 0;
    for (int64_t i = first; i < last; ++i) size += varint_size(static_cast<uint64_t>(column.ints[i]));
    return size;
  }

  static size_t list_size(const SourceColumn& column, int64_t first, int64_t last) {
    if (first == last) return 0;
    if (column.kind == Kind::bytes) {
      size_t size = 0;
      for (int64_t i = first; i < last; ++i) {
        const size_t length = static_cast<size_t>(column.byte_offsets[i + 1] - column.byte_offsets[i]);
        size += 1 + varint_size(length) + length;
      }
      return size;
    }
    const size_t packed = packed_size(column, first, last);
    return 1 + varint_size(packed) + packed;
  }

  // The Feature's one list: its tag, its size, its values.
  static uint8_t* put_list(uint8_t* p, const SourceColumn& column, size_t size, int64_t first, int64_t last) {
    *p++ = tag_of(column.kind);
    p = store_varint(p, size);
    if (first == last) return p;
    if (column.kind == Kind::bytes) {
      for (int64_t i = first; i < last; ++i) {
        const size_t length = static_cast<size_t>(column.byte_offsets[i + 1] - column.byte_offsets[i]);
        *p++ = 0x0a;
        p = store_varint(p, length);
        if (length != 0) std::memcpy(p, column.bytes + column.byte_offsets[i], length);
        p += length;
      }
      return p;
    }
    *p++ = 0x0a;
    p = store_varint(p, packed_size(column, first, last));
    if (column.kind == Kind::floats) {
      std::memcpy(p, column.floats + first, static_cast<size_t>(last - first) * 4);
      return p + (last - first) * 4;
    }
    for (int64_t i = first; i < last; ++i) p = store_varint(p, static_cast<uint64_t>(column.ints[i]));
    return p;
  }

  const std::vector<SourceColumn>& columns_;
  std::vector<std::string> starts_;
  std::vector<size_t> step_sizes_;
  Buffer out_;
  std::vector<Chunk::Span> spans_;
  size_t features_guess_ = 1, lists_guess_ = 1;
};

}  // namespace

EncodeResult encode(const std::vector<SourceColumn>& columns, size_t rows, bool sequence) {
  EncodeResult result;
  for (size_t c = 0; c < columns.size(); ++c)
    if (!fits(columns[c], rows)) return {EncodeResult::Why::bad_offsets, c, {}};
  Encoder encoder(columns, rows);
  for (size_t row = 0; row < rows; ++row)
    if (!encoder.row(row, sequence)) return {EncodeResult::Why::payload_too_large, row, {}};
  result.chunk = encoder.finish();
  return result;
}

}  // namespace recordkit
