"""Compares a result with a baseline, for a pipeline that has to stop a regression.

- `compare`: PURE, what is a regression and what is unknown; `changes`: PURE, what was different.
- `report`: PURE, the comparison as text, as Markdown and as JUnit XML.
- `origin`: PURE, whether one of the two was reported to its portal and is not trusted there.
- `baseline`: where the baseline comes from: a file, a run of a portal, or a portal's newest run of the same workload.
"""
