// Chooses the rows of a review and their order: the most suspicious first, a random sample, the rows similar to one row,
// or the sample that `truegold review` has drawn.
(function queues() {
  const SIZES = [20, 50, 100, 200, 500];
  const review = truegold.settings.review;
  const state = { queue: "", size: "100", seed: "1", to: "" };
  const SIMILAR = 100;
  let turns = null;

  /** A hash (FNV-1a) of the seed and the row. A random sample consists of the rows with the lowest hashes. */
  function lot(seed, row) {
    let hash = 2166136261;
    for (const character of `${seed} ${row.id} ${row.place}`) {
      hash = Math.imul(hash ^ character.codePointAt(0), 16777619);
    }
    hash ^= hash >>> 15;
    return Math.imul(hash, 2246822519) >>> 0;
  }

  /** Reduce a typed seed to its digits; "1" if it has none. */
  const digits = (text) => text.replace(/[^0-9]/g, "").slice(0, 9) || "1";

  function drawn() {
    const rows = truegold.rows.filter((row) => truegold.isReviewable(row) && truegold.isShown(row));
    if (state.queue === "random") {
      return rows.map((row) => [lot(state.seed, row), row]).sort((a, b) => a[0] - b[0]).map(([, row]) => row).slice(0, Number(state.size));
    }
    return rows.slice(0, Number(state.size));
  }

  const wordsOf = (row) => new Set(row.prompt.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []);

  /** The Jaccard similarity of two sets: 1 if they are equal, 0 if they have nothing in common. */
  function likeness(first, second) {
    let shared = 0;
    for (const value of first) if (second.has(value)) shared += 1;
    return shared / (first.size + second.size - shared || 1);
  }

  /** The chosen row, and then the rows that are most similar to it in their flags and the words of their prompts. */
  function similar() {
    const like = truegold.rows[Number(state.to)];
    if (!like) return [];
    const [words, flags] = [wordsOf(like), new Set(like.flags)];
    const scored = truegold.rows.filter((row) => row !== like).map((row) => [likeness(words, wordsOf(row)) + likeness(flags, new Set(row.flags)), row]);
    return [like, ...scored.sort((a, b) => b[0] - a[0]).slice(0, SIMILAR).filter(([score]) => score > 0.3).map(([, row]) => row)];
  }

  /** Make a queue of the rows most similar to the chosen one. */
  truegold.findSimilar = function () {
    if (!truegold.chosen) return writeQueue();
    const like = truegold.chosen;
    truegold.clearFilters();
    setQueue({ queue: "similar", to: String(like.position) });
  };

  function given() {
    const byKey = new Map(truegold.rows.map((row) => [`${row.id} ${row.place}`, row]));
    return review.queue.map(([id, source, number]) => byKey.get(`${id} ${source}:${number}`)).filter(Boolean);
  }

  /** Draw the queue again, and number its rows. Later changes of the filters do not change it. */
  truegold.drawQueue = function () {
    for (const row of truegold.rows) row.turn = row.position;
    turns = null;
    if (state.queue) {
      const rows = { given, similar }[state.queue]?.() ?? drawn();
      rows.forEach((row, turn) => (row.turn = turn));
      turns = new Set(rows);
    }
    // The fields for size and seed are shown only for the queues that use them.
    const form = document.getElementById("queue");
    form.elements.size.parentElement.hidden = !["suspicious", "random"].includes(state.queue);
    form.elements.seed.parentElement.hidden = state.queue !== "random";
    truegold.drawProgress();
  };

  truegold.isInQueue = (row) => turns === null || turns.has(row);
  truegold.queued = () => (turns === null ? null : [...turns]);

  /** How the queue was drawn, for the record of decisions. With a filter other than a flag, a sample is not random. */
  truegold.drawnAs = function () {
    if (state.queue === "given") return review.drawn;
    const { group, flag, ...others } = truegold.filterState;
    const isRandom = state.queue === "random" && Object.values(others).every((value) => !value);
    return isRandom ? `random:${state.seed}` : "suspicious";
  };

  /** The settings of the queue, for the address of the page. */
  truegold.queueState = () => (state.queue ? { ...state } : {});

  function writeQueue() {
    const form = document.getElementById("queue");
    for (const name of ["queue", "size", "seed"]) form.elements[name].value = state[name];
  }

  function setQueue(changes) {
    Object.assign(state, changes);
    writeQueue();
    truegold.drawQueue();
    truegold.sortBy("");
    truegold.applyFilters();
    const first = truegold.active?.[0];
    if (state.queue && first) return truegold.choose(first);
  }

  truegold.readQueue = function (query) {
    state.queue = query.get("queue") ?? (review?.queue ? "given" : "");
    if (state.queue === "given" && !review?.queue) state.queue = "";
    state.size = query.get("size") ?? "100";
    state.seed = digits(query.get("seed") ?? "");
    state.to = query.get("to") ?? "";
    writeQueue();
  };

  truegold.buildQueue = function () {
    const { element } = truegold;
    const form = document.getElementById("queue");
    const choices = [["", "all rows"], ["suspicious", "suspicious first"], ["random", "random sample"], ["similar", "similar rows"]];
    if (review?.queue) choices.push(["given", "the drawn sample"]);
    const option = ([value, label]) => element("option", { value }, label);
    form.append(
      element("label", {}, "Review ", element("select", { name: "queue" }, choices.map(option))),
      element("label", {}, "of ", element("select", { name: "size" }, SIZES.map((size) => option([size, String(size)])))),
      element("label", {}, "draw ", element("input", { name: "seed", size: 3, maxlength: 9, inputmode: "numeric" })),
    );
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("change", (event) => {
      const { name, value } = event.target;
      if (!(name in state)) return;
      if (value === "similar") truegold.findSimilar();
      else setQueue({ [name]: name === "seed" ? digits(value) : value });
    });
  };
})();
