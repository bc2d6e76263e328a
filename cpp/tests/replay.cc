// Runs the fuzzers' targets without a fuzzer: over the corpus, and over mutations of it under a fixed seed.
//
//     replay [mutations a target]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "support/examples.h"
#include "support/frames.h"
#include "support/jpegs.h"

using namespace recordkit;

extern "C" {
int fuzz_records(const uint8_t*, size_t);
int fuzz_salvage(const uint8_t*, size_t);
int fuzz_decode(const uint8_t*, size_t);
int fuzz_rewrite(const uint8_t*, size_t);
int fuzz_encode(const uint8_t*, size_t);
int fuzz_jpeg(const uint8_t*, size_t);
}

namespace {

struct Target {
  const char* name;
  int (*run)(const uint8_t*, size_t);
  const char* corpus;  // the folder of its seeds
  std::string (*generate)(Choices&);
};

constexpr Target kTargets[] = {
    {"records", fuzz_records, "records", [](Choices& choices) { return hostile_file(choices); }},
    {"salvage", fuzz_salvage, "records", [](Choices& choices) { return hostile_file(choices); }},
    {"decode", fuzz_decode, "examples", hostile_example},
    {"rewrite", fuzz_rewrite, "examples", hostile_example},
    {"encode", fuzz_encode, "examples",
     [](Choices& choices) { return std::string(as_text(choices.rest())); }},
    {"jpeg", fuzz_jpeg, "jpegs", hostile_jpeg},
};

std::vector<std::string> seeds_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& file : std::filesystem::directory_iterator(folder)) paths.push_back(file.path());
  // A folder has no order of its own, and the mutations depend on it.
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> seeds;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return seeds;
}

std::string mutated(std::string input, const std::string& other, Random& random) {
  for (uint64_t changes = 1 + random.below(3); changes > 0; --changes) {
    const size_t at = random.below(input.size() + 1), size = random.below(20);
    const std::string piece = input.substr(at, size);
    switch (random.below(8)) {
      case 0:
        input.erase(at, size);
        break;
      case 1:
        input.insert(at, piece);
        break;
      case 2:
        input.insert(at, random.bytes(size));
        break;
      case 3:
        input.resize(at);
        break;
      case 4:
        input.insert(at, other.substr(random.below(other.size() + 1), 3 * size));
        break;
      case 5:
        // Bytes that mean something to a varint, a tag or a length.
        if (at < input.size()) input[at] = "\x00\x01\x0a\x12\x1a\x7f\x80\xff"[random.below(8)];
        break;
      case 6:
        if (at < input.size()) input[at] = static_cast<char>(input[at] + (random.below(2) ? 1 : -1));
        break;
      default:
        if (at < input.size()) input = flipped(std::move(input), at, static_cast<int>(random.below(8)));
    }
  }
  return input;
}

// A seed or a generated input with a few changes, or bytes that serve as a plan.
std::string next_input(const Target& target, const std::vector<std::string>& seeds, Random& random) {
  const std::string plan = random.bytes(random.below(200));
  if (random.below(3) == 0) return plan;
  const std::string& seed = seeds[random.below(seeds.size())];
  if (random.below(2) == 0) return mutated(seed, seeds[random.below(seeds.size())], random);
  Choices choices(as_bytes(plan));
  return mutated(target.generate(choices), seed, random);
}

bool holds(const Target& target, const std::string& input) {
  try {
    const Exact exact(input);
    target.run(Bytes(exact).data(), input.size());
    return true;
  } catch (const std::exception& error) {
    const std::string path = std::string("replay-") + target.name + ".input";
    std::ofstream(path, std::ios::binary) << input;
    std::printf("%s: FAILED, the input is in %s\n  %s\n", target.name, path.c_str(), error.what());
    return false;
  }
}

bool replay(const Target& target, unsigned long mutations) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<std::string> seeds = seeds_in(std::filesystem::path(RECORDKIT_CORPUS) / target.corpus);
  for (const std::string& seed : seeds)
    if (!holds(target, seed)) return false;
  Random random(1);
  for (unsigned long i = 0; i < mutations; ++i)
    if (!holds(target, next_input(target, seeds, random))) return false;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::printf("%s: %zu seeds and %lu mutations, %.1f s\n", target.name, seeds.size(), mutations,
              took.count());
  return true;
}

}  // namespace

int main(int count, char** arguments) {
  const unsigned long mutations = count > 1 ? std::strtoul(arguments[1], nullptr, 10) : 1000;
  bool ok = true;
  for (const Target& target : kTargets) ok = replay(target, mutations) && ok;
  return ok ? 0 : 1;
}
