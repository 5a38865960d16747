"""SFT and GRPO on DeepSpeed with vLLM rollouts.

config      the settings of models, SFT and RL; without torch
objective   the mathematics: advantages, losses, weights
model       the policy, the training record `Segment`, and the engine that takes one optimizer step
guards      what is watched while a run trains, and what a finished one's log says
rollout     the sampling engine that is kept in step, and the probe that says where the two disagree
turns       dialogues with environments, and the context that each turn was sampled in
grpo, sft   the stages that put these together
"""
