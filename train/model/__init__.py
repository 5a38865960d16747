"""The trained model: its checkpoints, its log-probabilities, and the engine that updates it with DeepSpeed."""
