"""What commands print: live lines, tables and summaries; nothing else writes to a terminal."""
