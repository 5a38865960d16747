"""SFT and GRPO on DeepSpeed with vLLM rollouts.

`objective` is the mathematics, `segment` the training record, `policy` the model as the trainer sees it, `engine` one
optimizer step, `rollout` the sampling engine kept in step, `grpo` and `sft` the stages that put these together.
"""
