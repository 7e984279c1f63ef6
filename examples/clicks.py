"""A stream of clicks with its receipt: heavy tails, eight scales at once, every row predicted before it is learned."""

from matplotlib.figure import Figure

import ftprl

ftprl.data.clicks.generate(50_000, seed=1, path="clicks.csv.gz")
run = ftprl.train("clicks.csv.gz", label="click", bits=20, receipt=True, output="clicks.ftprl")
print(run)
receipt = run.certificate  # against the weights that the model ended up with
print(receipt)
assert receipt.regret <= receipt.bound <= receipt.theorem

told = [event for event in run.events if event["event"] == "progress" and event["rows"] >= 100]
rows = [event["rows"] for event in told]
names = told[0]["mixture"]["names"]
shares = {name: [] for name in names}
for event in told:
    now = dict(zip(event["mixture"]["names"], event["mixture"]["weights"], strict=True))
    for name in names:  # a scale that was retired has no share
        shares[name].append(now.get(name, 0.0))
leading = max(names, key=lambda name: shares[name][-1])
print(f"the mixture ends with {shares[leading][-1]:.0%} on {leading!r}")
assert run.progressive_loss < 0.6

fig = Figure(figsize=(9, 4), layout="constrained")
loss, mix = fig.subplots(1, 2)
loss.plot(rows, [event["since"] for event in told], "C1o:", markersize=4, label="since the mark before")
loss.plot(rows, [event["loss"] for event in told], "C0s-", markersize=4, label="mean so far")
loss.set(title="Clicks, each predicted before it is learned", xlabel="rows", ylabel="log loss", xscale="log")
loss.legend(frameon=False)
shown = [name for name in names if max(shares[name]) > 0.05]
for name, style in zip(shown, ("-", "--", "-.", ":", "-", "--", "-.", ":", "-"), strict=False):
    mix.plot(rows, shares[name], style, label=name if name == "stack" else f"scale {name}")
mix.set(title="Which scale leads", xlabel="rows", ylabel="weight in the mixture", xscale="log", ylim=(0, 1))
mix.legend(frameon=False)
fig.savefig("clicks.svg")
