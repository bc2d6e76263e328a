#include "support/table.h"

#include "support/check.h"

namespace recordkit {
namespace {

// Memory for the fields of fixed count, just as much as they are promised.
struct FixedMemory {
  std::vector<int64_t> ints;
  std::vector<float> floats;
};

std::vector<FixedMemory> give_memory(const std::vector<FieldSpec>& specs, size_t rows,
                                     std::vector<Column>& columns) {
  std::vector<FixedMemory> memory(specs.size());
  for (size_t f = 0; f < specs.size(); ++f) {
    if (specs[f].count < 0 || specs[f].steps) continue;
    // Not zeros: what decode leaves alone must show.
    memory[f].ints.assign(rows * static_cast<size_t>(specs[f].count), 0x5a5a5a5a);
    memory[f].floats.assign(rows * static_cast<size_t>(specs[f].count), 5.5f);
    columns[f].fixed_ints = memory[f].ints.data();
    columns[f].fixed_floats = memory[f].floats.data();
  }
  return memory;
}

// One decoded column, read value by value.
class ColumnView {
 public:
  ColumnView(const FieldSpec& spec, const Column& column, size_t rows) : spec_(spec), column_(column) {
    CHECK(column.states.empty() || column.states.size() == rows);
    groups_ = rows;
    if (spec.steps) {
      CHECK_EQ(column.step_offsets.size(), rows + 1);
      groups_ = static_cast<size_t>(column.step_offsets.back());
    }
    values_ = groups_ * static_cast<size_t>(std::max<int64_t>(spec.count, 0));
    if (spec.count < 0) {
      CHECK_EQ(column.value_offsets.size(), groups_ + 1);
      values_ = static_cast<size_t>(column.value_offsets.back());
    }
    if (spec.kind == Kind::bytes) {
      CHECK_EQ(column.byte_offsets.size(), values_ + 1);
      CHECK_EQ(column.bytes.size(), static_cast<size_t>(column.byte_offsets.back()));
    } else if (spec.count < 0 || spec.steps) {
      CHECK_EQ(spec.kind == Kind::floats ? column.floats.size() : column.ints.size(), values_);
    }
  }

  Cell cell(size_t row) const {
    Cell cell{column_.states.empty() ? State::present : column_.states[row], {}};
    if (spec_.steps) {
      for (int64_t s = column_.step_offsets.data()[row]; s < column_.step_offsets.data()[row + 1]; ++s)
        cell.steps.push_back(group(static_cast<size_t>(s)));
    } else if (cell.state == State::present) {
      cell.steps.push_back(group(row));
    } else {
      check_nothing_in(group(row));
    }
    return cell;
  }

 private:
  Value group(size_t g) const {
    const size_t count = static_cast<size_t>(std::max<int64_t>(spec_.count, 0));
    size_t first = g * count, last = first + count;
    if (spec_.count < 0) {
      first = static_cast<size_t>(column_.value_offsets.data()[g]);
      last = static_cast<size_t>(column_.value_offsets.data()[g + 1]);
    }
    CHECK(first <= last && last <= values_);
    const bool fixed = spec_.count >= 0 && !spec_.steps;
    Value value;
    for (size_t v = first; v < last; ++v) {
      if (spec_.kind == Kind::int64s)
        value.ints.push_back((fixed ? column_.fixed_ints : column_.ints.data())[v]);
      if (spec_.kind == Kind::floats)
        value.floats.push_back(load<uint32_t>(
            reinterpret_cast<const uint8_t*>((fixed ? column_.fixed_floats : column_.floats.data()) + v)));
      if (spec_.kind == Kind::bytes) value.bytes.push_back(bytes(v));
    }
    return value;
  }

  std::string bytes(size_t v) const {
    const int64_t first = column_.byte_offsets.data()[v], last = column_.byte_offsets.data()[v + 1];
    CHECK(first <= last);
    return std::string(as_text({column_.bytes.data() + first, static_cast<size_t>(last - first)}));
  }

  // A record without the field: zeros where the count is fixed, none elsewhere.
  void check_nothing_in(const Value& value) const {
    for (const int64_t number : value.ints) CHECK_EQ(number, 0);
    for (const uint32_t bits : value.floats) CHECK_EQ(bits, 0u);
    for (const std::string& text : value.bytes) CHECK_EQ(text, "");
    CHECK(spec_.count >= 0 || value.count() == 0);
  }

  const FieldSpec& spec_;
  const Column& column_;
  size_t groups_ = 0, values_ = 0;
};

}  // namespace

std::optional<std::vector<CellColumn>> table_of(const Decoder& decoder, size_t rows,
                                                const std::function<bool(std::vector<Column>&)>& decode) {
  const std::vector<FieldSpec>& specs = decoder.fields();
  std::vector<Column> columns(specs.size());
  const std::vector<FixedMemory> memory = give_memory(specs, rows, columns);
  if (!decode(columns)) return {};
  std::vector<CellColumn> table;
  for (size_t f = 0; f < specs.size(); ++f) {
    const ColumnView view(specs[f], columns[f], rows);
    CellColumn& cells = table.emplace_back();
    for (size_t row = 0; row < rows; ++row) cells.push_back(view.cell(row));
  }
  return table;
}

Decoded decode_table(const Decoder& decoder, const Chunk& chunk) {
  const size_t rows = chunk.records.size();
  DecodeFault fault;
  const auto decode = [&](std::vector<Column>& columns) {
    fault = decoder.decode(chunk, 0, rows, columns);
    return fault.what == DecodeFault::What::none;
  };
  std::vector<CellColumn> table = table_of(decoder, rows, decode).value_or(std::vector<CellColumn>());
  return {fault, std::move(table)};
}

Cell cell_of(const Value& value) {
  if (value.kind == Kind::none) return {State::no_kind, {}};
  if (value.count() == 0) return {State::empty, {}};
  Value plain = value;
  plain.kind = Kind::none;
  return {State::present, {std::move(plain)}};
}

Cell cell_of(const std::vector<Value>& steps) {
  Cell cell{steps.empty() ? State::empty : State::present, steps};
  for (Value& step : cell.steps) step.kind = Kind::none;
  return cell;
}

PackedColumn::PackedColumn(const FieldSpec& spec, const CellColumn& cells) : spec_(spec) {
  for (const Cell& cell : cells) {
    for (const Value& step : cell.steps) pack(step);
    // A row without values still takes its place.
    if (!spec.steps && cell.steps.empty()) {
      const size_t count = static_cast<size_t>(std::max<int64_t>(spec.count, 0));
      pack({Kind::none, std::vector<int64_t>(count), std::vector<uint32_t>(count),
            std::vector<std::string>(count)});
    }
    step_offsets_.push_back(step_offsets_.back() + static_cast<int64_t>(cell.steps.size()));
    states_.push_back(cell.state);
  }
}

void PackedColumn::pack(const Value& value) {
  if (spec_.kind == Kind::int64s) ints_.insert(ints_.end(), value.ints.begin(), value.ints.end());
  if (spec_.kind == Kind::floats)
    for (const uint32_t bits : value.floats) floats_.push_back(std::bit_cast<float>(bits));
  if (spec_.kind == Kind::bytes) {
    for (const std::string& text : value.bytes) {
      bytes_.insert(bytes_.end(), text.begin(), text.end());
      byte_offsets_.push_back(static_cast<int64_t>(bytes_.size()));
    }
  }
  const size_t bytes_values = byte_offsets_.size() - 1;
  value_offsets_.push_back(static_cast<int64_t>(ints_.size() + floats_.size() + bytes_values));
}

SourceColumn PackedColumn::source() const {
  SourceColumn source{spec_.name, spec_.kind, spec_.steps, spec_.count};
  source.ints = ints_.data();
  source.floats = floats_.data();
  source.bytes = bytes_.data();
  source.byte_offsets = byte_offsets_.data();
  source.value_offsets = value_offsets_.data();
  source.step_offsets = step_offsets_.data();
  source.states = states_.data();
  source.value_total = static_cast<size_t>(value_offsets_.back());
  source.byte_total = bytes_.size();
  source.value_offset_total = value_offsets_.size();
  source.step_offset_total = step_offsets_.size();
  return source;
}

EncodeResult encode_table(const std::vector<FieldSpec>& specs, const std::vector<CellColumn>& table,
                          size_t rows, bool sequence) {
  std::vector<PackedColumn> packed;
  for (size_t f = 0; f < specs.size(); ++f) packed.emplace_back(specs[f], table[f]);
  std::vector<SourceColumn> sources;
  for (const PackedColumn& column : packed) sources.push_back(column.source());
  return encode(sources, rows, sequence);
}

}  // namespace recordkit
