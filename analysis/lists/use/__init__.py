"""What stored runs say of the use of a lab's devices: hours by day, and memory that people leave unused."""
