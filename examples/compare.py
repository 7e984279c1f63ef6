"""The paper's bad class, on which every global learning rate fails, played by five learners."""

from matplotlib.figure import Figure

from ftprl import FTPRL, play
from ftprl.adversaries import bad_class
from ftprl.baselines import AdaGrad, GradientDescent
from ftprl.schemes import CoordinateConstant, Diagonal

sizes, regrets = (216, 729, 2197), {}
for rounds in sizes:
    instance = bad_class(rounds)
    m = round(rounds ** (1 / 3))
    best = -0.5 * m * m  # x_1 = 0, all others at -1/2
    F, start = instance.feasible, instance.start
    learners = {
        "FTPRL, global rate": FTPRL(F, CoordinateConstant(), start),
        "gradient descent": GradientDescent(F, start=start),
        "gradient descent, rate 0.05": GradientDescent(F, rate=0.05, start=start),
        "FTPRL-Diag": FTPRL(F, Diagonal(), start),
        "AdaGrad": AdaGrad(F, start=start),
    }
    print(f"{instance.rounds} rounds in {F.dim} dimensions")
    for name, learner in learners.items():
        certificate = play(learner, instance.losses()).certificate(best_loss=best)
        bound = "-" if certificate.bound is None else f"{certificate.bound:.1f}"
        print(f"  {name:<28} regret {certificate.true_regret:8.1f}   bound {bound:>8}")
        regrets.setdefault(name, []).append(certificate.true_regret)
assert regrets["FTPRL-Diag"][-1] < regrets["FTPRL, global rate"][-1] / 3

fig = Figure(figsize=(7, 4), layout="constrained")
ax = fig.subplots()
for (name, values), mark in zip(regrets.items(), "osD^v", strict=True):
    ax.loglog(sizes, values, mark + "-", label=name)
ax.set(title="Problems on which every global rate fails", xlabel="T", ylabel="regret")
ax.legend(frameon=False)
fig.savefig("compare.svg")
