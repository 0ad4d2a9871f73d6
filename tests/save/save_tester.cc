#include "tests/save/save_tester.h"

#include <algorithm>
#include <cmath>

#include "core/os/mapped_file.h"

namespace folio::testing {
namespace {

// Small numbers, all of them fit to be dims, indices and counts.
void fill(Tensor* tensor) {
  const int64_t count = tensor->count();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t number = (i * 7 + 3) % 5;
    switch (tensor->dtype()) {
      case DType::kFloat:
        tensor->data_mut<float>()[i] = static_cast<float>(number) * 0.25F - 0.5F;
        break;
      case DType::kInt64:
        tensor->data_mut<int64_t>()[i] = number % 3 + 1;
        break;
      case DType::kInt32:
        tensor->data_mut<int32_t>()[i] = static_cast<int32_t>(number % 3 + 1);
        break;
      case DType::kString:
        tensor->data_mut<std::string>()[i] = cat("text", number);
        break;
      default:
        std::fill_n(tensor->raw_mut(), tensor->bytes(), static_cast<uint8_t>(1));
        return;
    }
  }
}

Result<Value> made_up(const PortInfo& port) {
  if (!port.type.is_tensor()) return Value();
  Shape shape;
  for (int i = 0; port.type.dims && i < port.type.rank(); ++i) {
    const Dim dim = (*port.type.dims)[static_cast<size_t>(i)];
    shape.push_back(dim.is_value() ? dim.value : 2);
  }
  FOLIO_TRY(Tensor tensor, allocate_tensor(port.type.dtype, shape));
  fill(&tensor);
  return Value(std::move(tensor));
}

bool close_enough(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::abs(a - b) <= 1e-4F + 1e-4F * std::abs(b);
}

bool same(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  if (!a.is_tensor()) return true;
  const Tensor& x = a.tensor();
  const Tensor& y = b.tensor();
  if (x.dtype() != y.dtype() || !(x.shape() == y.shape())) return false;
  if (x.is_string()) {
    return std::equal(x.data<std::string>(), x.data<std::string>() + x.count(),
                      y.data<std::string>());
  }
  if (x.dtype() != DType::kFloat) return std::equal(x.raw(), x.raw() + x.bytes(), y.raw());
  return std::equal(x.data<float>(), x.data<float>() + x.count(), y.data<float>(), close_enough);
}

}  // namespace

Result<ModelDef> load_file(const std::string& path) {
  FOLIO_TRY(Ref<ByteSource> source, open_mapped_file(path));
  return load_model_def(std::move(source), {});
}

Result<SaveResult> save_file(const std::string& path, const std::string& to, Optimize level,
                             const SaveOptions& options) {
  FOLIO_TRY(ModelDef def, load_file(path));
  FOLIO_TRY(const std::unique_ptr<Model> model, build_model(std::move(def), {}));
  FOLIO_RETURN_IF_ERROR(run_passes(model.get(), test_evaluator(), level));
  return save_model(*model, test_evaluator(), to, options);
}

Result<std::vector<Value>> run_file(const std::string& path) {
  FOLIO_TRY(Ref<ModelFile> file, ModelFile::open(path, {}));
  FOLIO_TRY(Ref<Session> session, Session::create(std::move(file), {}));
  std::vector<NamedValue> inputs;
  for (const PortInfo& port : session->model().info().inputs) {
    FOLIO_TRY(Value value, made_up(port));
    if (!value.is_none()) inputs.push_back({port.name, std::move(value)});
  }
  return run_all(*session, inputs);
}

::testing::AssertionResult same_values(const std::vector<Value>& a, const std::vector<Value>& b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << a.size() << " and " << b.size();
  for (size_t i = 0; i < a.size(); ++i) {
    if (!same(a[i], b[i])) return ::testing::AssertionFailure() << "output " << i << " differs";
  }
  return ::testing::AssertionSuccess();
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace folio::testing
