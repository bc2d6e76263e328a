// Writes the corpus: the hostile files of SCENARIOS.md, each under a name that says what it is.
//
//     make_corpus FOLDER
#include <filesystem>
#include <fstream>
#include <map>

#include "support/frames.h"
#include "support/jpegs.h"
#include "support/reference.h"

using namespace recordkit;

namespace {

using Files = std::map<std::string, std::string>;

std::string with(std::string file, size_t at, std::string_view bytes) {
  return file.replace(at, bytes.size(), bytes);
}

std::string with_crc(std::string_view payload, uint32_t crc) {
  std::string file = header(payload.size()).append(payload);
  return file.append(reinterpret_cast<const char*>(&crc), 4);
}

Files records() {
  const std::string five = five_records(), empty = frame(""), ones(8, '\xff');
  Files files{
      {"empty-file", ""},
      {"empty-record", empty},
      {"abc", frame("abc")},
      {"event", frame(unhex("09 00 00 80 38 99 d6 d7 41 1a 0d") + "brain.Event:2")},
      {"example", frame(unhex("0a 0c 0a 0a 0a 01 61 12 05 1a 03 0a 01 01"))},
      {"five", five},
      {"a1-flipped-payload", flipped(five, 12)},
      {"a2-flipped-payload-crc", flipped(five, 24)},
      {"a3-flipped-length-crc", flipped(five, 9)},
      {"a4-length-off-by-one", with(five, 0, "\x0c")},
      {"a4-length-plus-4g", with(five, 4, "\x01")},
      {"a4-length-all-ones", with(five, 0, ones)},
      {"a4-length-negative", with(five, 7, "\x80")},
      {"a5-middle-length", with(five, 54, "\x0c")},
      {"a7-zeros-inside", with(five, 50, std::string(50, '\0'))},
      {"a7-ones-inside", with(five, 50, std::string(50, '\xff'))},
      {"a10-empty-in-the-middle", five.substr(0, 54) + empty + five.substr(54)},
      {"a11-nested", frame(five) + frame("after")},
      {"a11-nested-outer-length-damaged", flipped(frame(five) + frame("after"), 1)},
      {"a11-nested-outer-payload-damaged", flipped(frame(five) + frame("after"), 20)},
      {"a11-nested-torn", frame(five).substr(0, 140)},
      {"a12-false-header", frame("one" + header(5) + "false") + header(9) + "no record" + frame("two")},
      {"a13-unmasked-crc", with_crc("abc", crc32c(as_bytes("abc")))},
      {"a13-zero-crc", with_crc("abc", 0)},
      {"a15-stray-bytes", five + "???" + five},
      {"a15-torn-then-appended", five.substr(0, 100) + five},
      {"a15-torn-then-appended-even", frame(std::string(38, 'x')).substr(0, 27) + five},
      {"length-2-64", header(UINT64_MAX) + "payload" + five},
      {"length-2-63", header(uint64_t{1} << 63) + five},
      {"length-2-32", header(uint64_t{1} << 32) + five},
      {"length-one-too-many", header(five.size() - 3) + five},
      {"next-frame-within-damaged", frame(std::string(60, 'x')).erase(20, 27) + five},
  };
  for (const size_t size : {1, 3, 8, 12, 27})
    files["a6-deleted-" + std::to_string(size)] = std::string(five).erase(60, size);
  for (const size_t size : {1, 5})
    files["a6-inserted-" + std::to_string(size)] = std::string(five).insert(60, size, 'i');
  for (const size_t size : {1, 8, 12, 16, 600})
    files["a8-zero-tail-" + std::to_string(size)] = five + std::string(size, '\0');
  for (const size_t size : {109, 115, 116, 119, 120, 125, 131, 132})
    files["a9-cut-at-" + std::to_string(size)] = five.substr(0, size);
  std::string text_mode;
  for (const char c : files["example"]) text_mode += c == '\n' ? "\r\n" : std::string(1, c);
  files["a14-text-mode"] = text_mode;
  // Every header claims the rest of the file.
  std::string claims;
  for (uint64_t size = 40; size > 0; --size) claims += header(size * kHeaderSize - kFrameSize);
  files["nested-lengths"] = claims;
  return files;
}

Files examples() {
  const std::string ints = unhex("1a 03 0a 01 07"), floats = unhex("12 06 0a 04 ec d1 1e 3f");
  const std::string texts = unhex("0a 08 0a 03 61 00 00 0a 01 62");
  const std::string one = example_of("a", ints);
  const auto entry = [](std::string_view name, std::string_view feature) {
    return bytes_field(1, bytes_field(1, name) + bytes_field(2, feature));
  };
  Files files{
      {"empty", ""},
      {"packed", unhex("0a0c0a0a0a016112051a030a0101")},
      {"unpacked", unhex("0a0b0a090a016112041a020801")},
      {"empty-list", unhex("0a090a070a016112021a00")},
      {"empty-float-list", unhex("0a090a070a0161120212 00")},
      {"no-kind", unhex("0a070a050a01611200")},
      {"minus-one", example_of("a", unhex("1a 0c 0a 0a ff ff ff ff ff ff ff ff ff 01"))},
      {"int64-min", example_of("a", unhex("1a 0c 0a 0a 80 80 80 80 80 80 80 80 80 01"))},
      {"varint-too-long", example_of("a", unhex("1a 0d 0a 0b ff ff ff ff ff ff ff ff ff ff 01"))},
      {"varint-tenth-byte", example_of("a", unhex("1a 0c 0a 0a ff ff ff ff ff ff ff ff ff 02"))},
      {"length-of-five-bytes", unhex("8a 80 80 80 00 8e 80 80 80 00") + one.substr(2) + unhex("20 07")},
      {"length-of-six-bytes", unhex("0a 8c 80 80 80 80 00") + one.substr(2)},
      {"varint-long-zero", example_of("a", unhex("1a 05 0a 03 80 80 00"))},
      {"varint-cut", example_of("a", unhex("1a 04 0a 02 01 80"))},
      {"float", example_of("a", floats)},
      {"float-nan", example_of("a", unhex("12 06 0a 04 01 02 c0 7f"))},
      {"floats-partial", example_of("a", unhex("12 07 0a 05 00 00 00 00 00"))},
      {"bytes-with-nuls", example_of("a", texts)},
      {"length-past-end", unhex("0a 7f 0a 0a 0a 01 61")},
      {"inner-length-past-end", example_of("a", unhex("1a 7f 0a 01 07"))},
      {"name-not-utf8", example_of("\xff\xfe", ints)},
      {"name-not-utf8-long", example_of(std::string(140, '\xff'), ints)},
      {"merged", one + example_of("b", floats) + example_of("c", texts)},
      {"same-name-twice", one + example_of("a", unhex("1a 03 0a 01 08"))},
      {"same-name-other-kind", example_of("a", floats) + one},
      {"same-name-then-no-kind", one + example_of("a", "")},
      {"same-name-first-malformed", example_of("a", unhex("1a 03 0a 01 80")) + one},
      {"two-kinds", example_of("a", floats + ints)},
      {"kind-again", example_of("a", ints + floats + ints)},
      {"list-twice", example_of("a", ints + ints)},
      {"packed-and-unpacked", example_of("a", unhex("1a 07 0a 02 01 02 08 03 0a 00"))},
      {"several-chunks", example_of("a", unhex("1a 07 0a 01 01 0a 02 02 03"))},
      {"floats-packed-and-unpacked", example_of("a", unhex("12 0b 0a 04 00 00 80 3f 0d 00 00 00 40"))},
      {"value-before-name", bytes_field(1, bytes_field(1, bytes_field(2, ints) + bytes_field(1, "a")))},
      {"two-names",
       bytes_field(1, bytes_field(1, bytes_field(1, "a") + bytes_field(2, ints) + bytes_field(1, "b")))},
      {"two-values",
       bytes_field(1, bytes_field(1, bytes_field(1, "a") + bytes_field(2, ints) + bytes_field(2, ints)))},
      {"empty-name", example_of("", ints) + one},
      {"no-name", bytes_field(1, bytes_field(1, bytes_field(2, ints)))},
      {"no-value", bytes_field(1, bytes_field(1, bytes_field(1, "a")))},
      {"empty-entry", bytes_field(1, bytes_field(1, ""))},
      {"long-then-short",
       bytes_field(
           1, entry("image", bytes_field(1, bytes_field(1, std::string(200, 'i')))) + entry("label", ints))},
      {"long-name-then-short", bytes_field(1, entry(std::string(200, 'n'), ints) + entry("label", ints))},
      {"many-longs-then-short", bytes_field(1, entry(std::string(130, 'm'), ints) +
                                                   entry(std::string(140, 'n'), floats) + entry("z", ints))},
      {"unknown-fields", unhex("1d 01 02 03 04 ba 3e 03 61 62 63") + one + unhex("20 07")},
      {"group", unhex("1b 08 01 1b 1c 1c") + one},
      {"group-open", unhex("1b 08 01") + one},
      {"group-mismatch", unhex("1b 24") + one},
      {"groups-deep", std::string(100, '\x1b') + std::string(100, '\x1c') + one},
      {"groups-too-deep", std::string(101, '\x1b') + std::string(101, '\x1c') + one},
      {"groups-deep-inside", example_of("a", std::string(97, '\x23') + std::string(97, '\x24') + ints)},
      {"groups-too-deep-inside", example_of("a", std::string(98, '\x23') + std::string(98, '\x24') + ints)},
      {"group-with-field-zero", unhex("1b 00 01 1c") + one},
      {"tag-zero", unhex("00 01") + one},
      {"tag-too-long", unhex("8a 80 80 80 80 00 00") + one},
      {"wire-type-7", unhex("0f") + one},
      {"sequence", one + bytes_field(2, entry("s", bytes_field(1, ints) + bytes_field(1, unhex("1a 00"))) +
                                            entry("t", bytes_field(1, floats) + bytes_field(1, floats)))},
      {"sequence-no-steps", bytes_field(2, entry("s", ""))},
      {"sequence-kinds-mixed", bytes_field(2, entry("s", bytes_field(1, ints) + bytes_field(1, floats)))},
      {"sequence-step-without-kind", bytes_field(2, entry("s", bytes_field(1, ints) + bytes_field(1, "")))},
      {"sequence-same-name-twice",
       bytes_field(2, entry("s", bytes_field(1, ints)) + entry("s", bytes_field(1, texts)))},
  };
  std::string forty;
  for (int i = 0; i < 40; ++i)
    forty += entry("feature/" + std::to_string(i), i % 3 == 0 ? ints : i % 3 == 1 ? floats : texts);
  files["forty"] = bytes_field(1, forty);
  return files;
}

Files jpegs() {
  Files files;
  const auto add = [&](const char* name, JpegPlan plan) {
    Random random(1);
    for (size_t i = plan.units_across() * plan.units_down() * plan.unit(); i > 0; --i) {
      std::vector<int16_t> block(64);
      for (uint64_t k = random.below(9); k > 0; --k)
        block[random.below(64)] = static_cast<int16_t>(static_cast<int64_t>(random.below(120)) - 60);
      plan.blocks.push_back(std::move(block));
    }
    files[name] = written(plan);
  };
  add("grey", {9, 15, 1});
  add("colour", {8, 17, 3});
  add("colour-halved-across", {8, 17, 3, 2, 1});
  add("colour-halved-down", {17, 8, 3, 1, 2});
  add("colour-halved", {17, 20, 3, 2, 2});
  add("restarts", {8, 24, 3, 1, 1, 1});
  return files;
}

void write(const std::filesystem::path& folder, const Files& files) {
  std::filesystem::create_directories(folder);
  for (const auto& [name, bytes] : files) std::ofstream(folder / name, std::ios::binary) << bytes;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 1;
  write(std::filesystem::path(arguments[1]) / "records", records());
  write(std::filesystem::path(arguments[1]) / "examples", examples());
  write(std::filesystem::path(arguments[1]) / "jpegs", jpegs());
}
