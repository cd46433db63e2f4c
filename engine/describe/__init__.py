"""What is said of a result, a probe and an estimate, in plain words. The command line and the pages lay it out.

All of it is pure, and needs neither torch nor Django.
"""
