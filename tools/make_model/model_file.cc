#include "tools/make_model/model_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace model_writer {

namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr uint64_t kProgressBytes = uint64_t{8} << 20;

// A file under a temporary name until commit.
class PendingFile {
 public:
  explicit PendingFile(std::string path)
      : path_(std::move(path)), temporary_(path_ + ".tmp" + std::to_string(getpid())) {
    file_ = std::fopen(temporary_.c_str(), "wb");
    if (file_ == nullptr) {
      fail("cannot create", temporary_);
      return;
    }
    std::setvbuf(file_, nullptr, _IOFBF, kBufferBytes);
  }
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;
  ~PendingFile() {
    if (file_ == nullptr) return;
    std::fclose(file_);
    std::remove(temporary_.c_str());
  }

  void write(const void* data, size_t bytes) {
    if (!error_.empty()) return;
    if (std::fwrite(data, 1, bytes, file_) != bytes) fail("cannot write", temporary_);
  }

  WriteResult commit() {
    if (file_ == nullptr) return {error_};
    const int closed = std::fclose(std::exchange(file_, nullptr));
    if (closed != 0 && error_.empty()) fail("cannot write", temporary_);
    if (error_.empty() && std::rename(temporary_.c_str(), path_.c_str()) != 0) {
      fail("cannot rename to", path_);
    }
    if (!error_.empty()) std::remove(temporary_.c_str());
    return {error_};
  }

  bool failed() const { return !error_.empty(); }

 private:
  void fail(const char* what, const std::string& name) {
    error_ = std::string(what) + " '" + name + "': " + std::strerror(errno);
  }

  std::string path_;
  std::string temporary_;
  std::FILE* file_ = nullptr;
  std::string error_;
};

// Writes what `produce` gives; it answers false if payloads broke their promise.
WriteResult write_file(const std::string& path, uint64_t bytes_total, const WriteProgress& progress,
                       const std::function<bool(const ByteSink&)>& produce) {
  // The rename would put a file in the place of a device or pipe.
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return {"'" + path + "' exists and is not a regular file"};
  }
  PendingFile file(path);
  if (file.failed()) return file.commit();
  uint64_t done = 0;
  uint64_t next_report = kProgressBytes;
  const bool exact = produce([&](const void* data, size_t bytes) {
    file.write(data, bytes);
    done += bytes;
    if (progress && done >= next_report) {
      progress(done, bytes_total);
      next_report = done + kProgressBytes;
    }
  });
  if (!exact) return {"'" + path + "': a payload did not give the bytes it announced"};
  WriteResult result = file.commit();
  if (result.ok() && progress) progress(done, bytes_total);
  return result;
}

Payload zeros(uint64_t bytes) {
  return {bytes, [bytes](const ByteSink& sink) {
            const std::string block(static_cast<size_t>(bytes), '\0');
            sink(block.data(), block.size());
          }};
}

bool write_payloads(const std::vector<Payload>& payloads, const ByteSink& sink) {
  bool exact = true;
  for (const Payload& payload : payloads) exact = write_payload(payload, sink) && exact;
  return exact;
}

}  // namespace

WriteResult write_text_file(const std::string& text, const std::string& path) {
  return write_file(path, text.size(), nullptr, [&](const ByteSink& sink) {
    sink(text.data(), text.size());
    return true;
  });
}

WriteResult write_model_file(const ModelWriter& model, const std::string& path,
                             const WriteProgress& progress) {
  const ProtoMessage message = model.message();
  if (message.byte_count() > kProtobufBytesMax) {
    return {"'" + path + "': the model would have " + std::to_string(message.byte_count()) +
            " bytes, and a protobuf file holds at most " + std::to_string(kProtobufBytesMax) +
            "; put the weights into external data"};
  }
  return write_file(path, message.byte_count(), progress,
                    [&](const ByteSink& sink) { return message.write_to(sink); });
}

ExternalData::ExternalData(std::string location, uint64_t alignment)
    : location_(std::move(location)), alignment_(alignment == 0 ? 1 : alignment) {}

ExternalData::Range ExternalData::add(Payload payload) {
  const uint64_t beyond = byte_count_ % alignment_;
  if (beyond != 0) {
    payloads_.push_back(zeros(alignment_ - beyond));
    byte_count_ += alignment_ - beyond;
  }
  const Range range{byte_count_, payload.bytes};
  byte_count_ += payload.bytes;
  payloads_.push_back(std::move(payload));
  return range;
}

TensorWriter ExternalData::tensor(std::string_view name, ElementType type,
                                  const std::vector<int64_t>& dims, Payload payload) {
  return tensor_at(name, type, dims, add(std::move(payload)));
}

TensorWriter ExternalData::tensor_at(std::string_view name, ElementType type,
                                     const std::vector<int64_t>& dims, Range range) const {
  return TensorWriter(name, type, dims).external(location_, range.offset, range.bytes);
}

std::string ExternalData::serialize() const {
  std::string out;
  out.reserve(static_cast<size_t>(byte_count_));
  // What a payload left out is zero here; write_file reports it.
  static_cast<void>(write_payloads(payloads_, [&](const void* data, size_t bytes) {
    out.append(static_cast<const char*>(data), bytes);
  }));
  return out;
}

WriteResult ExternalData::write_file(const std::string& path, const WriteProgress& progress) const {
  return model_writer::write_file(path, byte_count_, progress, [&](const ByteSink& sink) {
    return write_payloads(payloads_, sink);
  });
}

}  // namespace model_writer
