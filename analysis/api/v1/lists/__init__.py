"""What is asked about many runs: comparison, trends, matrix, fits, recommendations, advice, saved views."""
