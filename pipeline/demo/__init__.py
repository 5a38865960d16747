"""Stage `make_data`: the demo's word problems, the stories they are told in, and the defects planted among them."""

from truegold.pipeline.demo.stage import make_demo_data

__all__ = ["make_demo_data"]
