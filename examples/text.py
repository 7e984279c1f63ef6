"""Spam or not, in one pass over raw messages: no vocabulary, no rate to tune. Takes a TSV file, or makes one up."""

import random
import sys
from pathlib import Path

from matplotlib.figure import Figure

import ftprl

SPAM = ("free", "prize", "win", "cash", "call", "now", "claim", "txt", "urgent", "offer", "award", "reply")
HAM = ("home", "tonight", "see", "you", "love", "dinner", "sorry", "later", "work", "bus", "mum", "lunch")
BOTH = ("the", "a", "to", "and", "is", "in", "for", "at", "on", "me", "it", "we", "have", "will", "just")


def messages(path, rows):
    """A synthetic file of spam and ham: `label<tab>text`, mostly common words, a few that tell."""
    luck = random.Random(0)
    with open(path, "w") as out:
        for _ in range(rows):
            spam = luck.random() < 0.15
            told = luck.choices(SPAM if spam else HAM, k=2) + luck.choices(SPAM + HAM, k=1)
            words = luck.choices(BOTH, k=6) + told
            luck.shuffle(words)
            out.write(f"{'spam' if spam else 'ham'}\t{' '.join(words)}\n")
    return path


real = Path(__file__).parents[2] / "shared" / "data" / "sms.tsv.gz"  # the SMS collection, where it is at hand
path = sys.argv[1] if len(sys.argv) > 1 else real if real.exists() else messages("messages.tsv", 5000)
run = ftprl.train(path, header=False, label=1, text=2, positive="spam", bits=18)
print(run)

Path("new.tsv").write_text("ham\tsee you at home tonight\nham\tfree prize call now to claim cash\n")
for chance, line in zip(run.model.predict("new.tsv"), Path("new.tsv").read_text().splitlines(), strict=True):
    print(f"{chance:7.2%} spam: {line[4:]}")

told = [event for event in run.events if event["event"] == "progress" and event["rows"] > 15]
rows = [event["rows"] for event in told]
fig = Figure(figsize=(7, 4), layout="constrained")
ax = fig.subplots()
ax.plot(rows, [event["since"] for event in told], "C1o:", markersize=4, label="since the mark before")
ax.plot(rows, [event["loss"] for event in told], "C0s-", markersize=4, label="mean so far")
ax.set(title="Messages, each predicted before it is learned", xlabel="messages", ylabel="log loss", xscale="log")
ax.legend(frameon=False)
fig.savefig("text.svg")
