// Draws the formulas of a page with the KaTeX that the report ships, without a network.
document$.subscribe(() => {
  for (const formula of document.querySelectorAll(".arithmatex")) {
    katex.render(formula.textContent.slice(2, -2), formula, { displayMode: formula.tagName === "DIV", throwOnError: false })
  }
})
