"""One plain function per figure: numbers and names in, plain data out. The page, a notebook and a test call the same ones.

Every function returns a *view*: a dict of strings, numbers, lists and dicts, ready for JSON, which `scalebook.figures` draws.
"""

from scalebook.explore.arrays import sharded_array
from scalebook.explore.caches import cache_variants, kv_cache, largest_batch
from scalebook.explore.comparisons import agreement
from scalebook.explore.flows import latency, plan
from scalebook.explore.lengths import attention_share, equal_length, mixing_share
from scalebook.explore.machines import torus
from scalebook.explore.quantities import bars, stacks, times
from scalebook.explore.rivals import plan_times
from scalebook.explore.rooflines import matmul_roofline, roofline
from scalebook.explore.steps import collective
from scalebook.explore.tpus import memory_levels, systolic, tiles
from scalebook.explore.transformers import model_anatomy

__all__ = [
    "agreement",
    "attention_share",
    "bars",
    "cache_variants",
    "collective",
    "equal_length",
    "kv_cache",
    "largest_batch",
    "latency",
    "matmul_roofline",
    "memory_levels",
    "mixing_share",
    "model_anatomy",
    "plan",
    "plan_times",
    "roofline",
    "sharded_array",
    "stacks",
    "systolic",
    "tiles",
    "times",
    "torus",
]
