// The letters and numbers are those of SCENARIOS.md.
#include "core/records/salvage.h"

#include <algorithm>
#include <ctime>

#include "laws/laws.h"
#include "support/check.h"
#include "support/frames.h"

namespace recordkit {
namespace {

using How = Found::How;
using What = Lost::What;

struct Salvaged {
  std::vector<std::string> payloads;  // of records that are not nested
  std::vector<std::string> nested;
  Salvage facts;
};

Salvaged salvaged(const std::string& file) {
  const Exact bytes(file);
  salvage_law(bytes);
  Salvaged result{{}, {}, salvage(bytes)};
  for (const Found& found : result.facts.found)
    (found.nested ? result.nested : result.payloads)
        .push_back(file.substr(found.offset + kHeaderSize, found.length));
  return result;
}

// "payload-000" and so on for each digit.
std::vector<std::string> numbered(std::string_view digits) {
  std::vector<std::string> payloads;
  for (const char digit : digits) payloads.push_back(std::string("payload-00") + digit);
  return payloads;
}

void check_lost(const Salvaged& result, uint64_t first, uint64_t last, What what, uint64_t before) {
  CHECK_EQ(result.facts.lost.size(), 1u);
  const Lost& lost = result.facts.lost[0];
  CHECK_EQ(lost.offset, first);
  CHECK_EQ(lost.offset + lost.length, last);
  CHECK_EQ(lost.what, what);
  CHECK_EQ(lost.before, before);
}

TEST(salvage_of_a_sound_file_is_the_file) {
  const Salvaged result = salvaged(five_records());
  CHECK(result.payloads == numbered("01234"));
  CHECK(result.facts.lost.empty());
  CHECK(salvaged("").facts.lost.empty());
}

TEST(salvage_a1_damaged_payload_costs_one_record) {
  const Salvaged result = salvaged(flipped(five_records(), 12));
  CHECK(result.payloads == numbered("1234"));
  check_lost(result, 0, 27, What::bad_payload, 0);
}

TEST(salvage_a2_damaged_payload_checksum_costs_one_record) {
  for (size_t byte = 23; byte < 27; ++byte) {
    const Salvaged result = salvaged(flipped(five_records(), byte, 3));
    CHECK(result.payloads == numbered("1234"));
    check_lost(result, 0, 27, What::bad_payload, 0);
  }
}

TEST(salvage_a3_damaged_length_checksum_costs_nothing) {
  for (size_t byte = 8; byte < 12; ++byte) {
    const Salvaged result = salvaged(flipped(five_records(), byte, 5));
    CHECK(result.payloads == numbered("01234"));
    CHECK_EQ(result.facts.found[0].how, How::bad_length_crc);
    CHECK_EQ(result.facts.found[1].how, How::sound);
  }
}

TEST(salvage_a3_damaged_length_checksum_costs_nothing_behind_a_damaged_payload) {
  const Salvaged result = salvaged(flipped(flipped(five_records(), 12), 27 + 8));
  CHECK(result.payloads == numbered("1234"));
  check_lost(result, 0, 27, What::bad_payload, 0);
}

TEST(salvage_a4_and_a5_damaged_length_costs_one_record_wherever_it_is) {
  const std::pair<size_t, std::string> damages[] = {
      {0, "\x0c"}, {4, "\x01"}, {0, std::string(8, '\xff')}, {7, "\x80"}};
  for (size_t record = 0; record < 5; ++record) {
    std::string kept = "01234";
    kept.erase(record, 1);
    for (const auto& [at, bytes] : damages) {
      const Salvaged result = salvaged(five_records().replace(27 * record + at, bytes.size(), bytes));
      CHECK(result.payloads == numbered(kept));
      check_lost(result, 27 * record, 27 * record + 27, What::bad_length, record);
    }
  }
}

TEST(salvage_a6_bytes_taken_out_or_put_in_cost_one_record) {
  for (const size_t size : {1, 3, 8, 12}) {
    const Salvaged result = salvaged(five_records().erase(60, size));
    CHECK(result.payloads == numbered("0134"));
    CHECK_EQ(result.facts.lost.size(), 1u);
  }
  for (const size_t size : {1, 5}) {
    const Salvaged result = salvaged(five_records().insert(60, size, 'i'));
    CHECK(result.payloads == numbered("0134"));
    CHECK_EQ(result.facts.lost.size(), 1u);
  }
  // A whole frame's worth from inside one header to inside the next: the two halves make a sound record.
  CHECK(salvaged(five_records().erase(60, 27)).payloads == numbered("0134"));
}

TEST(salvage_a6_finds_a_frame_that_ends_where_the_damaged_one_was_to_end) {
  // 27 bytes are gone from inside a record, and the next frame is as long: the header in front claims them
  // both.
  const std::string damaged = frame(std::string(60, 'x')).erase(20, 27);
  const Salvaged more_behind = salvaged(damaged + five_records());
  const Salvaged last = salvaged(damaged + frame("payload-000"));
  CHECK_EQ(more_behind.payloads.size() + more_behind.nested.size(), 5u);
  CHECK_EQ(last.payloads.size() + last.nested.size(), 1u);
}

std::string large_file() {
  Random random(1);
  std::string file;
  while (file.size() < 5 * 4096) file += frame(random.bytes(100 + random.below(400)));
  return file.substr(0, 5 * 4096);
}

TEST(salvage_a6_swapped_and_repeated_blocks_cost_what_stands_across_their_edges) {
  const std::string file = large_file();
  const size_t whole = salvaged(file).payloads.size();
  const std::string swapped =
      file.substr(0, 4096) + file.substr(2 * 4096, 4096) + file.substr(4096, 4096) + file.substr(3 * 4096);
  const Salvaged after_swap = salvaged(swapped);
  CHECK(after_swap.payloads.size() + after_swap.nested.size() >= whole - 4);

  // A record appears twice: both are given, and telling that they are one is for who compares contents.
  const Salvaged repeated = salvaged(file.substr(0, 2 * 4096) + file.substr(4096));
  std::vector<std::string> all = repeated.payloads;
  all.insert(all.end(), repeated.nested.begin(), repeated.nested.end());
  CHECK(all.size() > whole);
  std::sort(all.begin(), all.end());
  CHECK(std::adjacent_find(all.begin(), all.end()) != all.end());
}

TEST(salvage_a7_overwritten_bytes_cost_the_records_they_touch) {
  Random random(2);
  for (const std::string& bytes : {std::string(50, '\0'), std::string(50, '\xff'), random.bytes(50)}) {
    const Salvaged result = salvaged(five_records().replace(50, 50, bytes));
    CHECK(result.payloads == numbered("04"));
    CHECK_EQ(result.facts.lost.front().offset, 27u);
    CHECK_EQ(result.facts.lost.back().offset + result.facts.lost.back().length, 108u);
  }
}

TEST(salvage_a7_zeros_inside_a_hole_are_told_apart) {
  const std::vector<Lost> lost = salvaged(five_records().replace(50, 50, std::string(50, '\0'))).facts.lost;
  CHECK_EQ(lost.size(), 3u);
  CHECK_EQ(lost[0].what, What::bad_payload);
  CHECK_EQ(lost[1].what, What::zeros);
  CHECK_EQ(lost[1].offset, 50u);
  CHECK_EQ(lost[1].length, 50u);
  CHECK_EQ(lost[2].what, What::bad_length);
}

TEST(salvage_a7_zeros_between_records_are_called_so) {
  const Salvaged result = salvaged(frame("one") + std::string(1000, '\0') + frame("two"));
  CHECK_EQ(result.payloads.size(), 2u);
  check_lost(result, 19, 1019, What::zeros, 1);
}

TEST(salvage_a7_zeros_that_end_a_hole_are_told_apart) {
  const Salvaged result = salvaged(five_records().replace(60, 48, std::string(48, '\0')));
  CHECK(result.payloads == numbered("014"));
  CHECK_EQ(result.facts.lost.size(), 2u);
  CHECK_EQ(result.facts.lost[0].length, 6u - 5u);  // the length's first byte is all of it that is not zero
  CHECK_EQ(result.facts.lost[1].what, What::zeros);
}

TEST(salvage_a8_zero_tail_is_no_record) {
  for (const size_t size : {1, 7, 8, 11, 12, 16, 4096}) {
    const Salvaged result = salvaged(five_records() + std::string(size, '\0'));
    CHECK(result.payloads == numbered("01234"));
    check_lost(result, 135, 135 + size, What::zeros, 5);
  }
}

TEST(salvage_a9_torn_tail_costs_the_record_it_tears) {
  for (size_t size = 1; size < 135; ++size) {
    const Salvaged result = salvaged(five_records().substr(0, size));
    CHECK(result.payloads == numbered(std::string_view("01234").substr(0, size / 27)));
    if (size % 27 != 0) check_lost(result, size / 27 * 27, size, What::torn, size / 27);
  }
}

TEST(salvage_a10_keeps_a_record_of_no_bytes) {
  const Salvaged result = salvaged(five_records().insert(54, frame("")));
  CHECK_EQ(result.payloads.size(), 6u);
  CHECK_EQ(result.payloads[2], "");
}

TEST(salvage_a11_records_inside_a_sound_payload_are_its_content) {
  const Salvaged result = salvaged(frame(five_records()) + frame("after"));
  CHECK(result.payloads == (std::vector<std::string>{five_records(), "after"}));
  CHECK(result.nested.empty());
}

TEST(salvage_a11_records_inside_a_damaged_one_are_called_nested) {
  const std::string file = frame("before") + frame(five_records()) + frame("after");
  const size_t outer = frame("before").size();
  for (const size_t byte : {outer + 1, outer + 4, outer + 7}) {
    const Salvaged result = salvaged(flipped(file, byte));
    CHECK(result.payloads == (std::vector<std::string>{"before", "after"}));
    CHECK(result.nested == numbered("01234"));
  }
  const Salvaged in_payload = salvaged(flipped(file, outer + 12 + 54 + 12));
  CHECK(in_payload.payloads == (std::vector<std::string>{"before", "after"}));
  CHECK(in_payload.nested == numbered("0134"));
}

TEST(salvage_a11_records_inside_the_last_damaged_one_are_called_nested) {
  CHECK(salvaged(flipped(frame(five_records()), 1)).nested == numbered("01234"));
  CHECK(salvaged(flipped(frame(five_records()), 20)).nested == numbered("1234"));
}

TEST(salvage_a12_a_header_alone_is_not_believed) {
  const std::string false_header = header(9) + "no record";
  const Salvaged result = salvaged(frame("one") + false_header + "!!!!" + frame("two"));
  CHECK(result.payloads == (std::vector<std::string>{"one", "two"}));

  // Inside a hole, where every byte is tried.
  const Salvaged in_hole = salvaged(flipped(frame("one"), 0) + "???" + false_header + "!!!!" + frame("two"));
  CHECK(in_hole.payloads == (std::vector<std::string>{"two"}));
}

TEST(salvage_a15_goes_on_behind_stray_bytes) {
  const std::string five = five_records();
  const Salvaged result = salvaged(five + "???" + five);
  CHECK(result.payloads == numbered("0123401234"));
  check_lost(result, 135, 138, What::bad_length, 5);
  CHECK(salvaged(five + five).facts.lost.empty());
}

TEST(salvage_a15_recovers_both_halves_around_a_torn_record) {
  const std::string five = five_records();
  for (size_t cut = 109; cut < 135; ++cut) {
    const Salvaged result = salvaged(five.substr(0, cut) + five);
    CHECK(result.payloads == numbered("012301234"));
    CHECK_EQ(result.facts.lost.size(), 1u);
  }
}

TEST(salvage_a15_recovers_what_was_appended_where_the_torn_record_was_to_end) {
  // Half of a frame of 54 bytes, then frames of 27: the second of them starts where the torn one was to end.
  const Salvaged result = salvaged(frame(std::string(38, 'x')).substr(0, 27) + five_records());
  CHECK(result.payloads == numbered("01234"));
}

TEST(salvage_believes_no_length_beyond_the_file) {
  for (const uint64_t length :
       {uint64_t{120}, uint64_t{1} << 32, uint64_t{1} << 63, UINT64_MAX - 15, UINT64_MAX}) {
    const Salvaged result = salvaged(header(length) + five_records());
    CHECK(result.payloads == numbered("01234"));
  }
}

// The processor's seconds that salvaging takes: what else the machine does is left out.
double seconds_to_salvage(const std::string& file, size_t expected) {
  const std::clock_t start = std::clock();
  CHECK_EQ(salvage(as_bytes(file)).found.size(), expected);
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

TEST(salvage_takes_time_that_grows_with_the_file_whatever_its_headers_claim) {
  constexpr uint64_t kPairs = 10'000, kPair = kHeaderSize + kFrameSize;
  std::string claims, with_records, with_broken, to_other_ends;
  for (uint64_t left = 50'000; left > 1; --left) claims += header(left * kHeaderSize - kFrameSize + 1);
  claims += std::string(kHeaderSize + 1, 'x');
  for (uint64_t left = kPairs; left > 0; --left) {
    const std::string claim = header(left * kPair - kFrameSize);
    with_records += claim + frame("");
    with_broken += flipped(claim, 9) + frame("");
    // Behind these pairs stand as many records again, and each header claims one more of them.
    to_other_ends += header(left * kPair + (kPairs - left) * kFrameSize) + frame("");
  }
  for (uint64_t i = 0; i <= kPairs; ++i) to_other_ends += frame("");
  // Linear, each takes a fraction of a second; quadratic, ten and more.
  CHECK(seconds_to_salvage(claims, 0) < 3);
  CHECK(seconds_to_salvage(with_records, kPairs) < 3);
  CHECK(seconds_to_salvage(with_broken, kPairs) < 3);
  CHECK(seconds_to_salvage(to_other_ends, 2 * kPairs + 1) < 3);
}

TEST(salvage_of_large_records_agrees_with_the_plain_checksum) {
  // Long ranges are checked by combining checksums of blocks.
  Random random(3);
  std::string file = "x";
  for (const size_t size : {16383, 16384, 16385, 20000, 40960, 70001})
    file += frame(random.bytes(size)) + "x";
  const Salvaged result = salvaged(file);
  CHECK_EQ(result.payloads.size(), 6u);
  CHECK_EQ(result.facts.lost.size(), 7u);
}

TEST(salvage_of_a_window_stops_where_more_bytes_are_needed) {
  const std::string five = five_records();
  const auto decided = [](const std::string& window, uint64_t beyond) {
    return salvage(Exact(window), beyond).decided;
  };
  CHECK_EQ(decided(five, 100), 135u);
  CHECK_EQ(decided(five.substr(0, 130), 5), 108u);             // a frame that ends beyond
  CHECK_EQ(decided(five.substr(0, 112), 23), 108u);            // a header that does
  CHECK_EQ(decided(five.substr(0, 130), 4), 130u - 22u);       // no room for it, and yet not the end
  CHECK_EQ(decided(flipped(five, 9).substr(0, 20), 115), 0u);  // a length that may be right
  CHECK_EQ(decided(five + std::string(40, '\0'), 1), 135u);    // zeros that may go on
  CHECK_EQ(decided(flipped(five, 0) + std::string(40, '\0'), 0), 175u);
}

TEST(salvage_of_a_window_says_how_far_no_record_starts) {
  const Salvage lost = salvage(Exact(frame("one") + std::string(100, 'x')), 1000);
  CHECK_EQ(lost.decided, 19u);
  CHECK_EQ(lost.searched, 19u + 100u - 11u);

  const Salvage at_header = salvage(Exact("xxxxxxxxxxxxxxxxxxxx" + header(500) + "payload"), 1000);
  CHECK_EQ(at_header.decided, 0u);
  CHECK_EQ(at_header.searched, 20u);
}

TEST(salvage_a11_a_damaged_length_that_is_explained_holds_nothing_up) {
  // Its payload ends in its checksum where the next record starts: nothing behind it can be inside it.
  const Salvage explained = salvage(Exact(flipped(five_records(), 0)), 1000);
  CHECK_EQ(explained.decided, 135u);
  CHECK_EQ(explained.found.size(), 4u);

  const std::string damaged_twice = flipped(flipped(five_records(), 0), 15);
  CHECK_EQ(salvage(Exact(damaged_twice), 1000).decided, 0u);
  CHECK_EQ(salvage(Exact(damaged_twice), 1000, 135).decided, 135u);
}

// One random change of the kind disks, networks and crashes make.
void damage(std::string& file, Random& random) {
  const size_t at = random.below(file.size() + 1), size = random.below(60);
  switch (random.below(6)) {
    case 0:
      if (at < file.size()) file = flipped(std::move(file), at, static_cast<int>(random.below(8)));
      break;
    case 1:
      file.erase(at, size);
      break;
    case 2:
      file.insert(at, random.bytes(size));
      break;
    case 3:
      file.replace(at, size, std::string(std::min(size, file.size() - at), '\0'));
      break;
    case 4:
      file.insert(at, file.substr(random.below(file.size() + 1), 3 * size));
      break;
    default:
      file.resize(file.size() - std::min(size, file.size()));
  }
}

TEST(salvage_of_random_damage_finds_all_that_is_whole) {
  Random random(4);
  for (int i = 0; i < 5000; ++i) {
    std::string file;
    for (uint64_t records = random.below(12); records > 0; --records)
      file += frame(random.bytes(random.below(60)));
    for (uint64_t damages = random.below(4); damages > 0; --damages) damage(file, random);
    salvage_law(Exact(file));
  }
}

TEST(salvage_of_files_built_to_mislead_finds_all_that_is_whole) {
  Random random(5);
  for (int i = 0; i < 5000; ++i) {
    const std::string plan = random.bytes(random.below(150));
    Choices choices(as_bytes(plan));
    salvage_law(Exact(hostile_file(choices)));
  }
}

}  // namespace
}  // namespace recordkit
