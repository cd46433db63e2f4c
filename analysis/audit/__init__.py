"""Who did what, when, and what it was before: written with every change, changed by nobody."""
