"""PURE: what to do with a result or an estimate: global batch, learning rate, and code to paste. Loads no torch.

global_batch  micro-batch x accumulation pairs that keep a global batch exactly
document      the whole advice as data, which command line, pages and API show
recipe        the settings of the code: batch, precision, optimizer, checkpointing, memory limit
snippets      the code of a training with Trainer, Accelerate, Lightning and plain torch
"""
