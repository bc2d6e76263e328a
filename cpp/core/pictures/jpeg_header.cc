#include "core/pictures/jpeg_header.h"

#include <algorithm>
#include <string_view>

namespace recordkit {
namespace {

constexpr size_t kLongestJpegSide = 65500;  // libjpeg's

size_t big_endian(const uint8_t* from) { return size_t{from[0]} << 8 | from[1]; }

class HeaderReader {
 public:
  HeaderReader(Bytes file, JpegHeader& header) : rest_(file), header_(header) {}

  bool read() {
    header_.components.clear();
    header_.restart_interval = 0;
    if (rest_.size() < 2 || big_endian(rest_.data()) != 0xffd8) return false;
    rest_ = rest_.subspan(2);
    while (rest_.size() >= 4 && rest_[0] == 0xff) {
      const uint8_t marker = rest_[1];
      const size_t length = big_endian(rest_.data() + 2);
      if (length < 2 || length > rest_.size() - 2) return false;
      const Bytes segment = rest_.subspan(4, length - 2);
      rest_ = rest_.subspan(2 + length);
      if (marker == 0xda) return read_scan(segment);
      if (!read_segment(marker, segment)) return false;
    }
    return false;
  }

 private:
  bool read_segment(uint8_t marker, Bytes segment) {
    switch (marker) {
      case 0xc0:
      case 0xc1:
        return read_frame(segment);
      case 0xc4:
        return read_codes(segment);
      case 0xdb:
        return read_steps(segment);
      case 0xdd:
        if (segment.size() != 2) return false;
        header_.restart_interval = big_endian(segment.data());
        return true;
      case 0xe0:
        return read_jfif(segment);
      case 0xee:
        return read_adobe(segment);
      default:
        return (marker >= 0xe0 && marker <= 0xef) || marker == 0xfe;  // comments and application data
    }
  }

  bool read_frame(Bytes frame) {
    auto& components = header_.components;
    const size_t count = frame.size() < 6 ? 0 : frame[5];
    if (!components.empty() || (count != 1 && count != 3) || frame.size() != 6 + 3 * count || frame[0] != 8)
      return false;
    const auto fits = [](size_t side) { return side > 0 && side <= kLongestJpegSide; };
    header_.height = big_endian(frame.data() + 1);
    header_.width = big_endian(frame.data() + 3);
    for (size_t i = 0; i < count; ++i) {
      const uint8_t* const told = frame.data() + 6 + 3 * i;
      // Brightness may have more samples than colours; in grey pictures the factors do not matter.
      const auto across = static_cast<uint8_t>(told[1] / 16), down = static_cast<uint8_t>(told[1] % 16);
      const uint8_t most = i == 0 ? 2 : 1;
      const auto is_same = [&](const JpegComponent& other) { return other.id == told[0]; };
      if (across < 1 || across > most || down < 1 || down > most || told[2] > 3 ||
          std::any_of(components.begin(), components.end(), is_same))
        return false;
      components.push_back(
          {told[0], count == 1 ? uint8_t{1} : across, count == 1 ? uint8_t{1} : down, told[2], 0, 0});
    }
    return fits(header_.height) && fits(header_.width);
  }

  bool read_codes(Bytes codes) {
    while (codes.size() >= 17) {
      const uint8_t number = codes[0] % 16, kind = codes[0] / 16;
      const Bytes counts = codes.subspan(1, 16);
      size_t count = 0;
      for (const uint8_t each : counts) count += each;
      codes = codes.subspan(17);
      if (number > 3 || kind > 1 || count > 256 || count > codes.size()) return false;
      HuffmanTable& table = (kind == 0 ? header_.dc : header_.ac)[number];
      if (!table.define(counts, codes.first(count), kind == 0)) return false;
      (kind == 0 ? has_dc_ : has_ac_)[number] = true;
      codes = codes.subspan(count);
    }
    return codes.empty();
  }

  bool read_steps(Bytes tables) {
    while (!tables.empty()) {
      const uint8_t number = tables[0] % 16, bytes = 1 + tables[0] / 16;
      if (number > 3 || bytes > 2 || tables.size() < 1 + bytes * kBlockSize) return false;
      const uint8_t* const told = tables.data() + 1;
      for (size_t i = 0; i < kBlockSize; ++i)
        header_.steps[number][kZigzag[i]] =
            static_cast<float>(bytes == 1 ? told[i] : big_endian(told + 2 * i));
      has_steps_[number] = true;
      tables = tables.subspan(1 + bytes * kBlockSize);
    }
    return true;
  }

  bool read_jfif(Bytes note) {
    if (note.size() < 14 || !as_text(note).starts_with(std::string_view("JFIF\0", 5))) return true;
    is_jfif_ = true;
    return note[5] == 1;  // libjpeg warns of other versions
  }

  bool read_adobe(Bytes note) {
    if (note.size() < 12 || !as_text(note).starts_with("Adobe")) return true;
    is_adobe_ = true;
    adobe_colours_ = note[11];
    return true;
  }

  // As libjpeg decides what three components are.
  bool is_ycbcr() const {
    if (is_jfif_) return true;
    if (is_adobe_) return adobe_colours_ == 1;
    const auto& components = header_.components;
    return components[0].id == 1 && components[1].id == 2 && components[2].id == 3;
  }

  bool read_scan(Bytes scan) {
    const size_t count = header_.components.size();
    if (count == 0 || scan.size() != 4 + 2 * count || scan[0] != count) return false;
    const uint8_t* told = scan.data() + 1;
    for (JpegComponent& component : header_.components) {
      component.dc = told[1] / 16;
      component.ac = told[1] % 16;
      if (told[0] != component.id || component.dc > 3 || component.ac > 3 || !has_dc_[component.dc] ||
          !has_ac_[component.ac] || !has_steps_[component.steps])
        return false;
      told += 2;
    }
    header_.scan = rest_;
    return told[0] == 0 && told[1] == 63 && told[2] == 0 && (count == 1 || is_ycbcr());
  }

  Bytes rest_;
  JpegHeader& header_;
  std::array<bool, 4> has_steps_{}, has_dc_{}, has_ac_{};
  bool is_jfif_ = false, is_adobe_ = false;
  uint8_t adobe_colours_ = 0;
};

}  // namespace

bool read_jpeg_header(Bytes file, JpegHeader& header) { return HeaderReader(file, header).read(); }

}  // namespace recordkit
