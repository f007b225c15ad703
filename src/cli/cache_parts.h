// What the commands of `locket cache` have in common: opening the memory, requests as token ids,
// and how things are shown.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cache/disk_catalog.h"
#include "chat/chat_format.h"
#include "chat/rendered_prompt.h"
#include "cli/options.h"
#include "engine/model_memory.h"
#include "tokenizer/tokenizer.h"

namespace locket::cli {

// The folder that is meant. kBadRequest if the memory is off.
[[nodiscard]] Result<std::filesystem::path> memory_folder(const CacheOptions& options);

// Reading leaves the lock to those who write. kNotFound, unless it is to be made, if there is no
// memory yet.
enum class StoreUse { kRead, kWrite, kMakeAndWrite };
[[nodiscard]] Result<std::unique_ptr<cache::DiskStore>> open_store(const CacheOptions& options,
                                                                   StoreUse use);

// The model whose memory is meant, without its weights.
struct CacheModel {
  std::filesystem::path folder;
  engine::ModelMemory memory;
};
[[nodiscard]] Result<CacheModel> open_cache_model(const CacheOptions& options);

// How a model's prompts are made.
struct PromptText {
  const tokenizer::Tokenizer& tokenizer;
  chat::ChatFormat format;
};

// The prompt of -p or --messages, or of one file. Errors name the file.
[[nodiscard]] Result<chat::RenderedPrompt> render_choice(const CacheOptions& options,
                                                         const PromptText& text);
[[nodiscard]] Result<chat::RenderedPrompt> render_file(const std::filesystem::path& file,
                                                       const PromptText& text);

// The first digits of a name, enough for people.
std::string short_name(const cache::PageName& name);
// 117441 -> "114.7 KiB".
std::string bytes_text(std::uint64_t bytes);
// How long ago: "12 s", "3 min", "5 h", "8 d"; "-" if the time is not known or still to come.
std::string age_text(double seconds, double now);
// Text from outside on one line: control characters and broken UTF-8 are escaped.
std::string plain_text(std::string_view text);
// "model, mode, revision 1, tenant x".
std::string root_text(const cache::RootLabel& root);

// Every command prints a text, or one line of JSON.
int run_cache_ls(const CacheOptions& options);
int run_cache_stat(const CacheOptions& options);
int run_cache_verify(const CacheOptions& options);
int run_cache_export(const CacheOptions& options);
int run_cache_import(const CacheOptions& options);
int run_cache_prewarm(const CacheOptions& options);
int run_cache_pin(const CacheOptions& options);
int run_cache_rm(const CacheOptions& options);
int run_cache_why(const CacheOptions& options);

}  // namespace locket::cli
