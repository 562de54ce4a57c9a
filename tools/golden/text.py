"""Fixtures of the language models, from transformers' own classes in float64: see common.py. Upstream
computes norms, softmax and rotary positions in float32 whatever the model's type; here all is float64.

<family>/<case>.safetensors         weights, an eval pass and a train pass, each with gradients
<family>/<case>.steps.safetensors   ten training steps from the case's weights, for three optimizers
<family>/presets.json.gz            parameter count and state_dict shapes at full size
"""

import contextlib
import copy
import json
import math
from dataclasses import dataclass, field

import numpy as np
import torch
import transformers
from torch import nn
from torch.utils.flop_counter import FlopCounterMode
from transformers.pytorch_utils import Conv1D

from common import STEPS, VERSIONS, Before, eval_pass, half_errors, named_state, randn, steps, train_pass

VERSIONS = VERSIONS | {"transformers": transformers.__version__}
BATCH, SEQUENCE = 2, 7


@contextlib.contextmanager
def in_double():
    """float64 wherever transformers asks for float32."""
    kept = torch.float, torch.float32, torch.Tensor.float
    torch.float = torch.float32 = torch.float64
    torch.Tensor.float = torch.Tensor.double
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.float, torch.float32, torch.Tensor.float = kept
        torch.set_default_dtype(torch.float32)


@dataclass(frozen=True)
class Case:
    """`padding` is a side; `positions` are added to the usual ones; the rest is the class's configuration."""

    family: str
    name: str
    seed: int
    cls: str
    config: dict = field(default_factory=dict)
    padding: str | None = None
    positions: int | None = None
    token_types: bool = False
    sequence: int = SEQUENCE
    steps: bool = False
    f64_only: tuple[str, ...] = ()


BERT = dict(
    vocab_size=19,
    hidden_size=18,
    num_hidden_layers=2,
    num_attention_heads=3,
    intermediate_size=22,
    max_position_embeddings=13,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
ROBERTA = BERT | dict(type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1, bos_token_id=0, eos_token_id=2)
DISTILBERT = dict(
    vocab_size=19,
    dim=18,
    n_layers=2,
    n_heads=2,
    hidden_dim=22,
    max_position_embeddings=13,
    dropout=0.0,
    attention_dropout=0.0,
    seq_classif_dropout=0.0,
    qa_dropout=0.0,
)
GPT2 = dict(
    vocab_size=19,
    n_positions=13,
    n_embd=18,
    n_inner=22,
    n_layer=2,
    n_head=3,
    resid_pdrop=0.0,
    embd_pdrop=0.0,
    attn_pdrop=0.0,
    bos_token_id=0,
    eos_token_id=0,
)
LLAMA = dict(
    vocab_size=19,
    hidden_size=18,
    intermediate_size=22,
    num_hidden_layers=2,
    num_attention_heads=6,
    num_key_value_heads=2,
    head_dim=4,
    max_position_embeddings=16,
)
THETA = {"rope_theta": 100.0}

# fmt: off
CASES = [
    Case("bert", "masked_lm", 31, "BertForMaskedLM", BERT | {"hidden_act": "gelu"}, "right", token_types=True, steps=True),
    Case("bert", "model", 32, "BertModel", BERT | {"hidden_act": "gelu_new", "layer_norm_eps": 1e-3}, "left", positions=3, token_types=True),
    Case("bert", "untied", 33, "BertForMaskedLM", BERT | {"hidden_act": "relu", "tie_word_embeddings": False, "pad_token_id": None}),
    Case("bert", "sequence", 34, "BertForSequenceClassification", BERT | {"num_labels": 3, "hidden_act": "silu"}, "right"),
    Case("bert", "tokens", 35, "BertForTokenClassification", BERT | {"num_labels": 4, "classifier_dropout": 0.0}),
    Case("bert", "questions", 36, "BertForQuestionAnswering", BERT, "right"),
    Case("bert", "roberta_masked_lm", 37, "RobertaForMaskedLM", ROBERTA | {"hidden_act": "gelu_new"}, "right", steps=True),
    Case("bert", "roberta_sequence", 38, "RobertaForSequenceClassification", ROBERTA | {"num_labels": 3}, "right"),
    Case("bert", "roberta_model", 39, "RobertaModel", ROBERTA, "left"),
    Case("bert", "xlm_roberta_tokens", 40, "XLMRobertaForTokenClassification", ROBERTA | {"num_labels": 3}, "right"),
    Case("bert", "distilbert_masked_lm", 41, "DistilBertForMaskedLM", DISTILBERT | {"activation": "relu"}, "right"),
    Case("bert", "distilbert_sequence", 42, "DistilBertForSequenceClassification", DISTILBERT | {"num_labels": 3}, "right"),
    Case("bert", "distilbert_model", 43, "DistilBertModel", DISTILBERT, positions=2),
    Case("gpt2", "tied", 51, "GPT2LMHeadModel", GPT2 | {"n_inner": None}, steps=True),
    Case("gpt2", "scaled", 52, "GPT2LMHeadModel", GPT2 | {"scale_attn_by_inverse_layer_idx": True, "tie_word_embeddings": False, "activation_function": "relu"}, "left", positions=4),
    Case("gpt2", "model", 53, "GPT2Model", GPT2 | {"scale_attn_weights": False, "activation_function": "gelu", "layer_norm_epsilon": 1e-3}, "right"),
    Case("gpt2", "sequence", 54, "GPT2ForSequenceClassification", GPT2 | {"num_labels": 3, "pad_token_id": 0}, "right"),
    Case("gpt2", "tokens", 55, "GPT2ForTokenClassification", GPT2 | {"num_labels": 4, "classifier_dropout": 0.0}),
    Case("llama", "grouped", 61, "LlamaForCausalLM", LLAMA | {"rope_parameters": THETA | {"rope_type": "default"}}, steps=True),
    Case("llama", "biases", 62, "LlamaForCausalLM", LLAMA | {"attention_bias": True, "mlp_bias": True, "hidden_act": "gelu", "rope_parameters": THETA | {"rope_type": "linear", "factor": 3.0}}, "right"),
    Case("llama", "llama3", 63, "LlamaForCausalLM", LLAMA | {"tie_word_embeddings": True, "num_key_value_heads": 6, "head_dim": 6, "pad_token_id": 0, "rope_parameters": THETA | {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 0.2, "high_freq_factor": 1.0, "original_max_position_embeddings": 12}}, "left", positions=30),
    Case("llama", "dynamic", 64, "LlamaModel", LLAMA | {"max_position_embeddings": 5, "rope_parameters": THETA | {"rope_type": "dynamic", "factor": 2.0}}),
    Case("llama", "yarn", 65, "LlamaForCausalLM", LLAMA | {"head_dim": 8, "rope_parameters": THETA | {"rope_type": "yarn", "factor": 4.0, "beta_fast": 2.0, "beta_slow": 0.2, "original_max_position_embeddings": 16}}, positions=11),
    Case("llama", "yarn_mscale", 66, "LlamaForCausalLM", LLAMA | {"num_key_value_heads": 1, "rope_parameters": THETA | {"rope_type": "yarn", "factor": 4.0, "mscale": 0.7, "mscale_all_dim": 0.4, "truncate": False, "original_max_position_embeddings": 8}}, "right"),
    Case("llama", "sequence", 67, "LlamaForSequenceClassification", LLAMA | {"num_labels": 3, "pad_token_id": 0}, "right"),
    Case("llama", "tokens", 68, "LlamaForTokenClassification", LLAMA | {"num_labels": 3, "classifier_dropout": 0.0}),
    Case("llama", "questions", 69, "LlamaForQuestionAnswering", LLAMA),
    Case("llama", "mistral_short", 70, "MistralForCausalLM", LLAMA | {"sliding_window": 3}, "left", sequence=11),
    Case("llama", "mistral_long", 71, "MistralForCausalLM", LLAMA | {"sliding_window": 12}),
    Case("llama", "qwen2", 72, "Qwen2ForCausalLM", LLAMA | {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1}, "right", steps=True),
    Case("llama", "qwen3", 73, "Qwen3ForCausalLM", LLAMA | {"attention_bias": True, "rms_norm_eps": 1e-4}, "left"),
]
# fmt: on


def build(case):
    cls = getattr(transformers, case.cls)
    config = cls.config_class(**case.config, attn_implementation="eager")
    config.architectures = [case.cls]
    with in_double():
        return cls(config).double(), config


def randomise(model, rng):
    """Every parameter random, activations O(1)."""
    with torch.no_grad():
        for module in model.modules():
            for name, parameter in module.named_parameters(recurse=False):
                values = randn(rng, *parameter.shape)
                if parameter.ndim == 1:
                    is_norm = name == "weight"
                    values = torch.from_numpy(rng.uniform(0.7, 1.3, parameter.shape)) if is_norm else 0.2 * values
                elif not isinstance(module, nn.Embedding):
                    fan_in = parameter.shape[0 if isinstance(module, Conv1D) else 1]
                    values = values / math.sqrt(fan_in)
                parameter.copy_(values)
    return model


def call(model, inputs):
    outputs = model(**inputs)
    if "start_logits" in outputs:
        return torch.stack([outputs.start_logits, outputs.end_logits], -1)
    return outputs.logits if "logits" in outputs else outputs.last_hidden_state


def stages(model):
    base = model.base_model
    named = {}
    if isinstance(base, transformers.GPT2Model):
        named["embeddings"] = base.drop
        for i, block in enumerate(base.h):
            named |= {f"h.{i}.attn": block.attn, f"h.{i}": block}
        named["ln_f"] = base.ln_f
    elif isinstance(base, transformers.DistilBertModel):
        named["embeddings"] = base.embeddings
        for i, layer in enumerate(base.transformer.layer):
            named |= {f"layers.{i}.attention": layer.sa_layer_norm, f"layers.{i}": layer}
        if hasattr(model, "pre_classifier"):
            named["pooler"] = Before(model.classifier)
    elif hasattr(base, "encoder"):
        named["embeddings"] = base.embeddings
        for i, layer in enumerate(base.encoder.layer):
            named |= {f"layers.{i}.attention": layer.attention, f"layers.{i}": layer}
        if base.pooler is not None:
            named["pooler"] = base.pooler
        elif hasattr(getattr(model, "classifier", None), "out_proj"):
            named["pooler"] = Before(model.classifier.out_proj)
    else:
        named["embeddings"] = base.embed_tokens
        for i, layer in enumerate(base.layers):
            named |= {f"layers.{i}.attention": layer.self_attn, f"layers.{i}": layer}
        named["norm"] = base.norm
    return named


def evaluate(model, inputs, grad_output):
    out = eval_pass(model, stages, inputs, grad_output, call)
    if hasattr(model, "qa_outputs"):
        spans = out["eval.logits"]
        out |= {"eval.stage.start_logits": spans[..., 0], "eval.stage.end_logits": spans[..., 1]}
    return out


def narrow(model, dtype):
    """Rotary positions stay in float32, as transformers loads a model."""
    model = model.to(dtype)
    for module in model.modules():
        for name in ("inv_freq", "original_inv_freq"):
            if hasattr(module, name):
                setattr(module, name, getattr(module, name).float())
    return model


def arguments(case, config, rng, batch=BATCH):
    shape = (batch, case.sequence)
    pad = config.pad_token_id
    ids = rng.integers(3, config.vocab_size, shape)
    mask = np.ones(shape, np.int64)
    if case.padding:
        for row in range(1, batch):
            count = 1 + row % (case.sequence - 2) + 1
            there = slice(0, count) if case.padding == "left" else slice(case.sequence - count, None)
            mask[row, there] = 0
            ids[row, there] = 0 if pad is None else pad
    inputs = {"input_ids": ids}
    if case.padding:
        inputs["attention_mask"] = mask
    if case.positions is not None:
        inputs["position_ids"] = np.arange(case.sequence)[None] + case.positions + np.arange(batch)[:, None]
    if case.token_types:
        inputs["token_type_ids"] = rng.integers(0, config.type_vocab_size, shape)
    return {name: torch.from_numpy(value) for name, value in inputs.items()}


def labels_of(logits, rng, *lead):
    count = logits.numel() // logits.shape[-1]
    return torch.from_numpy(rng.integers(0, logits.shape[-1], (*lead, count)))


def case_files(case):
    rng = np.random.default_rng(case.seed)
    model, config = build(case)
    model = randomise(model, rng)
    if config.tie_word_embeddings:
        model.tie_weights()
    shown = json.loads(config.to_json_string(use_diff=False))
    metadata = VERSIONS | {
        "config": json.dumps(shown),
        "spelling": "transformers, the bare model" if model is model.base_model else "transformers",
        "f64_only": json.dumps(case.f64_only),
        "seed": str(case.seed),
    }
    if isinstance(model, transformers.GPT2Model):
        metadata["spelling"] = "transformers, GPT2Model"
    inputs = arguments(case, config, rng)
    with in_double():
        grad_output = randn(rng, *call(copy.deepcopy(model).eval(), inputs).shape)
        labels = labels_of(grad_output, rng)
        evaluated = evaluate(model, inputs, grad_output)
        trained = train_pass(model, inputs, labels, call)
    halves = half_errors(model, stages, inputs, grad_output, evaluated_outputs(evaluated), call, narrow)
    metadata["half_errors"] = json.dumps(halves)
    state = saved_state(model)
    tensors = {f"model.{k}": v for k, v in state.items()}
    tensors |= {f"input.{name}": value for name, value in inputs.items()}
    tensors |= {"labels": labels, "grad_output": grad_output} | evaluated | trained
    yield f"{case.family}/{case.name}.safetensors", (tensors, metadata)
    if not case.steps:
        return
    batches = [arguments(case, config, rng) for _ in range(STEPS)]
    inputs = {name: torch.stack([batch[name] for batch in batches]) for name in batches[0]}
    with in_double():
        tensors = steps(model, inputs, labels_of(grad_output, rng, STEPS), call)
    kept = {k for k in tensors if ".model." not in k or k.split(".model.", 1)[1] in state}
    yield f"{case.family}/{case.name}.steps.safetensors", ({k: tensors[k] for k in sorted(kept)}, metadata)


def evaluated_outputs(evaluated):
    """What a half type is compared in: spans are parts of the logits."""
    return {k: v for k, v in evaluated.items() if not k.endswith(("start_logits", "end_logits"))}


def saved_state(model):
    """The weights as transformers saves them: what is tied is there once."""
    state = named_state(model, "")
    tied = getattr(model, "all_tied_weights_keys", None) or {}
    return {k: v for k, v in state.items() if k not in tied}


def llama(**config):
    return transformers.LlamaConfig(rms_norm_eps=1e-5, **config)


def roberta(cls, **config):
    return cls(max_position_embeddings=514, type_vocab_size=1, layer_norm_eps=1e-5, **config)


LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
LARGE = dict(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)
SMOL = dict(vocab_size=49152, max_position_embeddings=8192, tie_word_embeddings=True)
LLAMA3_2 = dict(
    vocab_size=128256,
    intermediate_size=8192,
    num_key_value_heads=8,
    max_position_embeddings=131072,
    tie_word_embeddings=True,
    rope_parameters=LLAMA3 | {"factor": 32.0},
)
QWEN3 = dict(num_key_value_heads=8, max_position_embeddings=40960, rope_parameters={"rope_type": "default", "rope_theta": 1e6})
QWEN2 = dict(num_key_value_heads=2, tie_word_embeddings=True, rope_parameters={"rope_type": "default", "rope_theta": 1e6})


def theta(value):
    return {"rope_parameters": {"rope_type": "default", "rope_theta": value}}


def presets(family):
    """Class and configuration of each, as published on the hub."""
    t = transformers
    match family:
        case "bert":
            mlm, bert = t.BertForMaskedLM, t.BertConfig
            yield "bert-base-uncased", mlm, bert()
            yield "bert-large-uncased", mlm, bert(**LARGE)
            yield "bert-base-cased", mlm, bert(vocab_size=28996)
            yield "bert-base-multilingual-cased", mlm, bert(vocab_size=119547)
            yield "roberta-base", t.RobertaForMaskedLM, roberta(t.RobertaConfig)
            yield "roberta-large", t.RobertaForMaskedLM, roberta(t.RobertaConfig, **LARGE)
            yield "xlm-roberta-base", t.XLMRobertaForMaskedLM, roberta(t.XLMRobertaConfig, vocab_size=250002)
            yield "distilbert-base-uncased", t.DistilBertForMaskedLM, t.DistilBertConfig()
            small = bert(hidden_size=384, num_hidden_layers=6, intermediate_size=1536)
            yield "all-MiniLM-L6-v2", t.BertModel, small
        case "gpt2":
            sizes = {
                "gpt2": (12, 12, 768),
                "gpt2-medium": (24, 16, 1024),
                "gpt2-large": (36, 20, 1280),
                "gpt2-xl": (48, 25, 1600),
                "distilgpt2": (6, 12, 768),
            }
            for name, (layers, heads, size) in sizes.items():
                yield name, t.GPT2LMHeadModel, t.GPT2Config(n_layer=layers, n_head=heads, n_embd=size)
        case "llama":
            lm = t.LlamaForCausalLM
            sizes = dict(hidden_size=576, intermediate_size=1536, num_hidden_layers=30)
            heads = dict(num_attention_heads=9, num_key_value_heads=3)
            yield "SmolLM2-135M", lm, llama(**SMOL, **sizes, **heads, **theta(1e5))
            sizes = dict(hidden_size=960, intermediate_size=2560, num_hidden_layers=32)
            heads = dict(num_attention_heads=15, num_key_value_heads=5)
            yield "SmolLM2-360M", lm, llama(**SMOL, **sizes, **heads, **theta(1e5))
            sizes = dict(hidden_size=2048, intermediate_size=8192, num_hidden_layers=24)
            yield "SmolLM2-1.7B", lm, llama(**SMOL, **sizes, num_attention_heads=32, **theta(130000.0))
            sizes = dict(hidden_size=2048, intermediate_size=5632, num_hidden_layers=22)
            yield "TinyLlama-1.1B", lm, llama(**sizes, num_key_value_heads=4)
            yield "Llama-2-7b", lm, llama(max_position_embeddings=4096)
            sizes = dict(vocab_size=128256, intermediate_size=14336, max_position_embeddings=131072)
            yield "Llama-3.1-8B", lm, llama(**sizes, num_key_value_heads=8, rope_parameters=LLAMA3 | {"factor": 8.0})
            sizes = dict(hidden_size=2048, num_hidden_layers=16, num_attention_heads=32)
            yield "Llama-3.2-1B", lm, llama(**LLAMA3_2, **sizes)
            sizes = dict(hidden_size=3072, num_hidden_layers=28, num_attention_heads=24)
            yield "Llama-3.2-3B", lm, llama(**LLAMA3_2, **sizes)
            sizes = dict(max_position_embeddings=32768, rms_norm_eps=1e-5)
            yield "Mistral-7B-v0.1", t.MistralForCausalLM, t.MistralConfig(**sizes)
            lm, qwen = t.Qwen2ForCausalLM, t.Qwen2Config
            sizes = dict(hidden_size=896, intermediate_size=4864, num_hidden_layers=24, num_attention_heads=14)
            yield "Qwen2.5-0.5B", lm, qwen(**QWEN2, **sizes)
            sizes = dict(hidden_size=1536, intermediate_size=8960, num_hidden_layers=28, num_attention_heads=12)
            yield "Qwen2.5-1.5B", lm, qwen(**QWEN2, **sizes, max_position_embeddings=131072)
            lm, qwen = t.Qwen3ForCausalLM, t.Qwen3Config
            sizes = dict(num_hidden_layers=28, num_attention_heads=16, tie_word_embeddings=True)
            yield "Qwen3-0.6B", lm, qwen(**QWEN3, **sizes, hidden_size=1024, intermediate_size=3072)
            yield "Qwen3-1.7B", lm, qwen(**QWEN3, **sizes, hidden_size=2048, intermediate_size=6144)
            sizes = dict(hidden_size=4096, intermediate_size=12288, num_hidden_layers=36)
            yield "Qwen3-8B", lm, qwen(**QWEN3, **sizes)


def preset(cls, config):
    """Parameters at full size; keys, shapes and FLOPs of two layers, since the others are like them. The
    configuration is upstream's config.json."""
    config._attn_implementation = "eager"
    config.architectures = [cls.__name__]
    with torch.device("meta"):
        whole = sum(p.numel() for p in cls(config).parameters())
        two = copy.deepcopy(config)
        two.num_hidden_layers = 2
        if getattr(two, "layer_types", None):
            two.layer_types = two.layer_types[:2]
        model = cls(two).eval()
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            model(torch.zeros(1, 16, dtype=torch.long))
    return {
        "config": json.loads(config.to_json_string(use_diff=False)),
        "params": whole,
        "flops_of_two_layers": counter.get_total_flops(),
        "keys_of_two_layers": {k: list(v.shape) for k, v in saved_state(model).items()},
    }


def files():
    for case in CASES:
        yield from case_files(case)
    for family in ("bert", "gpt2", "llama"):
        yield f"{family}/presets.json.gz", {name: preset(cls, config) for name, cls, config in presets(family)}
