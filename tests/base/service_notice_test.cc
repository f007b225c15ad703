#include "base/service_notice.h"

#include <array>
#include <cstddef>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace locket {
namespace {

// A service manager's end: "@name" or a path, as in NOTIFY_SOCKET.
class Manager {
 public:
  explicit Manager(const std::string& socket) : descriptor_(::socket(AF_UNIX, SOCK_DGRAM, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    socket.copy(address.sun_path, sizeof(address.sun_path) - 1);
    if (socket.front() == '@') address.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket.size());
    EXPECT_EQ(::bind(descriptor_, reinterpret_cast<const sockaddr*>(&address), size), 0);
  }
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;
  ~Manager() { ::close(descriptor_); }

  std::string heard() const {
    std::array<char, 256> text = {};
    const ssize_t bytes = ::recv(descriptor_, text.data(), text.size(), MSG_DONTWAIT);
    return bytes < 0 ? "nothing" : std::string(text.data(), static_cast<std::size_t>(bytes));
  }

 private:
  int descriptor_;
};

TEST(ServiceNoticeTest, SpeaksToASocketInTheFileSystem) {
  const auto path =
      std::filesystem::temp_directory_path() / ("locket_notice_" + std::to_string(::getpid()));
  const Manager manager(path.string());
  EXPECT_TRUE(notify_service_manager(path.string(), "READY=1"));
  EXPECT_EQ(manager.heard(), "READY=1");
  std::filesystem::remove(path);
}

TEST(ServiceNoticeTest, SpeaksToAnAbstractSocket) {
  const std::string name = "@locket_notice_" + std::to_string(::getpid());
  const Manager manager(name);
  EXPECT_TRUE(notify_service_manager(name, "STOPPING=1"));
  EXPECT_EQ(manager.heard(), "STOPPING=1");
}

TEST(ServiceNoticeTest, SaysNothingWhereNobodyWaits) {
  EXPECT_TRUE(notify_service_manager("", "READY=1"));
}

TEST(ServiceNoticeTest, RefusesWhatIsNoAddress) {
  for (const std::string& socket :
       {std::string("relative"), std::string("@"), "/" + std::string(200, 'a')}) {
    const Status status = notify_service_manager(socket, "READY=1");
    ASSERT_FALSE(status) << socket;
    EXPECT_EQ(status.error().code, ErrorCode::kBadRequest);
    EXPECT_NE(status.error().message.find("NOTIFY_SOCKET"), std::string::npos);
  }
}

TEST(ServiceNoticeTest, SaysThatNobodyListens) {
  const Status status = notify_service_manager("/nobody/listens/here", "READY=1");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kIo);
  EXPECT_NE(status.error().message.find("/nobody/listens/here"), std::string::npos);
}

}  // namespace
}  // namespace locket
