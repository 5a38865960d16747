// Draws the card of a row: its prompt, gold, answers with votes, the verifier's reading of gold and answers, samples,
// similar rows with differences marked, flags, and the changes that stages made.
(function cards() {
  const { element, words, percent, count } = truegold;
  const card = document.getElementById("card");

  // In longer texts, such as those that "Show all" loads, formulas are not drawn.
  const MAX_DRAWN_CHARS = 20_000;
  const drawIn = (node, text) => (String(text).length > MAX_DRAWN_CHARS ? node : truegold.drawMaths(node));
  const codeBlock = (text) => element("pre", { class: "row-text code", dir: "ltr" }, text);
  const FENCE = /^```[^\n]*\n([\s\S]*?)^```[^\S\n]*$/gm;

  /** A text of a row, with fenced programs in code blocks. */
  function textBlock(text) {
    const parts = String(text).split(FENCE);
    if (parts.length === 1) return drawIn(element("div", { class: "row-text", dir: "auto" }, text), text);
    return element("div", { class: "row-text", dir: "auto" }, parts.map((part, index) => (index % 2 ? codeBlock(part) : part.trim() ? drawIn(element("div", {}, part.trim()), part) : null)));
  }

  const shortText = (text) => drawIn(element("bdi", { class: "short" }, text), text);
  /** A gold. For a math verifier, the whole gold may be one formula. */
  const goldText = (row, text) => truegold.drawMaths(element("bdi", { class: "short" }, text), row.verifier.startsWith("math"));
  const none = () => element("span", { class: "none" }, "none");
  const part = (title, ...children) => element("section", { class: "part" }, element("h2", {}, title), ...children);

  /** Draw the card with whole texts instead of shortened ones. */
  async function showWhole(row) {
    const texts = await truegold.store.whole(row);
    if (truegold.chosen?.position === row.position) drawBody({ ...row, ...texts }, { ...truegold.detail, cut: null, ...texts.detail });
  }

  const whole = (row, chars, file, column) =>
    truegold.wholeButton(chars, file, column, row.id, truegold.store.whole && row.id ? () => showWhole(row) : null);
  const wholeOf = (row, detail, name) => whole(row, detail.cut?.[name], detail.cut?.table, name);

  function facts(pairs) {
    if (!pairs?.length) return null;
    return element("dl", { class: "facts" }, pairs.map(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
  }

  function bar(share, kind) {
    const line = element("span", { class: `share ${kind}`, "aria-hidden": "true" }, element("span"));
    line.firstChild.style.width = `${100 * share}%`;
    return line;
  }

  function ending(row) {
    if (["dropped", "held for review", "in reserve", "rejected"].includes(row.outcome)) {
      return [`${row.outcome}${row.outcome === "dropped" ? ` by ${words(row.stage)}` : ""}`, words(row.why) === row.outcome ? null : [": ", truegold.reasonTag(row.why)]];
    }
    return row.outcome === "left" ? `still in the data after ${words(row.stage)}` : row.outcome;
  }

  function head(row) {
    const tags = [];
    if (row.fault !== null) {
      const by = truegold.EVIDENCE[row.fault_by] ?? `by the rule ${words(row.fault_by)}`;
      tags.push(element("span", { class: "tag blocks" }, `at fault with probability ${percent(row.fault)} (${by})`));
    }
    if (row.tier) tags.push(element("span", { class: "tag", title: "What to do with the row, by all evidence: drop, review or keep" }, `advice: ${row.tier}`));
    return element(
      "p",
      { class: "top" },
      tags,
      element("span", {}, ending(row)),
      " · ",
      element("bdi", {}, row.place),
      row.name ? [" · its own id ", element("bdi", {}, row.name)] : null,
      row.id ? [" · ", element("code", { class: "id" }, row.id)] : null,
      ` · ${[...new Set([row.split, row.domain, row.verifier])].filter(Boolean).join(" · ")}`,
    );
  }

  function golds(row, detail) {
    if (detail.tests && row.gold === null && !row.n) return null;
    const gold = row.gold === null ? none() : goldText(row, row.gold);
    const lines = [element("div", {}, element("span", { class: "label" }, "gold"), gold, wholeOf(row, detail, "gold"))];
    if (row.suggestion) {
      lines.push(element("div", {}, element("span", { class: "label" }, "most samples say"), goldText(row, row.suggestion), wholeOf(row, detail, "suggestion")));
    }
    if (row.n) {
      const after = row.after === null || row.after === undefined ? "" : `, ${percent(row.after)} after training`;
      lines.push(
        element("div", {}, element("span", { class: "label" }, "samples that pass"), `${row.passes} of ${row.judged} judged${after} `, bar(row.passes / (row.judged || 1), "right")),
      );
    }
    return element("div", { class: "answers" }, lines);
  }

  const KINDS = { label: "gives the gold", alternative: "another answer", unjudged: "could not be judged", cut_short: "part of the gold: cut short?", others: "further answers" };

  /** The tests of a program, or the settings of the verifier. */
  function judging(row, detail) {
    const { tests } = detail;
    if (!tests) return detail.settings ? part("How it is judged", facts(detail.settings)) : null;
    const cases = tests.cases?.map((pair, number) => element("tr", {}, element("td", { class: "number" }, String(number)), pair.map((text) => element("td", {}, codeBlock(text)))));
    return part(
      "Tests",
      facts(tests.settings),
      cases ? element("table", { class: "cases" }, element("thead", {}, element("tr", {}, ["case", ...tests.heads].map((head) => element("th", { scope: "col" }, head)))), element("tbody", {}, cases)) : codeBlock(tests.code),
      tests.more ? element("p", { class: "verdict" }, `and ${count(tests.more)} more`) : null,
      whole(row, tests.chars, detail.cut?.table ?? "ingest/rows.parquet", "verifier_args"),
    );
  }

  function answers(row, detail) {
    if (!detail.answers) return null;
    const total = detail.answers.reduce((sum, answer) => sum + answer.votes, 0);
    const rows = detail.answers.map((answer) => {
      const named = answer.systems.length
        ? element("details", { class: "systems" }, element("summary", {}, `${answer.systems.length} system${answer.systems.length === 1 ? "" : "s"}`), element("p", {}, answer.systems.join(", ")))
        : null;
      const spelt = answer.texts.slice(1).length ? element("span", { class: "dim" }, ` also written ${answer.texts.slice(1).join(" · ")}`) : null;
      return element(
        "tr",
        { class: answer.kind },
        element("td", {}, answer.texts.length ? goldText(row, answer.texts[0]) : "", spelt, whole(row, answer.chars, `${detail.samples ? "profile" : "suspect"}/answers.parquet`, "spellings")),
        element("td", { class: "number" }, `${answer.votes} of ${total}`),
        element("td", {}, bar(answer.votes / total, answer.kind === "label" ? "right" : "other")),
        element("td", {}, KINDS[answer.kind] ?? answer.kind, named),
      );
    });
    return part(
      "Answers and their votes",
      element("table", { class: "votes" }, element("thead", {}, element("tr", {}, ["Answer", "Votes", "", "What it is"].map((title) => element("th", { scope: "col" }, title)))), element("tbody", {}, rows)),
    );
  }

  function evidence(detail) {
    if (!detail.weighed) return null;
    return part(
      "Evidence for and against the problem",
      element("p", {}, "log odds of an ill-posed problem: ", element("span", { class: "number" }, detail.weighed)),
      facts(detail.told) ? element("details", {}, element("summary", {}, "The evidence"), facts(detail.told)) : null,
    );
  }

  function readingTable(readings) {
    if (!readings.length) return null;
    const cell = (value) => element("td", {}, value ? element("code", {}, value) : "");
    return part(
      "How the verifier read both sides",
      element(
        "table",
        {},
        element("thead", {}, element("tr", {}, ["Answer as written", "Gold read as", "Answer read as", "Verdict"].map((title) => element("th", { scope: "col" }, title)))),
        element(
          "tbody",
          {},
          readings.map((entry) =>
            element("tr", {}, element("td", {}, shortText(entry.written ?? "")), cell(entry.reading.gold), cell(entry.reading.answer), element("td", {}, `${words(entry.verdict)}${entry.reading.how ? `: ${entry.reading.how}` : ""}`)),
          ),
        ),
      ),
    );
  }

  function readings(detail) {
    const seen = new Set();
    const all = [...(detail.readings ?? [])];
    for (const sample of detail.samples ?? []) {
      if (sample.reading) all.push({ written: sample.answer, reading: sample.reading, verdict: sample.reason });
    }
    return all.filter((entry) => {
      const key = `${entry.reading.answer}|${entry.verdict}`;
      if (seen.has(key)) return false;
      seen.add(key);
      return true;
    });
  }

  function samples(row, detail) {
    if (!detail.samples) return null;
    const drawn = detail.samples.map((sample) => {
      const kind = sample.score === 1 ? "right" : sample.score === null ? "unjudged" : "wrong";
      const verdict = [words(sample.reason), sample.finish === "length" ? "cut off" : "", sample.finish === "repetition" ? "ended in a loop" : ""];
      return element(
        "div",
        { class: `sample ${kind}` },
        detail.tests ? codeBlock(sample.text) : textBlock(sample.text),
        whole(row, sample.chars, "profile/samples.parquet", "completion"),
        element("p", { class: "verdict" }, verdict.filter(Boolean).join(", "), sample.answer === null ? null : [", answered ", shortText(sample.answer)]),
      );
    });
    const shown = drawn.length < row.n ? `${drawn.length} of ${count(row.n)} samples, chosen to show different answers` : `${drawn.length} samples`;
    return element("details", { class: "part", open: true }, element("summary", {}, element("h2", {}, shown)), drawn);
  }

  /** Show a neighbour; filters and queue stay the same. */
  function openBeside(event, other) {
    event.preventDefault();
    truegold.choose(other);
  }

  function neighbours(row, detail) {
    if (!detail.neighbours) return null;
    return part(
      "Neighbours",
      detail.neighbours.map(({ row: position, relation }) => {
        const other = truegold.rows[position];
        const [here, there] = truegold.markDifferences(row.prompt, other.prompt);
        const golds = (side, gold) => element("p", { class: "verdict" }, side === other ? element("a", { href: `#rows?item=${other.id}.${other.position}`, onclick: (event) => openBeside(event, other) }, other.place) : "this row", ", gold ", gold === null ? none() : element(row.gold === other.gold ? "bdi" : "mark", {}, gold));
        return element(
          "div",
          { class: "neighbour" },
          element("p", { class: "label" }, relation),
          element(
            "div",
            { class: "pair" },
            element("div", {}, golds(row, row.gold), element("div", { class: "row-text", dir: "auto" }, here)),
            element("div", {}, golds(other, other.gold), element("div", { class: "row-text", dir: "auto" }, there)),
          ),
        );
      }),
    );
  }

  function flags(row, detail) {
    if (!detail.flags?.length) return null;
    return part(
      "Flags",
      detail.flags.map((flag) =>
        element(
          "div",
          { class: "flag" },
          element("p", {}, truegold.reasonTag(flag.reason, { class: `tag${flag.blocks ? " blocks" : ""}` }), ` ${flag.strength}, ${flag.blocks ? "holds the row back" : "a hint: the row stays"}`, flag.detector === flag.reason ? "" : `, by ${words(flag.detector)}`),
          element("p", { class: "verdict" }, truegold.exampleOf(flag.reason)),
          flag.suggestion ? element("p", {}, element("span", { class: "label" }, "suggests"), detail.tests ? flag.suggestion : goldText(row, flag.suggestion)) : null,
          flag.cases ? codeBlock(flag.cases) : null,
          facts(flag.facts),
        ),
      ),
    );
  }

  function ledger(row, detail) {
    if (!detail.ledger) return null;
    const code = detail.tests ? " code" : "";
    return part(
      "Changes by the stages",
      element(
        "ol",
        { class: "ledger" },
        detail.ledger.map((entry) => {
          const changed = entry.before !== undefined;
          const [before, after] = changed ? truegold.markDifferences(entry.before ?? "", entry.after ?? "") : [];
          return element(
            "li",
            {},
            element("span", { class: "tag" }, words(entry.stage)),
            ` ${entry.action}: `,
            truegold.reasonTag(entry.reason),
            facts(entry.facts),
            changed ? element("div", { class: "pair" }, element("div", {}, element("p", { class: "label" }, "before"), element("div", { class: `row-text${code}`, dir: "auto" }, before)), element("div", {}, element("p", { class: "label" }, "after"), element("div", { class: `row-text${code}`, dir: "auto" }, after))) : null,
            whole(row, entry.chars, `${entry.stage}/ledger.parquet`, "before and after"),
          );
        }),
      ),
    );
  }

  function command(row) {
    if (!row.id) return null;
    return element("p", { class: "command" }, element("code", {}, `truegold explain ${row.id} --run ${truegold.settings.run_dir}`));
  }

  /** Draw the card of a row. */
  truegold.drawCard = async function (row) {
    const detail = await truegold.detailOf(row);
    if (truegold.chosen !== row) return;
    drawBody(row, detail);
    card.scrollTop = 0;
  };

  /** Draw the body of the card, with the shortened texts of the page or with whole ones. */
  function drawBody(row, detail) {
    truegold.detail = detail;
    const body = element(
      "article",
      { "aria-label": `Row ${row.place}` },
      head(row),
      detail.context ? element("details", { class: "part", open: "" }, element("summary", {}, element("h2", {}, "Before the question")), textBlock(detail.context)) : null,
      textBlock(row.prompt),
      wholeOf(row, detail, "prompt"),
      golds(row, detail),
      judging(row, detail),
      answers(row, detail),
      evidence(detail),
      readingTable(readings(detail)),
      flags(row, detail),
      neighbours(row, detail),
      detail.solution ? element("details", { class: "part", open: Boolean(detail.tests) }, element("summary", {}, element("h2", {}, "Worked solution")), detail.tests ? codeBlock(detail.solution) : textBlock(detail.solution), wholeOf(row, detail, "solution")) : null,
      samples(row, detail),
      ledger(row, detail),
      command(row),
    );
    card.replaceChildren(truegold.markHits(body));
    truegold.drawSuggestion(row, detail);
  }
})();
