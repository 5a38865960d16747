"""Rewards for other people's trainers: one module each, a few lines over one batch runner (`scoring`).

    from truegold.verifiers.adapters.trl import TruegoldReward
    GRPOTrainer(..., reward_funcs=[TruegoldReward()])

Each says how it treats a response that could not be judged, and reports the share of them. No module imports the
trainer it is for, unless it has to subclass something of it.
"""
