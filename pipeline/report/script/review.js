// Makes a reviewer's decision about a row: keep, drop, fix (its gold or tests) or unsure. It may have a note, and can be
// undone.
(function review() {
  const { element, settings, store, words, percent } = truegold;
  const bar = document.getElementById("review");
  const status = element("p", { class: "status", role: "status" });
  const note = element("textarea", { id: "note", rows: 1, "aria-label": "Note (N)", placeholder: "note" });
  const fix = element("form", { class: "fix", hidden: true });
  const goldInput = element("textarea", { id: "gold", autocomplete: "off", spellcheck: "false", dir: "auto" });
  const goldLabel = element("label", { for: "gold" });
  const reading = element("div", { class: "reading", "aria-live": "polite" });
  const progress = document.getElementById("progress");
  const accept = element("button", { type: "button", class: "accept", hidden: true, onclick: () => truegold.acceptSuggestion() });
  const decided = new Map();
  let others = [];
  // The decisions that can be undone. Each entry has the row or rows of one decision.
  let history = [];
  let notes = {};
  const underWay = new Map(); // The notes that are being sent, by the row's id.
  let asked = 0;

  const say = (text, isError = false) => {
    status.textContent = text;
    status.classList.toggle("trouble", isError);
  };

  function mark(id, decision) {
    if (decision) decided.set(id, decision);
    else decided.delete(id);
    for (const row of truegold.rowsById.get(id) ?? []) {
      row.decision = decision && !decision.stale ? decision.decision : "";
      truegold.redrawRow(row);
    }
  }

  // A note is stored in this browser while it is typed. If there is a server, the note is sent to it when the field
  // loses focus, and then deleted here.
  const DRAFTS = `truegold notes ${settings.run_key}`;
  let unkept = {};

  function drafts() {
    try {
      return { ...JSON.parse(localStorage.getItem(DRAFTS) ?? "{}"), ...unkept };
    } catch {
      return unkept;
    }
  }

  function keepDraft(id, text) {
    const all = drafts();
    if (text === null) delete all[id];
    else all[id] = text;
    unkept = {};
    try {
      localStorage.setItem(DRAFTS, JSON.stringify(all));
    } catch {
      unkept = all;
    }
  }

  const noteOf = (id) => drafts()[id] ?? decided.get(id)?.note ?? notes[id] ?? "";

  /** Store a note with the decisions, unless it is being sent already. If that fails, it stays in this browser. */
  async function sendNote(id, text) {
    if (underWay.get(id) === text) return;
    underWay.set(id, text);
    try {
      await putNote(id, text);
    } finally {
      underWay.delete(id);
    }
  }

  async function putNote(id, text) {
    const standing = decided.get(id);
    const [row] = truegold.rowsById.get(id) ?? [];
    if (!row || !truegold.isDecidable(row)) return;
    if (standing && !standing.stale) {
      if ((standing.note ?? "") !== text) {
        mark(id, await store.decide({ id, decision: standing.decision, gold: standing.gold, note: text || undefined }, row));
        history.push([row]);
      }
    } else if (!store.isServer) return;
    else if ((notes[id] ?? "") !== text) await store.note(id, text || undefined);
    notes[id] = text;
    if (drafts()[id]?.trim() === text) keepDraft(id, null);
  }

  async function leaveNote() {
    const row = truegold.chosen;
    const text = note.value.trim();
    if (!row?.id || drafts()[row.id] === undefined) return;
    keepDraft(row.id, text);
    try {
      await sendNote(row.id, text);
      say(`Note kept: ${row.place}`);
    } catch (error) {
      say(`${error.message} The note is kept in this browser.`, true);
    }
  }

  truegold.drawProgress = function () {
    const rows = truegold.queued() ?? (truegold.active ?? truegold.rows).filter(truegold.isReviewable);
    const done = rows.filter((row) => row.decision).length;
    progress.replaceChildren(
      element("span", {}, `${done} of ${truegold.count(rows.length)}`),
      element("progress", { max: rows.length || 1, value: done, "aria-label": "Rows decided" }),
    );
  };

  /** Read all decisions again, since another tab or reviewer may have added some. */
  truegold.readDecisions = async function () {
    try {
      const answer = await store.all();
      const known = new Set(answer.decisions.map((decision) => decision.id));
      for (const id of [...decided.keys()]) if (!known.has(id)) mark(id, null);
      for (const decision of answer.decisions) mark(decision.id, decision);
      others = answer.others ?? [];
      notes = answer.notes ?? {};
      truegold.drawMeasures(answer);
      for (const [id, text] of Object.entries(drafts())) if (document.activeElement !== note || id !== truegold.chosen?.id) await sendNote(id, text.trim());
    } catch (error) {
      say(error.message, true);
    }
    truegold.drawProgress();
    drawState();
  };

  /** Return the reason why no decision about this row can be made on this page. */
  function whyClosed(row) {
    if (!row.id) return "This record was rejected: correct it in the data, and curate again.";
    const copy = truegold.rowsById.get(row.id).find(truegold.isDecidable);
    return copy ? `A copy of this row is open for decisions: ${copy.place}.` : "Decide about it in a terminal: truegold decide " + row.id + " keep";
  }

  function drawState() {
    const row = truegold.chosen;
    const standing = row ? decided.get(row.id) : null;
    for (const button of bar.querySelectorAll("button[data-decision]")) {
      const isChosen = standing?.decision === button.dataset.decision && !standing.stale;
      button.setAttribute("aria-pressed", String(isChosen));
      button.disabled = !row || !truegold.isDecidable(row);
    }
    note.disabled = !row || !truegold.isDecidable(row);
    if (document.activeElement !== note) note.value = row?.id ? noteOf(row.id) : "";
    if (!row) return;
    const lines = [];
    if (truegold.isDropped(row) && truegold.isDecidable(row) && !standing) lines.push(`Dropped by ${words(row.stage)}, before review. Keep or fix brings it back.`);
    if (!truegold.isDecidable(row)) lines.push(whyClosed(row));
    if (standing?.stale) lines.push("The row has changed since it was decided: decide again.");
    if (standing?.decision === "fix") lines.push(`${truegold.detail?.tests ? "Tests changed" : "New gold"}: ${standing.gold}`);
    for (const other of others.filter((entry) => entry.id === row.id && !entry.stale)) {
      lines.push(`${other.reviewer}: ${words(other.decision)}${other.gold ? ` ${other.gold}` : ""}${other.note ? ` (${other.note})` : ""}`);
    }
    if (lines.length) say(lines.join(" · "));
  }

  /** Draw again how often flags were right. The server has to read all decisions, so ask it only if this part is open. */
  function refreshMeasures() {
    if (!store.isServer) truegold.drawMeasures();
    else if (document.getElementById("guidelines").open) return truegold.readDecisions();
  }

  async function save(decision, row) {
    const text = note.value.trim();
    if (text) decision.note = text;
    try {
      const stored = await store.decide(decision, row);
      history.push([row]);
      keepDraft(row.id, null);
      mark(row.id, stored);
      refreshMeasures();
      truegold.drawProgress();
      drawState();
      const isKept = store.isServer || store.isKept();
      const gold = stored.gold ? `${truegold.detail?.tests ? ":" : " to"} ${stored.gold}` : "";
      say(`${words(stored.decision)}${gold}: ${row.place}${isKept ? "" : " (this browser stores nothing: save the file before you leave)"}`);
      return true;
    } catch (error) {
      say(error.message, true);
      return false;
    }
  }

  truegold.decide = async function (kind) {
    const row = truegold.chosen;
    if (!row || !truegold.isDecidable(row)) return;
    if (kind === "fix") {
      const detail = await truegold.detailOf(row);
      if (truegold.chosen === row) openFix(row, detail);
      return;
    }
    closeFix();
    if (await save({ id: row.id, decision: kind }, row)) await goOn();
  };

  /** Make the decision that the row's flags suggest. */
  truegold.acceptSuggestion = async function () {
    const row = truegold.chosen;
    const suggestion = row && truegold.suggested(row, await truegold.detailOf(row));
    if (!suggestion) {
      if (row) say("Nothing is suggested for this row.");
      return;
    }
    closeFix();
    if (await save({ id: row.id, ...suggestion }, row)) await goOn();
  };

  truegold.drawSuggestion = function (row, detail) {
    const suggestion = truegold.suggested(row, detail);
    accept.hidden = !suggestion;
    if (suggestion) accept.replaceChildren("Accept: ", ...(suggestion.gold && detail.tests ? ["add the proposed cases"] : suggestion.gold ? ["fix gold to ", element("bdi", {}, suggestion.gold)] : [suggestion.decision]), " ", key("A"));
    drawState();
  };

  /** Decide about many rows, as one entry for undo. `tell` is called with the number of rows decided so far. */
  truegold.decideTogether = async function (pairs, tell) {
    const done = [];
    let trouble = "";
    history.push(done);
    try {
      for (const [row, made] of pairs) {
        // These rows were not read one by one. They must not count as a random sample.
        mark(row.id, await store.decide({ id: row.id, drawn: "suspicious", ...made, note: noteOf(row.id) || made.note }, row));
        keepDraft(row.id, null);
        tell(done.push(row));
      }
    } catch (error) {
      trouble = error.message;
    }
    refreshMeasures();
    truegold.drawProgress();
    drawState();
    say(`${truegold.count(done.length)} of ${truegold.count(pairs.length)} rows decided together. ${trouble}`, Boolean(trouble));
  };

  /** Go to the next row, and still show the message about the last decision. */
  async function goOn() {
    const text = status.textContent;
    await truegold.step(1);
    if (!status.textContent) say(text);
  }

  truegold.undo = async function () {
    const rows = history.at(-1) ?? (truegold.chosen?.decision ? [truegold.chosen] : []);
    const [first] = rows;
    if (!first) {
      say("Nothing to undo.");
      return;
    }
    const many = rows.length;
    try {
      while (rows.length) {
        const { id } = rows.at(-1);
        const text = decided.get(id)?.note;
        mark(id, await store.undo(id));
        if (!store.isServer && text && !decided.has(id)) keepDraft(id, text);
        rows.pop();
      }
      history.pop();
      await truegold.choose(first);
      say(many > 1 ? `Undone: ${truegold.count(many)} rows` : `Undone: ${first.place}`);
      refreshMeasures();
    } catch (error) {
      say(error.message, true);
    }
    truegold.drawProgress();
  };

  /** Say how many answers have the same text as a new gold. Without a server, there is no verifier to compare them. */
  function readOffline(gold) {
    const plain = (text) => text.trim().replace(/^\$|\$$/g, "").replace(/[\s,]/g, "").replace(/\.0*$/, "").toLowerCase();
    const classes = (truegold.detail?.answers ?? []).filter((answer) => answer.kind === "label" || answer.kind === "alternative");
    const total = classes.reduce((sum, answer) => sum + answer.votes, 0);
    if (!total) return "No answers to compare with. The verifier reads the new gold in the next curation.";
    const before = classes.filter((answer) => answer.kind === "label").reduce((sum, answer) => sum + answer.votes, 0);
    const same = classes.filter((answer) => answer.texts.some((text) => plain(text) === plain(gold)));
    const after = same.reduce((sum, answer) => sum + answer.votes, 0);
    return `${before} of ${total} answers agree with the present gold; ${after} are written like the new one. The verifier judges them in the next curation.`;
  }

  async function readGold() {
    const row = truegold.chosen;
    const gold = goldInput.value.trim();
    const number = (asked += 1);
    const { tests } = truegold.detail ?? {};
    if (!gold) {
      reading.replaceChildren(tests ? `${tests.fix} (Shift and Enter).` : "Type the right answer.");
      return;
    }
    if (!store.isServer) {
      reading.replaceChildren(tests ? `${tests.fix}. The lines are read in the next curation.` : readOffline(gold));
      return;
    }
    try {
      const answer = await store.reading(row, gold);
      if (number !== asked) return;
      const lines = [];
      if (answer.readable === false) lines.push(element("p", { class: "trouble" }, `The verifier cannot read it${answer.verdict ? ` (${words(answer.verdict)})` : ""}.`));
      if (answer.reading) lines.push(element("p", {}, "read as ", element("code", {}, answer.reading)));
      if (answer.judged) lines.push(element("p", {}, `${answer.passes_before} → ${answer.passes_after} of ${answer.judged} samples pass`));
      for (const change of answer.changes ?? []) {
        if (change.before === change.after) continue;
        lines.push(element("p", {}, element("bdi", {}, change.answer ?? "no answer"), ` (${change.votes}): ${verdictOf(change.before)} → ${verdictOf(change.after)}`));
      }
      if (answer.message) lines.push(element("p", {}, answer.message));
      reading.replaceChildren(...lines);
    } catch (error) {
      if (number === asked) reading.replaceChildren(element("p", { class: "trouble" }, error.message));
    }
  }

  const verdictOf = (score) => (score === null ? "not judged" : score === 1 ? "right" : "wrong");

  function openFix(row, detail) {
    fix.hidden = false;
    goldLabel.textContent = detail.tests ? "changed cases" : "new gold";
    goldInput.rows = detail.tests ? 4 : 1;
    goldInput.value = decided.get(row.id)?.gold ?? truegold.suggested(row, detail)?.gold ?? row.gold ?? "";
    goldInput.focus();
    goldInput.select();
    readGold();
  }

  function closeFix() {
    if (fix.contains(document.activeElement)) document.activeElement.blur();
    fix.hidden = true;
  }

  function download() {
    const name = document.getElementById("reviewer").value.trim() || "reviewer";
    const file = new Blob([store.lines(name, drafts())], { type: "application/jsonl" });
    const link = element("a", { href: URL.createObjectURL(file), download: `decisions-${name.replace(/[^\p{L}\p{N}_-]+/gu, "-")}.jsonl` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }

  const key = (letter) => element("kbd", {}, letter);
  const button = (label, letter, action, attributes = {}) => element("button", { type: "button", onclick: action, ...attributes }, label, " ", key(letter));

  truegold.buildReview = function () {
    const decision = (label, letter, kind) => button(label, letter, () => truegold.decide(kind), { "data-decision": kind, "aria-pressed": "false" });
    let waiting = 0;
    goldInput.addEventListener("input", () => {
      clearTimeout(waiting);
      asked += 1;
      waiting = setTimeout(readGold, 250);
    });
    goldInput.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      fix.requestSubmit();
    });
    fix.addEventListener("submit", async (event) => {
      event.preventDefault();
      const row = truegold.chosen;
      const gold = goldInput.value.trim();
      if (!gold || !(await save({ id: row.id, decision: "fix", gold }, row))) return;
      closeFix();
      await goOn();
    });
    fix.append(goldLabel, goldInput, element("button", { type: "submit" }, "Save ", key("↵")), element("button", { type: "button", onclick: closeFix }, "Cancel ", key("Esc")), reading);
    note.addEventListener("input", () => truegold.chosen && keepDraft(truegold.chosen.id, note.value));
    note.addEventListener("change", leaveNote);
    window.addEventListener("pagehide", leaveNote);
    document.getElementById("guidelines").addEventListener("toggle", refreshMeasures);
    bar.append(
      element("div", { class: "keys" }, accept, decision("Keep", "K", "keep"), decision("Drop", "D", "drop"), decision("Fix", "F", "fix"), decision("Unsure", "U", "unsure"), button("Undo", "Z", truegold.undo), button("Similar", "S", () => truegold.findSimilar()), button("Previous", "←", () => truegold.step(-1)), button("Next", "→", () => truegold.step(1))),
      fix,
      element("label", { class: "note-line" }, "Note ", key("N"), note),
      status,
    );
    const save_ = document.getElementById("save");
    if (store.isServer) {
      save_.append(element("span", {}, `reviewer ${settings.review.reviewer}`));
    } else {
      save_.append(element("label", {}, "Reviewer ", element("input", { id: "reviewer", size: 8, value: "reviewer", autocomplete: "off" })), element("button", { type: "button", onclick: download, id: "download" }, "Save decisions"));
    }
  };

  truegold.closeFix = closeFix;
  truegold.focusNote = () => note.focus();
  truegold.drawDecision = () => {
    say("");
    closeFix();
    accept.hidden = true;
    truegold.detail = null;
    drawState();
  };
})();
