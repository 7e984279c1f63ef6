"""Spam or not, in one pass over text: no vocabulary, no learning rate to tune. Takes a TSV file or generates one."""

import random
import sys
from pathlib import Path

from matplotlib.figure import Figure

import ftprl

SPAM = ("free", "prize", "win", "cash", "call", "now", "claim", "txt", "urgent", "offer", "award", "reply")
HAM = ("home", "tonight", "see", "you", "love", "dinner", "sorry", "later", "work", "bus", "mum", "lunch")
BOTH = ("the", "a", "to", "and", "is", "in", "for", "at", "on", "me", "it", "we", "have", "will", "just")


def messages(path, rows):
    """A synthetic file of spam and ham: `label<tab>text`, mostly common words, a few typical of their class."""
    rng = random.Random(0)
    with open(path, "w") as out:
        for _ in range(rows):
            spam = rng.random() < 0.15
            typical = rng.choices(SPAM if spam else HAM, k=2) + rng.choices(SPAM + HAM, k=1)
            words = rng.choices(BOTH, k=6) + typical
            rng.shuffle(words)
            out.write(f"{'spam' if spam else 'ham'}\t{' '.join(words)}\n")
    return path


path = sys.argv[1] if len(sys.argv) > 1 else messages("messages.tsv", 5000)
run = ftprl.train(path, header=False, label=1, text=2, positive="spam", bits=18)
print(run)

Path("new.tsv").write_text("ham\tsee you at home tonight\nham\tfree prize call now to claim cash\n")
for probability, line in zip(run.model.predict("new.tsv"), Path("new.tsv").read_text().splitlines(), strict=True):
    print(f"{probability:7.2%} spam: {line[4:]}")

progress = [event for event in run.events if event["event"] == "progress" and event["rows"] > 15]
rows = [event["rows"] for event in progress]
fig = Figure(figsize=(7, 4), layout="constrained")
ax = fig.subplots()
ax.plot(rows, [event["since"] for event in progress], "C1o:", markersize=4, label="since the previous point")
ax.plot(rows, [event["loss"] for event in progress], "C0s-", markersize=4, label="mean of all rows so far")
ax.set(title="Messages, each predicted before it is learned", xlabel="messages", ylabel="log loss", xscale="log")
ax.legend(frameon=False)
fig.savefig("text.svg")
