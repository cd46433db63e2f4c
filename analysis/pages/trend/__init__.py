"""One kind of run over time: where its figures jump, and what changed there."""
