#include <iostream>
#include <string>

#include "cli/commands.h"
#include "cli/model_path.h"
#include "cli/token_lines.h"
#include "service/load_tokenizer.h"
#include "tokenizer/tokenizer.h"

namespace locket::cli {
namespace {

using tokenizer::Tokenizer;

Result<Tokenizer> load_tokenizer(const TokensOptions& options) {
  LOCKET_TRY(const std::filesystem::path path, resolve_tokenizer(options.tokenizer, options.model));
  return service::load_tokenizer(path);
}

Result<std::string> answer(const Tokenizer& tokenizer, const TokensOptions& options,
                           const TokenLine& line) {
  if (options.decode) return decode_token_line(tokenizer, line);
  const TokenLineFormat format = options.json ? TokenLineFormat::kJson : TokenLineFormat::kReadable;
  return encode_token_line(tokenizer, line, format);
}

}  // namespace

// Answers every line of stdin with one line; a line that is wrong gets an error object and does not
// end the run.
int run_tokens(const TokensOptions& options) {
  const Result<Tokenizer> tokenizer = load_tokenizer(options);
  if (!tokenizer) {
    std::cerr << "locket tokens: " << tokenizer.error().message << '\n';
    return 1;
  }
  int exit_code = 0;
  std::string text;
  for (std::size_t number = 1; std::getline(std::cin, text); ++number) {
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    const TokenLine line = {.text = text, .number = number};
    const Result<std::string> answered = answer(*tokenizer, options, line);
    if (!answered) exit_code = 1;
    std::cout << (answered ? *answered : error_line(answered.error(), line)) << '\n';
    std::cout.flush();
  }
  return exit_code;
}

}  // namespace locket::cli
