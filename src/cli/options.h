// What each command takes. Filled by parse_options(), which checks ranges and known values; MODEL
// is a checkpoint folder and defaults to the small model that ships.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "server/server_options.h"

namespace locket::cli {

// What every command that runs a model takes.
struct ModelOptions {
  std::filesystem::path model;            // empty: the small model that ships
  std::string mode;                       // see mode_choice.h; empty: as the model has
  std::string replay = "bounded";         // bounded, exact or full
  std::size_t threads = 0;                // 0: one per core
  std::uint64_t memory_budget_bytes = 0;  // page pool; 0: a share of the free memory
  std::uint64_t expert_memory_bytes = 0;  // of routed experts in RAM; 0: as many as fit
  std::string memory;                     // folder on disk, or "off"; empty: see memory_path.h
  std::uint64_t memory_quota_bytes = 0;   // of that folder; 0: see default_memory_quota()
};

struct SamplingOptions {
  double temperature = 0.0;
  std::int64_t top_k = 0;  // 0: off
  double top_p = 1.0;
  double min_p = 0.0;
  std::uint64_t seed = 0;
  std::int64_t max_tokens = 0;  // 0: to the end of the context
  std::vector<std::string> stop;
};

// locket bench: ratios to the machine's limits, and the slice that some of them need.
struct BenchOptions {
  std::filesystem::path make_slice;  // only make a slice here
  std::uint64_t seed = 1;            // of its weights
  std::filesystem::path slice;       // empty: parts that need one are left out
  bool quick = false;
  std::filesystem::path json;
  std::vector<std::string> only;  // groups of rows; empty: all
  std::filesystem::path scratch;  // empty: the folder for temporary files
  std::size_t threads = 0;        // 0: one per core
};

// locket cache, whichever of its commands.
struct CacheOptions {
  enum class Action { kLs, kStat, kVerify, kExport, kImport, kPrewarm, kPin, kRm, kWhy, kCount };
  Action action = Action::kLs;
  ModelOptions model;
  bool json = false;
  bool all = false;                // ls, rm
  bool yes = false;                // rm
  bool repair = false;             // verify
  bool off = false;                // pin
  bool is_public = false;          // pin: for every tenant
  bool has_request = false;        // -p or --messages
  std::string name;                // first digits of a prefix's name
  std::string prompt;              // -p: one user message
  std::filesystem::path messages;  // --messages FILE: a chat request as JSON
  std::string effort;
  std::filesystem::path file;                // export, import
  std::vector<std::filesystem::path> files;  // prewarm
};
std::string_view cache_action_name(CacheOptions::Action action);

struct ChatOptions {
  ModelOptions model;
  SamplingOptions sampling;
  std::string system;
  std::string effort;   // empty: chat mode; a name or 1..100: thinking mode
  std::string session;  // empty: a conversation without a name, which is not kept
  bool lists_sessions = false;
};

struct DemoOptions {
  ModelOptions model;
  std::int64_t conversations = 50;  // how many of the recall conversations are counted
};

// One process of the demo; started by it, not by people.
struct DemoWorkerOptions {
  ModelOptions model;
  std::string task;  // remember or answer
};

// locket claims: every published number beside what this program finds.
struct ClaimsOptions {
  ModelOptions model;  // the small model that talks
  bool json = false;
  bool is_quick = false;  // only what needs no model to run
};

// locket doctor: checks machine, kernels, checkpoint and memory.
struct DoctorOptions {
  ModelOptions model;
  bool json = false;
  bool measures = false;  // also what the machine can do, and how near the kernels come
};

struct InspectOptions {
  ModelOptions model;
  std::int64_t context = 32768;  // tokens of context at which work is counted
  bool plan = false;             // what would go where, instead
  bool json = false;
};

// locket lens: what each layer of a model would say.
struct LensOptions {
  ModelOptions model;
  std::string prompt;              // -p: plain text
  std::filesystem::path messages;  // a chat request as JSON
  std::filesystem::path ids;       // or token ids; without any of them a conversation of the demo
  std::filesystem::path html;      // a heat map is written here; empty: none
  std::int64_t rows = 40;          // last positions that are printed
  bool json = false;
};

struct MemoryOptions {
  std::vector<std::filesystem::path> models = {};
  std::int64_t tokens = 0;  // length of each text that is measured; 0: what the budget allows
  std::uint64_t budget_bytes = 0;  // of the memory of one such text; 0: a share of the free memory
  bool is_computed_only = false;   // of the released models nothing is measured
  bool json = false;
  std::filesystem::path scratch = {};     // empty: the folder for temporary files
  std::filesystem::path svg_folder = {};  // plots are written there; empty: none
};

struct ParseOptions {
  std::filesystem::path tokenizer;     // of outputs given as ids; empty: the small model's
  std::optional<std::int64_t> chunks;  // split the text every N bytes; 0 or none: whole
};

struct RenderOptions {
  std::filesystem::path tokenizer;  // a tokenizer.json; empty: the small model's
};

struct RunOptions {
  ModelOptions model;
  SamplingOptions sampling;
  std::string prompt;              // -p: one user message
  std::filesystem::path messages;  // --messages FILE: a chat request as JSON
  std::string effort;
  bool json = false;
};

struct ServeOptions {
  ModelOptions model;
  server::ServerOptions server;
  std::filesystem::path config;  // already read
};

struct TokensOptions {
  std::filesystem::path model;      // a checkpoint folder
  std::filesystem::path tokenizer;  // or a tokenizer.json
  bool json = false;
  bool decode = false;
};

struct TraceOptions {
  ModelOptions model;
  std::filesystem::path ids;
  std::filesystem::path output;
  std::int64_t chunk = 0;                      // prompt slice; 0: whole
  std::optional<std::int64_t> decode_from;     // ids from here on go one at a time
  std::string index_scores = "f32";            // f32 or bf16
  std::vector<std::string> what = {"logits"};  // logits, streams, attention, moe, rows, ...
  std::optional<std::int64_t> layer;           // with `from`: one layer on recorded inputs
  std::filesystem::path from;
};

using Command = std::variant<BenchOptions, CacheOptions, ChatOptions, ClaimsOptions, DemoOptions,
                             DemoWorkerOptions, DoctorOptions, InspectOptions, LensOptions,
                             MemoryOptions, ParseOptions, RenderOptions, RunOptions, ServeOptions,
                             TokensOptions, TraceOptions>;

// The command that `argc`, `argv` ask for. `exit_code` is set and no command returned when the
// parser has already answered (--help, --version, wrong use).
struct ParsedOptions {
  std::optional<Command> command;
  int exit_code = 0;
};
ParsedOptions parse_options(int argc, char** argv);

}  // namespace locket::cli
