"""A run as asked for: checked, planned, cut into blocks, and carried out."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bismut.ensembles.block import chosen_mode
from bismut.ensembles.checks import check_start, check_step, count, many_starts, one_of, one_start
from bismut.ensembles.devices import local_devices, programs
from bismut.ensembles.explaining import fallbacks
from bismut.ensembles.march import Course, Found, March, Pace
from bismut.ensembles.observers.records import Records, record_steps
from bismut.ensembles.observers.report import Report, side_by_side
from bismut.ensembles.observers.watcher import Clock, Setting
from bismut.ensembles.outcome import Failure, Outcome
from bismut.ensembles.plan import Plan, bytes_of, sizes
from bismut.ensembles.preparing import block_size, even_size, setting_of, targets_of
from bismut.ensembles.progress import Progress
from bismut.ensembles.stopping import Stop
from bismut.ensembles.sweep import grid, variants
from bismut.ensembles.workers import cores, in_order
from bismut.errors import DomainError
from bismut.mechanics import Scheme, State
from bismut.noise import Wiener, words


@dataclass
class Ensemble:
    """Everything that was asked for, in one place."""

    scheme: Scheme
    start: Any
    path: Wiener
    batch: tuple[int, ...]
    one: State
    settings: list[Setting]
    axes: dict[str, np.ndarray]
    step: float
    steps: int
    every: int
    burn_in: int
    trajectories: int
    t0: float
    until: dict[str, float]
    size: int
    devices: int
    keep_final: bool
    mode: str
    _totals: list = field(default_factory=list)

    @classmethod
    def asked(cls, scheme: Scheme, start, path: Wiener, *, observe, step, steps, trajectories, every, burn_in, until, sweep, t0, **rest) -> Ensemble:
        check_step(step)
        steps, trajectories = count(steps, "steps"), count(trajectories, "trajectories")
        every = count(every if every is not None else -(-steps // 100), "every")
        burn_in = count(burn_in, "burn_in", least=0)
        if burn_in + steps >= 2**30:
            raise DomainError(f"A run has at most 2³⁰ steps, but {burn_in + steps} came. Go on from result.final with path.shift(steps).")
        mode = one_of(rest["mode"], ("auto", "lanes", "vmap"), "mode")
        one_of(rest["on_failure"], ("exclude", "raise"), "on_failure")
        batch = check_start(scheme, start)
        if batch and batch != (trajectories,):
            raise DomainError(f"start holds {batch} states, but trajectories = {trajectories} came. Give one start, or one for each trajectory.")
        one = one_start(start, path, 0, batch)
        axes = grid(sweep)
        mode = chosen_mode(scheme, one) if mode == "auto" else mode
        settings = [setting_of(v, path, step, t0, observe, one, mode == "lanes") for v in variants(scheme, axes)]
        devices = count(rest["devices"], "devices") if rest["devices"] is not None else local_devices()
        if devices > local_devices():
            raise DomainError(f"devices = {devices} were asked for, but there are {local_devices()} here.")
        block = count(rest["block"], "block") if rest["block"] is not None else block_size(scheme, one, mode)
        size = block if rest["block"] is not None else even_size(trajectories, block * devices) // devices
        size = min(size, -(-trajectories // devices))
        targets = targets_of(until, settings[0])
        numbers = {"step": float(step), "steps": steps, "every": every, "burn_in": burn_in, "trajectories": trajectories, "t0": float(t0)}
        common = {"until": targets, "size": size, "devices": devices, "keep_final": rest["keep_final"], "mode": mode}
        return cls(scheme, start, path, batch, one, settings, axes, **numbers, **common)

    @property
    def workers(self) -> int:
        return max(1, cores() // self.devices)

    @property
    def blocks(self) -> int:
        return -(-self.trajectories // (self.size * self.devices))

    def plan(self) -> Plan:
        setting, n = self.settings[0], self.size * self.devices
        state = jax.eval_shape(lambda: self.one)
        few = min(2, self.size)
        block = jax.eval_shape(lambda: programs(1).begin(setting, self._states(range(few)), words(0), jnp.ones(few, bool)))
        watching = int(bytes_of(block.memory) * self.size / few)
        memory, disk = sizes(setting, state, watching, n, self.trajectories * len(self.settings), self.workers, self.keep_final)
        return Plan(
            self.trajectories,
            self.steps + self.burn_in,
            len(self.settings),
            self.size,
            self.blocks * self.devices,
            self.workers * self.devices,
            self.mode,
            memory,
            disk,
        )

    def rehearsed(self, plan: Plan) -> Plan:
        """The plan with times measured on a few steps of one block, and with what lanes leave to vmap."""
        march = March(programs(self.devices), self._course(self.settings[0]), *self._indices(0), Pace(), Stop(), lambda *_: None)
        block = march.programs.begin(march.course.setting, self._states(self._numbers(0)), words(0), self._present(0))
        clock = time.perf_counter()
        block, _ = march._advance(block, 1, 0)
        compiling = time.perf_counter() - clock
        best, steps = np.inf, 8
        for _ in range(4):
            clock = time.perf_counter()
            jax.block_until_ready(march._advance(block, 1, steps))
            best = min(best, (time.perf_counter() - clock) / steps)
            steps *= 4
        rounds = -(-self.blocks // self.workers) * len(self.settings)
        return replace(plan, seconds=best * plan.steps * rounds, compiling=compiling, fallbacks=tuple(fallbacks(self.scheme, self.one)))

    def run(self, shown: bool | None):
        """(reports, final states, outcome, times)."""
        self._totals = [None] * len(self.settings)
        finals: list[list] = [[] for _ in self.settings]
        failures, used, partial = [], [0] * len(self.settings), None
        pace, jobs = Pace(), [(v, b) for v in range(len(self.settings)) for b in range(self.blocks)]
        enough: set[int] = set()
        headline = next((name for name, watcher in self.settings[0].watchers if isinstance(watcher, Records)), None)
        with Stop() as stop, Progress(shown, self.trajectories * len(self.settings), self.steps + self.burn_in, headline) as bar:

            def work(job):
                variant, b = job
                return (job, None) if stop.asked or variant in enough else (job, self._march(variant, b, pace, stop, bar))

            self._compile()
            for (variant, b), found in in_order(work, jobs, self.workers):
                if found is None or variant in enough:
                    continue
                if found.steps < self.steps:
                    partial = partial or (variant, b, found)
                    continue
                self._take(variant, b, found, finals, failures)
                used[variant] += self._here(b)
                if self._good_enough(variant):
                    enough.add(variant)
        stopped = self._ending(stop, used, enough)
        steps = self.steps
        if partial is not None and not any(used):
            variant, b, found = partial
            self._take(variant, b, found, finals, failures)
            used[variant], steps = self._here(b), found.steps
            stopped = f"interrupted after {steps} of {self.steps} steps, with {used[variant]} of {self.trajectories} trajectories"
        if not any(used):
            raise KeyboardInterrupt("The run was interrupted before anything was complete.")
        outcome = Outcome(max(used), tuple(failures), stopped, stop.asked)
        times = self._begin_time() + self.step * np.asarray(record_steps(steps, self.every))
        return self._reports(steps, max(used)), self._final(finals), outcome, times

    # One block.

    def _compile(self) -> None:
        """Run the programs once without a step, so that threads find them compiled."""
        march = March(programs(self.devices), self._course(self.settings[0]), *self._indices(0), Pace(), Stop(), lambda *_: None)
        block = march.programs.begin(march.course.setting, self._states(self._numbers(0)), words(0), self._present(0))
        march._advance(block, 1, 0)

    def _numbers(self, b: int) -> np.ndarray:
        n = self.size * self.devices
        return np.arange(b * n, (b + 1) * n)

    def _here(self, b: int) -> int:
        """How many trajectories a block really has; past the last one it is filled up with copies that are not counted."""
        n = self.size * self.devices
        return min(n, self.trajectories - b * n)

    def _present(self, b: int):
        return jnp.asarray(self._numbers(b) < self.trajectories)

    def _indices(self, b: int):
        return (words(self._numbers(b)),)

    def _states(self, numbers) -> State:
        return many_starts(self.start, self.path, np.minimum(np.asarray(numbers), self.trajectories - 1), self.batch)

    def _course(self, setting: Setting) -> Course:
        return Course(setting, self.every, self.burn_in, self.steps)

    def _march(self, variant: int, b: int, pace: Pace, stop: Stop, bar: Progress) -> Found | None:
        here = self._here(b)
        march = March(programs(self.devices), self._course(self.settings[variant]), *self._indices(b), pace, stop, lambda *_: None)
        march.note = lambda steps: bar.advance(steps, here, march.newest())
        found = march.run(self._states(self._numbers(b)), self._present(b))
        if found is None:
            return None
        return found._replace(final=jax.tree.map(lambda leaf: np.asarray(leaf[:here]), found.final) if self.keep_final else None)

    # All blocks.

    def _take(self, variant: int, b: int, found: Found, finals: list, failures: list) -> None:
        """Merge a block into the whole: blocks in their order, and within a block devices in theirs."""
        total = self._totals[variant]
        for d in range(self.devices):
            summaries = []
            for (_, watcher), rows, summary in zip(self.settings[variant].watchers, found.rows, found.summaries, strict=True):
                of_device = [jax.tree.map(lambda leaf, d=d: leaf[d], row) for row in rows]
                stacked = jax.tree.map(lambda *parts: np.stack(parts), *of_device) if watcher.records else None
                summaries.append(stacked if watcher.records else jax.tree.map(lambda leaf, d=d: leaf[d], summary))
            if total is None:
                total = summaries
            else:
                pairs = zip(self.settings[variant].watchers, total, summaries, strict=True)
                total = [watcher.merge(a, b) for (_, watcher), a, b in pairs]
        self._totals[variant] = total
        finals[variant].append(found.final)
        first, here = b * self.size * self.devices, self._here(b)
        for i, (k, residual) in sorted(found.failures.items()):
            if i < here:
                failures.append(Failure(first + i, k, self.t0 + k * self.step, residual))

    def _good_enough(self, variant: int) -> bool:
        if not self.until:
            return False
        watchers = self.settings[variant].watchers
        errors = {name: w.error(total) for (name, w), total in zip(watchers, self._totals[variant], strict=True)}
        return all((errors[name] or np.inf) <= target for name, target in self.until.items())

    def _ending(self, stop: Stop, used: list[int], enough: set[int]) -> str:
        if stop.asked:
            return f"interrupted with {sum(used)} of {self.trajectories * len(used)} trajectories complete"
        if enough and max(used) < self.trajectories:
            return f"standard errors small enough after {max(used)} of at most {self.trajectories} trajectories"
        return ""

    def _begin_time(self) -> float:
        return self.t0 + self.burn_in * self.step

    def _reports(self, steps: int, trajectories: int) -> dict[str, Report]:
        found: dict[str, Report] = {}
        for i, (name, watcher) in enumerate(self.settings[0].watchers):
            clock = Clock(self._begin_time(), self.step, watcher.every or self.every, steps, trajectories)
            reports = [None if total is None else watcher.report(name, total[i], clock) for total in self._totals]
            found[name] = side_by_side(reports, self.axes) if self.axes else next(r for r in reports if r is not None)
        return found

    def _final(self, finals: list[list]) -> State | None:
        if not self.keep_final or any(not parts for parts in finals):
            return None
        each = [jax.tree.map(lambda *parts: np.concatenate(parts), *parts) for parts in finals]
        if not self.axes:
            return each[0]
        shape = tuple(len(values) for values in self.axes.values())
        return jax.tree.map(lambda *parts: np.stack(parts).reshape(*shape, *parts[0].shape), *each)
