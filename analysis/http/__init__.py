"""What every request meets, pages and API alike: errors, limits, headers, the client's address."""
