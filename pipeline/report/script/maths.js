// Draws the formulas in texts of the data with KaTeX. With `trust` off, a formula cannot add links or HTML.
(function maths() {
  // The limits are for hostile TeX: macros that expand for ever, rules a mile wide, ten thousand formulas.
  // If KaTeX cannot read a formula, it throws an error, and the source is shown.
  const LIMITS = { throwOnError: true, trust: false, maxExpand: 100, maxSize: 20, strict: "ignore", output: "html" };
  const MAX_FORMULAS = 100;
  const MAX_FORMULA_CHARS = 1000;
  const pattern = new RegExp(truegold.settings.maths, "g");

  function formula(source) {
    const marks = source.startsWith("$") && !source.startsWith("$$") ? 1 : 2;
    const span = document.createElement("span");
    const displayMode = source.startsWith("$$") || source.startsWith("\\[");
    try {
      katex.render(source.slice(marks, -marks), span, { ...LIMITS, displayMode });
    } catch {
      return null;
    }
    return span;
  }

  function drawn(source) {
    const parts = document.createDocumentFragment();
    let start = 0;
    let count = 0;
    for (const match of source.matchAll(pattern)) {
      if (count >= MAX_FORMULAS) break;
      if (match[0].length > MAX_FORMULA_CHARS) continue;
      const span = formula(match[0]);
      if (!span) continue;
      parts.append(source.slice(start, match.index), span);
      start = match.index + match[0].length;
      count += 1;
    }
    parts.append(source.slice(start));
    return count ? parts : null;
  }

  /** Whether a text is one formula without delimiters, as golds often are: 10\\frac{1}{12}, x^2. */
  const isFormula = (text) => text.length <= MAX_FORMULA_CHARS && /\\[a-zA-Z]+|\^|_\{/.test(text) && !/\$|\\[([]/.test(text);

  /** Draw the maths in an element with one text, and add a button that shows the source. */
  truegold.drawMaths = function (element, mayBeFormula = false) {
    if (typeof katex === "undefined" || element.dataset.drawn) return element;
    element.dataset.drawn = "yes";
    const source = element.textContent;
    const parts = mayBeFormula && isFormula(source) ? formula(`$${source}$`) : drawn(source);
    if (!parts) return element;
    const pretty = truegold.element("span", {}, parts);
    const plain = truegold.element("span", { hidden: true }, source);
    const toggle = truegold.element("button", { type: "button", class: "source" }, "source");
    toggle.addEventListener("click", () => {
      plain.hidden = !plain.hidden;
      pretty.hidden = !plain.hidden;
      toggle.textContent = plain.hidden ? "source" : "drawn";
    });
    element.replaceChildren(pretty, plain, toggle);
    return element;
  };

  // Texts that are in the page from the start are drawn once they scroll into view.
  const texts = document.querySelectorAll(".maths");
  const observer = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        observer.unobserve(entry.target);
        truegold.drawMaths(entry.target);
      }
    },
    { rootMargin: "400px" },
  );
  texts.forEach((element) => observer.observe(element));
  window.addEventListener("beforeprint", () => texts.forEach(truegold.drawMaths));
})();
