"""What `benchmarks/first_hour.py` is made of: experiments, their judgement, their programs, and the file of answers."""
