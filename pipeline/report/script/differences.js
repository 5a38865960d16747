// Marks the words in which two texts differ: those that are not in their longest common subsequence.
(function differences() {
  const MOST_WORDS = 600;

  const wordsOf = (text) => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];

  /** Return, for each word of both texts, whether it belongs to their longest common subsequence. */
  function common(first, second) {
    const width = second.length + 1;
    const lengths = new Uint16Array((first.length + 1) * width);
    for (let i = first.length - 1; i >= 0; i -= 1) {
      for (let j = second.length - 1; j >= 0; j -= 1) {
        lengths[i * width + j] =
          first[i] === second[j]
            ? lengths[(i + 1) * width + j + 1] + 1
            : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
      }
    }
    const inFirst = new Array(first.length).fill(false);
    const inSecond = new Array(second.length).fill(false);
    for (let i = 0, j = 0; i < first.length && j < second.length; ) {
      if (first[i] === second[j]) {
        inFirst[i] = inSecond[j] = true;
        i += 1;
        j += 1;
      } else if (lengths[(i + 1) * width + j] >= lengths[i * width + j + 1]) i += 1;
      else j += 1;
    }
    return [inFirst, inSecond];
  }

  const SIGNS = { " ": "·", "\t": "→", "\n": "↵\n" };
  const withoutBlanks = (text) => text.replace(/[\s\u2400-\u2421]+/gu, "");

  function marked(words, isCommon, label, areBlanksShown) {
    const parts = [];
    for (let start = 0; start < words.length; ) {
      let end = start;
      while (end < words.length && isCommon[end] === isCommon[start]) end += 1;
      const text = words.slice(start, end).join("");
      const isBlank = !text.trim();
      const shown = isBlank ? text.replace(/[ \t\n]/g, (blank) => SIGNS[blank]) : text;
      parts.push(isCommon[start] || (isBlank && !areBlanksShown) ? text : truegold.element("mark", { title: label }, shown));
      start = end;
    }
    return parts;
  }

  /** Return the parts of both texts, with words that only one has in <mark>. Blanks are marked only if nothing else
   * differs. */
  truegold.markDifferences = function (first, second) {
    const firstWords = wordsOf(first).slice(0, MOST_WORDS);
    const secondWords = wordsOf(second).slice(0, MOST_WORDS);
    const [inFirst, inSecond] = common(firstWords, secondWords);
    const areBlanks = withoutBlanks(first) === withoutBlanks(second);
    const rest = (text, words) => text.slice(words.join("").length);
    return [
      [...marked(firstWords, inFirst, "only here", areBlanks), rest(first, firstWords)],
      [...marked(secondWords, inSecond, "only there", areBlanks), rest(second, secondWords)],
    ];
  };
})();
