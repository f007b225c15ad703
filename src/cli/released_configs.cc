#include "cli/released_configs.h"

#include <array>

namespace locket::cli {
namespace {

constexpr std::string_view kV167b =
    R"json(
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "attention_bias": false,
"hidden_act": "silu", "hidden_size": 8192, "intermediate_size": 22016, "num_attention_heads": 64,
"num_hidden_layers": 95, "num_key_value_heads": 8, "vocab_size": 102400,
"max_position_embeddings": 4096, "rope_theta": 10000.0, "rope_scaling": null, "rms_norm_eps":
1e-06, "bos_token_id": 100000, "eos_token_id": 100001, "tie_word_embeddings": false,
"torch_dtype": "bfloat16"}
)json";

constexpr std::string_view kV17b =
    R"json(
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "attention_bias": false,
"hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 11008, "num_attention_heads": 32,
"num_hidden_layers": 30, "num_key_value_heads": 32, "vocab_size": 102400,
"max_position_embeddings": 4096, "rope_theta": 10000.0, "rope_scaling": null, "rms_norm_eps":
1e-06, "bos_token_id": 100000, "eos_token_id": 100001, "tie_word_embeddings": false,
"torch_dtype": "bfloat16"}
)json";

constexpr std::string_view kV2 =
    R"json(
{"architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2", "attention_bias": false,
"hidden_act": "silu", "hidden_size": 5120, "intermediate_size": 12288, "num_hidden_layers": 60,
"num_attention_heads": 128, "num_key_value_heads": 128, "q_lora_rank": 1536, "kv_lora_rank": 512,
"qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "first_k_dense_replace": 1,
"moe_layer_freq": 1, "n_routed_experts": 160, "n_shared_experts": 2, "num_experts_per_tok": 6,
"moe_intermediate_size": 1536, "topk_method": "group_limited_greedy", "n_group": 8, "topk_group":
3, "scoring_func": "softmax", "norm_topk_prob": false, "routed_scaling_factor": 16.0,
"vocab_size": 102400, "bos_token_id": 100000, "eos_token_id": 100001, "max_position_embeddings":
163840, "rope_theta": 10000, "rope_scaling": {"type": "yarn", "factor": 40,
"original_max_position_embeddings": 4096, "beta_fast": 32, "beta_slow": 1, "mscale": 0.707,
"mscale_all_dim": 0.707}, "rms_norm_eps": 1e-06, "tie_word_embeddings": false, "torch_dtype":
"bfloat16"}
)json";

constexpr std::string_view kV2Lite =
    R"json(
{"architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2", "attention_bias": false,
"hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 10944, "num_hidden_layers": 27,
"num_attention_heads": 16, "num_key_value_heads": 16, "q_lora_rank": null, "kv_lora_rank": 512,
"qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "first_k_dense_replace": 1,
"moe_layer_freq": 1, "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6,
"moe_intermediate_size": 1408, "topk_method": "greedy", "n_group": 1, "topk_group": 1,
"scoring_func": "softmax", "norm_topk_prob": false, "routed_scaling_factor": 1.0, "vocab_size":
102400, "bos_token_id": 100000, "eos_token_id": 100001, "max_position_embeddings": 163840,
"rope_theta": 10000, "rope_scaling": {"type": "yarn", "factor": 40,
"original_max_position_embeddings": 4096, "beta_fast": 32, "beta_slow": 1, "mscale": 0.707,
"mscale_all_dim": 0.707}, "rms_norm_eps": 1e-06, "tie_word_embeddings": false, "torch_dtype":
"bfloat16"}
)json";

constexpr std::string_view kV3 =
    R"json(
{"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "attention_bias": false,
"hidden_act": "silu", "hidden_size": 7168, "intermediate_size": 18432, "num_hidden_layers": 61,
"num_attention_heads": 128, "num_key_value_heads": 128, "q_lora_rank": 1536, "kv_lora_rank": 512,
"qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "first_k_dense_replace": 3,
"moe_layer_freq": 1, "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8,
"moe_intermediate_size": 2048, "topk_method": "noaux_tc", "n_group": 8, "topk_group": 4,
"scoring_func": "sigmoid", "norm_topk_prob": true, "routed_scaling_factor": 2.5, "vocab_size":
129280, "bos_token_id": 0, "eos_token_id": 1, "max_position_embeddings": 163840, "rope_theta":
10000, "rope_scaling": {"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096,
"beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0}, "rms_norm_eps": 1e-06,
"tie_word_embeddings": false, "torch_dtype": "bfloat16", "num_nextn_predict_layers": 1,
"quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
"weight_block_size": [128, 128]}}
)json";

constexpr std::string_view kV32 =
    R"json(
{"architectures": ["DeepseekV32ForCausalLM"], "model_type": "deepseek_v32", "attention_bias":
false, "hidden_act": "silu", "hidden_size": 7168, "intermediate_size": 18432, "num_hidden_layers":
61, "num_attention_heads": 128, "num_key_value_heads": 128, "q_lora_rank": 1536, "kv_lora_rank":
512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "first_k_dense_replace":
3, "moe_layer_freq": 1, "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8,
"moe_intermediate_size": 2048, "topk_method": "noaux_tc", "n_group": 8, "topk_group": 4,
"scoring_func": "sigmoid", "norm_topk_prob": true, "routed_scaling_factor": 2.5, "vocab_size":
129280, "bos_token_id": 0, "eos_token_id": 1, "max_position_embeddings": 163840, "rope_theta":
10000, "rope_scaling": {"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096,
"beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0}, "rms_norm_eps": 1e-06,
"tie_word_embeddings": false, "torch_dtype": "bfloat16", "num_nextn_predict_layers": 1,
"quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
"weight_block_size": [128, 128], "scale_fmt": "ue8m0"}, "index_n_heads": 64, "index_head_dim":
128, "index_topk": 2048}
)json";

constexpr std::string_view kV4Flash =
    R"json(
{"architectures": ["DeepseekV4ForCausalLM"], "model_type": "deepseek_v4", "attention_bias": false,
"hidden_act": "silu", "hidden_size": 4096, "num_hidden_layers": 43, "num_nextn_predict_layers": 1,
"num_attention_heads": 64, "num_key_value_heads": 1, "head_dim": 512, "qk_rope_head_dim": 64,
"q_lora_rank": 1024, "o_groups": 8, "o_lora_rank": 1024, "sliding_window": 128, "compress_ratios":
[0, 0, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4,
128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 0], "compress_rope_theta":
160000, "rope_theta": 10000, "rope_scaling": {"type": "yarn", "factor": 16,
"original_max_position_embeddings": 65536, "beta_fast": 32, "beta_slow": 1}, "index_n_heads": 64,
"index_head_dim": 128, "index_topk": 512, "n_routed_experts": 256, "n_shared_experts": 1,
"num_experts_per_tok": 6, "moe_intermediate_size": 2048, "scoring_func": "sqrtsoftplus",
"topk_method": "noaux_tc", "norm_topk_prob": true, "routed_scaling_factor": 1.5,
"num_hash_layers": 3, "swiglu_limit": 10.0, "hc_mult": 4, "hc_sinkhorn_iters": 20, "hc_eps":
1e-06, "vocab_size": 129280, "bos_token_id": 0, "eos_token_id": 1, "max_position_embeddings":
1048576, "rms_norm_eps": 1e-06, "expert_dtype": "fp4", "tie_word_embeddings": false,
"quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
"scale_fmt": "ue8m0", "weight_block_size": [128, 128]}, "torch_dtype": "bfloat16"}
)json";

constexpr std::string_view kV4Pro =
    R"json(
{"architectures": ["DeepseekV4ForCausalLM"], "model_type": "deepseek_v4", "attention_bias": false,
"hidden_act": "silu", "hidden_size": 7168, "num_hidden_layers": 61, "num_nextn_predict_layers": 1,
"num_attention_heads": 128, "num_key_value_heads": 1, "head_dim": 512, "qk_rope_head_dim": 64,
"q_lora_rank": 1536, "o_groups": 16, "o_lora_rank": 1024, "sliding_window": 128,
"compress_ratios": [128, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4,
128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4,
128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 0], "compress_rope_theta":
160000, "rope_theta": 10000, "rope_scaling": {"type": "yarn", "factor": 16,
"original_max_position_embeddings": 65536, "beta_fast": 32, "beta_slow": 1}, "index_n_heads": 64,
"index_head_dim": 128, "index_topk": 1024, "n_routed_experts": 384, "n_shared_experts": 1,
"num_experts_per_tok": 6, "moe_intermediate_size": 3072, "scoring_func": "sqrtsoftplus",
"topk_method": "noaux_tc", "norm_topk_prob": true, "routed_scaling_factor": 2.5,
"num_hash_layers": 3, "swiglu_limit": 10.0, "hc_mult": 4, "hc_sinkhorn_iters": 20, "hc_eps":
1e-06, "vocab_size": 129280, "bos_token_id": 0, "eos_token_id": 1, "max_position_embeddings":
1048576, "rms_norm_eps": 1e-06, "expert_dtype": "fp4", "tie_word_embeddings": false,
"quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
"scale_fmt": "ue8m0", "weight_block_size": [128, 128]}, "torch_dtype": "bfloat16"}
)json";

constexpr std::string_view kV41Flash =
    R"json(
{"architectures": ["DeepseekV41ForCausalLM"], "model_type": "deepseek_v41", "image_token_id":
129264, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2, "quantization_config":
{"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [32, 32],
"scale_fmt": "ue8m0", "expert_dtype": "fp4"}, "text_config": {"model_type": "deepseek_v41_text",
"vocab_size": 129280, "hidden_size": 5120, "num_hidden_layers": 40, "num_attention_heads": 64,
"num_key_value_heads": 1, "head_dim": 512, "qk_rope_head_dim": 64, "q_lora_rank": 1280,
"o_lora_rank": 1024, "o_groups": 8, "hidden_act": "silu", "swiglu_limit": 10.0, "rms_norm_eps":
1e-20, "tie_word_embeddings": false, "max_position_embeddings": 1048576, "sliding_window": 128,
"rope_theta": 10000, "compress_rope_theta": 160000, "rope_scaling": {"rope_type": "yarn",
"factor": 16, "beta_fast": 32, "beta_slow": 1, "original_max_position_embeddings": 65536},
"n_routed_experts": 384, "n_shared_experts": 1, "num_experts_per_tok": 6, "moe_intermediate_size":
2304, "scoring_func": "sqrtsoftplus", "topk_method": "noaux_tc", "norm_topk_prob": true,
"routed_scaling_factor": 1.5, "index_n_heads": 32, "index_head_dim": 128, "index_topk": 512,
"candidate_source_layer_id": 20, "candidate_topk_blocks": 2048, "candidate_block_size": 8,
"compress_ratios": [0, 0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1,
1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0], "kv_source_layer_ids": [2, 8, 14, 20],
"index_source_layer_ids": [2, 8, 14, 20, 24, 28, 32, 36], "hc_mult": 4, "hc_sinkhorn_iters": 20,
"hc_eps": 1e-06, "engram_layer_ids": [1, 14], "engram_num_embeddings": [384006168, 384016682],
"engram_max_ngram_size": 4, "engram_vocab_size": 16000000, "engram_n_heads": 8, "engram_head_dim":
256, "engram_pad_token_id": 2, "engram_compressed_vocab_size": 99092, "num_nextn_predict_layers":
3, "dspark_block_size": 5, "dspark_noise_token_id": 128799, "dspark_target_layer_ids": [37, 38,
39], "dspark_markov_rank": 256, "dspark_n_routed_experts": 128, "dspark_num_experts_per_tok": 3}}
)json";

}  // namespace

std::span<const ReleasedConfig> released_configs() {
  static constexpr std::array kConfigs = {ReleasedConfig{"v1-67b", kV167b},
                                          ReleasedConfig{"v1-7b", kV17b},
                                          ReleasedConfig{"v2", kV2},
                                          ReleasedConfig{"v2-lite", kV2Lite},
                                          ReleasedConfig{"v3", kV3},
                                          ReleasedConfig{"v3.2", kV32},
                                          ReleasedConfig{"v4-flash", kV4Flash},
                                          ReleasedConfig{"v4-pro", kV4Pro},
                                          ReleasedConfig{"v4.1-flash", kV41Flash}};
  return kConfigs;
}

}  // namespace locket::cli
