"""Reward functions for other trainers: one short module for each trainer, all on one batch runner (`scoring`).

    from truegold.verifiers.adapters.trl import TruegoldReward
    GRPOTrainer(..., reward_funcs=[TruegoldReward()])

Each module documents the reward of a response that could not be judged, and reports the share of such responses. A
module imports its trainer only inside of functions, or to subclass one of the trainer's classes.
"""
