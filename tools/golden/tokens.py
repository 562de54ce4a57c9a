"""Small tokenizers and chat templates, with what transformers makes of difficult texts.

tokenizers/<kind>/...            the files of a model's folder
tokenizers/<kind>/expected.json  texts, their token numbers, and the texts again
tokenizers/chat.json             templates and conversations, and the text of each
"""

import json
import tempfile
import zlib
from pathlib import Path

import gguf
import numpy as np
from gguf import TokenType as Token
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import BertTokenizerFast, GPT2TokenizerFast, PreTrainedTokenizerFast, RobertaTokenizerFast
from transformers.integrations.gguf.gguf_tokenizer_mapping import convert_gguf_tokenizer, get_gguf_tokenizer

CORPUS = [
    "In the beginning God created the heaven and the earth.",
    "And the earth was without form, and void; and darkness was upon the face of the deep.",
    "And God said, Let there be light: and there was light. I don't know what you'll say.",
    "日本語の文章です。 العربية لغة جميلة. Ünïcödé, naïve café, 12345 and 67.",
]
TEXTS = [
    "",
    " ",
    "Hello, world!",
    "And God said, Let there be light",
    "  two  spaces  and a tab\t.",
    "line\nbreak\r\n\r\nagain\n",
    "I don't think we'll go, they've said I'm late; he'd stay.",
    "12345 and 67, 3.14159",
    "emoji 😀👩‍👩‍👧 and 🇫🇷 flags",
    "日本語の文章です。中文也有。",
    "العربية لغة جميلة",
    "Ünïcödé naïve café CAFÉ",
    "e\u0301 is not é before it is composed",
    "nul\u0000 and \u200b zero width \ufeff",
    "a" * 300,
    "<|endoftext|> in the text, [MASK] too, <s> and <mask> as well",
]
LONG = " ".join(CORPUS[:3]) + " 日本 😀\n"


def trained(special):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=340, special_tokens=special, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def word_pieces():
    letters = sorted({c for text in CORPUS for c in text.lower() if not c.isspace()})
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "and", "god", "light", "hello", "world", "said"]
    words += letters + ["##" + c for c in letters] + ["##ing", "##th", "##ea", "cafe", "naive", "!", "?", "😀"]
    return list(dict.fromkeys(words))


def expected(tokenizer):
    def entry(text):
        ids = tokenizer.encode(text)
        plain = tokenizer.encode(text, add_special_tokens=False)
        return {"text": text, "ids": ids, "plain": plain, "decoded": tokenizer.decode(plain, clean_up_tokenization_spaces=False)}

    long = tokenizer.encode(LONG * (100_000 // len(LONG.encode()) + 1), add_special_tokens=False)
    crc = zlib.crc32(np.array(long, dtype="<u4").tobytes())
    return {
        "texts": [entry(text) for text in TEXTS],
        "long": {"text": LONG, "bytes": 100_000, "tokens": len(long), "crc32": crc},
    }


def folder(kind, files, tokenizer):
    for name, text in files.items():
        yield f"tokenizers/{kind}/{name}", text.encode()
    yield f"tokenizers/{kind}/expected.json", expected(tokenizer)


def merges(tokenizer):
    pairs = json.loads(tokenizer.to_str())["model"]["merges"]
    return "#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in pairs)


def tokenizers():
    gpt2 = trained(["<|endoftext|>"])
    vocab = json.dumps(gpt2.get_vocab(), ensure_ascii=False, sort_keys=True)
    files = {"vocab.json": vocab, "merges.txt": merges(gpt2)}
    with tempfile.TemporaryDirectory() as work:
        for name, text in files.items():
            Path(work, name).write_text(text)
        yield from folder("gpt2", files, GPT2TokenizerFast.from_pretrained(work))
    roberta = trained(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    vocab = json.dumps(roberta.get_vocab(), ensure_ascii=False, sort_keys=True)
    files = {"vocab.json": vocab, "merges.txt": merges(roberta)}
    with tempfile.TemporaryDirectory() as work:
        for name, text in files.items():
            Path(work, name).write_text(text)
        yield from folder("roberta", files, RobertaTokenizerFast.from_pretrained(work))
    files = {"vocab.txt": "\n".join(word_pieces()) + "\n"}
    with tempfile.TemporaryDirectory() as work:
        Path(work, "vocab.txt").write_text(files["vocab.txt"])
        yield from folder("bert", files, BertTokenizerFast.from_pretrained(work))
    fast = trained(["<s>", "</s>"])
    fast.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", 0)])
    # A file may ask for a fixed length; its user decides.
    fast.enable_padding(length=20)
    fast.enable_truncation(4)
    config = json.dumps({"bos_token": "<s>", "eos_token": {"content": "</s>"}, "tokenizer_class": "PreTrainedTokenizerFast"})
    text = fast.to_str()
    free = Tokenizer.from_str(text)
    free.no_padding()
    free.no_truncation()
    whole = PreTrainedTokenizerFast(tokenizer_object=free, bos_token="<s>", eos_token="</s>")
    yield from folder("fast", {"tokenizer.json": text, "tokenizer_config.json": config}, whole)


def sentence_piece():
    """A GGUF file with SentencePiece's vocabulary, whose pieces were merged one after the other."""
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    types = [Token.UNKNOWN, Token.CONTROL, Token.CONTROL] + [Token.BYTE] * 256
    scores = [0.0] * len(tokens)
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.Metaspace()
    bpe.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=240, show_progress=False))
    merged = json.loads(bpe.to_str())["model"]["merges"]
    pieces = list(dict.fromkeys([a + b for a, b in merged] + ["the", "▁▁"]))
    letters = sorted(set("".join(pieces)) | set("日本語!,.'0123456789"))
    for rank, piece in enumerate(pieces + letters):
        # Some share a score, and the first of all is a negative zero.
        tokens.append(piece)
        scores.append(-float(rank // 2))
        types.append(Token.NORMAL)
    tokens.append("<|user|>")
    scores.append(0.0)
    types.append(Token.USER_DEFINED)
    with tempfile.TemporaryDirectory() as work:
        path = str(Path(work, "tokenizer.gguf"))
        writer = gguf.GGUFWriter(path, "llama")
        writer.add_tokenizer_model("llama")
        writer.add_token_list(tokens)
        writer.add_token_scores(scores)
        writer.add_token_types(types)
        writer.add_bos_token_id(1)
        writer.add_eos_token_id(2)
        writer.add_unk_token_id(0)
        # A file without a tensor is refused by some readers.
        writer.add_tensor("x", np.zeros(1, dtype=np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        bytes_ = Path(path).read_bytes()
        architecture, found, config = get_gguf_tokenizer(path)
        backend, _ = convert_gguf_tokenizer(architecture, found)
    assert config["add_bos_token"] is True
    backend.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", 1)])
    whole = PreTrainedTokenizerFast(tokenizer_object=backend)
    yield "tokenizers/sentence_piece/tokenizer.gguf", bytes_
    yield "tokenizers/sentence_piece/expected.json", expected(whole)


CHATML = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are helpful.<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
INST = """{%- if messages[0]["role"] == "system" %}
    {%- set system = messages[0]["content"] %}
    {%- set rest = messages[1:] %}
{%- else %}
    {%- set rest = messages %}
{%- endif %}
{{- bos_token }}
{%- for message in rest %}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('roles must alternate') }}
    {%- endif %}
    {%- if message["role"] == "user" %}
        {%- if loop.last and system is defined %}
            {{- "[INST] " + system + "\\n\\n" + message["content"].strip() + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"].strip() + "[/INST]" }}
        {%- endif %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"] | trim + eos_token }}
    {%- endif %}
{%- endfor %}
"""
LOOPS = """{% set ns = namespace(count=0) %}
{% for message in messages if message.role != 'system' %}
    {% set ns.count = ns.count + 1 %}
    {% if message.content is none %}{% continue %}{% endif %}
{{ ns.count }}. {{ message.role | title }}: {{ message | tojson }} {{ message.content.split(' ')[0].upper() }}{{ message.content[:3] }}
{% if ns.count >= 3 %}{% break %}{% endif %}
{% endfor %}
{% if add_generation_prompt %}Assistant:{% endif %}"""
# What the assistant says is marked, as for training on it alone.
MARKED = """{%- for message in messages %}
  {%- if message.role == 'assistant' %}
    {% generation %}
      {{- message.content + eos_token }}
    {% endgeneration %}
  {%- else %}
    {{- '<|' + message.role + '|>' + message.content + '\\n' }}
  {%- endif %}
  {%- generation -%} {% if loop.last %}.{% endif %} {%- endgeneration -%}
{%- endfor %}"""
CONVERSATIONS = [
    [{"role": "user", "content": "What is 2 < 3 & 'four'?"}],
    [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi 😀"}],
    [
        {"role": "user", "content": " Good day. "},
        {"role": "assistant", "content": " Hello. "},
        {"role": "user", "content": "And\nthen?"},
    ],
]


def chat():
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=trained(["<s>", "</s>"]), bos_token="<s>", eos_token="</s>")
    cases = []
    for template in (CHATML, INST, LOOPS, MARKED):
        for conversation in CONVERSATIONS:
            for prompt in (False, True):
                text = tokenizer.apply_chat_template(
                    conversation, chat_template=template, tokenize=False, add_generation_prompt=prompt
                )
                cases.append({"template": template, "messages": conversation, "prompt": prompt, "text": text})
    return cases


def files():
    yield from tokenizers()
    yield from sentence_piece()
    yield "tokenizers/chat.json", chat()
