#include "checkpoint/safetensors_stream.h"

#include <fmt/format.h>
#include <system_error>
#include <utility>

#include "base/append_file.h"
#include "base/check.h"
#include "base/folder.h"
#include "checkpoint/internal/safetensors_layout.h"

namespace locket::checkpoint {

struct SafetensorsStream::State {
  State(AppendFile part, std::filesystem::path target)
      : file(std::move(part)), path(std::move(target)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    // The part of a file is of no use to anybody, and nobody can be told if it stays.
    if (!is_finished) static_cast<void>(remove_file(file.path()));
  }

  AppendFile file;
  std::filesystem::path path;
  std::uint64_t left = 0;  // bytes that are still to come
  bool is_finished = false;
};

SafetensorsStream::SafetensorsStream(std::unique_ptr<State> state) : state_(std::move(state)) {}
SafetensorsStream::SafetensorsStream(SafetensorsStream&&) noexcept = default;
SafetensorsStream& SafetensorsStream::operator=(SafetensorsStream&&) noexcept = default;
SafetensorsStream::~SafetensorsStream() = default;

Result<SafetensorsStream> SafetensorsStream::create(
    const std::filesystem::path& path, std::span<const PlannedTensor> tensors,
    const std::map<std::string, std::string>& metadata) {
  LOCKET_TRY(const std::string header, internal::safetensors_header(tensors, metadata));
  std::uint64_t data_bytes = 0;
  for (const PlannedTensor& tensor : tensors) {
    LOCKET_TRY(const std::uint64_t bytes, internal::byte_count_of(tensor));
    data_bytes += bytes;
  }
  const std::filesystem::path part = path.string() + ".part";
  LOCKET_TRY_STATUS(remove_file(part));
  LOCKET_TRY(AppendFile file, AppendFile::create(part));
  SafetensorsStream stream(std::make_unique<State>(std::move(file), path));
  LOCKET_TRY_STATUS(stream.state_->file.append(std::as_bytes(std::span(header))));
  stream.state_->left = data_bytes;
  return stream;
}

Status SafetensorsStream::append(std::span<const std::byte> bytes) {
  LOCKET_CHECK(bytes.size() <= state_->left);
  LOCKET_TRY_STATUS(state_->file.append(bytes));
  state_->left -= bytes.size();
  return {};
}

Status SafetensorsStream::finish() {
  LOCKET_CHECK(state_->left == 0 && !state_->is_finished);
  LOCKET_TRY_STATUS(state_->file.sync());
  std::error_code error;
  std::filesystem::rename(state_->file.path(), state_->path, error);
  if (error) {
    return fail(ErrorCode::kIo,
                fmt::format("cannot rename {} to {}: {}", state_->file.path().string(),
                            state_->path.string(), error.message()));
  }
  state_->is_finished = true;
  return {};
}

}  // namespace locket::checkpoint
