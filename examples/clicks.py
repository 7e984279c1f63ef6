"""A synthetic click log: eight learning-rate scales at once, each row predicted before it is learned, and a receipt."""

from matplotlib.figure import Figure

import ftprl

ftprl.data.clicks.generate(50_000, seed=1, path="clicks.csv.gz")
run = ftprl.train("clicks.csv.gz", label="click", bits=20, receipt=True, output="clicks.ftprl")
print(run)
certificate = run.certificate  # regret against the final weights of the model
print(certificate)
assert certificate.regret <= certificate.bound <= certificate.theorem

progress = [event for event in run.events if event["event"] == "progress" and event["rows"] >= 100]
rows = [event["rows"] for event in progress]
names = progress[0]["mixture"]["names"]
weights = {name: [] for name in names}
for event in progress:
    now = dict(zip(event["mixture"]["names"], event["mixture"]["weights"], strict=True))
    for name in names:  # a scale that was dropped has no weight
        weights[name].append(now.get(name, 0.0))
leading = max(names, key=lambda name: weights[name][-1])
print(f"the mixture ends with {weights[leading][-1]:.0%} on {leading!r}")
assert run.progressive_loss < 0.6

fig = Figure(figsize=(9, 4), layout="constrained")
loss, mix = fig.subplots(1, 2)
loss.plot(rows, [event["since"] for event in progress], "C1o:", markersize=4, label="since the previous point")
loss.plot(rows, [event["loss"] for event in progress], "C0s-", markersize=4, label="mean of all rows so far")
loss.set(title="Clicks, each predicted before it is learned", xlabel="rows", ylabel="log loss", xscale="log")
loss.legend(frameon=False)
shown = [name for name in names if max(weights[name]) > 0.05]
for name, style in zip(shown, ("-", "--", "-.", ":", "-", "--", "-.", ":", "-"), strict=False):
    mix.plot(rows, weights[name], style, label=f"scale {name}" if name[0].isdigit() else name)
mix.set(title="Which scale leads", xlabel="rows", ylabel="weight in the mixture", xscale="log", ylim=(0, 1))
mix.legend(frameon=False)
fig.savefig("clicks.svg")
