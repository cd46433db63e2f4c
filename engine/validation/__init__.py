"""Validations of the backward pass and of torch.compile.

- `spec`: what is requested. `verdict`: what was found, and the decisions with their thresholds. Both are pure.
- `measure`: runs the steps that are compared. Needs torch.
"""
