"""Hosts, devices and their queues."""
