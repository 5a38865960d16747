"""The settings of models, SFT and RL. Nothing here imports torch."""
