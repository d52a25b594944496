#!/usr/bin/env python3
"""Teaches the model that make.py made to bring questions near to their tools.

Each line of questions/*.tsv is a tool and six questions that it answers. A batch holds runs of
neighbouring tools, which are siblings, with one question each; the question has to be nearest to
its own tool, and the tool to its own question. The weights are rounded as the file keeps them; the
tokens stay as they are.

Tools that are near to one of the tests' sets, and questions that are near to one of theirs, are
left out, so that those sets tell how well the model does with what it has not seen.

Takes about 20 minutes on two cores that have 16-bit floats, and is not run when the crate is
built. It reads sentences.bin as make.py writes it, and writes it anew, with golden.tsv.

    pip install numpy tokenizers torch
    python3 learn.py
"""

import math
import random
import re
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from make import GOLDEN, GROUP, HEADS, WIDTH, Linear, floats, halves, matrix, norm
from tokenizers.implementations import BertWordPieceTokenizer
from torch import nn

HERE = Path(__file__).parent
SETS = HERE / "../../openstarry/tests/data"
# As near as this to a tool or a question of the tests' sets, and it is left out.
SAME_TOOL, SAME_QUESTION = 0.8, 0.85
EPOCHS = 3
BATCH = 128
# Neighbouring tools in a batch.
RUN = 8
RATE = 2.5e-4
# What the nearness is divided by, before the nearest is chosen.
TEMPERATURE = 0.05
DROPOUT = 0.1
# The most tokens of a question and of a tool, as the agent core reads them.
QUESTION, TOOL = 30, 46


class Reader:
    def __init__(self, raw):
        self.raw, self.at = raw, 0

    def take(self, size):
        self.at += size
        return self.raw[self.at - size : self.at]

    def numbers(self, count):
        return np.frombuffer(self.take(4 * count), "<u4").tolist()

    def floats(self, *shape):
        numbers = np.frombuffer(self.take(4 * math.prod(shape)), "<f4")
        return torch.from_numpy(numbers.copy()).view(shape)

    def halves(self, *shape):
        pairs = np.frombuffer(self.take(math.prod(shape) // 2), np.uint8)
        numbers = np.stack([pairs & 15, pairs >> 4], 1).astype(np.float32) - 8
        return torch.from_numpy(numbers).view(shape)

    def matrix(self, out, of):
        part = Linear(of, out)
        part.bias.data.copy_(self.floats(out))
        upper = np.frombuffer(self.take(2 * (out * of // GROUP)), "<u2").astype(np.uint32) << 16
        scales = torch.from_numpy(upper.view(np.float32).copy()).view(-1, 1)
        part.weight.data.copy_((self.halves(out * of // GROUP, GROUP) * scales).view(out, of))
        return part

    def norm(self):
        part = nn.LayerNorm(WIDTH, eps=1e-12)
        part.weight.data.copy_(self.floats(WIDTH))
        part.bias.data.copy_(self.floats(WIDTH))
        return part


class Layer(nn.Module):
    def __init__(self, file, inner):
        super().__init__()
        self.attention = file.matrix(3 * WIDTH, WIDTH)
        self.attended, self.attended_norm = file.matrix(WIDTH, WIDTH), file.norm()
        self.up, self.down, self.norm = file.matrix(inner, WIDTH), file.matrix(WIDTH, inner), file.norm()

    def forward(self, x, seen, dropout):
        count, length, _ = x.shape
        parts = self.attention(x).split(WIDTH, -1)
        query, key, value = (p.view(count, length, HEADS, -1).transpose(1, 2) for p in parts)
        found = F.scaled_dot_product_attention(query, key, value, seen.to(query.dtype), dropout)
        found = self.attended(found.transpose(1, 2).reshape(count, length, WIDTH))
        x = self.attended_norm(x + F.dropout(found, dropout))
        return self.norm(x + F.dropout(self.down(F.gelu(self.up(x), approximate="tanh")), dropout))

    def pack(self):
        out = matrix(self.attention) + matrix(self.attended) + norm(self.attended_norm)
        return out + matrix(self.up) + matrix(self.down) + norm(self.norm)


class Model(nn.Module):
    """What texts mean, as vectors of length one."""

    def __init__(self, raw):
        super().__init__()
        file = Reader(raw)
        self.shape = file.numbers(6)
        _, _, layers, inner, places, size = self.shape
        self.text = file.take(size)
        words = self.text.decode().splitlines()
        self.scales, self.numbers = file.floats(len(words), 1), file.halves(len(words), WIDTH)
        self.tokens = nn.Embedding.from_pretrained(self.numbers * self.scales, freeze=True)
        self.positions = nn.Parameter(file.floats(places, WIDTH))
        self.norm = file.norm()
        self.layers = nn.ModuleList(Layer(file, inner) for _ in range(layers))
        self.known = len(words)
        words += ["[UNK]", "[PAD]", "[MASK]"]
        self.ids = {word: at for at, word in enumerate(words)}
        self.tokenizer = BertWordPieceTokenizer(self.ids, lowercase=True)

    def encode(self, texts, most):
        """The tokens of each text. What the model does not know is left out."""
        begin, end = self.ids["[CLS]"], self.ids["[SEP]"]
        for text in self.tokenizer.encode_batch(list(texts), add_special_tokens=False):
            yield [begin, *[id for id in text.ids if id < self.known][:most], end]

    def forward(self, rows, dropout=0.0):
        length = max(map(len, rows))
        ids = torch.tensor([row + [0] * (length - len(row)) for row in rows])
        here = torch.arange(length) < torch.tensor([[len(row)] for row in rows])
        seen = torch.zeros(len(rows), 1, 1, length).masked_fill(~here[:, None, None], -1e9)
        x = F.dropout(self.norm(self.tokens(ids) + self.positions[:length]), dropout)
        for layer in self.layers:
            x = layer(x, seen, dropout)
        return F.normalize((x.float() * here[:, :, None]).sum(1), dim=1)

    def embed(self, texts, most):
        rows = list(self.encode(texts, most))
        order = sorted(range(len(rows)), key=lambda at: len(rows[at]))
        found = torch.zeros(len(rows), WIDTH)
        with torch.inference_mode():
            for begin in range(0, len(order), 64):
                batch = order[begin : begin + 64]
                found[batch] = self([rows[at] for at in batch])
        return found

    def pack(self):
        out = b"".join(number.to_bytes(4, "little") for number in self.shape)
        out += self.text + floats(self.scales) + halves(self.numbers)
        out += floats(self.positions) + norm(self.norm)
        return out + b"".join(layer.pack() for layer in self.layers)


def tool(name, about):
    """What the agent core says of a tool."""
    return " ".join(re.findall(r"[a-z0-9]+", name.lower())) + ": " + about


def rows(files):
    return [line.split("\t") for file in sorted(files) for line in file.read_text().splitlines()]


def lessons(model):
    """Tools and their questions, as tokens, without what is near to the tests' sets."""
    sets = rows(SETS.glob("*dev*_tools.tsv")) + rows(SETS.glob("heldout*_tools.tsv"))
    asked = rows(SETS.glob("*dev*_queries.tsv")) + rows(SETS.glob("heldout*_queries.tsv"))
    names = {row[0] for row in sets}
    sets = model.embed([tool(*row) for row in sets], TOOL)
    asked = model.embed([row[0] for row in asked], QUESTION)
    found = [row for row in rows((HERE / "questions").glob("*.tsv")) if row[0] not in names]
    texts = [tool(*row[:2]) for row in found]
    is_new = (model.embed(texts, TOOL) @ sets.T).amax(1) < SAME_TOOL
    questions = [question for row in found for question in row[2:]]
    unasked = (model.embed(questions, QUESTION) @ asked.T).amax(1) < SAME_QUESTION
    unasked = iter(unasked.tolist())
    for text, row, is_new in zip(texts, found, is_new.tolist()):
        questions = [question for question in row[2:] if next(unasked)]
        if is_new:
            yield next(model.encode([text], TOOL)), list(model.encode(questions, QUESTION))


def batches(lessons, draw):
    """Each question once: the number of a tool, and of one of its questions."""
    orders = [draw.sample(range(len(questions)), len(questions)) for _, questions in lessons]
    runs = []
    for turn in range(max(map(len, orders))):
        for begin in range(-draw.randrange(RUN), len(lessons), RUN):
            run = range(max(begin, 0), min(begin + RUN, len(lessons)))
            runs.append([(at, orders[at][turn]) for at in run if turn < len(orders[at])])
    draw.shuffle(runs)
    batch = []
    for run in runs:
        batch += run
        if len(batch) >= BATCH:
            yield batch
            batch = []


def learn(model, lessons):
    draw = random.Random(3)
    weights = [p for p in model.parameters() if p.requires_grad and p.ndim > 1]
    others = [p for p in model.parameters() if p.requires_grad and p.ndim <= 1]
    groups = [{"params": weights, "weight_decay": 0.01}, {"params": others, "weight_decay": 0}]
    adam = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.98))
    steps = [batch for _ in range(EPOCHS) for batch in batches(lessons, draw)]
    started = time.time()
    for step, batch in enumerate(steps):
        done = step / len(steps)
        rate = RATE * min(1, (step + 1) / 50) * (0.49 * (1 + math.cos(math.pi * done)) + 0.02)
        for group in adam.param_groups:
            group["lr"] = rate
        with torch.autocast("cpu", torch.bfloat16):
            questions = model([lessons[at][1][which] for at, which in batch], DROPOUT)
            tools = model([lessons[at][0] for at, _ in batch], DROPOUT)
        fits = questions @ tools.T / TEMPERATURE
        own = torch.arange(len(batch))
        # A tool that is in the batch twice is not its own rival.
        names = torch.tensor([at for at, _ in batch])
        fits = fits.masked_fill((names[:, None] == names) & (own[:, None] != own), -1e4)
        loss = (F.cross_entropy(fits, own) + F.cross_entropy(fits.T, own)) / 2
        adam.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(weights + others, 1.0)
        adam.step()
        if step % 50 == 0:
            minutes = (time.time() - started) / 60
            print(f"{step} of {len(steps)}, {minutes:.1f} min: {float(loss.detach()):.3f}", flush=True)


def main():
    torch.manual_seed(1)
    torch.set_num_threads(2)
    model = Model((HERE / "sentences.bin").read_bytes())
    found = list(lessons(model))
    print(f"{len(found)} tools, {sum(len(questions) for _, questions in found)} questions", flush=True)
    Linear.rounded = True
    learn(model, found)
    (HERE / "sentences.bin").write_bytes(model.pack())
    vectors = model.embed(GOLDEN, 62).tolist()
    lines = (text + "\t" + " ".join(f"{x:.4f}" for x in row) for text, row in zip(GOLDEN, vectors))
    (HERE / "golden.tsv").write_text("".join(line + "\n" for line in lines))


if __name__ == "__main__":
    main()
