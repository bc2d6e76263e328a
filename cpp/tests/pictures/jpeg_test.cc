#include "core/pictures/jpeg.h"

#include <algorithm>
#include <cmath>

#include "laws/laws.h"
#include "support/check.h"
#include "support/frames.h"
#include "support/jpegs.h"

namespace recordkit {
namespace {

constexpr float kOnes[] = {1, 1, 1}, kZeros[] = {0, 0, 0};

template <typename To = float>
bool decodes(JpegDecoder& decoder, const std::string& file, size_t height, size_t width, size_t channels,
             std::vector<To>& values, Resampling how = Resampling::bilinear) {
  values.assign(height * width * channels, To{});
  const Pixels<To> to{values.data(), height, width, channels, static_cast<ptrdiff_t>(width * channels)};
  return decoder.decode(Exact(file), to, how, kOnes, kZeros);
}

bool is_decoded(const std::string& file) {
  JpegDecoder decoder;
  std::vector<float> values;
  return decodes(decoder, file, 1, 1, 1, values);
}

JpegPlan drawn(uint64_t seed) {
  const std::string plan = Random(seed).bytes(20);
  Choices choices(as_bytes(plan));
  return chosen_jpeg(choices);
}

JpegPlan plain(size_t height, size_t width, int16_t brightness = 0) {
  JpegPlan plan{height, width};
  plan.blocks.assign(plan.units_across() * plan.units_down() * 3, std::vector<int16_t>(64));
  for (size_t i = 0; i < plan.blocks.size(); i += 3) plan.blocks[i][0] = brightness;
  return plan;
}

// The file with the first occurrence of some bytes replaced.
std::string with(std::string file, const std::string& old, const std::string& bytes) {
  const size_t at = file.find(old);
  CHECK(at != std::string::npos);
  return file.replace(at, old.size(), bytes);
}

TEST(pixels_are_what_their_coefficients_add_up_to) {
  JpegDecoder decoder, portable(true);  // used again for pictures of all kinds
  Random random(1);
  for (uint64_t seed = 0; seed < 150; ++seed) {
    const JpegPlan plan = drawn(seed);
    const std::string file = written(plan);
    const size_t height = 1 + random.below(plan.height), width = 1 + random.below(plan.width);
    const size_t channels = plan.components == 1 ? 1 : 1 + 2 * random.below(2);
    const Resampling how = random.below(2) ? Resampling::bilinear : Resampling::area;
    std::vector<float> values, again;
    std::vector<uint8_t> bytes;

    CHECK(decodes(decoder, file, height, width, channels, values, how));
    CHECK(decodes(portable, file, height, width, channels, again, how));
    CHECK(decodes(decoder, file, height, width, channels, bytes, how));

    const std::vector<double> wanted = expected_pixels(plan, height, width, channels, how);
    for (size_t i = 0; i < wanted.size(); ++i) {
      CHECK(std::abs(values[i] - wanted[i]) < 0.02);
      CHECK(std::abs(bytes[i] - wanted[i]) < 0.52);
    }
    CHECK(values == again);
  }
}

TEST(grey_is_the_same_in_three_channels) {
  JpegDecoder decoder;
  std::vector<float> one, three;
  JpegPlan plan = plain(9, 8);
  plan.components = 1;
  plan.blocks.assign(2, std::vector<int16_t>(64));
  plan.blocks[1][0] = 80;

  CHECK(decodes(decoder, written(plan), 9, 8, 1, one) && decodes(decoder, written(plan), 9, 8, 3, three));

  CHECK_EQ(std::lround(one[0]), 128);
  CHECK_EQ(std::lround(one[8 * 8]), 138);
  for (size_t i = 0; i < three.size(); ++i) CHECK_EQ(three[i], one[i / 3]);
}

TEST(values_are_scaled_and_shifted_by_channel) {
  JpegDecoder decoder;
  std::vector<float> values(3);
  const float scale[] = {1, 2, 0.5f}, shift[] = {0, 1, -64};

  const bool ok = decoder.decode<float>(Exact(written(plain(8, 8))), {values.data(), 1, 1, 3, 3},
                                        Resampling::bilinear, scale, shift);

  CHECK(ok);
  CHECK(values == std::vector<float>{128, 257, 0});
}

TEST(nothing_is_written_behind_the_picture) {
  JpegDecoder decoder;
  const std::string file = written(plain(40, 30, 50));
  for (const size_t width : {1, 7, 8, 30}) {
    std::vector<float> values(5 * 40 * 3, -1);
    const Pixels<float> to{values.data(), 5, width, 3, 40 * 3};

    CHECK(decoder.decode(Exact(file), to, Resampling::bilinear, kOnes, kZeros));

    for (size_t i = 0; i < values.size(); ++i) CHECK_EQ(values[i] == -1, i % 120 >= 3 * width);
  }
}

TEST(jpeg_that_is_cut_anywhere_is_not_decoded) {
  for (const uint64_t seed : {3, 4, 5}) {
    const std::string file = written(drawn(seed));
    CHECK(is_decoded(file) && is_decoded(file + "behind the end"));
    for (size_t size = 0; size < file.size(); ++size) CHECK(!is_decoded(file.substr(0, size)));
  }
}

TEST(size_that_would_make_it_larger_is_not_decoded) {
  JpegDecoder decoder;
  std::vector<float> values;
  const std::string file = written(plain(20, 30));
  CHECK(decodes(decoder, file, 20, 30, 3, values));
  CHECK(!decodes(decoder, file, 21, 30, 3, values));
  CHECK(!decodes(decoder, file, 20, 31, 3, values));
}

TEST(other_kinds_of_jpegs_are_left_to_others) {
  const std::string file = written(plain(8, 8));
  CHECK(is_decoded(file));
  CHECK(is_decoded(with(file, "\xff\xc0", "\xff\xc1")));   // more tables, which are not needed
  CHECK(!is_decoded(with(file, "\xff\xc0", "\xff\xc2")));  // progressive
  CHECK(!is_decoded(with(file, "\xff\xc0", "\xff\xc9")));  // arithmetic
  const std::string frame = unhex("00 11 08 00 08 00 08 03 01 11 00 02 11 00 03 11 00");
  const auto with_frame = [&](const char* text) { return with(file, frame, unhex(text)); };
  CHECK(is_decoded(with_frame("00 11 08 00 08 00 08 03 01 11 00 02 11 00 03 11 00")));
  CHECK(!is_decoded(with_frame("00 11 0c 00 08 00 08 03 01 11 00 02 11 00 03 11 00")));  // 12 bits
  CHECK(!is_decoded(with_frame("00 11 08 00 00 00 08 03 01 11 00 02 11 00 03 11 00")));  // no height
  CHECK(!is_decoded(with_frame("00 11 08 00 08 00 08 03 01 41 00 02 11 00 03 11 00")));  // four a unit
  CHECK(!is_decoded(with_frame("00 11 08 00 08 00 08 03 01 11 00 02 21 00 03 11 00")));  // more of a colour
  CHECK(!is_decoded(with_frame("00 11 08 00 08 00 08 03 01 11 01 02 11 00 03 11 00")));  // no such table
  CHECK(!is_decoded(with_frame("00 11 08 00 08 00 08 03 01 11 00 01 11 00 03 11 00")));  // twice the same
}

TEST(colours_are_told_as_libjpeg_does) {
  const std::string file = written(plain(8, 8)), jfif = file.substr(2, 18);
  const auto adobe = [](char colours) {
    return unhex("ff ee 00 0e 41 64 6f 62 65 00 64 00 00 00 00") + colours;
  };
  CHECK(is_decoded(with(file, jfif, "")));
  CHECK(is_decoded(with(file, jfif, adobe(1))));
  CHECK(!is_decoded(with(file, jfif, adobe(0))));
  CHECK(!is_decoded(with(file, jfif, adobe(2))));
  CHECK(is_decoded(with(file, jfif, adobe(0) + jfif)));
  CHECK(!is_decoded(with(file, std::string("JFIF\0\1", 6), std::string("JFIF\0\2", 6))));
  const auto renamed = [&](const std::string& made) {  // to R, G, B
    return with(with(made, unhex("03 01 11 00 02 11 00 03 11 00"), unhex("03 52 11 00 47 11 00 42 11 00")),
                unhex("03 01 00 02 00 03 00"), unhex("03 52 00 47 00 42 00"));
  };
  CHECK(is_decoded(renamed(file)));
  CHECK(!is_decoded(renamed(with(file, jfif, ""))));
}

TEST(what_libjpeg_would_warn_of_is_not_decoded) {
  JpegPlan plan = plain(8, 40);
  plan.restart_interval = 2;
  const std::string file = written(plan), end = "\xff\xd9";
  CHECK(is_decoded(file));
  CHECK(!is_decoded(with(file, end, std::string(1, '\0') + end)));  // more than there are blocks for
  CHECK(!is_decoded(with(file, "\xff\xd1", "\xff\xd2")));           // out of turn
  CHECK(!is_decoded(with(file, "\xff\xd0", "x\xff\xd0")));          // more than the interval
  CHECK(!is_decoded(with(file, "\xff\xd1", "\xff\xdb")));           // not where it belongs
  CHECK(!is_decoded(with(file, end, "\xff\xff\xd9")));
  CHECK(!is_decoded(with(file, unhex("00 3f 00"), unhex("00 3e 00"))));  // not all coefficients
  CHECK(!is_decoded(with(file, "\xff\xdb", "x\xff\xdb")));               // between segments
}

TEST(codes_that_cannot_be_are_not_decoded) {
  const std::string file = written(plain(8, 8));
  const std::string counts = unhex("00 00 01 05 01 01 01 01 01 01 00 00 00 00 00 00 00");
  CHECK(is_decoded(with(file, counts, counts)));
  CHECK(!is_decoded(with(file, counts, unhex("00 00 04 02 01 01 01 01 01 01 00 00 00 00 00 00 00"))));
  CHECK(!is_decoded(with(file, counts, unhex("00 00 00 08 00 00 01 01 01 01 00 00 00 00 00 00 00"))));
  CHECK(!is_decoded(with(file, counts, unhex("04 00 01 05 01 01 01 01 01 01 00 00 00 00 00 00 00"))));
}

TEST(header_that_claims_too_much_gets_no_memory) {
  const std::string file = written(plain(8, 8));
  CHECK(!is_decoded(with(file, unhex("08 00 08 00 08 03"), unhex("08 ff dc ff dc 03"))));
  CHECK(!is_decoded(with(file, unhex("08 00 08 00 08 03"), unhex("08 ff ff 00 08 03"))));
}

TEST(first_coefficient_that_grows_out_of_range_is_not_decoded) {
  for (const size_t count : {16, 17}) {
    JpegPlan plan = plain(8, 8 * count);
    for (size_t i = 0; i < count; ++i) plan.blocks[3 * i][0] = static_cast<int16_t>(2040 * (i + 1));
    CHECK_EQ(is_decoded(written(plan)), count == 16);
  }
}

TEST(any_bytes_are_decoded_the_same_by_both_ways) {
  Random random(9);
  for (int i = 0; i < 300; ++i) {
    const std::string plan = random.bytes(40);
    Choices choices(as_bytes(plan));
    jpeg_law(Exact(hostile_jpeg(choices)));
  }
}

}  // namespace
}  // namespace recordkit
