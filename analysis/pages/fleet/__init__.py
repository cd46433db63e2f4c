"""Hosts, devices, and what waits for them."""
