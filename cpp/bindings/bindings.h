// Shared by all bindings. The core returns facts; Python turns them into sentences.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <system_error>
#include <type_traits>

#include "core/memory/array.h"

namespace recordkit {

namespace nb = nanobind;

void bind_files(nb::module_& m);
void bind_records(nb::module_& m);
void bind_places(nb::module_& m);
void bind_examples(nb::module_& m);
void bind_rows(nb::module_& m);
void bind_arrow(nb::module_& m);
void bind_order(nb::module_& m);
void bind_pictures(nb::module_& m);
void bind_columns(nb::module_& m);

// A contiguous buffer of a Python object, held for the lifetime of this.
class BufferView {
 public:
  explicit BufferView(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
  }
  BufferView(const BufferView&) = delete;
  BufferView& operator=(const BufferView&) = delete;
  ~BufferView() {
    // The last owner may be a chunk that is destroyed without the GIL.
    const nb::gil_scoped_acquire gil;
    PyBuffer_Release(&view_);
  }

  Bytes bytes() const { return {static_cast<const uint8_t*>(view_.buf), static_cast<size_t>(view_.len)}; }

 private:
  Py_buffer view_;
};

template <typename T>
using NumpyArray = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

// nanobind exports 64-bit integers as `long long`. Where NumPy's int64 is a `long`, that is a different
// dtype.
template <typename T>
nb::object as_numpys_own(nb::object array) {
  if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
    // Never freed: NumPy may be unloaded first.
    static const nb::handle dtype =
        nb::module_::import_("numpy").attr("dtype")(std::is_signed_v<T> ? "int64" : "uint64").release();
    return array.attr("view")(dtype);
  }
  return array;
}

// Moves an array into a NumPy array, without a copy.
template <typename T>
nb::object to_numpy(Array<T>&& array) {
  const size_t size = array.size();
  array.reserve(1);
  auto held = std::make_unique<Array<T>>(std::move(array));
  T* const data = held->data();
  nb::capsule owner(held.get(), [](void* all) noexcept { delete static_cast<Array<T>*>(all); });
  held.release();
  return as_numpys_own<T>(nb::cast(NumpyArray<T>(data, {size}, owner)));
}

// Releases the GIL for large inputs only: getting it back takes as long as processing kMany numbers.
class ReleaseForMany {
 public:
  explicit ReleaseForMany(size_t count) {
    constexpr size_t kMany = 16 << 10;
    if (count > kMany) release_.emplace();
  }

 private:
  std::optional<nb::gil_scoped_release> release_;
};

// Runs `work` without the GIL and returns its result. std::system_error becomes OSError.
template <typename Work>
auto without_gil(Work work) {
  int error = 0;
  {
    const nb::gil_scoped_release release;
    try {
      return work();
    } catch (const std::system_error& failed) {
      error = failed.code().value();
    }
  }
  errno = error;
  PyErr_SetFromErrno(PyExc_OSError);
  throw nb::python_error();
}

inline nb::bytes to_bytes(Bytes bytes) { return nb::bytes(bytes.data(), bytes.size()); }

}  // namespace recordkit
