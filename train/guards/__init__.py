"""Guards: what is watched while a run trains, and what is done when it goes wrong."""
