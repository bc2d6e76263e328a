#include "core/examples/survey.h"
#include "laws/laws.h"
#include "support/check.h"
#include "support/frames.h"
#include "support/table.h"

namespace recordkit {
namespace {

// A field, and what it must be in every record.
struct Expected {
  FieldSpec spec;
  Cell cell;
};

Kind kind_of(const std::vector<Value>& steps) {
  for (const Value& step : steps)
    if (step.kind != Kind::none) return step.kind;
  return Kind::int64s;
}

// Whether one column can hold all steps.
bool same_kind(const std::vector<Value>& steps, Kind kind) {
  for (const Value& step : steps)
    if (step.kind != kind && step.kind != Kind::none) return false;
  return true;
}

bool same_count(const std::vector<Value>& steps) {
  for (const Value& step : steps)
    if (step.count() != steps[0].count() || step.kind == Kind::none) return false;
  return !steps.empty();
}

// Fields as they would be asked for, of any count or of the count that is there.
std::vector<Expected> fields_in(const Parsed& parsed, bool fixed) {
  std::vector<Expected> fields;
  for (const auto& [name, value] : parsed.features) {
    const Kind kind = value.kind == Kind::none ? Kind::floats : value.kind;
    const Cell cell = cell_of(value);
    const bool present = cell.state == State::present;
    const int64_t count = !fixed ? -1 : present ? static_cast<int64_t>(value.count()) : 2;
    fields.push_back({{name, kind, count, present, false}, cell});
  }
  for (const auto& [name, steps] : parsed.lists) {
    const Kind kind = kind_of(steps);
    if (!same_kind(steps, kind)) continue;
    const int64_t count = fixed && same_count(steps) ? static_cast<int64_t>(steps[0].count()) : -1;
    fields.push_back({{name, kind, count, true, true}, cell_of(steps)});
  }
  fields.push_back({{"not in the payload", Kind::bytes, fixed ? 2 : -1, false, false}, {}});
  return fields;
}

Decoder decoder_of(const std::vector<Expected>& fields, bool sequence) {
  std::vector<FieldSpec> specs;
  for (const Expected& field : fields) specs.push_back(field.spec);
  return Decoder(std::move(specs), sequence);
}

// Several records in a row, so that later ones meet what was learned from the first, alone and side by side;
// and the same decoder over differently padded memory, down to none that would allow its fast ways.
constexpr size_t kRows = 9;

Decoded decode_every_way(const std::vector<std::string>& payloads, const std::vector<Expected>& fields,
                         bool sequence) {
  const Chunk exact = bare_chunk(payloads, Behind::pretend_nothing_readable);
  const Decoded expected = decode_table(decoder_of(fields, sequence), exact);
  const Decoder warm = decoder_of(fields, sequence);
  for (const Behind behind : {Behind::nothing, Behind::padding, Behind::plenty}) {
    const Decoded decoded = decode_table(warm, bare_chunk(payloads, behind));
    CHECK_EQ(decoded.fault.what, expected.fault.what);
    CHECK_EQ(decoded.fault.byte, expected.fault.byte);
    CHECK(decoded.fault == expected.fault);
    CHECK(decoded.columns == expected.columns);
  }
  return expected;
}

void check_decode(const std::string& payload, const Parsed& parsed, bool sequence, bool fixed) {
  const std::vector<std::string> payloads(kRows, payload);
  const std::vector<Expected> fields = fields_in(parsed, fixed);

  const Decoded decoded = decode_every_way(payloads, fields, sequence);

  if (!parsed.ok)
    return;  // the ways agree on what is wrong; which field is looked into depends on those asked for
  CHECK_EQ(decoded.fault.what, DecodeFault::What::none);
  for (size_t f = 0; f < fields.size(); ++f) CHECK(decoded.columns[f] == CellColumn(kRows, fields[f].cell));

  // A field is the same whatever else is asked for.
  std::vector<Expected> some;
  for (size_t f = 0; f < fields.size(); f += 2) some.push_back(fields[f]);
  const Decoded fewer = decode_table(decoder_of(some, sequence), bare_chunk(payloads, Behind::plenty));
  CHECK_EQ(fewer.fault.what, DecodeFault::What::none);
  for (size_t f = 0; f < some.size(); ++f) CHECK(fewer.columns[f] == decoded.columns[2 * f]);
}

void check_facts(const FeatureFacts& facts, const std::vector<Value>& values) {
  uint64_t of_kind[4] = {}, most = 0, texts = 0;
  for (const Value& value : values) {
    texts += value.bytes.size();
    ++of_kind[static_cast<size_t>(value.kind)];
    most = std::max<uint64_t>(most, value.count());
    for (const int64_t number : value.ints) CHECK(facts.min_int <= number && number <= facts.max_int);
    for (const std::string& text : value.bytes)
      CHECK(facts.min_bytes <= text.size() && text.size() <= facts.max_bytes);
  }
  CHECK_EQ(facts.records, 1u);
  CHECK_EQ(facts.no_kind, of_kind[0]);
  CHECK(std::equal(of_kind, of_kind + 4, facts.of_kind));
  CHECK_EQ(facts.max_count, most);
  CHECK_EQ(facts.bytes_values, texts);
}

void check_survey(const std::string& payload, const Parsed& parsed) {
  const Survey surveyed = survey(bare_chunk({payload}, Behind::nothing), 0, 1);

  CHECK_EQ(surveyed.malformed, !parsed.ok);
  CHECK(surveyed.byte <= payload.size());
  if (!parsed.ok) return;
  CHECK_EQ(surveyed.features.size(), parsed.features.size());
  CHECK_EQ(surveyed.lists.size(), parsed.lists.size());
  for (const auto& [name, value] : parsed.features) check_facts(surveyed.features.at(name), {value});
  for (const auto& [name, steps] : parsed.lists) {
    check_facts(surveyed.lists.at(name), steps);
    CHECK_EQ(surveyed.lists.at(name).max_steps, steps.size());
  }
}

}  // namespace

void decode_law(Bytes bytes) {
  const std::string payload(as_text(bytes));
  check_survey(payload, parse(bytes, true));
  // As an Example or as a SequenceExample, chosen by the bytes: both would take twice the time.
  const bool sequence = crc32c(bytes) & 1;
  const Parsed parsed = parse(bytes, sequence);
  for (const bool fixed : {false, true}) check_decode(payload, parsed, sequence, fixed);
  for (const LintFinding& finding : lint(Exact(payload), sequence)) CHECK(finding.byte < payload.size());
}

}  // namespace recordkit
