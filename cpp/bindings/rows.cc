// Rows: collects dicts of Python values into columns.
//
// Common types are handled here. Everything else, and every error, goes to the field's `convert` in Python.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cmath>

#include "bindings/bindings.h"
#include "core/examples/example.h"

namespace recordkit {
namespace {

using namespace nb::literals;

enum class Op { integer, floating, bytes, text, object };

Op op_of(const std::string& name) {
  if (name == "int") return Op::integer;
  if (name == "float") return Op::floating;
  if (name == "bytes") return Op::bytes;
  if (name == "text") return Op::text;
  if (name == "object") return Op::object;
  throw nb::value_error("op must be int, float, bytes, text or object");
}

class Field {
 public:
  Field(const std::string& name, const std::string& op, int64_t low, int64_t high, bool optional,
        nb::object convert)
      : key(nb::str(name.data(), name.size())),
        op_(op_of(op)),
        low_(low),
        high_(high),
        optional_(optional),
        convert_(std::move(convert)) {
    clear();
  }

  nb::object key;
  bool optional() const { return optional_; }

  // Stages this row's value. Nothing is kept until `commit`.
  void stage(PyObject* value) {
    missing_ = value == nullptr || value == Py_None;
    if (missing_ && optional_) return stage_nothing();
    if (!missing_ && stage_plain(value)) return;
    // Missing but required, or not one of the plain types: convert returns a plain value, or raises.
    nb::object converted = convert_(nb::handle(missing_ ? Py_None : value));
    missing_ = false;
    if (op_ == Op::object) {
      object_ = std::move(converted);
    } else if (!stage_plain(converted.ptr())) {
      throw nb::type_error("convert() returned a value of the wrong type");
    }
  }

  void commit() {
    const size_t row = rows_++;
    switch (op_) {
      case Op::integer:
        ints_.push(int_);
        break;
      case Op::floating:
        floats_.push(float_);
        break;
      case Op::bytes:
        // Kept, not copied: bytes are immutable, and may be large.
        objects_.append(missing_ ? nb::bytes("", 0) : object_);
        object_.reset();
        break;
      case Op::text:
        bytes_.append(view_.data(), view_.size());
        offsets_.push(static_cast<int64_t>(bytes_.size()));
        object_.reset();
        break;
      case Op::object:
        objects_.append(missing_ ? nb::none() : object_);
        object_.reset();
        break;
    }
    if (!missing_ && states_.empty()) return;
    while (states_.size() < row) states_.push(static_cast<uint8_t>(State::present));
    states_.push(static_cast<uint8_t>(missing_ ? State::missing : State::present));
  }

  nb::object take() {
    nb::object states = nb::none();
    if (!states_.empty()) states = to_numpy(std::move(states_));
    nb::object result;
    switch (op_) {
      case Op::integer:
        result = nb::make_tuple(to_numpy(std::move(ints_)), states);
        break;
      case Op::floating:
        result = nb::make_tuple(to_numpy(std::move(floats_)), states);
        break;
      case Op::bytes:
        result = nb::make_tuple(objects_, states);
        break;
      case Op::text:
        result = nb::make_tuple(to_numpy(std::move(bytes_)), to_numpy(std::move(offsets_)), states);
        break;
      case Op::object:
        result = nb::make_tuple(objects_);
        break;
    }
    clear();
    return result;
  }

 private:
  void clear() {
    rows_ = 0;
    states_.set_size(0);
    objects_ = nb::list();
    offsets_.set_size(0);
    offsets_.push(0);
  }

  void stage_nothing() {
    int_ = 0;
    float_ = 0;
    view_ = {};
  }

  bool stage_plain(PyObject* value) {
    switch (op_) {
      case Op::integer: {
        if (!PyLong_CheckExact(value)) return false;
        int overflow = 0;
        int_ = PyLong_AsLongLongAndOverflow(value, &overflow);
        return overflow == 0 && int_ >= low_ && int_ <= high_;
      }
      case Op::floating: {
        // NumPy's float64 is a subclass of float, and is not rounded silently.
        if (!PyFloat_CheckExact(value)) return false;
        const double wide = PyFloat_AS_DOUBLE(value);
        float_ = static_cast<float>(wide);
        return !std::isinf(float_) || std::isinf(wide);
      }
      case Op::bytes: {
        if (!PyBytes_CheckExact(value)) return false;
        object_ = nb::borrow(value);
        return true;
      }
      case Op::text: {
        if (!PyUnicode_CheckExact(value)) return false;
        Py_ssize_t size = 0;
        const char* text = PyUnicode_AsUTF8AndSize(value, &size);
        if (text == nullptr) {
          PyErr_Clear();
          return false;
        }
        view_ = {reinterpret_cast<const uint8_t*>(text), static_cast<size_t>(size)};
        object_ = nb::borrow(value);
        return true;
      }
      case Op::object:
        return false;
    }
    return false;
  }

  Op op_;
  int64_t low_, high_;
  bool optional_;
  nb::object convert_;

  // The current row.
  bool missing_ = false;
  int64_t int_ = 0;
  float float_ = 0;
  Bytes view_;
  nb::object object_;  // keeps view_ alive, or is the value

  // The rows committed so far.
  size_t rows_ = 0;
  Array<int64_t> ints_;
  Array<float> floats_;
  Buffer bytes_;
  Array<int64_t> offsets_;
  Buffer states_;
  nb::list objects_;
};

class RowBuilder {
 public:
  using Spec = std::tuple<std::string, std::string, int64_t, int64_t, bool, nb::object>;

  RowBuilder(const std::vector<Spec>& specs, nb::object explain) : explain_(std::move(explain)) {
    for (const auto& [name, op, low, high, optional, convert] : specs)
      fields_.emplace_back(name, op, low, high, optional, convert);
  }
  RowBuilder(const RowBuilder&) = delete;
  RowBuilder& operator=(const RowBuilder&) = delete;

  void append(nb::object row) {
    if (!PyDict_Check(row.ptr()) || !matches(row.ptr())) row = explain_(row);
    if (!PyDict_Check(row.ptr())) throw nb::type_error("explain() must return a dict");
    for (Field& field : fields_) field.stage(PyDict_GetItemWithError(row.ptr(), field.key.ptr()));
    for (Field& field : fields_) field.commit();
    ++rows_;
  }

  nb::list take() {
    nb::list result;
    for (Field& field : fields_) result.append(field.take());
    rows_ = 0;
    return result;
  }

  size_t rows() const { return rows_; }

 private:
  // Whether every key is a field and no required field is missing.
  bool matches(PyObject* row) const {
    Py_ssize_t found = 0;
    for (const Field& field : fields_) {
      if (PyDict_GetItemWithError(row, field.key.ptr()) != nullptr)
        ++found;
      else if (!field.optional())
        return false;
    }
    return found == PyDict_GET_SIZE(row);
  }

  std::vector<Field> fields_;
  nb::object explain_;
  size_t rows_ = 0;
};

}  // namespace

void bind_rows(nb::module_& m) {
  nb::class_<RowBuilder>(m, "RowBuilder",
                         "Collects dicts into columns; a row is added completely or not at all.")
      .def(nb::init<const std::vector<RowBuilder::Spec>&, nb::object>(), "specs"_a, "explain"_a,
           "Specs are (name, op, low, high, optional, convert).")
      .def("append", &RowBuilder::append, "row"_a)
      .def("take", &RowBuilder::take, nb::sig("def take(self) -> list[tuple[typing.Any, ...]]"),
           "Return the columns, and start again with no rows.")
      .def("__len__", &RowBuilder::rows);
}

}  // namespace recordkit
