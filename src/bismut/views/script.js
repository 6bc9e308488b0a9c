/* The script that makes the same trajectories. A run is its parts: so many steps with these values of the parameters, then so many with others. */

function python(shown, programs, run) {
  const { setup, runs, parameters, scalars, t0, noise } = shown.script, quote = (text) => JSON.stringify(text);
  const number = (x) => (Number.isInteger(x) && Math.abs(x) < 1e15 ? `${x}.0` : String(x).replace("e+", "e"));
  const named = Object.create(null), { controls, observables } = programs[0];
  controls.forEach((control, i) => { (named[control.name] ||= []).push(i); });  // a name may be `constructor`, which {} has
  /* A scheme with the values of those parameters that it knows and that are not what they were. */
  const changed = (scheme, which, values) => {
    const known = (i) => programs[which].controls[i].program.length + programs[which].controls[i].start.length;
    const other = Object.entries(named).filter(([name, places]) => known(places[0]) && places.some((i, k) => values[i] !== parameters[name][k]));
    const text = other.map(([name, places]) => `${quote(name)}: ${scalars.includes(name) ? number(values[places[0]]) : `[${places.map((i) => number(values[i])).join(", ")}]`}`);
    return text.length ? `bm.with_parameters(${scheme}, {${text.join(", ")}})` : scheme;
  };
  const observed = observables.filter((one) => one.code), missing = observables.filter((one) => !one.code);
  const parts = run.parts.map((part, i) => ({ ...part, steps: (i + 1 < run.parts.length ? run.parts[i + 1].from : run.k) - part.from })).filter((part) => part.steps > 0);
  const lines = [setup, "", `observe = {${observed.map((one) => `${quote(one.name)}: ${one.code}`).join(", ")}}${missing.length ? `  # and ${missing.map((one) => one.name.replace(/\s+/g, " ")).join(", ")}, functions of your own` : ""}`];
  if (!observed.length) lines[2] = "observe = None";
  if (!parts.length) return [...lines, "# No step was made yet."].join("\n") + "\n";
  if (programs.length > 1) lines.push("results = {}");
  runs.forEach(({ scheme, start }, which) => {
    parts.forEach((part, i) => {
      const source = i ? "continue_from=result" : `${start}, step=${number(run.h)}, trajectories=${run.trajectories}, ${noise ? "path=noise" : `seed=${run.seed}`}${t0 ? `, t0=${number(t0)}` : ""}`;
      lines.push(`result = bm.simulate(${changed(scheme, which, part.values)}, ${source}, steps=${part.steps}, every=${part.steps}, observe=observe, mode="native"${i ? "" : ', arithmetic="plain"'})`);
    });
    if (programs.length > 1) lines.push(`results[${quote(programs[which].name)}] = result`);
  });
  lines.push(programs.length > 1 ? "print(results)  # results[name].final holds the states" : "print(result)  # result.final holds the states");
  return lines.join("\n") + "\n";
}
