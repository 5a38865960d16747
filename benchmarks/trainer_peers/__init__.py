"""The trainers that `trainer.py` compares, each in a process of its own: one file for each.

A trainer is run as `python -m trainer_peers.NAME FOLDER` on a folder that holds setting.json (`setting.Setting`),
model/ and problems.jsonl, and writes its marks (`marks`) into the same folder. It is used the way its own users use it
and nothing in it is mended; where a default was changed, the file says why.
"""
