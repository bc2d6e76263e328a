#include "support/jpegs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>

#include "core/pictures/jpeg_huffman.h"

namespace recordkit {
namespace {

struct Codes {
  std::string counts, symbols;
  std::map<uint8_t, std::string> codes{};  // as text of 0 and 1
};

// As many codes of each length as the standard's tables have: of two bits up to sixteen.
Codes made_codes(std::array<uint8_t, 16> counts, const std::vector<uint8_t>& symbols) {
  Codes made{std::string(counts.begin(), counts.end()), std::string(symbols.begin(), symbols.end())};
  uint32_t code = 0;
  size_t place = 0;
  for (size_t length = 1; length <= 16; ++length, code *= 2)
    for (size_t i = 0; i < counts[length - 1]; ++i, ++code) {
      std::string& text = made.codes[symbols[place++]];
      for (size_t bit = length; bit-- > 0;) text += code >> bit & 1 ? '1' : '0';
    }
  return made;
}

const Codes& first_codes() {
  static const Codes codes =
      made_codes({0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  return codes;
}

const Codes& other_codes() {
  static const Codes codes = [] {
    std::vector<uint8_t> symbols{0, 0xf0};
    for (int run = 0; run < 16; ++run)
      for (int size = 1; size <= 10; ++size) symbols.push_back(static_cast<uint8_t>(16 * run + size));
    std::stable_sort(symbols.begin(), symbols.end(),
                     [](uint8_t a, uint8_t b) { return a / 16 + a % 16 < b / 16 + b % 16; });
    return made_codes({0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 0x7d}, symbols);
  }();
  return codes;
}

class Writer {
 public:
  void code(const Codes& codes, size_t zeros, int value) {
    size_t size = 0;
    while (std::abs(value) >> size) ++size;
    bits(codes.codes.at(static_cast<uint8_t>(16 * zeros + size)));
    if (value < 0) value += (1 << size) - 1;
    for (size_t bit = size; bit-- > 0;) bits(value >> bit & 1 ? "1" : "0");
  }

  void block(const std::vector<int16_t>& block, int& predicted) {
    code(first_codes(), 0, static_cast<int16_t>(block[0] - predicted));  // which may go on past 16 bits
    predicted = block[0];
    size_t zeros = 0;
    for (size_t i = 1; i < 64; ++i) {
      const int value = block[kZigzag[i]];
      if (value == 0) {
        ++zeros;
        continue;
      }
      for (; zeros > 15; zeros -= 16) bits(other_codes().codes.at(0xf0));
      code(other_codes(), zeros, value);
      zeros = 0;
    }
    if (zeros > 0) bits(other_codes().codes.at(0));
  }

  // Fills the last byte and writes a marker.
  void marker(size_t number) {
    while (count_ != 0) bits("1");
    text_ += '\xff';
    text_ += static_cast<char>(number);
  }

  std::string text() const { return text_; }

 private:
  void bits(const std::string& text) {
    for (const char bit : text) {
      byte_ = 2 * byte_ + (bit == '1');
      if (++count_ < 8) continue;
      text_ += static_cast<char>(byte_);
      if (static_cast<uint8_t>(byte_) == 0xff) text_ += '\0';
      byte_ = count_ = 0;
    }
  }

  std::string text_;
  int byte_ = 0, count_ = 0;
};

std::string two_bytes(size_t value) { return {static_cast<char>(value >> 8), static_cast<char>(value)}; }

std::string segment(uint8_t marker, const std::string& text) {
  return std::string{'\xff', static_cast<char>(marker)} + two_bytes(text.size() + 2) + text;
}

}  // namespace

std::string written(const JpegPlan& plan) {
  std::string file = "\xff\xd8" + segment(0xe0, std::string("JFIF\0\1\1\0\0\1\0\1\0\0", 14));
  std::string frame = "\10" + two_bytes(plan.height) + two_bytes(plan.width), scan;
  frame += scan += static_cast<char>(plan.components);
  for (size_t i = 0; i < plan.components; ++i) {
    const size_t sides = i == 0 ? 16 * plan.across + plan.down : 0x11;
    frame += {static_cast<char>(i + 1), static_cast<char>(sides), 0};
    scan += {static_cast<char>(i + 1), 0};
  }
  file += segment(0xdb, std::string(1, '\0') + std::string(64, static_cast<char>(plan.step)));
  file += segment(0xc0, frame);
  file += segment(0xc4, '\0' + first_codes().counts + first_codes().symbols + '\x10' + other_codes().counts +
                            other_codes().symbols);
  if (plan.restart_interval) file += segment(0xdd, two_bytes(plan.restart_interval));
  file += segment(0xda, scan + std::string("\0\77\0", 3));
  Writer writer;
  std::array<int, 3> predicted{};
  const size_t unit = plan.unit();
  for (size_t i = 0; i < plan.blocks.size(); ++i) {
    const size_t units = i / unit;
    if (plan.restart_interval && i % unit == 0 && units > 0 && units % plan.restart_interval == 0) {
      writer.marker(0xd0 + (units / plan.restart_interval - 1) % 8);
      predicted = {};
    }
    const size_t place = i % unit, colours = plan.components == 1 ? 1 : unit - 2;
    writer.block(plan.blocks[i], predicted[place < colours ? 0 : place - colours + 1]);
  }
  writer.marker(0xd9);
  return file + writer.text();
}

JpegPlan chosen_jpeg(Choices& choices) {
  JpegPlan plan;
  plan.components = choices.below(4) == 0 ? 1 : 3;
  plan.across = plan.components == 1 ? 1 : 1 + choices.below(2);
  plan.down = plan.components == 1 ? 1 : 1 + choices.below(2);
  plan.height = 1 + choices.below(50);
  plan.width = 1 + choices.below(50);
  plan.restart_interval = choices.below(3) == 0 ? 1 + choices.below(5) : 0;
  plan.step = static_cast<int>(1 + choices.below(20));
  // Blocks are repeated where there are fewer choices than blocks.
  Random random(1 + choices.below(256));
  const uint64_t fullness = choices.below(3);
  for (size_t i = plan.units_across() * plan.units_down() * plan.unit(); i > 0; --i) {
    std::vector<int16_t> block(64);
    const uint64_t share = fullness == 0 ? 0 : 1 + random.below(fullness == 1 ? 10 : 100);
    for (int16_t& value : block)
      if (random.below(100) < share) {
        const uint64_t most = uint64_t{2} << random.below(random.below(10) + 1);
        value =
            static_cast<int16_t>(static_cast<int64_t>(random.below(most)) - static_cast<int64_t>(most / 2));
      }
    block[0] = static_cast<int16_t>(static_cast<int64_t>(random.below(400)) - 200);
    plan.blocks.push_back(std::move(block));
  }
  return plan;
}

std::string hostile_jpeg(Choices& choices) {
  std::string file = written(chosen_jpeg(choices));
  for (uint64_t changes = choices.below(4); changes > 0; --changes) {
    const size_t at = choices.below(std::min<size_t>(file.size(), 65536));
    switch (choices.below(4)) {
      case 0:
        file[at] = static_cast<char>(choices.word(1));
        break;
      case 1:
        file.erase(at, 1 + choices.below(8));
        break;
      case 2:
        file.insert(at, choices.bytes(8));
        break;
      default:
        file.insert(at, {'\xff', static_cast<char>(0xd0 + choices.below(16))});
    }
    if (file.empty()) break;
  }
  return file;
}

namespace {

// How much of old pixel `old` is in a new one, by the definition.
double share(Resampling how, size_t from, size_t to, size_t number, size_t old) {
  const double step = static_cast<double>(from) / static_cast<double>(to), left = static_cast<double>(old);
  if (how == Resampling::area) {
    const double start = static_cast<double>(number) * step;
    return std::max(0.0, std::min(left + 1, start + step) - std::max(left, start)) / step;
  }
  const double position =
      std::clamp((static_cast<double>(number) + 0.5) * step - 0.5, 0.0, static_cast<double>(from - 1));
  return std::max(0.0, 1 - std::abs(position - left));
}

using Samples = std::vector<std::vector<double>>;

// The samples of a component, those that only fill up the last blocks included.
Samples samples_of(const JpegPlan& plan, size_t component) {
  const size_t across = component == 0 ? plan.across : 1, down = component == 0 ? plan.down : 1;
  const size_t first = component == 0 ? 0 : plan.across * plan.down + component - 1;
  Samples samples(8 * plan.units_down() * down, std::vector<double>(8 * plan.units_across() * across));
  for (size_t y = 0; y < samples.size(); ++y)
    for (size_t x = 0; x < samples[y].size(); ++x) {
      const size_t row = y / 8, column = x / 8;
      const size_t unit = row / down * plan.units_across() + column / across;
      const auto& block = plan.blocks[unit * plan.unit() + first + row % down * across + column % across];
      const auto wave = [](size_t pixel, size_t number) {
        const double angle = static_cast<double>((2 * pixel + 1) * number) * std::numbers::pi / 16;
        return std::cos(angle) * (number == 0 ? std::sqrt(0.125) : 0.5);
      };
      for (size_t i = 0; i < 64; ++i)
        if (block[i]) samples[y][x] += plan.step * block[i] * wave(y % 8, i / 8) * wave(x % 8, i % 8);
    }
  return samples;
}

// A line of samples with as many again between them, as libjpeg makes them.
std::vector<double> doubled(const std::vector<double>& line, size_t count, bool is_smooth) {
  std::vector<double> made;
  for (size_t i = 0; i < count; ++i)
    for (const size_t other : {i == 0 ? 0 : i - 1, std::min(i + 1, count - 1)})
      made.push_back(is_smooth ? 0.75 * line[i] + 0.25 * line[other] : line[i]);
  return made;
}

Samples turned(const Samples& samples) {
  Samples made(samples[0].size(), std::vector<double>(samples.size()));
  for (size_t y = 0; y < samples.size(); ++y)
    for (size_t x = 0; x < samples[y].size(); ++x) made[x][y] = samples[y][x];
  return made;
}

Samples pixels_of(const JpegPlan& plan, size_t component) {
  Samples samples = samples_of(plan, component);
  const size_t across = component == 0 ? 1 : plan.across, down = component == 0 ? 1 : plan.down;
  const size_t width = (plan.width + across - 1) / across, height = (plan.height + down - 1) / down;
  const bool is_smooth = across == 1 || width > 2;
  if (across == 2)
    for (auto& line : samples) line = doubled(line, width, is_smooth);
  if (down == 1) return samples;
  Samples columns = turned(samples);
  for (auto& line : columns) line = doubled(line, height, is_smooth);
  return turned(columns);
}

}  // namespace

std::vector<double> expected_pixels(const JpegPlan& plan, size_t height, size_t width, size_t channels,
                                    Resampling how) {
  std::vector<Samples> planes;
  for (size_t i = 0; i < plan.components; ++i) planes.push_back(pixels_of(plan, i));
  std::vector<double> made;
  for (size_t y = 0; y < height; ++y)
    for (size_t x = 0; x < width; ++x) {
      std::array<double, 3> sums{};
      for (size_t i = 0; i < plan.height; ++i) {
        const double down = share(how, plan.height, height, y, i);
        for (size_t j = 0; j < plan.width && down > 0; ++j) {
          const double part = down * share(how, plan.width, width, x, j);
          for (size_t k = 0; k < plan.components && part > 0; ++k) sums[k] += part * planes[k][i][j];
        }
      }
      const double grey = sums[0] + 128, blue = channels == 1 ? 0 : sums[1],
                   red = channels == 1 ? 0 : sums[2];
      const double colours[] = {grey + 1.402 * red, grey - 0.344136286 * blue - 0.714136286 * red,
                                grey + 1.772 * blue};
      for (size_t k = 0; k < channels; ++k) made.push_back(std::clamp(colours[k], 0.0, 255.0));
    }
  return made;
}

}  // namespace recordkit
