#include "core/examples/rewrite.h"

#include "laws/laws.h"
#include "support/check.h"
#include "support/frames.h"
#include "support/reference.h"

namespace recordkit {
namespace {

using Why = RewriteResult::Why;

// Names that are there are the ones worth editing.
std::vector<std::string> names_in(const Parsed& parsed) {
  std::vector<std::string> names{"new", "other", ""};
  for (const auto& [name, value] : parsed.features) names.push_back(name);
  for (const auto& [name, steps] : parsed.lists) names.push_back(name);
  return names;
}

Edit edit_from(Choices& choices, const std::vector<std::string>& names) {
  const auto any = [&]() -> const std::string& { return names[choices.below(names.size())]; };
  Edit edit;
  for (uint64_t i = choices.below(3); i > 0; --i) edit.drop.insert(any());
  std::unordered_set<std::string> targets;
  for (uint64_t i = choices.below(3); i > 0; --i) {
    // Two names for one would leave it open which of the features counts.
    const std::string& to = any();
    if (targets.insert(to).second) edit.rename.emplace(any(), to);
  }
  for (uint64_t i = choices.below(2); i > 0; --i) edit.replace.insert(any());
  for (uint64_t i = choices.below(2); i > 0; --i) edit.absent.insert(any());
  return edit;
}

// Does the edit on a parsed map. False if a name is taken. What is appended are features, so lists are
// neither in its way nor replaced by it.
template <typename T>
bool edit_map(const Edit& edit, std::map<std::string, T>& map, bool features) {
  std::map<std::string, T> edited;
  for (auto& [name, value] : map) {
    if (edit.drop.contains(name) || (features && edit.replace.contains(name))) continue;
    const auto renamed = edit.rename.find(name);
    if (renamed != edit.rename.end()) {
      edited[renamed->second] = value;
      continue;
    }
    for (const auto& [from, to] : edit.rename)
      if (to == name) return false;
    if (features && edit.absent.contains(name)) return false;
    edited[name] = value;
  }
  map = std::move(edited);
  return true;
}

void check_frames(const Chunk& chunk) {
  Chunk again;
  again.data = chunk.data;
  again.size = chunk.size;
  const ScanEnd end = check_payloads(again, hop(again, 0, SIZE_MAX, UINT64_MAX, UINT64_MAX));
  CHECK_EQ(end.fault, Fault::none);
  CHECK_EQ(end.offset, chunk.size);
  CHECK_EQ(again.records.size(), chunk.records.size());
}

void check_rewrite(const std::string& payload, Edit edit, bool sequence) {
  const std::string tail = example_of("appended", unhex("1a 03 0a 01 07"));
  const Chunk chunk = framed_chunk({payload, payload}), tails = framed_chunk({tail, ""});
  edit.sequence = sequence;
  edit.absent.insert("appended");

  const RewriteResult result = rewrite(chunk, edit, &tails);

  if (result.fault == Why::none) check_frames(result.chunk);
  Parsed expected = parse(as_bytes(payload), sequence);
  if (!expected.ok) return;  // features are not looked into, so there may be no fault to see
  const bool free = edit_map(edit, expected.features, true) && edit_map(edit, expected.lists, false);
  CHECK_EQ(result.fault, free ? Why::none : Why::name_taken);
  if (!free) return;
  CHECK(parse(result.chunk.payload(1), sequence) == expected);
  expected.features["appended"] = {Kind::int64s, {7}, {}, {}};
  CHECK(parse(result.chunk.payload(0), sequence) == expected);
}

}  // namespace

void rewrite_law(Bytes payload, Bytes choices) {
  // From the end, where a payload that serves as its own choices says the least.
  Choices last(choices.last(std::min<size_t>(choices.size(), 12)));
  const bool sequence = last.below(2) == 1;
  const Edit edit = edit_from(last, names_in(parse(payload, sequence)));
  check_rewrite(std::string(as_text(payload)), edit, sequence);
}

}  // namespace recordkit
