"""What the paper does not have; each hooks into the search from outside."""
