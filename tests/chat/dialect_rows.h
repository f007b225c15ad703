// What the tests of the request formats share: one parser for a path, and requests of real clients.
#pragma once

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "chat/completion_request.h"
#include "chat/issued_items.h"
#include "chat/messages_request.h"
#include "chat/responses_request.h"
#include "tests/chat/chat_rows.h"

namespace locket::chat {

inline Result<ChatRequest> parse_responses(std::string_view body) {
  return parse_responses_request(body, NoIssuedItems());
}

using Parser = Result<ChatRequest> (*)(std::string_view body);

// The parser of an endpoint's path.
inline Parser parser_of_path(std::string_view path) {
  if (path.find("/messages") != std::string_view::npos) return &parse_messages_request;
  if (path.find("/responses") != std::string_view::npos) return &parse_responses;
  return &parse_chat_request;
}

inline RenderedPrompt rendered(Parser parser, const OrderedJson& body) {
  const Result<ChatRequest> request = parser(body.dump());
  EXPECT_TRUE(request.has_value()) << request.error().message;
  return request ? render_segments(*request) : RenderedPrompt{};
}

// The prompt as one text; "refused: ..." if the request is refused.
inline std::string prompt_text(Parser parser, std::string_view body) {
  const Result<ChatRequest> request = parser(body);
  if (!request) return "refused: " + request.error().message;
  return join_segments(render_segments(*request).segments);
}

// The message of the refusal; empty if the request is accepted.
inline std::string refusal(Parser parser, std::string_view body) {
  const Result<ChatRequest> request = parser(body);
  return request ? "" : request.error().message;
}

struct ClientRequest {
  std::string name;
  std::string path;
  OrderedJson body;
};

// tests/data/clients/`name`.json
inline ClientRequest client_request(const std::string& name) {
  std::ifstream file(std::filesystem::path(LOCKET_TEST_DATA) / "clients" / (name + ".json"));
  std::ostringstream text;
  text << file.rdbuf();
  const OrderedJson row = OrderedJson::parse(text.str());
  return {name, row.at("path"), row.at("body")};
}

inline std::vector<ClientRequest> all_client_requests() {
  std::vector<ClientRequest> requests;
  const std::filesystem::path folder = std::filesystem::path(LOCKET_TEST_DATA) / "clients";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    requests.push_back(client_request(entry.path().stem().string()));
  }
  return requests;
}

}  // namespace locket::chat
