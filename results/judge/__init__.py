"""Random inputs for two tools and the judgement of many at once; `results/toolset.py` is the program."""
