// Which rows a review goes through: the most suspicious first, a random sample, or the rows that the server drew.
(function queues() {
  const SIZES = [20, 50, 100, 200, 500];
  const review = truegold.settings.review;
  const state = { queue: "", size: "100", seed: "1" };
  let turns = null;

  /** A number that depends on seed and id alone (FNV-1a), by which a sample is drawn. */
  function lot(seed, row) {
    let hash = 2166136261;
    for (const character of `${seed} ${row.id} ${row.place}`) {
      hash = Math.imul(hash ^ character.codePointAt(0), 16777619);
    }
    hash ^= hash >>> 15;
    return Math.imul(hash, 2246822519) >>> 0;
  }

  /** A seed is a whole number. */
  const digits = (text) => text.replace(/[^0-9]/g, "").slice(0, 9) || "1";

  function drawn() {
    const rows = truegold.rows.filter((row) => truegold.isReviewable(row) && truegold.isShown(row));
    if (state.queue === "random") {
      return rows.map((row) => [lot(state.seed, row), row]).sort((a, b) => a[0] - b[0]).map(([, row]) => row).slice(0, Number(state.size));
    }
    return rows.slice(0, Number(state.size));
  }

  function given() {
    const byKey = new Map(truegold.rows.map((row) => [`${row.id} ${row.place}`, row]));
    return review.queue.map(([id, source, number]) => byKey.get(`${id} ${source}:${number}`)).filter(Boolean);
  }

  /** Draw the queue anew, and give the rows their turns. A queue that is under way does not change with the filters. */
  truegold.drawQueue = function () {
    for (const row of truegold.rows) row.turn = row.position;
    turns = null;
    if (state.queue) {
      const rows = state.queue === "given" ? given() : drawn();
      rows.forEach((row, turn) => (row.turn = turn));
      turns = new Set(rows);
    }
    // How many and which draw are asked only where they matter.
    const form = document.getElementById("queue");
    form.elements.size.parentElement.hidden = !["suspicious", "random"].includes(state.queue);
    form.elements.seed.parentElement.hidden = state.queue !== "random";
    truegold.drawProgress();
  };

  truegold.isInQueue = (row) => turns === null || turns.has(row);
  truegold.queued = () => (turns === null ? null : [...turns]);

  /** How the queue was drawn, as decisions keep it. What other choices than a flag have narrowed is no random sample. */
  truegold.drawnAs = function () {
    if (state.queue === "given") return review.drawn;
    const { group, flag, ...others } = truegold.filterState;
    const isRandom = state.queue === "random" && Object.values(others).every((value) => !value);
    return isRandom ? `random:${state.seed}` : "suspicious";
  };

  /** What the address says of the queue. */
  truegold.queueState = () => (state.queue ? { ...state } : {});

  truegold.readQueue = function (query) {
    state.queue = query.get("queue") ?? (review?.queue ? "given" : "");
    if (state.queue === "given" && !review?.queue) state.queue = "";
    state.size = query.get("size") ?? "100";
    state.seed = digits(query.get("seed") ?? "");
    const form = document.getElementById("queue");
    for (const name of Object.keys(state)) form.elements[name].value = state[name];
  };

  truegold.buildQueue = function () {
    const { element } = truegold;
    const form = document.getElementById("queue");
    const choices = [["", "all rows"], ["suspicious", "suspicious first"], ["random", "random sample"]];
    if (review?.queue) choices.push(["given", "the drawn sample"]);
    const option = ([value, label]) => element("option", { value }, label);
    form.append(
      element("label", {}, "Review ", element("select", { name: "queue" }, choices.map(option))),
      element("label", {}, "of ", element("select", { name: "size" }, SIZES.map((size) => option([size, String(size)])))),
      element("label", {}, "draw ", element("input", { name: "seed", size: 3, maxlength: 9, inputmode: "numeric" })),
    );
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("change", (event) => {
      if (!(event.target.name in state)) return;
      state[event.target.name] = event.target.name === "seed" ? digits(event.target.value) : event.target.value;
      event.target.value = state[event.target.name];
      truegold.drawQueue();
      truegold.applyFilters();
      truegold.sortBy("");
      const first = truegold.active?.[0];
      if (state.queue && first) truegold.choose(first);
    });
  };
})();
