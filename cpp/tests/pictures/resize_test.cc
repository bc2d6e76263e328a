#include "core/pictures/resize.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "support/check.h"

namespace recordkit {
namespace {

// A picture in memory that ends where it ends, so that the sanitizer sees a read behind it.
template <typename T>
struct Picture {
  size_t height, width, channels;
  std::vector<T> values = std::vector<T>(height * width * channels);

  T& at(size_t y, size_t x, size_t channel) { return values[(y * width + x) * channels + channel]; }
  ptrdiff_t stride() const { return static_cast<ptrdiff_t>(width * channels); }
  Pixels<const T> view() const { return {values.data(), height, width, channels, stride()}; }
  Pixels<T> target() { return {values.data(), height, width, channels, stride()}; }
};

template <typename T>
Picture<T> drawn(std::mt19937& random, size_t height, size_t width, size_t channels) {
  Picture<T> picture{height, width, channels};
  for (T& value : picture.values) value = static_cast<T>(random() % 256);
  return picture;
}

template <typename To, typename From>
Picture<To> resized(const Picture<From>& from, size_t height, size_t width, Resampling how,
                    bool mirrored = false) {
  Picture<To> to{height, width, from.channels};
  const std::vector<float> ones(from.channels, 1), zeros(from.channels);
  resize(from.view(), to.target(), how, mirrored, ones.data(), zeros.data());
  return to;
}

TEST(narrow_pictures_are_resized_without_a_look_behind_their_ends) {
  // Two pixels of three bytes are loaded as eight, and at the end of a row as the eight before it: the only
  // row of a picture that is less than three pixels wide has not so many. The sanitizer looks on.
  std::mt19937 random(5);
  for (size_t from = 1; from <= 4; ++from)
    for (size_t channels = 1; channels <= 5; ++channels)
      for (size_t height = 1; height <= 3; ++height)
        for (size_t to = 1; to <= 9; ++to)
          for (const bool mirrored : {false, true}) {
            Picture<uint8_t> picture = drawn<uint8_t>(random, height, from, channels);
            Picture<float> floats{height, from, channels};
            std::copy(picture.values.begin(), picture.values.end(), floats.values.begin());
            for (const Resampling how : {Resampling::nearest, Resampling::bilinear, Resampling::area}) {
              const Picture<float> bytes = resized<float>(picture, 2, to, how, mirrored);
              CHECK(bytes.values == resized<float>(floats, 2, to, how, mirrored).values);
            }
          }
}

double share(Resampling how, size_t from, size_t to, size_t number, size_t old) {
  const double step = static_cast<double>(from) / static_cast<double>(to);
  if (how == Resampling::area) {
    const double start = static_cast<double>(number) * step, left = static_cast<double>(old);
    return std::max(0.0, std::min(left + 1, start + step) - std::max(left, start)) / step;
  }
  const double centre = (static_cast<double>(number) + 0.5) * step;
  if (how == Resampling::nearest) return static_cast<size_t>(centre) == old ? 1 : 0;
  const double position = std::clamp(centre - 0.5, 0.0, static_cast<double>(from - 1));
  return std::max(0.0, 1 - std::abs(position - static_cast<double>(old)));
}

// By the definition: every old pixel with its share.
template <typename T>
double expected(Picture<T>& from, size_t height, size_t width, Resampling how, size_t y, size_t x,
                size_t channel) {
  double sum = 0;
  for (size_t i = 0; i < from.height; ++i) {
    const double down = share(how, from.height, height, y, i);
    if (down == 0) continue;
    for (size_t j = 0; j < from.width; ++j)
      sum += down * share(how, from.width, width, x, j) * static_cast<double>(from.at(i, j, channel));
  }
  return sum;
}

constexpr Resampling kAll[] = {Resampling::nearest, Resampling::bilinear, Resampling::area};

template <typename T>
void check_against_definition(size_t cases) {
  std::mt19937 random(3);
  for (size_t i = 0; i < cases; ++i) {
    Picture<T> from = drawn<T>(random, 1 + random() % 16, 1 + random() % 16, 1 + random() % 6);
    // Not so that positions fall between pixels by rounding alone: nearest would be a matter of luck.
    const size_t height = 1 + random() % 16, width = 1 + random() % 16;
    for (const Resampling how : {Resampling::bilinear, Resampling::area}) {
      Picture<float> floats = resized<float>(from, height, width, how);
      Picture<uint8_t> bytes = resized<uint8_t>(from, height, width, how);
      for (size_t y = 0; y < height; ++y)
        for (size_t x = 0; x < width; ++x)
          for (size_t c = 0; c < from.channels; ++c) {
            const double wanted = expected(from, height, width, how, y, x, c);
            CHECK(std::abs(floats.at(y, x, c) - wanted) < 1e-3);
            CHECK(std::abs(bytes.at(y, x, c) - wanted) < 0.5 + 1e-3);
          }
    }
  }
}

TEST(resized_pixels_are_what_their_shares_of_old_ones_add_up_to) {
  check_against_definition<uint8_t>(120);
  check_against_definition<float>(60);
}

TEST(nearest_takes_the_pixel_that_a_centre_lies_in) {
  std::mt19937 random(5);
  for (const size_t factor : {1, 3, 5}) {
    Picture<float> from = drawn<float>(random, 4 * factor, 6 * factor, 2);
    Picture<float> to = resized<float>(from, 4, 6, Resampling::nearest);
    for (size_t y = 0; y < 4; ++y)
      for (size_t x = 0; x < 6; ++x)
        CHECK_EQ(to.at(y, x, 1), from.at(factor * y + factor / 2, factor * x + factor / 2, 1));
  }
}

TEST(resizing_to_the_same_size_changes_nothing) {
  std::mt19937 random(7);
  for (const size_t channels : {1, 2, 3, 4, 5, 9})
    for (const size_t width : {1, 2, 3, 4, 50}) {
      const Picture<uint8_t> from = drawn<uint8_t>(random, 7, width, channels);
      for (const Resampling how : kAll) CHECK(resized<uint8_t>(from, 7, width, how).values == from.values);
    }
}

TEST(plain_surface_stays_exactly_what_it_is) {
  Picture<uint8_t> from{37, 41, 3};
  std::fill(from.values.begin(), from.values.end(), uint8_t{201});
  for (const size_t side : {1, 2, 3, 30, 64})
    for (const float value : resized<float>(from, side, 2 * side, Resampling::bilinear).values)
      CHECK_EQ(value, 201.0f);
}

TEST(picture_on_its_head_and_mirrored_is_the_resized_one_turned) {
  std::mt19937 random(11);
  for (const size_t channels : {1, 3}) {
    const Picture<uint8_t> from = drawn<uint8_t>(random, 9, 13, channels);
    for (const Resampling how : kAll) {
      // Of sizes whose positions single precision tells exactly, from either side.
      Picture<float> upright = resized<float>(from, 4, 8, how);
      Picture<float> turned{4, 8, channels};
      const std::vector<float> ones(channels, 1), zeros(channels);
      const uint8_t* const last_row = from.values.data() + 8 * from.stride();
      resize<uint8_t, float>({last_row, 9, 13, channels, -from.stride()}, turned.target(), how, true,
                             ones.data(), zeros.data());
      for (size_t y = 0; y < 4; ++y)
        for (size_t x = 0; x < 8; ++x)
          CHECK(std::abs(turned.at(y, x, 0) - upright.at(3 - y, 7 - x, 0)) < 1e-3);
    }
  }
}

TEST(channels_have_factors_of_their_own) {
  Picture<uint8_t> from{1, 1, 3, {10, 20, 30}};
  Picture<float> to{1, 2, 3};
  const float scale[] = {1, 0.5f, 2}, shift[] = {0, 1, -60};

  resize(from.view(), to.target(), Resampling::bilinear, false, scale, shift);

  CHECK(to.values == std::vector<float>{10, 11, 0, 10, 11, 0});
}

TEST(bytes_are_held_within_their_range) {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinite = std::numeric_limits<float>::infinity();
  const Picture<float> from{1, 7, 1, {-infinite, -3, 0.5f, 254.6f, 1e30f, infinite, nan}};

  const Picture<uint8_t> to = resized<uint8_t>(from, 1, 7, Resampling::nearest);

  CHECK(to.values == std::vector<uint8_t>{0, 0, 1, 255, 255, 255, 0});
}

TEST(nearest_keeps_what_is_no_number) {
  const Picture<float> from{1, 2, 1, {std::numeric_limits<float>::infinity(), 1}};

  CHECK(resized<float>(from, 1, 2, Resampling::nearest).values == from.values);
}

TEST(nothing_is_written_behind_the_picture) {
  std::mt19937 random(13);
  for (const size_t channels : {1, 2, 3, 4, 5}) {
    const Picture<uint8_t> from = drawn<uint8_t>(random, 5, 6, channels);
    const std::vector<float> ones(channels, 1), zeros(channels);
    for (const Resampling how : kAll) {
      std::vector<float> memory(3 * 4 * channels + 4, -1);
      const auto stride = static_cast<ptrdiff_t>(4 * channels);
      resize<uint8_t, float>(from.view(), {memory.data(), 3, 4, channels, stride}, how, false, ones.data(),
                             zeros.data());
      CHECK(std::all_of(memory.end() - 4, memory.end(), [](float value) { return value == -1; }));
    }
  }
}

TEST(large_picture_is_resized_as_its_parts_are) {
  std::mt19937 random(17);
  const Picture<uint8_t> from = drawn<uint8_t>(random, 300, 31, 3);
  for (const size_t width : {87, 90, 94})  // rows that begin anywhere in memory
    for (const size_t before : {0, 1, 3}) {
      const size_t size = 300 * width * 3;
      const auto stride = static_cast<ptrdiff_t>(width * 3);
      std::vector<float> whole(before + size + 8, -1), part(width * 3);
      const float scale[] = {1, 0.5f, 2}, shift[] = {0, 1, -60};
      resize<uint8_t, float>(from.view(), {whole.data() + before, 300, width, 3, stride},
                             Resampling::bilinear, false, scale, shift);
      for (size_t y = 0; y < 300; ++y) {
        const Pixels<const uint8_t> row{from.values.data() + y * 93, 1, 31, 3, 93};
        resize<uint8_t, float>(row, {part.data(), 1, width, 3, stride}, Resampling::bilinear, false, scale,
                               shift);
        CHECK(std::equal(part.begin(), part.end(), whole.data() + before + y * width * 3));
      }
      CHECK(std::all_of(whole.begin(), whole.begin() + before, [](float value) { return value == -1; }));
      CHECK(std::all_of(whole.end() - 8, whole.end(), [](float value) { return value == -1; }));
    }
}

}  // namespace
}  // namespace recordkit
