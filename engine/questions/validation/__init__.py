"""Validations of the backward pass and of torch.compile: `spec` and `verdict` are pure, `measure` needs torch."""
