#include "support/frames.h"

namespace recordkit {

std::string unhex(std::string_view text) {
  std::string bytes;
  int digits = 0, value = 0;
  for (const char c : text) {
    if (c == ' ') continue;
    value = value * 16 + (c <= '9' ? c - '0' : c - 'a' + 10);
    if (++digits % 2 == 0) bytes.push_back(static_cast<char>(std::exchange(value, 0)));
  }
  return bytes;
}

std::string header(uint64_t length) {
  uint8_t bytes[kHeaderSize];
  store_header(bytes, length);
  return std::string(as_text(bytes));
}

std::string frame(std::string_view payload) {
  uint8_t footer[kFooterSize];
  store_footer(footer, crc32c(as_bytes(payload)));
  return header(payload.size()).append(payload).append(as_text(footer));
}

std::string five_records() {
  std::string file;
  for (char c = '0'; c < '5'; ++c) file += frame(std::string("payload-00") + c);
  return file;
}

std::string flipped(std::string file, size_t byte, int bit) {
  file.at(byte) = static_cast<char>(file[byte] ^ (1 << bit));
  return file;
}

namespace {

std::string damaged(std::string whole, Choices& choices) {
  const size_t at = choices.below(whole.size());
  switch (choices.below(4)) {
    case 0:
      return flipped(std::move(whole), at, static_cast<int>(choices.below(8)));
    case 1:
      return whole.substr(0, at);
    case 2:
      return whole.erase(at, 1 + choices.below(40));
    default:
      return whole.insert(at, choices.bytes(40));
  }
}

}  // namespace

std::string hostile_file(Choices& choices, int depth) {
  std::string file;
  for (int pieces = 0; pieces < 12 && !choices.done(); ++pieces) {
    switch (choices.below(7)) {
      case 0:
        file += header(choices.below(2) ? choices.below(120) : choices.number());
        break;
      case 1:
        file += choices.bytes(24);
        break;
      case 2:
        file.append(choices.below(80), '\0');
        break;
      case 3:
        file += damaged(frame(choices.bytes(48)), choices);
        break;
      case 4:
        if (depth > 0) file += frame(hostile_file(choices, depth - 1));
        break;
      case 5:
        if (depth > 0) file += damaged(frame(hostile_file(choices, depth - 1)), choices);
        break;
      default:
        file += frame(choices.bytes(48));
    }
  }
  return file;
}

Exact::Exact(std::string_view bytes) : data_(new uint8_t[bytes.size()]), size_(bytes.size()) {
  bytes.copy(reinterpret_cast<char*>(data_.get()), bytes.size());
}

Chunk framed_chunk(const std::vector<std::string>& payloads) {
  Buffer buffer;
  std::vector<Chunk::Span> spans;
  for (const std::string& payload : payloads) {
    spans.push_back({buffer.size() + kHeaderSize, payload.size()});
    const std::string framed = frame(payload);
    buffer.append(as_bytes(framed).data(), framed.size());
  }
  return chunk_of(std::move(buffer), std::move(spans));
}

Chunk bare_chunk(const std::vector<std::string>& payloads, Behind behind) {
  constexpr size_t kPlenty = 70'000;
  std::string joined;
  Chunk chunk;
  for (const std::string& payload : payloads) {
    chunk.records.push_back({joined.size(), payload.size()});
    joined += payload;
  }
  chunk.size = joined.size();
  if (behind == Behind::padding) joined.append(kPadding, '\0');
  if (behind == Behind::plenty) joined.append(kPlenty, '\x0a');  // as entries start
  const auto bytes = std::make_shared<Exact>(joined);
  chunk.data = Bytes(*bytes).data();
  chunk.readable = behind == Behind::pretend_nothing_readable ? 0 : joined.size();
  chunk.owner = bytes;
  return chunk;
}

}  // namespace recordkit
