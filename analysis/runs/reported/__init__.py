"""Runs that other machines execute: their documents, their senders, and whose count."""
