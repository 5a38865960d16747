"""The configuration that `truegold init` writes: short, commented, and valid as it stands."""

STARTER = """\
# A truegold run: truegold run {file}
# Any setting can be overridden: truegold run {file} --set data.limit=200
name: {name}

data:
  path: {data}
  # preset: gsm8k             # gsm8k, math, humaneval, mbpp, apps, codecontests, verl, trl ...; found by the columns
  # columns:                  # or say which column is which
  #   prompt: question
  #   gold: {{column: answer, extract: "after ####"}}
  #   solution: answer
  # verifier: math            # or choice, exact, your_package.module:object, path/to/file.py:object
  heldout: 0.1                # share of rows kept back for evaluation
  # limit: 200

model:
  path: {model}

chat:
  user: |-
    {{prompt}}
    Put your final answer in \\\\boxed{{}}.

profile:
  samples: 8                  # completions per problem
  max_tokens: 512

select:
  zero_share: 0.1             # share of never-passed problems: a few samples cannot tell 0 from rare

# sft: {{}}                     # SFT cold start on the verified worked solutions

train:
  steps: 100
  prompts_per_step: 32
  group_size: 8
  sampling:                   # max_tokens comes from the profile's right completions
    refills: 1                # once more from the reserve, for groups that are all right or all wrong
  optimizer:
    lr: 1.0e-6
    zero_stage: 1
  # launch: {{ranks: 8}}        # training processes, one for each GPU
"""


def starter_config(file: str, name: str, data: str, model: str) -> str:
    """The starter file's text."""
    return STARTER.format(file=file, name=name, data=data, model=model)
