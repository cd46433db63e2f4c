"""How fast a training is with each size: what its timed steps tell, and starts of the sizes in turns."""
