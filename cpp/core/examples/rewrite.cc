#include "core/examples/rewrite.h"

#include "core/examples/encode.h"

namespace recordkit {
namespace {

using Why = RewriteResult::Why;

class Rewriter {
 public:
  explicit Rewriter(const Edit& edit) : edit_(edit) {
    for (const auto& [from, to] : edit.rename) taken_.insert(to);
  }

  bool has_work() const {
    return !(edit_.drop.empty() && edit_.rename.empty() && edit_.replace.empty() && edit_.absent.empty());
  }

  // Appends the edited payload to `out`. Sets `changed` if a byte differs.
  bool payload(Bytes payload, Buffer& out, bool& changed) {
    payload_ = payload.data();
    changed = false;
    Cursor cursor(payload);
    while (!cursor.done()) {
      const uint8_t* const start = cursor.at;
      uint32_t field;
      WireType type;
      Bytes body;
      if (!cursor.tag(field, type)) return malformed(cursor);
      if (type == WireType::bytes && (field == 1 || (field == 2 && edit_.sequence))) {
        if (!cursor.bytes(body)) return malformed(cursor);
        bool map_changed = false;
        map_.set_size(0);
        if (!entries(body, field == 1, map_changed)) return false;
        if (map_changed) {
          changed = true;
          put_bytes(out, static_cast<uint8_t>(field << 3 | 2), {map_.data(), map_.size()});
          continue;
        }
      } else if (!cursor.skip(field, type)) {
        return malformed(cursor);
      }
      out.append(start, static_cast<size_t>(cursor.at - start));
    }
    return true;
  }

  RewriteResult fault;

 private:
  static void put_bytes(Buffer& out, uint8_t tag, Bytes body) {
    uint8_t* p = out.grow(body.size() + 1 + kMaxVarint);
    *p++ = tag;
    p = store_varint(p, body.size());
    if (!body.empty()) std::memcpy(p, body.data(), body.size());
    out.set_size(static_cast<size_t>(p - out.data()) + body.size());
  }

  // Reads the entries of a Features or FeatureLists message into map_.
  bool entries(Bytes message, bool features, bool& changed) {
    Cursor cursor(message, kMapDepth);
    while (!cursor.done()) {
      const uint8_t* const start = cursor.at;
      uint32_t field;
      WireType type;
      Bytes body;
      if (!cursor.tag(field, type)) return malformed(cursor);
      if (field == 1 && type == WireType::bytes) {
        if (!cursor.bytes(body)) return malformed(cursor);
        Cursor inner(body, kEntryDepth);
        if (!read_entry(inner, entry_)) return malformed(inner);
        name_.assign(as_text(entry_.name));
        if (edit_.drop.contains(name_) || (features && edit_.replace.contains(name_))) {
          changed = true;
          continue;
        }
        if (const auto found = edit_.rename.find(name_); found != edit_.rename.end()) {
          changed = true;
          rename(body, found->second);
          continue;
        }
        if (taken_.contains(name_) || (features && edit_.absent.contains(name_))) {
          fault.fault = Why::name_taken;
          fault.byte = static_cast<uint64_t>(start - payload_);
          fault.name = name_;
          return false;
        }
      } else if (!cursor.skip(field, type)) {
        return malformed(cursor);
      }
      map_.append(start, static_cast<size_t>(cursor.at - start));
    }
    return true;
  }

  // Writes the entry with the new name first, and everything but its old names unchanged.
  void rename(Bytes entry, const std::string& name) {
    renamed_.set_size(0);
    put_bytes(renamed_, 0x0a, as_bytes(name));
    Cursor cursor(entry);
    while (!cursor.done()) {
      const uint8_t* const start = cursor.at;
      uint32_t field = 0;
      WireType type{};
      // read_entry has checked these bytes.
      cursor.tag(field, type);
      cursor.skip(field, type);
      if (!(field == 1 && type == WireType::bytes))
        renamed_.append(start, static_cast<size_t>(cursor.at - start));
    }
    put_bytes(map_, 0x0a, {renamed_.data(), renamed_.size()});
  }

  bool malformed(const Cursor& cursor) {
    fault.fault = Why::malformed;
    fault.wire = cursor.fault;
    fault.byte = static_cast<uint64_t>(cursor.at - payload_);
    return false;
  }

  const Edit& edit_;
  std::unordered_set<std::string> taken_;  // the new names of renamed features
  const uint8_t* payload_ = nullptr;
  Buffer map_, renamed_;
  Entry entry_;
  std::string name_;
};

}  // namespace

RewriteResult rewrite(const Chunk& chunk, const Edit& edit, const Chunk* tail) {
  Rewriter rewriter(edit);
  const std::shared_ptr<Buffer> framed = std::make_shared<Buffer>(chunk.size + (tail ? tail->size : 0));
  Buffer& out = *framed;
  std::vector<Chunk::Span> spans;
  spans.reserve(chunk.records.size());
  const auto stop = [&](size_t record) {
    rewriter.fault.record = record;
    return std::move(rewriter.fault);
  };
  for (size_t i = 0; i < chunk.records.size(); ++i) {
    const size_t begin = out.size();
    const Bytes payload = chunk.payload(i);
    out.grow(kHeaderSize + payload.size());
    out.set_size(begin + kHeaderSize);
    bool changed = false;
    if (rewriter.has_work()) {
      if (!rewriter.payload(payload, out, changed)) return stop(i);
    } else {
      out.append(payload.data(), payload.size());
    }
    const size_t kept = out.size() - begin - kHeaderSize;
    uint32_t crc = changed ? crc32c({out.data() + begin + kHeaderSize, kept}) : chunk.payload_crc(i);
    if (tail != nullptr) {
      const Bytes more = tail->payload(i);
      out.append(more.data(), more.size());
      crc = crc32c_extend(crc, more.data(), more.size());
    }
    const uint64_t length = out.size() - begin - kHeaderSize;
    if (length > kMaxPayload) {
      rewriter.fault.fault = Why::payload_too_large;
      return stop(i);
    }
    store_footer(out.grow(kFooterSize), crc);
    store_header(out.data() + begin, length);
    out.set_size(out.size() + kFooterSize);
    spans.push_back({begin + kHeaderSize, length});
  }
  RewriteResult result;
  result.chunk = chunk_of(framed, std::move(spans));
  result.chunk.first_record = chunk.first_record;
  return result;
}

}  // namespace recordkit
