"""The model that is trained: its checkpoints, its log-probabilities, and the engine that updates it on DeepSpeed."""
