"""PURE: result documents as types: each is written by `to_dict` and read back by `from_dict`.

A document may be of any version, and its spec may be one that today's rules refuse: of a model that is gone.

- `measured`, `estimated`, `validated`: a type for each; a command is a measurement that also has a `training`.
"""
