"""The errors of estimates."""
