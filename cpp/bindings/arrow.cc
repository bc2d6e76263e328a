// The Arrow C data interface: exports columns described in Python, without a copy and without pyarrow.
#include <nanobind/stl/string.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "bindings/bindings.h"

namespace recordkit {
namespace {

using namespace nb::literals;

// As specified: https://arrow.apache.org/docs/format/CDataInterface.html
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};

struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema*);
  int (*get_next)(ArrowArrayStream*, ArrowArray*);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};

constexpr int64_t kNullable = 2;

// Everything a struct points to; freed by the struct's release.
template <typename Struct>
struct Owned {
  std::string format, name;
  std::vector<std::unique_ptr<BufferView>> views;
  std::vector<const void*> buffers;
  std::vector<std::unique_ptr<Struct>> children;
  std::vector<Struct*> child_pointers;
};

template <typename Struct>
void release(Struct* self) {
  auto* owned = static_cast<Owned<Struct>*>(self->private_data);
  for (auto& child : owned->children)
    if (child->release != nullptr) child->release(child.get());
  self->release = nullptr;
  delete owned;
}

template <typename Struct>
void adopt(Struct& to, std::unique_ptr<Owned<Struct>> owned) {
  for (auto& child : owned->children) owned->child_pointers.push_back(child.get());
  to.n_children = static_cast<int64_t>(owned->children.size());
  to.children = owned->child_pointers.data();
  to.release = release<Struct>;
  to.private_data = owned.release();
}

// A node is (format, name, nullable, length, null_count, buffers, children).
void fill(nb::tuple node, ArrowSchema& to) {
  auto owned = std::make_unique<Owned<ArrowSchema>>();
  owned->format = nb::cast<std::string>(node[0]);
  owned->name = nb::cast<std::string>(node[1]);
  for (nb::handle child : nb::cast<nb::list>(node[6])) {
    owned->children.push_back(std::make_unique<ArrowSchema>());
    fill(nb::cast<nb::tuple>(child), *owned->children.back());
  }
  to.format = owned->format.c_str();
  to.name = owned->name.c_str();
  to.flags = nb::cast<bool>(node[2]) ? kNullable : 0;
  adopt(to, std::move(owned));
}

void fill(nb::tuple node, ArrowArray& to) {
  auto owned = std::make_unique<Owned<ArrowArray>>();
  for (nb::handle buffer : nb::cast<nb::list>(node[5])) {
    if (buffer.is_none()) {
      owned->buffers.push_back(nullptr);
      continue;
    }
    owned->views.push_back(std::make_unique<BufferView>(buffer));
    owned->buffers.push_back(owned->views.back()->bytes().data());
  }
  for (nb::handle child : nb::cast<nb::list>(node[6])) {
    owned->children.push_back(std::make_unique<ArrowArray>());
    fill(nb::cast<nb::tuple>(child), *owned->children.back());
  }
  to.length = nb::cast<int64_t>(node[3]);
  to.null_count = nb::cast<int64_t>(node[4]);
  to.n_buffers = static_cast<int64_t>(owned->buffers.size());
  to.buffers = owned->buffers.data();
  adopt(to, std::move(owned));
}

// Wraps a filled struct in a capsule that owns it.
template <typename Struct>
nb::object to_capsule(std::unique_ptr<Struct> filled, const char* name) {
  PyObject* capsule = PyCapsule_New(filled.get(), name, [](PyObject* self) {
    auto* kept = static_cast<Struct*>(PyCapsule_GetPointer(self, PyCapsule_GetName(self)));
    // A consumer that took the contents has set release to null.
    if (kept->release != nullptr) kept->release(kept);
    delete kept;
  });
  if (capsule == nullptr) {
    filled->release(filled.get());
    throw nb::python_error();
  }
  filled.release();
  return nb::steal(capsule);
}

template <typename Struct>
nb::object node_capsule(nb::tuple node, const char* name) {
  auto filled = std::make_unique<Struct>();
  fill(node, *filled);
  return to_capsule(std::move(filled), name);
}

// A stream over a Python iterator of nodes; may be called from any thread.
struct Nodes {
  nb::object schema, nodes;
  std::string error;

  // Returns 0, or an errno, and keeps the message for get_last_error.
  template <typename Step>
  int guard(Step step) {
    const nb::gil_scoped_acquire gil;
    try {
      step();
      return 0;
    } catch (nb::python_error& raised) {
      // Only the message: a consumer of the stream has no use for the traceback.
      error = nb::str(raised.value()).c_str();
      return EIO;
    } catch (const std::exception& failed) {
      error = failed.what();
      return EIO;
    }
  }

  static Nodes& of(ArrowArrayStream* self) { return *static_cast<Nodes*>(self->private_data); }

  static int get_schema(ArrowArrayStream* self, ArrowSchema* out) {
    return of(self).guard([&] {
      *out = {};
      fill(nb::cast<nb::tuple>(of(self).schema), *out);
    });
  }

  static int get_next(ArrowArrayStream* self, ArrowArray* out) {
    return of(self).guard([&] {
      *out = {};  // no release: the end of the stream
      nb::object node = nb::steal(PyIter_Next(of(self).nodes.ptr()));
      if (node.is_valid())
        fill(nb::cast<nb::tuple>(node), *out);
      else if (PyErr_Occurred() != nullptr)
        throw nb::python_error();
    });
  }

  static const char* get_last_error(ArrowArrayStream* self) { return of(self).error.c_str(); }

  static void release(ArrowArrayStream* self) {
    const nb::gil_scoped_acquire gil;
    delete &of(self);
    self->release = nullptr;
  }
};

nb::object stream_capsule(nb::object schema, nb::object nodes) {
  auto filled = std::make_unique<ArrowArrayStream>();
  *filled = {Nodes::get_schema, Nodes::get_next, Nodes::get_last_error, Nodes::release,
             new Nodes{std::move(schema), std::move(nodes), {}}};
  return to_capsule(std::move(filled), "arrow_array_stream");
}

}  // namespace

void bind_arrow(nb::module_& m) {
  m.def(
      "arrow_array",
      [](nb::tuple node) {
        return nb::make_tuple(node_capsule<ArrowSchema>(node, "arrow_schema"),
                              node_capsule<ArrowArray>(node, "arrow_array"));
      },
      "node"_a, nb::sig("def arrow_array(node: tuple[typing.Any, ...]) -> tuple[object, object]"),
      "Return the Arrow C data interface capsules of a node (format, name, nullable, length, null_count, "
      "buffers, children).");
  m.def("arrow_stream", &stream_capsule, "schema"_a, "nodes"_a,
        nb::sig("def arrow_stream(schema: tuple[typing.Any, ...], "
                "nodes: collections.abc.Iterator[tuple[typing.Any, ...]]) -> object"),
        "Return the capsule of a stream of such nodes, all with this schema.");
}

}  // namespace recordkit
