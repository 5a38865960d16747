// Shows the completions of a training at a step that a slider chooses. Each attempt at a problem has its verdict and its
// advantage. The attempts of another step can be shown next to them, with differences marked.
(function completions() {
  const { element, words } = truegold;
  const holder = document.getElementById("completions");
  if (!holder) return;
  let data = null;
  let places = null;
  const chosen = { step: 0, problem: 0, other: null };

  const slider = element("input", { type: "range", min: 0, value: 0, id: "step", "aria-label": "Step" });
  const stepName = element("output", { for: "step" });
  const problems = element("select", { "aria-label": "Problem" });
  const others = element("select", { "aria-label": "Beside it" });
  const shown = element("div", {});

  const problemOf = (step, problem) => data.steps[step].problems[problem];

  function verdict(attempt) {
    const kind = attempt.score === 1 ? "right" : attempt.score === null ? "unjudged" : "wrong";
    const parts = [words(attempt.reason), attempt.answer === null ? "" : `answered ${attempt.answer}`, attempt.truncated ? "cut off" : ""];
    const advantage = attempt.advantage === null ? "" : `advantage ${attempt.advantage}`;
    return [kind, [...parts, advantage].filter(Boolean).join(", ")];
  }

  const whole = (cut, column, step) => truegold.wholeButton(cut.chars, data.steps[step].files, column, problemOf(chosen.step, chosen.problem).id, null);

  function attemptBlock(attempt, parts, step = chosen.step) {
    const [kind, text] = verdict(attempt);
    const body = element("div", { class: "row-text", dir: "auto" }, parts ?? attempt.text);
    if (!parts) truegold.drawMaths(body);
    return element("div", { class: `sample ${kind}` }, body, whole(attempt, "completion", step), element("p", { class: "verdict" }, text));
  }

  function column(step, problem, blocks) {
    const { right, n } = problem;
    return element("div", {}, element("h4", {}, `Step ${data.steps[step].step}: ${right} of ${n} right`), blocks);
  }

  function draw() {
    const here = problemOf(chosen.step, chosen.problem);
    const head = [
      element("p", { class: "place" }, element("a", { href: `#rows?q=${here.id}` }, element("code", { class: "id" }, here.id))),
      truegold.drawMaths(element("div", { class: "row-text", dir: "auto" }, here.prompt)),
      whole(here, "prompt", chosen.step),
      element("p", { class: "gold" }, "gold ", element("bdi", {}, here.gold ?? "none")),
    ].filter(Boolean);
    if (chosen.other === null) {
      shown.replaceChildren(...head, column(chosen.step, here, here.attempts.map((attempt) => attemptBlock(attempt))));
      return;
    }
    const there = data.steps[chosen.other].problems.find((problem) => problem.id === here.id);
    const pairs = here.attempts.map((attempt, index) => [attempt, there.attempts[index]]);
    const left = [];
    const right = [];
    for (const [first, second] of pairs) {
      const [before, after] = second ? truegold.markDifferences(first.text, second.text) : [[first.text], null];
      left.push(attemptBlock(first, before));
      if (second) right.push(attemptBlock(second, after, chosen.other));
    }
    for (const more of there.attempts.slice(pairs.length)) right.push(attemptBlock(more, [more.text], chosen.other));
    shown.replaceChildren(...head, element("div", { class: "pair" }, column(chosen.step, here, left), column(chosen.other, there, right)));
  }

  function fillOthers() {
    const id = problemOf(chosen.step, chosen.problem).id;
    const steps = places.get(id).filter((step) => step !== chosen.step);
    const options = steps.map((step) => element("option", { value: step }, `step ${data.steps[step].step}`));
    others.replaceChildren(element("option", { value: "" }, steps.length ? "nothing" : "nothing (no other step shown has this problem)"), ...options);
    if (!steps.includes(chosen.other)) chosen.other = null;
    others.value = chosen.other === null ? "" : String(chosen.other);
  }

  function fillProblems(id) {
    const step = data.steps[chosen.step];
    stepName.textContent = `${step.step}`;
    problems.replaceChildren(
      ...step.problems.map((problem, index) => element("option", { value: index }, `${problem.right} of ${problem.n}: ${problem.prompt.slice(0, 60)}`)),
    );
    const same = step.problems.findIndex((problem) => problem.id === id);
    chosen.problem = Math.max(same, 0);
    problems.value = String(chosen.problem);
    fillOthers();
    draw();
  }

  async function build() {
    data = await truegold.unpack(document.getElementById("packed-completions").textContent);
    places = new Map();
    data.steps.forEach((step, index) => {
      for (const { id } of step.problems) places.set(id, [...(places.get(id) ?? []), index]);
    });
    slider.max = data.steps.length - 1;
    slider.addEventListener("input", () => {
      const { id } = problemOf(chosen.step, chosen.problem);
      chosen.step = Number(slider.value);
      fillProblems(id);
    });
    problems.addEventListener("change", () => {
      chosen.problem = Number(problems.value);
      chosen.other = null;
      fillOthers();
      draw();
    });
    others.addEventListener("change", () => {
      chosen.other = others.value === "" ? null : Number(others.value);
      draw();
    });
    const note = data.steps.length < data.all ? `${data.steps.length} of ${data.all} steps` : `${data.all} steps`;
    holder.replaceChildren(
      element("div", { class: "steps" }, element("label", {}, "Step ", slider, " ", stepName), element("label", {}, "Problem ", problems), element("label", {}, "Beside it ", others), element("span", { class: "dim" }, note)),
      shown,
    );
    fillProblems(null);
  }

  let isBuilt = null;
  truegold.onView((view) => {
    if (view === "training") isBuilt ??= build();
  });
})();
