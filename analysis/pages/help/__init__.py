"""Help without internet: the words of the product, and the documents of this installation."""
