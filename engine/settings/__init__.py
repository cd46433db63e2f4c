"""How one setting is declared, checked and offered; the options of LoRA and the optimizers."""
