#include "server/tenants.h"

#include <gtest/gtest.h>
#include <set>
#include <string>
#include <vector>

namespace locket::server {
namespace {

TEST(TenantsTest, NothingAtAllIsTheDefaultTenant) { EXPECT_EQ(tenant_of({}), ""); }

TEST(TenantsTest, TheSamePartsAreTheSameTenant) {
  EXPECT_EQ(tenant_of({"ann", "user", "salt"}), tenant_of({"ann", "user", "salt"}));
}

// A change of the text would lose every tenant's memory.
TEST(TenantsTest, TheDigestStaysWhatItIs) {
  EXPECT_EQ(tenant_of({"ann", "7", "pepper"}),
            "4addb5e22c610bfcac9007e44e55d29caa2f834175a6e4f5a6840c818708845b");
}

TEST(TenantsTest, PartsThatDifferAnywhereAreDifferentTenants) {
  // Parts that meet, that move, and that imitate the text between parts.
  const std::vector<std::string> words = {"",  "a",           "b",         "ab", "1",     "\n",
                                          ":", "a\nuser 1:b", "\nsalt 0:", "0:", "public"};
  std::set<std::string> tenants;
  for (const std::string& key : words) {
    for (const std::string& user : words) {
      for (const std::string& salt : words) tenants.insert(tenant_of({key, user, salt}));
    }
  }
  EXPECT_EQ(tenants.size(), words.size() * words.size() * words.size());
  EXPECT_EQ(tenants.count(std::string(kPublicTenant)), 0U);
}

TEST(TenantsTest, ATenantIsADigestAndTellsNothing) {
  const std::string tenant = tenant_of({"ann", "", ""});
  EXPECT_EQ(tenant.size(), 64U);
  EXPECT_EQ(tenant.find_first_not_of("0123456789abcdef"), std::string::npos);
}

}  // namespace
}  // namespace locket::server
