"""PURE: result documents as types, of any version, also with specs that today's rules refuse, as of a model gone."""
