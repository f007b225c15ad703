// locket doctor: what it says of sound things, and that every check can fail.
#include <nlohmann/json.hpp>

#include "cli/doctor_checks.h"
#include "kernels/kernel_choice.h"
#include "tests/cli/program_cases.h"

namespace locket::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test_support::ProgramResult;
using test_support::run_program;
using test_support::TempFolder;
using Level = Finding::Level;

constexpr std::size_t kCases = 20;

MachineFacts sound_machine() {
  MachineFacts facts;
  facts.processor = "Some Processor";
  facts.online_threads = 8;
  facts.allowed_threads = 8;
  facts.memory_bytes = std::uint64_t{64} << 30;
  facts.memory_available = std::uint64_t{32} << 30;
  facts.large_pages = LargePages::kOnRequest;
  facts.clock_source = "tsc";
  facts.open_files = 65536;
  return facts;
}

// The finding of this name; fails the test if there is none.
Finding find(const std::vector<Finding>& findings, std::string_view name) {
  for (const Finding& finding : findings) {
    if (finding.name == name) return finding;
  }
  ADD_FAILURE() << "no finding named " << name;
  return {};
}

class DoctorTest : public testing::Test {
 protected:
  void SetUp() override { copy_checkpoint(tiny_folder("micro"), model_); }

  fs::path memory() const { return folder_ / "memory"; }

  ProgramResult call(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"doctor", model_.path().string()});
    return run_program(
        {.arguments = std::move(arguments), .environment = {{"LOCKET_MEMORY", memory().string()}}});
  }
  std::vector<Finding> look_at_model() const { return check_checkpoint(model_.path()); }
  std::vector<Finding> look_at_memory() const {
    return check_memory({.source = MemoryChoice::Source::kOption, .directory = memory()}, 0);
  }
  // Some pages are remembered afterwards.
  void remember() const {
    std::string prompt;
    for (int i = 0; i < 40; ++i) prompt += "The farmer painted the old house. ";
    const ProgramResult result = run_program(
        {.arguments = {"run", model_.path().string(), "-p", prompt, "--max-tokens", "1"},
         .environment = {{"LOCKET_MEMORY", memory().string()}}});
    ASSERT_EQ(result.exit_code, 0) << result.errors;
  }
  void expect_fault(const std::vector<Finding>& findings, std::string_view name,
                    const std::vector<std::string>& parts) const {
    EXPECT_FALSE(is_healthy(findings));
    const Finding found = find(findings, name);
    EXPECT_EQ(found.level, Level::kFailure) << found.text;
    expect_parts(found.text, parts);
  }

  TempFolder model_;
  TempFolder folder_;
};

TEST_F(DoctorTest, IsContentWithWhatShips) {
  remember();
  const ProgramResult result = call({});
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(result.errors, "");
  expect_parts(result.output,
               {"processor", "threads", "large pages", "clock", "active", "reference",
                "every tensor as the config wants it", "it runs: ", "for its owner only", "sound"});
  EXPECT_EQ(result.output.find("FAIL"), std::string::npos) << result.output;
}

TEST_F(DoctorTest, SaysTheSameAsJson) {
  const ProgramResult result = call({"--json"});
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(lines_of(result.output).size(), 1U);
  const json found = json::parse(result.output);
  EXPECT_EQ(found.at("healthy"), true);
  EXPECT_TRUE(kernels::find_kernels(found.at("kernels").get<std::string>()).has_value());
  std::vector<std::string> sound_kernels;
  for (const json& item : found.at("findings")) {
    EXPECT_NE(item.at("level"), "FAIL") << item.dump();
    if (item.at("area") == "kernels") sound_kernels.push_back(item.at("name"));
  }
  // The first one says which is active; the reference is not compared with itself.
  EXPECT_EQ(sound_kernels.size(), kernels::available_kernels().size());
  EXPECT_FALSE(fs::exists(memory())) << "nothing is made where nothing is";
}

TEST_F(DoctorTest, WhatIsWrongIsAFailureOfTheProgram) {
  const fs::path shard = model_ / "model-00002-of-00003.safetensors";
  fs::resize_file(shard, fs::file_size(shard) / 2);
  const ProgramResult result = call({});
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_EQ(result.errors, "");
  expect_parts(result.output, {"FAIL  checkpoint  files", "model-00002-of-00003.safetensors",
                               "is it complete?", "1 thing is wrong"});
}

TEST_F(DoctorTest, NamesTensorsThatTheConfigDoesNotWant) {
  json config = json::parse(read_whole_file(model_ / "config.json").value());
  json& size = config.at("text_config").at("moe_intermediate_size");
  size = size.get<int>() * 2;
  model_.write("config.json", config.dump());
  expect_fault(look_at_model(), "shapes", {"experts.", "w1"});
}

TEST_F(DoctorTest, NamesAValueThatIsNoNumber) {
  const auto checkpoint = checkpoint::Checkpoint::open(model_.path()).value();
  const auto scale = checkpoint.find("layers.0.ffn.experts.1.w2.scale").value();
  const fs::path shard = scale.file->path();
  std::string bytes = read_whole_file(shard).value();
  bytes[scale.entry->offset + 2] = '\xFF';
  ASSERT_TRUE(write_whole_file(shard, std::as_bytes(std::span(bytes))));
  expect_fault(look_at_model(), "values", {"layers.0.ffn.experts.1.w2.scale", "NaN at element 2"});
}

TEST_F(DoctorTest, NamesATokenizerThatIsBroken) {
  model_.write("tokenizer.json", "{}");
  expect_fault(look_at_model(), "tokenizer", {"tokenizer.json"});
}

TEST_F(DoctorTest, NamesAModelThatIsNotThere) {
  expect_fault(check_checkpoint("/nowhere"), "files", {"/nowhere"});
}

TEST_F(DoctorTest, NamesDamageOfWhatIsRemembered) {
  remember();
  EXPECT_EQ(find(look_at_memory(), "content").level, Level::kOk);
  for (const auto& entry : fs::directory_iterator(memory())) {
    if (!entry.path().filename().string().starts_with("rows")) continue;
    std::string bytes = read_whole_file(entry.path()).value();
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    ASSERT_TRUE(write_whole_file(entry.path(), std::as_bytes(std::span(bytes))));
    fs::permissions(entry.path(), fs::perms::owner_read | fs::perms::owner_write);
  }
  const std::vector<Finding> findings = look_at_memory();
  expect_fault(findings, "content", {"rows are damaged"});
  expect_parts(find(findings, "content").advice, {"locket cache verify --repair"});
}

TEST_F(DoctorTest, NamesAFolderThatIsOpenToOthers) {
  remember();
  fs::permissions(memory(), fs::perms::owner_all | fs::perms::others_read | fs::perms::others_exec);
  expect_fault(look_at_memory(), "folder", {memory().string()});
  fs::permissions(memory(), fs::perms::owner_all);
  EXPECT_TRUE(is_healthy(look_at_memory()));
}

TEST_F(DoctorTest, NamesAMemoryOfAnotherFormat) {
  fs::create_directory(memory());
  fs::permissions(memory(), fs::perms::owner_all);
  folder_.write("memory/secret", "too short");
  EXPECT_FALSE(is_healthy(look_at_memory()));
}

TEST_F(DoctorTest, AMemoryThatIsOffIsNoFault) {
  const MemoryChoice off = {.source = MemoryChoice::Source::kOption,
                            .is_off = true,
                            .directory = {},
                            .why_off = "--memory is off"};
  const Finding asked = find(check_memory(off, 0), "folder");
  EXPECT_EQ(asked.level, Level::kOk);
  expect_parts(asked.text, {"nothing is kept on disk: --memory is off"});
  const MemoryChoice homeless = {.source = MemoryChoice::Source::kDefault,
                                 .is_off = true,
                                 .directory = {},
                                 .why_off = "no home"};
  EXPECT_EQ(find(check_memory(homeless, 0), "folder").level, Level::kWarning);
}

TEST(DoctorMachineTest, IsContentWithASoundMachine) {
  for (const Finding& finding : check_machine(sound_machine(), 0)) {
    EXPECT_EQ(finding.level, Level::kOk) << finding.name << ": " << finding.text;
    EXPECT_EQ(finding.advice, "");
  }
  EXPECT_EQ(check_clock(1.8e9).level, Level::kOk);
}

TEST(DoctorMachineTest, WarnsOfThreadsBeyondTheQuota) {
  MachineFacts facts = sound_machine();
  facts.quota_threads = 2.5;
  const Finding finding = find(check_machine(facts, 0), "threads");
  EXPECT_EQ(finding.level, Level::kWarning);
  expect_parts(finding.text + finding.advice, {"8 to compute with", "2.5", "--threads 2"});
  EXPECT_EQ(find(check_machine(facts, 2), "threads").level, Level::kOk);
  facts.quota_threads = 0;
  facts.allowed_threads = 3;
  EXPECT_EQ(find(check_machine(facts, 4), "threads").level, Level::kWarning);
  EXPECT_EQ(find(check_machine(facts, 3), "threads").level, Level::kOk);
}

TEST(DoctorMachineTest, WarnsOfEverythingThatSlowsDown) {
  struct Fault {
    const char* name;
    void (*make)(MachineFacts& facts);
  };
  const std::vector<Fault> faults = {
      {"memory", [](MachineFacts& facts) { facts.memory_bytes = 0; }},
      {"memory", [](MachineFacts& facts) { facts.memory_available = 1 << 20; }},
      {"memory", [](MachineFacts& facts) { facts.memory_limit = std::uint64_t{4} << 30; }},
      {"swap", [](MachineFacts& facts) { facts.swapped_bytes = std::uint64_t{4} << 30; }},
      {"large pages", [](MachineFacts& facts) { facts.large_pages = LargePages::kNever; }},
      {"large pages", [](MachineFacts& facts) { facts.large_pages = LargePages::kUnknown; }},
      {"files", [](MachineFacts& facts) { facts.open_files = 256; }},
      {"clock source", [](MachineFacts& facts) { facts.clock_source = "hpet"; }},
  };
  for (const Fault& fault : faults) {
    MachineFacts facts = sound_machine();
    fault.make(facts);
    const Finding finding = find(check_machine(facts, 0), fault.name);
    EXPECT_EQ(finding.level, Level::kWarning) << fault.name;
    EXPECT_NE(finding.advice, "") << fault.name;
  }
  EXPECT_EQ(check_clock(0).level, Level::kWarning);
}

TEST(DoctorMachineTest, WarnsWhereMeasuresAreLow) {
  kernels::MachineLimits limits;
  limits.threads = 4;
  limits.read.all = {.best = 80e9, .median = 75e9};
  limits.fork_join = {.best = 2e-6, .median = 5e-6};
  const KernelRates usual = {.decode = 0.9, .prefill = 0.9};
  for (const Finding& finding : check_limits(limits, usual)) {
    EXPECT_EQ(finding.level, Level::kOk) << finding.name;
  }
  expect_parts(find(check_limits(limits, usual), "memory").text, {"4 threads", "80", "75"});
  EXPECT_EQ(find(check_limits(limits, {.decode = 0.1, .prefill = 0.9}), "one token").level,
            Level::kWarning);
  EXPECT_EQ(find(check_limits(limits, {.decode = 0.9, .prefill = 0.05}), "many tokens").level,
            Level::kWarning);
  limits.fork_join.median = 1e-3;
  EXPECT_EQ(find(check_limits(limits, usual), "fork and join").level, Level::kWarning);
}

TEST(DoctorKernelsTest, FindsATableThatIsWrong) {
  kernels::KernelTable table = kernels::reference_kernels();
  table.name = "broken";
  EXPECT_TRUE(is_healthy(check_table(table, kCases)));
  table.elementwise.swiglu = [](std::span<const float>, std::span<const float>,
                                const kernels::GateShape&, std::span<float>) {};
  const std::vector<Finding> findings = check_table(table, kCases);
  EXPECT_FALSE(is_healthy(findings));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].name, "broken");
  expect_parts(findings[0].text, {"swiglu: 20 of 20 cases"});
  expect_parts(findings_text(findings), {"FAIL", "LOCKET_TARGET=reference", "1 thing is wrong"});
}

TEST(KernelPinTest, EveryCommandComputesWithTheNamedKernels) {
  for (const kernels::KernelTable* table : kernels::available_kernels()) {
    const std::string name(table->name);
    const ProgramResult version =
        run_program({.arguments = {"--version"}, .environment = {{"LOCKET_TARGET", name}}});
    EXPECT_EQ(version.exit_code, 0);
    EXPECT_TRUE(version.output.ends_with(", kernels " + name + "\n")) << version.output;
  }
  EXPECT_EQ(
      run_program({.arguments = {"--version"}, .environment = {{"LOCKET_TARGET", ""}}}).output,
      run_program({"--version"}).output);
}

TEST(KernelPinTest, PinnedKernelsGiveTheSameAnswer) {
  const std::vector<std::string> arguments = {"run",      tiny_folder("micro"), "-p",
                                              "Hi there", "--max-tokens",       "12"};
  const std::string expected = run_program(std::vector<std::string>(arguments)).output;
  EXPECT_NE(expected, "");
  for (const kernels::KernelTable* table : kernels::available_kernels()) {
    const ProgramResult result = run_program(
        {.arguments = arguments, .environment = {{"LOCKET_TARGET", std::string(table->name)}}});
    EXPECT_EQ(result.output, expected) << table->name;
  }
}

TEST(KernelPinTest, ANameThatIsNoneIsWrongUse) {
  for (const char* command : {"--version", "doctor", "run"}) {
    const ProgramResult result =
        run_program({.arguments = {command}, .environment = {{"LOCKET_TARGET", "avx9"}}});
    EXPECT_EQ(result.exit_code, 2) << command;
    EXPECT_EQ(result.output, "");
    EXPECT_EQ(lines_of(result.errors).size(), 1U) << result.errors;
    expect_parts(result.errors, {"LOCKET_TARGET", "\"avx9\"", kernels::available_kernel_names()});
  }
}

}  // namespace
}  // namespace locket::cli
