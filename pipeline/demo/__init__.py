"""Stage `make_data`: generates the demo's word problems as stories, with planted defects."""

from truegold.pipeline.demo.stage import make_demo_data

__all__ = ["make_demo_data"]
