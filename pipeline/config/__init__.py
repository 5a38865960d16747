"""The settings of every stage, as pydantic models."""
