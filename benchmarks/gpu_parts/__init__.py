"""The parts of `gpu_training.py`."""
