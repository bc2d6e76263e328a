#include "core/examples/encode.h"

namespace recordkit {
namespace {

constexpr size_t kRoom =
    64;  // more than all tags and lengths around one value, and a word stored past its end

constexpr uint8_t tag_of(Kind kind) { return static_cast<uint8_t>(static_cast<int>(kind) << 3 | 2); }

// Offsets must be within bounds and never decrease.
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
    // One level below, the groups are steps.
    groups = column.count >= 0 ? SIZE_MAX : column.value_offset_total - 1;
    if (column.count < 0 && column.value_offset_total == 0) return false;
    if (groups == SIZE_MAX) groups = static_cast<size_t>(std::max<int64_t>(column.step_offsets[rows], 0));
    if (!offsets_fit(column.step_offsets, rows, groups)) return false;
  }
  size_t values;
  if (column.count >= 0) {
    // Exactly that many: values left over would be dropped silently.
    const size_t count = static_cast<size_t>(column.count);
    if (count == 0 ? column.value_total != 0
                   : column.value_total % count != 0 || groups != column.value_total / count)
      return false;
    values = groups * static_cast<size_t>(column.count);
  } else {
    if (column.value_offset_total != groups + 1 ||
        !offsets_fit(column.value_offsets, groups, column.value_total))
      return false;
    values = static_cast<size_t>(column.value_offsets[groups]);
  }
  if (column.kind != Kind::bytes || column.has_views) return true;
  return offsets_fit(column.byte_offsets, values, column.byte_total);
}

class Encoder {
 public:
  Encoder(const std::vector<SourceColumn>& columns, size_t rows) : columns_(columns), rows_(rows) {
    for (const SourceColumn& column : columns) shorts_.push_back(short_form(column));
    spans_.reserve(rows);
  }

  // False if the row's payload is too large.
  bool row(size_t row, bool sequence) {
    const size_t begin = out_.size();
    out_.grow(kHeaderSize + kRoom);
    out_.set_size(begin + kHeaderSize);
    const size_t features = open(0x0a, features_guess_);
    for (size_t c = 0; c < columns_.size(); ++c) {
      const SourceColumn& column = columns_[c];
      if (column.steps || !present(column, row)) continue;
      const bool empty = column.states != nullptr && column.states[row] == State::empty;
      if (shorts_[c].start.empty() || empty)
        entry(column, row, empty);
      else
        short_entry(shorts_[c], row);
    }
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
    // Rows are similar: reserving about the right size at once saves growing step by step.
    if (row == 0) out_.reserve(std::min(out_.size() * (rows_ + rows_ / 16), kMostReserved));
    return true;
  }

  Chunk finish() { return chunk_of(std::move(out_), std::move(spans_)); }

 private:
  static bool present(const SourceColumn& column, size_t row) {
    return column.states == nullptr || column.states[row] >= State::empty;
  }

  // A message whose length is not known yet: leaves room for `guess` bytes of length, as many as the previous
  // one took.
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

  // An empty list has no values, even if the column holds zeros in their place.
  void entry(const SourceColumn& column, size_t row, bool empty) {
    const auto [first, last] = empty ? std::pair<int64_t, int64_t>() : range(column, row);
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
  //
  //     0a L  0a k name  12 v  kind v-2  0a v-4  value         with v = 4 + the value's size, L = k + 4 + v
  struct Short {
    std::string
        start;  // the entry up to the end of the name, padded to whole words; empty if there is no short form
    size_t name_size;
    uint64_t head;  // the six bytes before a value of size 0
    const int64_t* ints;
    const float* floats;
  };

  static Short short_form(const SourceColumn& column) {
    Short form{{}, column.name.size(), 0, nullptr, nullptr};
    if (column.kind == Kind::int64s) form.ints = column.ints;
    if (column.kind == Kind::floats) form.floats = column.floats;
    if (column.steps || column.count != 1 || column.kind == Kind::bytes || form.name_size > 100) return form;
    form.start = {'\x0a', '\0', '\x0a', static_cast<char>(form.name_size)};
    form.start += column.name;
    form.start.resize((form.start.size() + 15) / 16 * 16);
    form.head =
        0x0012 | 0x0400 | uint64_t{tag_of(column.kind)} << 16 | uint64_t{0x02} << 24 | uint64_t{0x0a} << 32;
    return form;
  }

  void short_entry(const Short& form, size_t row) {
    uint8_t* const p = out_.grow(form.start.size() + kRoom);
    for (size_t i = 0; i < form.start.size(); i += 16) std::memcpy(p + i, form.start.data() + i, 16);
    uint64_t word;
    size_t size = 4;
    uint64_t number = 0;
    if (form.ints == nullptr) {
      word = std::bit_cast<uint32_t>(form.floats[row]);
    } else {
      number = static_cast<uint64_t>(form.ints[row]);
      size = varint_size(number);
      const uint64_t going_on = kContinuation & ((uint64_t{1} << (8 * ((size - 1) & 7))) - 1);
      word = split_sevens(number) | going_on;
    }
    p[1] = static_cast<uint8_t>(form.name_size + 8 + size);
    uint8_t* const head = p + 4 + form.name_size;
    store(head, form.head + size * 0x010001000100);  // the value overwrites two bytes of it
    store(head + 6, word);
    if (size > 8) store_varint(head + 6, number);
    out_.set_size(static_cast<size_t>(head + 6 + size - out_.data()));
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
        const size_t length = column.byte_string(i).size();
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
        const Bytes value = column.byte_string(i);
        *p++ = 0x0a;
        p = store_varint(p, value.size());
        if (!value.empty()) std::memcpy(p, value.data(), value.size());
        p += value.size();
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

  static constexpr size_t kMostReserved = size_t{64} << 20;

  const std::vector<SourceColumn>& columns_;
  size_t rows_;
  std::vector<Short> shorts_;
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
