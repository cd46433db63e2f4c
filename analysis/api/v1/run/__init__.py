"""Runs: their requests, parts, actions, files and streams, and those that other machines report."""
