"""The site around the application: settings, addresses, middleware. Nothing here knows what a run is."""
