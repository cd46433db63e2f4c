"""What is said of a result, a probe and an estimate, in plain words, for command line and pages. All of it is pure."""
