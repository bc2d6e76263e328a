#include "core/examples/encode.h"

#include "core/examples/survey.h"
#include "laws/laws.h"
#include "support/check.h"
#include "support/choices.h"
#include "support/table.h"

namespace recordkit {
namespace {

std::vector<FieldSpec> specs_from(Choices& choices, bool sequence) {
  std::vector<FieldSpec> specs;
  const size_t fields = choices.below(7);
  for (size_t f = 0; f < fields; ++f) {
    // Short and long names: the encoder and the decoder have ways of their own for short ones.
    const size_t length = choices.below(4) == 0 ? choices.below(200) : choices.below(20);
    FieldSpec spec;
    spec.name = std::to_string(f) + std::string(length, 'n');
    spec.kind = static_cast<Kind>(1 + choices.below(3));
    spec.count = static_cast<int64_t>(choices.below(5)) - 1;
    spec.required = false;
    spec.steps = sequence && choices.below(2) == 1;
    specs.push_back(spec);
  }
  return specs;
}

Value value_from(Choices& choices, Kind kind, int64_t fixed_count) {
  uint64_t count = choices.below(8) == 0 ? choices.below(80) : choices.below(6);
  if (fixed_count >= 0) count = static_cast<uint64_t>(fixed_count);
  Value value;
  for (uint64_t i = 0; i < count; ++i) {
    if (kind == Kind::int64s) value.ints.push_back(static_cast<int64_t>(choices.number()));
    if (kind == Kind::floats) value.floats.push_back(static_cast<uint32_t>(choices.word(4)));
    if (kind == Kind::bytes) value.bytes.push_back(choices.bytes(choices.below(16) == 0 ? 300 : 12));
  }
  return value;
}

Cell cell_from(Choices& choices, const FieldSpec& spec) {
  const State state = static_cast<State>(std::min<uint64_t>(choices.below(12), 3));
  if (state < State::empty) return {state, {}};
  if (spec.steps) {
    std::vector<Value> steps(state == State::empty ? 0 : 1 + choices.below(3));
    for (Value& step : steps) step = value_from(choices, spec.kind, spec.count);
    return {state, steps};
  }
  // No values is what a field of none has: present.
  if (state == State::empty && spec.count != 0) return {state, {}};
  Value value = value_from(choices, spec.kind, spec.count);
  if (value.count() == 0 && spec.count != 0) return {State::empty, {}};
  return {State::present, {std::move(value)}};
}

// What a reader that knows nothing of us sees in one record.
Parsed record_of(const std::vector<FieldSpec>& specs, const std::vector<CellColumn>& table, size_t row) {
  Parsed record{.ok = true};
  for (size_t f = 0; f < specs.size(); ++f) {
    Cell cell = table[f][row];
    if (cell.state < State::empty) continue;
    for (Value& step : cell.steps) step.kind = specs[f].kind;
    if (specs[f].steps)
      record.lists[specs[f].name] = cell.steps;
    else
      record.features[specs[f].name] = cell.steps.empty() ? Value{specs[f].kind, {}, {}, {}} : cell.steps[0];
  }
  return record;
}

}  // namespace

void encode_law(Bytes bytes) {
  Choices choices(bytes);
  const bool sequence = choices.below(2) == 1;
  const std::vector<FieldSpec> specs = specs_from(choices, sequence);
  const size_t rows = choices.below(6);
  std::vector<CellColumn> table(specs.size());
  for (size_t f = 0; f < specs.size(); ++f)
    for (size_t row = 0; row < rows; ++row) table[f].push_back(cell_from(choices, specs[f]));

  const EncodeResult encoded = encode_table(specs, table, rows, sequence);

  CHECK_EQ(encoded.fault, EncodeResult::Why::none);
  CHECK_EQ(encoded.chunk.records.size(), rows);
  for (size_t row = 0; row < rows; ++row) {
    const Bytes payload = encoded.chunk.payload(row);
    CHECK_EQ(encoded.chunk.payload_crc(row), crc32c(payload));
    CHECK(parse(payload, sequence) == record_of(specs, table, row));
    CHECK(lint(payload, sequence).empty());
  }
  const Decoded decoded = decode_table(Decoder(specs, sequence), encoded.chunk);
  CHECK_EQ(decoded.fault.what, DecodeFault::What::none);
  // A feature without a kind is not written, so it comes back missing.
  for (CellColumn& column : table)
    for (Cell& cell : column)
      if (cell.state == State::no_kind) cell.state = State::missing;
  CHECK(decoded.columns == table);
}

}  // namespace recordkit
