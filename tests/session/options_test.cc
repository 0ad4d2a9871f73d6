// set_config: every key, bad values, and what unknown keys are told.
#include "core/session/options.h"

#include <gtest/gtest.h>

#include "tests/support/model_tester.h"

namespace folio {
namespace {

struct Options {
  ModelOptions model;
  SessionOptions session;

  Status set(std::string_view key, std::string_view value) {
    return set_config(&model, &session, key, value);
  }
};

TEST(SetConfig, EveryKeyDoesWhatItSays) {
  Options options;
  ASSERT_TRUE(options.set("folio.model_loading", "read").is_ok());
  EXPECT_TRUE(options.model.read_into_memory);
  ASSERT_TRUE(options.set("folio.nchwc_block_size", "8").is_ok());
  EXPECT_EQ(options.model.nchwc_block_size, 8);
  EXPECT_TRUE(fails_with(options.set("folio.nchwc_block_size", "4"), Code::kInvalidArgument,
                         {"folio.nchwc_block_size", "0, 8 or 16"}));
  EXPECT_EQ(options.session.precision, kFolioHighest);
  ASSERT_TRUE(options.set("folio.float32_matmul_precision", "medium").is_ok());
  EXPECT_EQ(options.session.precision, kFolioMedium);
  ASSERT_TRUE(options.set("folio.float32_matmul_precision", "high").is_ok());
  EXPECT_EQ(options.session.precision, kFolioHigh);
  EXPECT_TRUE(fails_with(options.set("folio.float32_matmul_precision", "low"),
                         Code::kInvalidArgument, {"highest, high or medium"}));
  ASSERT_TRUE(options.set("folio.optimize", "none").is_ok());
  EXPECT_EQ(options.session.optimize, Optimize::kOff);
  ASSERT_TRUE(options.set("folio.threads", "12").is_ok());
  EXPECT_EQ(options.session.threads, 12);
  ASSERT_TRUE(options.set("session.disable_prepacking", "1").is_ok());
  EXPECT_FALSE(options.session.prepack);
  ASSERT_TRUE(options.set("session.set_denormal_as_zero", "1").is_ok());
  EXPECT_TRUE(options.session.flush_denormals);
  ASSERT_TRUE(options.set("session.load_model_format", "ORT").is_ok());
  EXPECT_EQ(options.model.format, "ORT");
  ASSERT_TRUE(options.set("folio.on_file_change", "warn").is_ok());
  EXPECT_EQ(options.session.on_file_change, OnFileChange::kWarn);
  ASSERT_TRUE(options.set("folio.residency", "prefetch").is_ok());
  EXPECT_EQ(options.session.residency, ResidencyMode::kPrefetch);
  ASSERT_TRUE(options.set("folio.residency", "lock").is_ok());
  EXPECT_EQ(options.session.residency, ResidencyMode::kLock);
  ASSERT_TRUE(options.set("folio.residency", "cache").is_ok());
  EXPECT_EQ(options.session.residency, ResidencyMode::kCache);
}

TEST(SetConfig, TheGuardIsAKeyOfModelsAndOfSessions) {
  Options options;
  ASSERT_TRUE(options.set("folio.sigbus_guard", "1").is_ok());
  EXPECT_TRUE(options.model.sigbus_guard);
  EXPECT_TRUE(options.session.sigbus_guard);
  ModelOptions model;
  SessionOptions session;
  EXPECT_TRUE(set_config(&model, nullptr, "folio.sigbus_guard", "1").is_ok());
  EXPECT_TRUE(model.sigbus_guard);
  EXPECT_TRUE(set_config(nullptr, &session, "folio.sigbus_guard", "1").is_ok());
  EXPECT_TRUE(session.sigbus_guard);
  EXPECT_TRUE(fails_with(set_config(nullptr, nullptr, "folio.sigbus_guard", "1"),
                         Code::kInvalidArgument, {"models and sessions"}));
}

TEST(SetConfig, BytesGivenDirectlyAreBorrowed) {
  Options options;
  ASSERT_TRUE(options.set("session.use_ort_model_bytes_directly", "1").is_ok());
  EXPECT_TRUE(options.model.borrow_ort_bytes);
}

TEST(SetConfig, KeysOfSavingDoWhatTheySay) {
  Options options;
  const ModelSaving& saving = options.session.saving;
  ASSERT_TRUE(options.set("session.optimized_model_filepath", "out/m.ort").is_ok());
  EXPECT_EQ(saving.path, "out/m.ort");
  ASSERT_TRUE(options.set("session.save_model_format", "ONNX").is_ok());
  EXPECT_EQ(saving.format, "ONNX");
  const std::string external = "session.optimized_model_external_initializers_";
  ASSERT_TRUE(options.set(external + "file_name", "w").is_ok());
  EXPECT_EQ(saving.external_file, "w");
  EXPECT_EQ(saving.external_min_bytes, 1024u) << "ONNX Runtime's default";
  ASSERT_TRUE(options.set(external + "min_size_in_bytes", "7").is_ok());
  EXPECT_EQ(saving.external_min_bytes, 7u);
  for (const char* bad : {"", "-1", "1k", "99999999999999999999"}) {
    EXPECT_FALSE(options.set(external + "min_size_in_bytes", bad).is_ok()) << bad;
  }
  ASSERT_TRUE(options.set("session.save_external_prepacked_constant_initializers", "1").is_ok());
  EXPECT_TRUE(saving.packs);
}

TEST(SetConfig, OnlyAnExplicitZeroTakesAnOrtModelOutOfItsMapping) {
  for (const char* key :
       {"session.use_memory_mapped_ort_model", "session.use_ort_model_bytes_for_initializers"}) {
    Options options;
    ASSERT_TRUE(options.set(key, "1").is_ok());
    EXPECT_FALSE(options.model.owns_ort_bytes());
    ASSERT_TRUE(options.set(key, "0").is_ok());
    EXPECT_TRUE(options.model.owns_ort_bytes());
    ASSERT_TRUE(options.set(key, "1").is_ok());
    EXPECT_FALSE(options.model.owns_ort_bytes()) << "the last one counts";
  }
  Options options;
  ASSERT_TRUE(options.set("session.use_memory_mapped_ort_model", "0").is_ok());
  ASSERT_TRUE(options.set("session.use_ort_model_bytes_for_initializers", "1").is_ok());
  EXPECT_TRUE(options.model.owns_ort_bytes()) << "each key for itself";
}

TEST(SetConfig, BadValuesAreNamedWithTheGoodOnes) {
  Options options;
  EXPECT_TRUE(fails_with(options.set("folio.optimize", "some"), Code::kInvalidArgument,
                         {"folio.optimize", "'some'", "all or none"}));
  for (const char* bad : {"", "-1", "1x", "12345", "+1", " 1"}) {
    EXPECT_TRUE(
        fails_with(options.set("folio.threads", bad), Code::kInvalidArgument, {"folio.threads"}))
        << bad;
  }
  EXPECT_TRUE(fails_with(options.set("session.disable_prepacking", "yes"), Code::kInvalidArgument,
                         {"0 or 1"}));
  EXPECT_EQ(options.session.threads, 0) << "bad values change nothing";
  EXPECT_TRUE(options.session.prepack);
}

TEST(SetConfig, TextsAreAsLongAsThoseOfOnnxRuntime) {
  Options options;
  const std::string path(8192, 'p');
  EXPECT_TRUE(options.set("session.optimized_model_filepath", path).is_ok());
  EXPECT_TRUE(fails_with(options.set("session.optimized_model_filepath", path + "p"),
                         Code::kInvalidArgument,
                         {"session.optimized_model_filepath", "8193", "at most 8192"}));
  EXPECT_TRUE(options.set(std::string(1024, 'k'), "1").is_ok()) << "of others: without effect";
  EXPECT_TRUE(fails_with(options.set(std::string(1025, 'k'), "1"), Code::kInvalidArgument,
                         {"1025", "1 to 1024"}));
  EXPECT_FALSE(options.set("", "1").is_ok());
}

TEST(SetConfig, UnknownKeysOfOursSuggestTheNearest) {
  Options options;
  EXPECT_TRUE(fails_with(options.set("folio.thread", "1"), Code::kInvalidArgument,
                         {"'folio.thread'", "did you mean 'folio.threads'"}));
}

TEST(SetConfig, KeysOfOthersAreIgnored) {
  Options options;
  EXPECT_TRUE(options.set("session.use_env_allocators", "1").is_ok());
  EXPECT_TRUE(options.set("whatever", "").is_ok());
}

}  // namespace
}  // namespace folio
