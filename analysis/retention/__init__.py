"""What is thrown away when, and what is kept for ever."""
