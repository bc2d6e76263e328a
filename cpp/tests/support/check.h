// Just enough of a test framework: TEST registers a fact, CHECK throws if it does not hold.
//
// Fuzzers do not catch exceptions, so the same checks end them.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace recordkit {

struct Test {
  const char* name;
  void (*body)();
};

inline std::vector<Test>& all_tests() {
  static std::vector<Test> tests;
  return tests;
}

template <typename T>
std::string shown(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return std::to_string(static_cast<long long>(value));
  } else if constexpr (requires(std::ostream& out) { out << value; }) {
    std::ostringstream out;
    out << value;
    return out.str();
  } else {
    return "(not printable)";
  }
}

[[noreturn]] inline void check_failed(const char* file, int line, const std::string& what) {
  throw std::logic_error(std::string(file) + ":" + std::to_string(line) + ": " + what);
}

template <typename A, typename B>
void check_equal(const A& a, const B& b, const char* text, const char* file, int line) {
  if (!(a == b)) check_failed(file, line, std::string(text) + "\n    " + shown(a) + " is not " + shown(b));
}

}  // namespace recordkit

#define TEST(name)                                               \
  static void name();                                            \
  [[maybe_unused]] static const bool name##_is_registered = [] { \
    ::recordkit::all_tests().push_back({#name, name});           \
    return true;                                                 \
  }();                                                           \
  static void name()

#define CHECK(...) \
  if (!(__VA_ARGS__)) ::recordkit::check_failed(__FILE__, __LINE__, #__VA_ARGS__)

#define CHECK_EQ(a, b) ::recordkit::check_equal((a), (b), #a " == " #b, __FILE__, __LINE__)
