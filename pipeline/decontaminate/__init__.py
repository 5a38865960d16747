"""Which problems of a file stand in evaluation sets: copies, parts of longer texts, rewordings."""
