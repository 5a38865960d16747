"""Finds what belongs to a question in other columns than its own, and kinds of rows that no verifier judges.

{"Body": "Tom has 3 apples.", "Question": "How many has he?"}       "Tom has 3 apples. How many has he?"
{"passage": "In 1842 ...", "question": "When ...?"}                 the passage, an empty line, the question
{"instruction": "Solve for x.", "input": "2x = 6"}                  the instruction, an empty line, the input
{"description": "Print n.", "input_format": "A number.", ...}       the problem, its input, its output

foreign_kind({"FAIL_TO_PASS": [...], ...})    "its rows are changes to a repository (column FAIL_TO_PASS), ..."
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from truegold.pipeline.sources.columns import Samples, Values, text_of
from truegold.pipeline.sources.conversations import read_prompt

STORIES = ("Body", "passage", "article", "paragraph", "story")
"""Columns with the text that a question is about."""
SECTIONS = {"input_format": "Input", "output_format": "Output"}
"""Columns of contest problems that belong below the statement, with their headings."""
STORY_WORDS = 4
"""A shorter text in such a column is a name or a number, not a story."""
NOTHING = ("", "n/a", "na", "none", "null", "-", "<noinput>")
"""What stands in an `input` that is empty."""


_UNWRAPPED = re.compile(
    r"\s*<[|｜](?:im_start\|>)?user(?:[|｜]>)?(?P<text>.*?)(?:<\|im_end\|>\s*)?<[|｜](?:im_start\|>)?assistant(?:[|｜]>)?\s*",
    re.IGNORECASE | re.DOTALL,
)
"""A question in the tokens of a chat template, which the model's own template would put around it again."""


@dataclass(frozen=True, slots=True)
class StoryColumns:
    """The columns that make the whole prompt."""

    prompt: str
    before: str | None = None
    behind: str | None = None
    sections: tuple[str, ...] = ()

    def whole_prompt(self, values: Values) -> str | None:
        """Return the prompt with what belongs to it; None where that is the prompt alone."""
        question, is_chat = read_prompt(values.get(self.prompt))
        if not isinstance(question, str):
            return None
        bare = _UNWRAPPED.fullmatch(question)
        if is_chat or bare is not None:
            return bare["text"].strip() if bare is not None else None
        before = text_of(values.get(self.before)) if self.before is not None else None
        behind = text_of(values.get(self.behind)) if self.behind is not None else None
        behind = None if behind is not None and behind.strip().lower() in NOTHING else behind
        sections = [
            f"{SECTIONS[name]}\n{text}" for name in self.sections if (text := text_of(values.get(name))) is not None
        ]
        if before is None and behind is None and not sections:
            return None
        joint = " " if self.before == "Body" else "\n\n"
        texts = [text for text in (behind, *sections) if text is not None and text.strip() not in question]
        head = question if before is None or before.strip() in question else f"{before}{joint}{question}"
        return "\n\n".join((head, *texts))


def story_columns(samples: Samples, prompt: str) -> StoryColumns:
    """Return the columns of the sample records that belong to the prompt's."""

    def holds_text(name: str, words: int = 1) -> bool:
        texts = [values[name] for values in samples if isinstance(values.get(name), str)]
        return name != prompt and any(len(text.split()) >= words for text in texts)

    before = next((name for name in STORIES if holds_text(name, STORY_WORDS)), None)
    behind = "input" if prompt == "instruction" and holds_text("input") else None
    return StoryColumns(prompt, before, behind, tuple(name for name in SECTIONS if holds_text(name)))
