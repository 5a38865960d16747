#!/bin/sh
# GRPO by verl on a set that truegold has exported, with its rewards.
#
#     truegold export runs/gsm8k --format verl --out set --system 'End with \boxed{...}.'
#     sh examples/verl_grpo.sh set Qwen/Qwen2.5-0.5B-Instruct
#
# Further settings may follow, as verl takes them: trainer.n_gpus_per_node=4
set -eu
SET=$1
MODEL=$2
shift 2
exec "${PYTHON:-python}" -m verl.trainer.main_ppo \
    algorithm.adv_estimator=grpo \
    data.train_files="$SET/train.parquet" \
    data.val_files="$SET/test.parquet" \
    data.train_batch_size=64 \
    data.max_prompt_length=1024 \
    data.max_response_length=1024 \
    actor_rollout_ref.model.path="$MODEL" \
    actor_rollout_ref.actor.ppo_mini_batch_size=64 \
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8 \
    actor_rollout_ref.rollout.name=vllm \
    actor_rollout_ref.rollout.n=8 \
    actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=8 \
    actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=8 \
    reward.custom_reward_function.path="$SET/compute_score.py" \
    trainer.rollout_data_dir=rollouts \
    trainer.logger='["console"]' \
    trainer.n_gpus_per_node=1 \
    trainer.nnodes=1 \
    "$@"
