"""Rigid water at several steps: the temperature of motion and of each axis of rotation, energy and pressure, for four ways of stepping in a bath.

python examples/water.py                                                     27 SPC/E molecules in a reaction field
python examples/water.py --molecules 216 --rounds 50 --sites 4               216 TIP4P molecules, 50 rounds of 1 ps
python examples/water.py --molecules 216 --accuracy 1e-5 --trajectories 8    an Ewald sum
"""

import argparse

import jax

jax.config.update("jax_enable_x64", True)

import bismut as bm
from bismut.figures.figure import as_text
from bismut.figures.rigid_water import BAR, KELVIN, SPLITTINGS, study, table

options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
options.add_argument("--smoke", action="store_true")
options.add_argument("--molecules", type=int, default=27)
options.add_argument("--sites", type=int, default=3, help="3: SPC/E, 4: TIP4P")
options.add_argument("--accuracy", type=float, default=0.0, help="of an Ewald sum; 0: a reaction field")
options.add_argument("--rounds", type=int, default=20)
options.add_argument("--span", type=float, default=1.0, help="ps of a round")
options.add_argument("--settle", type=float, default=10.0, help="ps before all rounds")
options.add_argument("--trajectories", type=int, default=4)
options.add_argument("--rate", type=float, default=5.0, help="of the bath, 1/ps")
options.add_argument("--steps", type=float, nargs="+", default=[0.5, 1.0, 2.0, 4.0, 6.0], help="fs")
options.add_argument("--schemes", nargs="+", choices=list(SPLITTINGS), default=list(SPLITTINGS))
asked = vars(options.parse_args())
if asked.pop("smoke"):
    asked |= {"molecules": 8, "rounds": 3, "span": 0.005, "settle": 0.01, "steps": [1.0, 2.0], "schemes": ["BAOAB"], "trajectories": 2}

# The study computes in nm, daltons, kJ/mol and ps; what its numbers are in K and bar, by the names of the units.
units = bm.units.molecular
assert abs(units.quantity(1.0, "kelvin").magnitude / KELVIN - 1) < 1e-6
assert abs(units.quantity(1.0, "bar").magnitude / BAR - 1) < 1e-6
data = study(**asked, note=lambda text: None)
shown = lambda run, k, digits: f"{run.mean[k]:.{digits}f} ± {run.error[k]:.{digits}f}"
print(f"{'scheme':13s} {'fs':>4s}  {'motion':>13s} {'axis 1':>13s} {'axis 2':>13s} {'axis 3':>13s}  {'U kJ/mol':>16s}  {'P bar':>11s}  accepted")
for run in data.runs:
    heat = " ".join(f"{shown(run, k, 1):>13s}" for k in range(4))
    print(f"{run.scheme:13s} {run.step:4g}  {heat}  {shown(run, 4, 3):>16s}  {shown(run, 5, 0):>11s}  {run.accepted:.3f}")
print()
print(as_text(table(data)))
