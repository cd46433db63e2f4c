"""The pages, one package each: `views` answers requests, `context` is for templates, `forms` reads what is sent."""
