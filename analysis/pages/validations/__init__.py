"""The page that starts validations and lists the latest ones."""
