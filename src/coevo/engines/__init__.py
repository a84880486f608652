"""Who measures fitness: engines behind the Evaluator contract."""
