"""A Transformer as sizes: `Model` and `model`, what is counted of them, and how other people's configurations are read."""

from scalebook.transformer.known import model, models
from scalebook.transformer.model import ACTIVE, REMAT, Dims, Line, Model

__all__ = ["ACTIVE", "REMAT", "Dims", "Line", "Model", "model", "models"]
