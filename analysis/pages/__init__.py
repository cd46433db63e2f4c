"""The pages, one package each: views, query, context."""
