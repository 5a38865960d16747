"""SFT and GRPO on DeepSpeed with vLLM rollouts.

config      the settings of models, SFT and RL; without torch
objective   the mathematics: advantages, losses, weights
model       the policy, the training record `Segment`, and the engine that takes one optimizer step
guards      checks of a run while it trains, and a diagnosis of the log of a finished run
rollout     the sampling engine, its weight updates, and the probe that compares it with the trainer
turns       dialogues with environments, and the context that each turn was sampled in
grpo, sft   the stages that use the folders above
"""
