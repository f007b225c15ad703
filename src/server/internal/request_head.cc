#include "server/internal/request_head.h"

#include <boost/beast/http/basic_parser.hpp>
#include <limits>
#include <string>

#include "server/internal/http_text.h"
#include "server/internal/request_target.h"
#include "tokenizer/utf8.h"

namespace locket::server {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;

// Collects what the parser finds. The body is not its matter: it stops behind the head.
class HeadParser final : public http::basic_parser<true> {
 public:
  HeadParser() {
    skip(true);
    header_limit(std::numeric_limits<std::uint32_t>::max());  // checked before
    body_limit(boost::none);
  }

  HttpRequest request;
  std::string target;
  int version = 0;
  std::size_t host_count = 0;
  std::size_t coding_count = 0;
  std::string coding;
  std::string expectation;
  bool is_valid_text = true;

 private:
  using ErrorOut = beast::error_code&;

  void on_request_impl(http::verb /*method*/, beast::string_view method_text,
                       beast::string_view target_text, int version_number,
                       ErrorOut /*error*/) override {
    request.method.assign(method_text.data(), method_text.size());
    target.assign(target_text.data(), target_text.size());
    version = version_number;
  }
  void on_field_impl(http::field name, beast::string_view name_text, beast::string_view value,
                     ErrorOut /*error*/) override {
    std::string text(value.data(), value.size());
    is_valid_text = is_valid_text && tokenizer::is_valid_utf8(text);
    if (name == http::field::host) host_count += 1;
    if (name == http::field::transfer_encoding) {
      coding_count += 1;
      coding = text;
    }
    if (name == http::field::expect) expectation = text;
    request.headers.emplace_back(std::string(name_text.data(), name_text.size()), std::move(text));
  }
  void on_response_impl(int /*status*/, beast::string_view /*reason*/, int /*version*/,
                        ErrorOut /*error*/) override {}
  void on_header_impl(ErrorOut /*error*/) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>& /*length*/,
                         ErrorOut /*error*/) override {}
  std::size_t on_body_impl(beast::string_view /*bytes*/, ErrorOut /*error*/) override { return 0; }
  void on_chunk_header_impl(std::uint64_t /*size*/, beast::string_view /*extensions*/,
                            ErrorOut /*error*/) override {}
  std::size_t on_chunk_body_impl(std::uint64_t /*left*/, beast::string_view /*bytes*/,
                                 ErrorOut /*error*/) override {
    return 0;
  }
  void on_finish_impl(ErrorOut /*error*/) override {}
};

std::string_view fault_of(const beast::error_code& error) {
  if (error == http::error::bad_version)
    return "the request line does not say HTTP/1.1 or HTTP/1.0";
  if (error == http::error::bad_content_length || error == http::error::multiple_content_length) {
    return "the Content-Length is not one number, or does not go with Transfer-Encoding";
  }
  if (error == http::error::bad_transfer_encoding) {
    return "the Transfer-Encoding does not go with another one, or with Content-Length";
  }
  return "the head of the request is not valid HTTP/1.1";
}

std::optional<HttpResponse> judge(const HeadParser& parser) {
  if (!parser.is_valid_text) return plain_error(400, "a header is not valid UTF-8");
  if (parser.host_count > 1 || (parser.version == 11 && parser.host_count == 0)) {
    return plain_error(400, "the request must have exactly one Host header");
  }
  if (parser.coding_count > 0) {
    if (parser.version == 10) return plain_error(400, "HTTP/1.0 has no Transfer-Encoding");
    if (!beast::iequals(parser.coding, "chunked")) {
      return plain_error(501, "the only Transfer-Encoding that is understood is chunked");
    }
  }
  if (!parser.expectation.empty() && !beast::iequals(parser.expectation, "100-continue")) {
    return plain_error(417, "the only expectation that can be met is 100-continue");
  }
  return std::nullopt;
}

}  // namespace

std::optional<HttpResponse> parse_request_head(std::string_view bytes, RequestHead& head) {
  HeadParser parser;
  beast::error_code error;
  const std::size_t used = parser.put(boost::asio::buffer(bytes.data(), bytes.size()), error);
  if (error) return plain_error(400, fault_of(error));
  if (used != bytes.size() || !parser.is_done()) return plain_error(400, fault_of(error));
  head.request = std::move(parser.request);
  head.version = parser.version;
  if (auto refusal = judge(parser)) return refusal;
  RequestTarget target;
  if (!split_target(parser.target, target)) {
    return plain_error(400, "the path is not one that begins with / and is valid UTF-8");
  }
  head.request.path = std::move(target.path);
  head.request.query = std::move(target.query);
  head.keeps_alive = parser.keep_alive();
  head.expects_continue = parser.version == 11 && !parser.expectation.empty();
  head.is_chunked = parser.chunked();
  head.body_bytes = head.is_chunked ? 0 : parser.content_length().value_or(0);
  return std::nullopt;
}

}  // namespace locket::server
