"""What people add to stored runs: names, tags, baselines, notes on steps, saved views, share links."""
