"""Where positives for hard problems come from: reflection and context distillation. Empty so far."""
